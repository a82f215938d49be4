"""Tables of a sweep read row by row, from CSV or Parquet, in the memory of a few rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradlab.errors import MissingExtraError, RunFolderError
from gradlab.storage.folder import MANIFEST, read_json

ROWS = 4096  # of a Parquet file that are in memory at once


def sweep_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Rows of a sweep's points, by the names of their columns.

    Parameters
    ----------
    folder
        Of a sweep whose tables are written; its ``sweep.csv`` is read, or where that was taken
        away its ``sweep.parquet``.

    Returns
    -------
    rows
        Texts of the CSV, or values of the Parquet file, which spell the same.

    Raises
    ------
    RunFolderError
        If there is no table, or it is damaged.
    MissingExtraError
        If there is only a Parquet file, and no pyarrow.
    """
    table, columns = folder / "sweep.csv", folder / "sweep.parquet"
    if table.is_file():
        return _csv_rows(table)
    if columns.is_file():
        return _parquet_rows(columns)
    raise RunFolderError(
        f"{folder} holds no sweep.csv: expected a folder as written by gradlab sweep -o"
    )


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if None in row or None in row.values():
                raise RunFolderError(
                    f"{path} has a row of another length than its header: measure the sweep again"
                )
            yield row


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(
            f"reading {path} needs pyarrow: pip install 'gradlab-rnn[parquet]'"
        ) from error
    try:
        with ParquetFile(path) as file:
            for block in file.iter_batches(ROWS):
                yield from block.to_pylist()
    except (ArrowInvalid, OSError) as error:
        raise RunFolderError(
            f"{path} is no Parquet file ({error}): measure the sweep again"
        ) from error


def sweep_settings(folder: Path) -> dict[str, Any]:
    """Settings that all points share; empty where no manifest tells them."""
    path = folder / MANIFEST
    found = read_json(path).get("settings", {}) if path.is_file() else {}
    return dict(found) if isinstance(found, dict) else {}
