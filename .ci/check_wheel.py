"""Check that a wheel holds the three packages, whole, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import PurePosixPath

PACKAGES = {"gradlab": "", "gradlab_cli": "cli/", "gradlab_reports": "reports/"}


def tracked(package: str, root: str) -> set[str]:
    """Files of one package in the repository, named as the wheel names them."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", f"{root}{package}"], check=True, capture_output=True, text=True
    )
    return {name.removeprefix(root) for name in listing.stdout.split("\0") if name}


def faults(wheel: str) -> list[str]:
    """What is wrong with the wheel, a line each."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    top = {PurePosixPath(name).parts[0] for name in names}
    packages = {name for name in top if not name.endswith(".dist-info")}
    found = []
    if packages != set(PACKAGES):
        found.append(f"top level is {sorted(packages)}, expected {sorted(PACKAGES)}")
    found += [f"{p}/py.typed is missing" for p in PACKAGES if f"{p}/py.typed" not in names]
    if not any(name.startswith("gradlab_reports/templates/") for name in names):
        found.append("gradlab_reports/templates is missing")
    expected = set().union(*(tracked(package, root) for package, root in PACKAGES.items()))
    found += [f"{name} is in the repository, not in the wheel" for name in expected - names]
    return found


if __name__ == "__main__":
    problems = faults(sys.argv[1])
    print(*(problems or ["The wheel holds exactly the three packages, whole"]), sep="\n")
    sys.exit(1 if problems else 0)
