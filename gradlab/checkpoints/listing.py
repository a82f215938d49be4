"""What a model file holds, array by array."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gradlab.checkpoints.archive import MAX_BYTES, naming, require_limit
from gradlab.checkpoints.proposals import as_toml, proposals, stored_shapes
from gradlab.checkpoints.recognition import read_archive
from gradlab.errors import GradlabError


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One array of a file; ``problem`` says why it cannot be read, and is empty if it can."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    problem: str = ""


def list_tensors(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> list[StoredTensor]:
    """Every array of a model file, whether or not it is part of a recurrent layer.

    Parameters
    ----------
    path
        A file of any format that `load` reads.
    max_bytes
        As in `load`.

    Returns
    -------
    tensors
        In the file's order. They are read one at a time, and none is kept.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged or of another format.
    SettingError
        If the limit is not a positive number of bytes.
    """
    require_limit(max_bytes)
    tensors = read_archive(Path(path), max_bytes).tensors
    listed = []
    for name in tensors:
        try:
            array = tensors[name]
        except GradlabError as error:
            listed.append(StoredTensor(name=name, shape=(), dtype="", problem=str(error)))
            continue
        listed.append(StoredTensor(name=name, shape=array.shape, dtype=str(array.dtype)))
    return listed


def propose_mapping(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> str:
    """Mapping in TOML for the arrays of a file that could be recurrent layers, to be edited.

    Parameters
    ----------
    path
        A file of any format that `load` reads.
    max_bytes
        As in `load`.

    Returns
    -------
    text
        A table for each candidate, and every array with its shape in comments. Shapes do not tell
        the order of gates, nor, where N = D, which matrix is recurrent: a proposal is no reading.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged or of another format.
    SettingError
        If the limit is not a positive number of bytes.
    """
    require_limit(max_bytes)
    file = Path(path)
    tensors = read_archive(file, max_bytes).tensors
    with naming(file):
        shapes = stored_shapes(tensors)
        return as_toml(proposals(shapes), shapes)
