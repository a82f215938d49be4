"""What a loss needs beside a network, from files: a readout, and targets."""

from __future__ import annotations

import os
from pathlib import Path

from gradlab.arrays import Array, close
from gradlab.checkpoints.archive import MAX_BYTES, first_bytes, naming, reading
from gradlab.checkpoints.npy import MAGIC, read_npy
from gradlab.checkpoints.readout import find_readout
from gradlab.engine.losses import Readout
from gradlab.errors import InputFileError, ModelFileError


def load_readout(
    path: str | os.PathLike[str],
    key: str | None = None,
    loss: str = "cross_entropy",
    *,
    average: str = "none",
    dtype: str = "float64",
    max_bytes: int = MAX_BYTES,
) -> Readout:
    """Readout of a network, from the model file that holds both.

    Parameters
    ----------
    path
        A file that `load` reads.
    key
        Weight of the linear layer (``readout.weight``), or the layer (``readout``). If None, the
        one whose columns are as many as the outputs of the last recurrent layer.
    loss, average, dtype
        As for `Readout`; no file stores them.
    max_bytes
        As for `load`.

    Returns
    -------
    readout
        Its ``source`` says which tensors it was made of.

    Raises
    ------
    AmbiguousModelError
        If more than one layer fits, or what fits feeds another one; the message lists them.
    GradlabError
        If none fits, the named one does not exist, or the file cannot be read.
    """
    layer = find_readout(path, key=key, max_bytes=max_bytes)
    with naming(Path(path)):
        return Readout(
            W_hy=layer.weight,
            b_y=layer.bias,
            loss=loss,
            average=average,
            dtype=dtype,
            source=layer.words,
        )


def read_targets(
    path: str | os.PathLike[str], loss: str = "cross_entropy", *, batch_first: bool = False
) -> Array:
    """Targets of a .npy file.

    Parameters
    ----------
    path
        Integers (time, batch) for the cross entropy, reals (time, batch, outputs) for the squared
        error; without the time axis where the loss is at the last step alone, and without the
        batch axis for a single sequence.
    loss
        Decides how many axes an array with time and batch has.
    batch_first
        Whether those two stand the other way round, as in the file of the inputs. They are
        transposed, never reshaped; an array without one of them stays as it is.

    Returns
    -------
    targets
        In the stored type; whether they fit is found when the loss is taken.

    Raises
    ------
    InputFileError
        If there is no such file, it is damaged, or no .npy file of numbers.
    """
    file = Path(path)
    try:
        targets = _array(file)
    except ModelFileError as error:
        raise InputFileError(str(error)) from error
    whole = targets.ndim == (2 if loss == "cross_entropy" else 3)
    return close(targets.swapaxes(0, 1).copy() if batch_first and whole else targets)


def _array(file: Path) -> Array:
    if not first_bytes(file, len(MAGIC)).startswith(MAGIC):
        raise ModelFileError(f"{file} is no .npy file: expected targets saved by numpy.save")
    with naming(file), reading(file, "a NumPy array"), file.open("rb") as stream:
        return read_npy(stream, file.stat().st_size, "the array")
