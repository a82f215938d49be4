"""Map of the gradient over all pairs of times: from t back to k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import CenteredNorm
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, figure_of
from gradlab_reports.frames import title_of
from gradlab_reports.maps import draw_map, note, time_map
from gradlab_reports.spelling import factor
from gradlab_reports.style import EXACT_ZERO, ON_DARK, ON_PALE, SHRINK_GROW, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

SIZE = (5.4, 4.2)
MAX_SIGNS = 18  # on a side


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
    found = time_map(frame, "log_norm")
    finite = found.grid[np.isfinite(found.grid)]
    half = max(float(np.abs(finite).max(initial=0.0)), 0.1)
    norm = CenteredNorm(vcenter=0.0, halfrange=half)
    image = draw_map(ax, found, SHRINK_GROW, norm, zero=EXACT_ZERO)
    bar = figure_of(ax).colorbar(image, ax=ax, pad=0.03, shrink=0.92, extend="neither")
    # The scale is even on both sides of 1; the bar shows the part of it that occurs.
    reach = min(float(finite.min(initial=0.0)), -0.05), max(float(finite.max(initial=0.0)), 0.05)
    bar.ax.set_ylim(*reach)
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
    said = ["black: exactly 0"] if np.isneginf(found.grid).any() else []
    if _sign_grown(ax, image, half):
        said.append("+ at least doubled")
    if said:
        note(ax, "\n".join(said))
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each cell is one pair of times: a gradient that starts at t (upward) and arrives at k "
        "(across). The diagonal is lag 0, and the lag grows to the left. Blue has shrunk, red has "
        "grown, white is unchanged. Stripes parallel to the diagonal mean that only the lag "
        "matters; horizontal or vertical ones point at single time steps. Where only some end "
        "times were measured, each has a row of its own. Signs + are set where the norm has at "
        "least doubled, so that growth and shrinking are told apart without colors."
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


def _sign_grown(ax: Axes, image: AxesImage, half: float) -> bool:
    """Set signs on a lattice of cells that have at least doubled; whether there are any."""
    left, right, bottom, top = image.get_extent()
    values: Any = image.get_array()
    grid = np.ma.filled(values, np.nan)
    rows, columns = (_lattice(count) for count in grid.shape)
    chosen = grid[np.ix_(rows, columns)]
    i, j = np.nonzero(chosen > np.log10(2.0))
    x = left + (columns[j] + 0.5) * (right - left) / grid.shape[1]
    y = bottom + (rows[i] + 0.5) * (top - bottom) / grid.shape[0]
    colors = np.where(chosen[i, j] > 0.35 * half, ON_DARK, ON_PALE)
    if len(x):
        ax.scatter(x, y, s=14, marker="+", c=colors, linewidths=0.7, zorder=3)
    return bool(len(x))


def _lattice(count: int) -> NDArray[np.int64]:
    """Middles of evenly spaced stretches, a sign each."""
    parts = min(count, MAX_SIGNS)
    return ((np.arange(parts) + 0.5) * count / parts).astype(np.int64)
