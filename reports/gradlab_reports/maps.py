"""Maps over pairs of times: a row an end time, a column a k, a color a logarithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from gradlab_reports.style import FAINT, MISSING
from gradlab_reports.ticks import to_decades

if TYPE_CHECKING:
    import pandas as pd

# A map of fewer cells than this on a side keeps every cell; a larger one keeps every n-th time.
MAX_CELLS = 1200
# Rows beyond this, if evenly spaced, are read off an axis of time.
MAX_ROWS_NAMED = 40


@dataclass(frozen=True, kw_only=True)
class TimeMap:
    """Values in decades: a row for each of ``rows``, a column for every ``stride``-th k from 0."""

    rows: NDArray[np.int64]
    grid: NDArray[np.float64]
    stride: int

    @property
    def right(self) -> float:
        """Right edge, in steps."""
        return float(self.grid.shape[1] * self.stride) - 0.5


def time_map(frame: pd.DataFrame, value: str, row: str = "t") -> TimeMap:
    """Arrange a long table of pairs as a map.

    Parameters
    ----------
    frame
        Columns ``t``, ``k`` and those named.
    value
        Column of natural logarithms; what falls into one cell is shown by its median.
    row
        Column that a row stands for.

    Returns
    -------
    arranged
        Every n-th time where there are more than `MAX_CELLS`.
    """
    stride = max(1, -(-int(frame["t"].max()) // MAX_CELLS))
    kept = frame[frame["k"] % stride == 0]
    if frame[row].nunique() > MAX_CELLS:
        kept = kept[kept[row] % -(-int(frame[row].max()) // MAX_CELLS) == 0]
    cells = kept.groupby([row, "k"], sort=True)[value].median()
    names, k = (cells.index.get_level_values(level).to_numpy(dtype=np.int64) for level in (0, 1))
    rows, places = np.unique(names, return_inverse=True)
    grid = np.full((len(rows), int(k.max()) // stride + 1), np.nan)
    grid[places, k // stride] = to_decades(cells.to_numpy())
    return TimeMap(rows=rows, grid=grid, stride=stride)


def draw_map(ax: Axes, found: TimeMap, cmap: Colormap, norm: Normalize, *, zero: str) -> AxesImage:
    """Draw a map: k across, rows up; names rows that stand apart.

    Parameters
    ----------
    ax
        Where to.
    found
        The map.
    cmap, norm
        Colors of decades; what lies below the norm has the color of its lower end.
    zero
        Color of an exact zero.
    """
    low = float(norm.vmin if norm.vmin is not None else 0.0)
    high = float(norm.vmax if norm.vmax is not None else 0.0)
    # -inf itself would count as missing, so that a zero takes a place of its own below all others.
    below = np.maximum(found.grid, low)
    grid = np.where(np.isneginf(found.grid), low - 2.0 * (high - low), below)
    look: dict[str, Any] = {
        "cmap": cmap.with_extremes(bad=MISSING, under=zero),
        "norm": norm,
        "origin": "lower",
        "aspect": "auto",
        "interpolation": "nearest",
    }
    rows = found.rows
    if len(rows) > MAX_ROWS_NAMED and len(set(np.diff(rows))) == 1:
        edges = (-0.5, found.right, rows[0] - 0.5, rows[-1] + 0.5)
        return ax.imshow(grid, extent=edges, **look)
    labeled = range(0, len(rows), max(1, -(-len(rows) // 12)))
    ax.set_yticks(list(labeled), [str(rows[row]) for row in labeled])
    return ax.imshow(grid, extent=(-0.5, found.right, -0.5, len(rows) - 0.5), **look)


def note(ax: Axes, words: str) -> None:
    """Write a few words into the lower right corner, which a map of pairs leaves free."""
    ax.text(
        0.98, 0.03, words, transform=ax.transAxes, ha="right", va="bottom", fontsize=8, color=FAINT
    )
