"""A network as a file of plain arrays: the way back from whatever format it came in."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gradlab.cells.base import Cell
from gradlab.cells.stack import Network
from gradlab.checkpoints.described import described
from gradlab.errors import OutputError


def export_npz(network: Network | Cell, path: str | os.PathLike[str]) -> Path:
    """Write a network as NumPy arrays that anyone can read, and that `load` reads without a doubt.

    Parameters
    ----------
    network
        A network, or a single cell.
    path
        File to write, ending in ``.npz``; one that exists is not replaced.

    Returns
    -------
    path
        Holds weights as ``name.W_hh`` and, under ``gradlab.json``, what each layer is: cell,
        activations, reset, direction, layer.

    Raises
    ------
    SettingError
        If a cell is not one of gradlab's own.
    OutputError
        If the file exists, its name ends in something else, or the disk refuses.
    """
    file = Path(path)
    if file.suffix != ".npz":
        raise OutputError(f"{file} ends in {file.suffix or 'nothing'}: expected a name in .npz")
    arrays = described(network if isinstance(network, Network) else Network.of(network))
    try:
        with file.open("xb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
    except FileExistsError as error:
        raise OutputError(f"{file} exists: expected a new file; choose another name") from error
    except OSError as error:
        file.unlink(missing_ok=True)
        raise OutputError(
            f"{file} cannot be written ({error.strerror or error}): expected a writable place"
        ) from error
    return file
