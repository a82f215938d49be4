"""Tables of a sweep, from CSV or Parquet, a block at a time: what a figure keeps is bounded.

Of a table with more rows than a figure can show, rows drawn at random stand for all of them; means
over the places of a grid are those of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import gradlab as gl
from gradlab_reports.run_folder import check_columns, read_blocks

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 50_000  # rows of points that are kept
MOST_PROFILE_ROWS = 1_000_000  # rows of decay curves that are kept
BATCH = 16_384  # rows of a Parquet file at once


def beside(folder: Path, name: str) -> Path:
    """File of a table: the CSV, or the Parquet file where the CSV was taken away."""
    table = folder / f"{name}.csv"
    columns = table.with_suffix(".parquet")
    return table if table.is_file() or not columns.is_file() else columns


def blocks(path: Path, needed: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Rows of a table in order, as many at a time as take little room.

    Parameters
    ----------
    path
        A CSV or Parquet file.
    needed
        Columns that must be there; all are read.

    Raises
    ------
    gl.RunFolderError
        If the file cannot be read, lacks a column, has no rows, or words where numbers belong.
    gl.MissingExtraError
        If it is a Parquet file, and there is no pyarrow.
    """
    if path.suffix != ".parquet":
        yield from read_blocks(path, needed)
        return
    empty = True
    for block in _parquet_blocks(path):
        if empty:
            check_columns(path, [str(name) for name in block.columns], needed)
        empty = False
        yield block
    if empty:
        raise gl.RunFolderError(f"{path} has no rows: measure the sweep again")


def sampled(path: Path, needed: Sequence[str]) -> pd.DataFrame:
    """Rows of points, all or as many as are kept, in order.

    Parameters
    ----------
    path, needed
        As in `blocks`.

    Returns
    -------
    rows
        With ``point``, the place in the table; ``attrs["rows"]`` is how many rows the table has.
        Every row has the same chance to be among them, and the same are chosen every time.
    """
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    kept: list[pd.DataFrame] = []
    count = held = 0
    for block in blocks(path, needed):
        places = np.arange(count, count + len(block))
        drawn = block.assign(point=places, drawn=rng.random(len(block)))
        kept.append(drawn)
        count, held = count + len(block), held + len(block)
        if held > 2 * MOST_ROWS:
            kept = [pd.concat(kept).nsmallest(MOST_ROWS, "drawn")]
            held = MOST_ROWS
    rows = pd.concat(kept)
    if len(rows) > MOST_ROWS:
        rows = rows.nsmallest(MOST_ROWS, "drawn")
    rows = rows.sort_values("point").drop(columns="drawn").reset_index(drop=True)
    rows.attrs["rows"] = count
    return rows


def averaged(path: Path, needed: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Mean rate and most frequent regime at every place of a grid, over all rows.

    Parameters
    ----------
    path, needed
        As in `blocks`.
    names
        Columns that tell the places.

    Returns
    -------
    places
        A row a place with a finite rate: the names, ``rate``, ``regime`` and ``networks``.
    """
    import numpy as np
    import pandas as pd

    from gradlab_reports.frames import column

    sums: pd.DataFrame | None = None
    for block in blocks(path, needed):
        rows = block[np.isfinite(column(block, "rate"))]
        counted = rows.assign(networks=1)
        part = counted.groupby([*names, "regime"], sort=False)[["rate", "networks"]].sum()
        sums = part if sums is None else sums.add(part, fill_value=0.0)
    if sums is None or sums.empty:
        return pd.DataFrame(columns=[*needed, *names, "networks"])
    # Of regimes that are as frequent, the first by name.
    table = (
        sums.reset_index()
        .sort_values("regime")
        .sort_values("networks", ascending=False, kind="stable")
    )
    by_place = table.groupby(list(names), sort=True)
    places = by_place.agg(
        rate=("rate", "sum"), networks=("networks", "sum"), regime=("regime", "first")
    ).reset_index()
    return places.assign(rate=places["rate"] / places["networks"])


def curves(path: Path, points: pd.DataFrame, needed: Sequence[str]) -> pd.DataFrame:
    """Decay curves of some points, all or as many as are kept.

    Parameters
    ----------
    path, needed
        As in `blocks`.
    points
        Rows of points, as `sampled` gives them.

    Returns
    -------
    rows
        Those of the profiles of these points, of about as many at each scale.
    """
    import pandas as pd

    kept: list[pd.DataFrame] = []
    chosen: set[int] | None = None
    for block in blocks(path, needed):
        if chosen is None:
            lags = int(block["lag"].max())
            chosen = _spread(points, max(1, MOST_PROFILE_ROWS // max(lags, 1)))
        kept.append(block[block["point"].isin(chosen)])
    return pd.concat(kept).reset_index(drop=True)


def _spread(points: pd.DataFrame, most: int) -> set[int]:
    """Places of as many points, taken in turn from the scales."""
    turn = points.groupby(points["gamma"].fillna(-1.0), sort=False).cumcount()
    order = turn.sort_values(kind="stable").index[:most]
    return set(points.loc[order, "point"].tolist())


def _parquet_blocks(path: Path) -> Iterator[pd.DataFrame]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise gl.MissingExtraError(
            f"reading {path} needs pyarrow: pip install 'gradlab-rnn[parquet]'"
        ) from error
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH):
                yield batch.to_pandas()
    except (ArrowInvalid, OSError) as error:
        raise gl.RunFolderError(
            f"{path} is no Parquet file ({error}): measure the sweep again"
        ) from error
