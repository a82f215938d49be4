"""Map of the gradient over all pairs of times: from t back to k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import CenteredNorm
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, figure_of
from gradlab_reports.frames import title_of
from gradlab_reports.spelling import factor
from gradlab_reports.style import EXACT_ZERO, FAINT, MISSING, SHRINK_GROW, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

SIZE = (5.4, 4.2)
# A map of fewer cells than this on a side keeps every cell; a larger one keeps every n-th time.
MAX_CELLS = 1200
# Rows beyond this, if evenly spaced, are read off an axis of time.
MAX_ROWS_NAMED = 40


@styled
def plot_pairs(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the norm of ``dh_t/dh_k`` for every measured pair of times.

    Parameters
    ----------
    frame
        Columns of ``pairs.csv`` for one recurrence; natural logarithms. Of several sequences the
        median is drawn.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: k across, t up, both in time steps; color is log10 of the norm, white at 1.
        When only some end times were measured, each has a row of its own.
    """
    ax = axes_or_new(ax, SIZE)
    times, grid = _grid(frame)
    image = _draw_grid(ax, times, grid)
    bar = figure_of(ax).colorbar(image, ax=ax, pad=0.03, shrink=0.92, extend="neither")
    label_in_decades(bar.ax.yaxis)
    bar.outline.set_visible(False)
    several = "sequence" in frame.columns and frame["sequence"].nunique() > 1
    bar.set_label(
        r"norm of $\partial h_t/\partial h_k$" + ("  (median over sequences)" if several else "")
    )
    ax.grid(visible=False)
    count_in_wholes(ax.xaxis)
    ax.set_xlabel("k: time the gradient reaches (steps)")
    ax.set_ylabel("t: time it starts from (steps)")
    title_of(ax, "Gradient from t back to k", frame)
    if np.isneginf(grid).any():
        _note(ax, "black: exactly 0")
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each cell is one pair of times: a gradient that starts at t (upward) and arrives at k "
        "(across). The diagonal is lag 0, and the lag grows to the left. Blue has shrunk, red has "
        "grown, white is unchanged. Stripes parallel to the diagonal mean that only the lag "
        "matters; horizontal or vertical ones point at single time steps. Where only some end "
        "times were measured, each has a row of its own."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    log_norm = frame["log_norm"].to_numpy(dtype=np.float64)
    log_norm = log_norm[~np.isnan(log_norm)]
    if not log_norm.size:
        return "No pair of times has a resolved norm."
    return (
        f"Over {frame['t'].nunique()} end times the norm lies between {factor(log_norm.min())} and "
        f"{factor(log_norm.max())}."
    )


def _grid(frame: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """End times, and the median over sequences in decades: a row an end time, a column a k."""
    stride = max(1, -(-int(frame["t"].max()) // MAX_CELLS))
    kept = frame[frame["k"] % stride == 0]
    if frame["t"].nunique() > MAX_CELLS:
        kept = kept[kept["t"] % stride == 0]
    cells = kept.groupby(["t", "k"], sort=True)["log_norm"].median()
    t, k = (cells.index.get_level_values(level).to_numpy(dtype=np.int64) for level in (0, 1))
    times, rows = np.unique(t, return_inverse=True)
    grid = np.full((len(times), int(k.max()) // stride + 1), np.nan)
    grid[rows, k // stride] = to_decades(cells.to_numpy())
    return times, grid


def _draw_grid(ax: Axes, times: NDArray[np.int64], grid: NDArray[np.float64]) -> AxesImage:
    half = max(float(np.abs(grid[np.isfinite(grid)]).max(initial=0.0)), 0.1)
    # Below the limits a cell takes the color of an exact zero; -inf itself would count as missing.
    grid = np.where(np.isneginf(grid), -2.0 * half, grid)
    look: dict[str, Any] = {
        "cmap": SHRINK_GROW.with_extremes(bad=MISSING, under=EXACT_ZERO),
        "norm": CenteredNorm(vcenter=0.0, halfrange=half),
        "origin": "lower",
        "aspect": "auto",
        "interpolation": "nearest",
    }
    right = float(times[-1]) - 0.5
    if len(times) > MAX_ROWS_NAMED and len(set(np.diff(times))) == 1:
        return ax.imshow(grid, extent=(-0.5, right, times[0] - 0.5, times[-1] + 0.5), **look)
    labeled = range(0, len(times), max(1, -(-len(times) // 12)))
    ax.set_yticks(list(labeled), [str(times[row]) for row in labeled])
    return ax.imshow(grid, extent=(-0.5, right, -0.5, len(times) - 0.5), **look)


def _note(ax: Axes, words: str) -> None:
    ax.text(
        0.98, 0.03, words, transform=ax.transAxes, ha="right", va="bottom", fontsize=8, color=FAINT
    )
