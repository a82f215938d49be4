"""Token ids through an embedding of the same model file: what many networks begin with."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.checkpoints.archive import MAX_BYTES, Tensors, naming, require_limit, spoken
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.keys import weight_names
from gradlab.checkpoints.recognition import read_archive
from gradlab.engine.sequences import (
    Sequences,
    input_head,
    is_array_file,
    read_sequences,
    stored_arrays,
)
from gradlab.errors import (
    AmbiguousModelError,
    InputFileError,
    SettingError,
    ShapeError,
    unknown_name,
)

EMBEDDING = re.compile(
    r"(.*[./_])?(\w*emb\w*)([./](weight|kernel|embeddings?|\d+))?", re.IGNORECASE
)


def read_tokens(
    path: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    embedding: str | None = None,
    batch_first: bool = False,
    separator: str = ",",
    ragged: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Sequences:
    """Sequences of embedded token ids.

    Parameters
    ----------
    path
        Whole numbers from 0. ``.npy``: (time, batch), or (time,) for one sequence. ``.npz``: the
        same as ``inputs``, with ``lengths`` (batch,). Text: a column of ids, one row a time step;
        with ``ragged`` one sequence a row.
    model
        The file that `load` reads, which holds the embedding too.
    embedding
        Name of the embedding's array (vocabulary, features), such as ``embedding.weight``. If
        None, the one array whose name says that it is an embedding.
    batch_first
        Whether ids of two axes are (batch, time).
    separator, ragged
        As in `read_sequences`.
    max_bytes
        As in `load`.

    Returns
    -------
    sequences
        Rows of the embedding, float64.

    Raises
    ------
    InputFileError
        If ids are not whole numbers of the vocabulary; the first such is named.
    AmbiguousModelError
        If no name was given and none or several arrays could be the embedding.
    UnknownNameError
        If the file has no array of that name.
    GradlabError
        If a file cannot be read.
    """
    require_limit(max_bytes)
    tensors = read_archive(Path(model), max_bytes).tensors
    with naming(Path(model)):
        key = _only(tensors) if embedding is None else _known(embedding, tensors)
        table = _table(key, tensors)
    file = Path(path)
    with naming(file):
        ids, lengths = _ids(file, batch_first, separator, ragged)
        rows = _rows(ids, lengths, len(table))
    assumed = (f"{spoken(key)} is taken for the embedding (option embedding)",)
    return Sequences(
        inputs=table[rows],
        lengths=lengths,
        description=f"{file.name}, token ids through {spoken(key)} of {Path(model).name}",
        assumptions=assumed if embedding is None else (),
    )


def _known(name: str, tensors: Tensors) -> str:
    if name not in tensors:
        raise unknown_name("embedding", name, tensors)
    return name


def _only(tensors: Tensors) -> str:
    """The one matrix whose name says that it is an embedding."""
    named = [name for name in weight_names(tensors) if EMBEDDING.fullmatch(name)]
    found = [name for name in named if tensors[name].ndim == 2]
    if len(found) != 1:
        names = ", ".join(map(spoken, found)) or "none"
        raise AmbiguousModelError(
            f"arrays whose name says that they are an embedding: {names}; expected one, name it "
            "(option embedding)"
        )
    return found[0]


def _table(key: str, tensors: Tensors) -> Float[Array, "vocabulary features"]:
    table = real_numbers(key, tensors[key])
    if table.ndim != 2 or 0 in table.shape:
        raise ShapeError(
            f"{spoken(key)} has shape {table.shape}: expected an embedding (vocabulary, features)"
        )
    return table


def _ids(
    file: Path, batch_first: bool, separator: str, ragged: bool
) -> tuple[Float[Array, "time batch"], Int[Array, " batch"]]:
    """Ids by time and sequence; two axes of a file are not features here."""
    head = input_head(file)
    if not is_array_file(file, head):
        read = read_sequences(file, separator=separator, ragged=ragged)
        return _one_column(read.inputs), read.lengths
    if ragged:
        raise SettingError("ragged is for text files, one sequence a row: leave it out")
    array, lengths = stored_arrays(file, head)
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2) or 0 in array.shape:
        raise ShapeError(
            f"token ids have shape {array.shape} of {array.dtype}: expected numbers of shape "
            "(time, batch), or (time,) for one sequence"
        )
    ids = array[:, None] if array.ndim == 1 else array.T if batch_first else array
    full = np.full(ids.shape[1], len(ids))
    return ids.astype(np.float64), full if lengths is None else lengths


def _one_column(inputs: Float[Array, "time batch features"]) -> Float[Array, "time batch"]:
    if inputs.shape[2] != 1:
        raise ShapeError(
            f"the table has {inputs.shape[2]} columns: expected one of token ids, one row a time "
            "step; for one sequence a row, use the option ragged"
        )
    return inputs[:, :, 0]


def _rows(
    ids: Float[Array, "time batch"], lengths: Int[Array, " batch"], vocabulary: int
) -> Int[Array, "time batch"]:
    """Ids as indices; what lies behind a sequence's end is not looked at."""
    valid = np.arange(len(ids))[:, None] < lengths
    wrong = valid & ((ids != np.floor(ids)) | (ids < 0) | (ids >= vocabulary))
    if wrong.any():
        t, sequence = np.argwhere(wrong)[0]
        raise InputFileError(
            f"token {ids[t, sequence]:g} at step {t + 1} of sequence {sequence + 1}: expected "
            f"whole numbers from 0 to {vocabulary - 1}, the rows of the embedding"
        )
    return np.where(valid, ids, 0.0).astype(np.int64)
