"""Other people's weights: files in, networks out; nothing in a file is ever executed."""

from gradlab.checkpoints.loading import load

__all__ = ["load"]
