"""Parquet tables of numbers: one row a time step, one column a feature."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from gradlab.checkpoints.archive import spoken
from gradlab.engine.tables import Table
from gradlab.errors import InputFileError, MissingExtraError, NonFiniteError

MAGIC = b"PAR1"


def read_parquet(path: Path) -> Table:
    """Table of one row a time step.

    Parameters
    ----------
    path
        A Parquet file whose columns are numbers.

    Returns
    -------
    table
        With the names of the columns as its header.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InputFileError
        If it is damaged or empty, or a column is no number or has holes; column and row are named.
    NonFiniteError
        If a number is NaN or infinite.
    """
    parquet = _parquet(path)
    try:
        stored = parquet.read_table(path)
    except Exception as error:  # pyarrow has a tree of errors of its own, and OSError
        reason = spoken(" ".join(str(error).split()))
        raise InputFileError(
            f"{path} cannot be read as a Parquet table: {reason}; write it again"
        ) from error
    names = tuple(map(str, stored.column_names))
    if not names or not stored.num_rows:
        raise InputFileError(f"{path} has no rows: expected numbers, one row a time step")
    columns = [_numbers(path, name, stored.column(k)) for k, name in enumerate(names)]
    return Table(header=names, rows=np.stack(columns, axis=1).tolist())


def _parquet(path: Path) -> ModuleType:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a Parquet table and needs pyarrow: pip install 'gradlab-rnn[parquet]'"
        ) from error
    module: ModuleType = pyarrow.parquet
    return module


def _numbers(path: Path, name: str, column: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    where, values = f"{path}, column {spoken(name)}", np.asarray(column)
    if values.dtype.kind not in "biuf":
        raise InputFileError(
            f"{where} holds {getattr(column, 'type', values.dtype)}: expected numbers without "
            "holes; choose columns (option columns)"
        )
    numbers = values.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        raise NonFiniteError(
            f"{where}, row {wrong[0] + 1}: {numbers[wrong[0]]} is not finite: expected a finite "
            "number"
        )
    return numbers
