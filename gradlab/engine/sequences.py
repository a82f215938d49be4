"""Input sequences: arrays and tables in, one padded batch with its lengths out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, close, read_only, require_finite
from gradlab.checkpoints import npz
from gradlab.checkpoints.archive import MAX_BYTES, first_bytes, naming, reading, spoken
from gradlab.checkpoints.npy import MAGIC, read_npy
from gradlab.checkpoints.zip_members import SIGNATURES
from gradlab.engine import parquet
from gradlab.engine.tables import (
    Columns,
    Table,
    TableStyle,
    chosen_columns,
    read_rows,
    read_table,
)
from gradlab.errors import InputFileError, ModelFileError, SettingError, ShapeError
from gradlab.records.notebook import summary_html

HEAD_BYTES = 8
INPUTS, LENGTHS = "inputs", "lengths"
ARRAY_SUFFIXES = (".npy", ".npz")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sequences:
    """A batch of input sequences, time-major; what lies behind a sequence's end is 0.

    Raises
    ------
    ShapeError
        If an axis is empty or the lengths do not fit the inputs.
    SettingError
        If a sequence is empty, or longer than the time axis.
    NonFiniteError
        If a valid step is NaN or infinite.
    """

    inputs: Float[Array, "time batch features"]
    lengths: Int[Array, " batch"]  # valid steps of each sequence, 1..T
    description: str  # where they come from, for people
    synthetic: bool = False
    assumptions: tuple[str, ...] = ()  # what had to be assumed in reading them, a sentence each

    def __post_init__(self) -> None:
        """Check shapes, lengths and valid entries; clear the padding; close the arrays."""
        inputs, lengths = np.asarray(self.inputs, dtype=np.float64), np.asarray(self.lengths)
        _require_fitting(inputs, lengths)
        valid = np.arange(len(inputs))[:, None] < lengths
        cleared = np.where(valid[:, :, None], inputs, 0.0)
        require_finite(INPUTS, cleared)
        object.__setattr__(self, INPUTS, close(cleared))
        object.__setattr__(self, LENGTHS, read_only(lengths, np.int64))

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        steps, count, features = self.inputs.shape
        told = {"sequences": count, "steps": steps, "features": features}
        return summary_html(self, told | {"description": self.description})


def read_sequences(
    path: str | os.PathLike[str],
    *,
    batch_first: bool = False,
    separator: str = ",",
    decimal: str = ".",
    ragged: bool = False,
    columns: Columns | None = None,
) -> Sequences:
    """Sequences of a .npy, .npz, text or Parquet file; its content decides, not its suffix.

    Parameters
    ----------
    path
        ``.npy``: (time, batch, features), (time, features) or (time,). ``.npz``: the same as
        ``inputs``, with ``lengths`` (batch,) if sequences end early; or any single array. Text: one
        row a time step and one column a feature, under a header or not; Parquet: the same.
    batch_first
        Whether arrays of three axes are (batch, time, features). They are transposed, never
        reshaped.
    separator, decimal
        What stands between the cells of a text file, and the decimal sign.
    ragged
        Read a text file as one sequence a row, of one feature; lengths are kept.
    columns
        Features to read, by name in the header or by index from 0; all if None, except a column
        named t, time or step, which is the time index.

    Returns
    -------
    sequences
        float64, with every assumption made on the way.

    Raises
    ------
    InputFileError
        If there is no such file, or it is damaged, ragged, or holds something other than numbers;
        line and column are counted from 1.
    ShapeError
        If an axis is empty, or there are more than three.
    SettingError
        If a sequence is empty, or a column does not exist.
    NonFiniteError
        If a valid step is NaN or infinite.
    """
    file = Path(path)
    style = TableStyle(separator=separator, decimal=decimal)
    with naming(file):
        head = input_head(file)
        if not is_array_file(file, head):
            return _text(file, head, style, columns, ragged)
        if ragged:
            raise SettingError("ragged is for text files, one sequence a row: leave it out")
        return _array(file, batch_first, columns, *stored_arrays(file, head))


def input_head(file: Path) -> bytes:
    """First bytes of a file of inputs.

    Raises
    ------
    InputFileError
        If there is no such file, or it is empty.
    """
    try:
        return first_bytes(file, HEAD_BYTES)
    except ModelFileError as error:
        raise InputFileError(str(error)) from error


def is_array_file(file: Path, head: bytes) -> bool:
    """Whether a file is one of NumPy's, by its first bytes, and not a table of rows.

    Raises
    ------
    InputFileError
        If it is neither.
    """
    if head.startswith((MAGIC, *SIGNATURES)):
        return True
    if head.startswith(parquet.MAGIC):
        return False
    if file.suffix.lower() in ARRAY_SUFFIXES or b"\0" in head:
        raise InputFileError(
            f"{file} is neither a NumPy file nor text: expected .npy, .npz or .csv; save it again"
        )
    return False


def stored_arrays(file: Path, head: bytes) -> tuple[Array, Array | None]:
    """Inputs and lengths of a NumPy file, as they are stored.

    Raises
    ------
    InputFileError
        If it is damaged, or holds several arrays and none named ``inputs``.
    """
    try:
        if head.startswith(SIGNATURES):
            with reading(file, npz.CONTAINER):
                return _members(file)
        with reading(file, "NumPy array"), file.open("rb") as stream:
            return read_npy(stream, file.stat().st_size, "the array"), None
    except ModelFileError as error:
        raise InputFileError(str(error)) from error


def _members(file: Path) -> tuple[Array, Array | None]:
    tensors = npz.read(file, MAX_BYTES).tensors
    if INPUTS in tensors:
        return tensors[INPUTS], tensors[LENGTHS] if LENGTHS in tensors else None
    if len(tensors) == 1:
        return tensors[tensors.keys()[0]], None
    names = ", ".join(spoken(name) for name in list(tensors)[:8]) or "none"
    raise InputFileError(f"{file} holds arrays named {names}: expected inputs, and lengths if any")


def _array(
    file: Path,
    batch_first: bool,
    columns: Columns | None,
    array: Array,
    lengths: Array | None,
) -> Sequences:
    if array.dtype.kind not in "biuf" or not 1 <= array.ndim <= 3 or 0 in array.shape:
        raise ShapeError(
            f"the array has shape {array.shape} of {array.dtype}: expected real numbers of shape "
            "(time, batch, features), (time, features) or (time,), no axis empty"
        )
    inputs, layout = _time_major(array, batch_first)
    if columns is not None:
        inputs = inputs[:, :, chosen_columns(columns, inputs.shape[2], None)]
    steps, batch = inputs.shape[:2]
    lengths = np.full(batch, steps) if lengths is None else lengths
    _require_fitting(inputs, lengths)
    equal = (f"{file.name} has {steps} steps and {batch} sequences: axes read as {layout} "
             "(option batch_first)",)  # fmt: skip
    return Sequences(
        inputs=inputs.astype(np.float64),
        lengths=lengths,
        description=f"{file.name}, axes {layout}",
        assumptions=equal if array.ndim == 3 and steps == batch else (),
    )


def _time_major(array: Array, batch_first: bool) -> tuple[Array, str]:
    if array.ndim == 1:
        return array[:, None, None], "(time)"
    if array.ndim == 2:
        return array[:, None, :], "(time, features)"
    if batch_first:
        return array.transpose(1, 0, 2), "(batch, time, features)"
    return array, "(time, batch, features)"


def _text(
    file: Path, head: bytes, style: TableStyle, columns: Columns | None, ragged: bool
) -> Sequences:
    """Sequences of a file of rows: text, or Parquet."""
    if head.startswith(parquet.MAGIC):
        return _table(file, parquet.read_parquet(file), columns)
    if ragged:
        return _rows(file, style, columns)
    return _table(file, read_table(file, style), columns)


def _table(file: Path, table: Table, columns: Columns | None) -> Sequences:
    kept, assumptions = table.features(columns)
    values = np.array(table.rows)[:, None, kept]
    return Sequences(
        inputs=values,
        lengths=np.array([len(values)]),
        description=f"{file.name}, one row a time step",
        assumptions=assumptions,
    )


def _rows(file: Path, style: TableStyle, columns: Columns | None) -> Sequences:
    if columns is not None:
        raise SettingError("columns choose features of a table: a ragged file has one feature")
    rows = read_rows(file, style)
    lengths = np.array([len(row) for row in rows])
    inputs = np.zeros((lengths.max(), len(rows), 1))
    for sequence, row in enumerate(rows):
        inputs[: len(row), sequence, 0] = row
    return Sequences(inputs=inputs, lengths=lengths, description=f"{file.name}, one row a sequence")


def _require_fitting(inputs: Array, lengths: Array) -> None:
    if inputs.ndim != 3 or 0 in inputs.shape:
        raise ShapeError(
            f"inputs have shape {inputs.shape}: expected (time, batch, features), no axis empty"
        )
    steps, batch = inputs.shape[:2]
    if lengths.shape != (batch,) or lengths.dtype.kind not in "iu":
        raise ShapeError(
            f"lengths have shape {lengths.shape} of {lengths.dtype}: expected {batch} integers"
        )
    wrong = np.flatnonzero((lengths < 1) | (lengths > steps))
    if len(wrong):
        raise SettingError(
            f"sequence {wrong[0] + 1} has length {lengths[wrong[0]]}: expected 1 to {steps} steps; "
            "leave empty sequences out"
        )
