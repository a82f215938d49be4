"""``python -m gradlab_cli`` is the command ``gradlab``."""

from gradlab_cli.app import main

if __name__ == "__main__":
    main()
