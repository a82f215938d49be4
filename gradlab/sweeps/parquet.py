"""Tables of a sweep as Parquet files beside their CSV, for sweeps of very many points."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from gradlab.errors import MissingExtraError, OutputError, RunFolderError
from gradlab.records.sweep import MEASURED, PointProfile
from gradlab.sweeps.settings import COUNTS, REALS

TABLES = ("sweep", "sweep_profiles")
PLACES = frozenset(("seed", "point", "lag"))
WHOLE = PLACES.union(COUNTS)
FLOATS = frozenset((*REALS, *MEASURED, *PointProfile.__slots__)) - WHOLE
BLOCK = 1 << 22  # bytes of CSV that are in memory at once


def require_parquet() -> ModuleType:
    """Parser and writer of Parquet, so that its absence is told before anything is measured.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            "writing Parquet needs pyarrow: pip install 'gradlab-rnn[parquet]'"
        ) from error
    arrow: ModuleType = pyarrow
    return arrow


def save_sweep_parquet(folder: Path | str) -> list[Path]:
    """Write ``sweep.parquet`` and ``sweep_profiles.parquet``, a few megabytes at a time.

    Parameters
    ----------
    folder
        Of a sweep whose tables are written.

    Returns
    -------
    paths
        With the columns and rows of the CSV files: whole numbers, float64 (nan and infinities as
        they are), and words. Settings that are whole numbers or not set are float64 and nan.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    RunFolderError
        If a table is missing.
    OutputError
        If the disk refuses.
    """
    arrow, folder = require_parquet(), Path(folder)
    try:
        return [_convert(arrow, folder / f"{name}.csv") for name in TABLES]
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{folder} holds no {Path(error.filename or 'sweep.csv').name}: expected a folder as "
            "written by gradlab sweep -o"
        ) from error
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror or error}): expected a writable place "
            "with room on the disk"
        ) from error


def _convert(arrow: ModuleType, table: Path) -> Path:
    try:
        return _streamed(arrow, table, WHOLE)
    except arrow.ArrowInvalid:  # a setting that is not set at some points
        return _streamed(arrow, table, PLACES)


def _streamed(arrow: ModuleType, table: Path, whole: Collection[str]) -> Path:
    """Stream a CSV into a Parquet file, which takes its place when it is whole."""
    target, beside = table.with_suffix(".parquet"), table.with_suffix(".parquet.partial")
    with table.open(encoding="utf-8") as stream:
        names = stream.readline().rstrip("\n").split(",")
    types = {name: _type(arrow, name, whole) for name in names}
    options = arrow.csv.ConvertOptions(
        column_types=types, null_values=[], strings_can_be_null=False
    )
    blocks = arrow.csv.open_csv(
        table,
        read_options=arrow.csv.ReadOptions(block_size=BLOCK),
        convert_options=options,
    )
    with blocks, arrow.parquet.ParquetWriter(beside, blocks.schema) as writer:
        for block in blocks:
            writer.write_batch(block)
    beside.replace(target)
    return target


def _type(arrow: ModuleType, name: str, whole: Collection[str]) -> object:
    if name in whole:
        return arrow.int64()
    return arrow.float64() if name in FLOATS or name in WHOLE else arrow.string()
