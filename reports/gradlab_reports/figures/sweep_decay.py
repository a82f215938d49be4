"""Decay curves of a sweep, colored by the spectral norm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, Normalize

from gradlab_reports.canvas import axes_or_new, figure_of
from gradlab_reports.frames import column, thinned
from gradlab_reports.spelling import factor, plain
from gradlab_reports.style import styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

SIZE = (6.6, 4.5)
MAX_CURVES = 60
# Without its lightest tenth, which is hard to see on white.
COLORS = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.9, 256)), name="viridis_dark")


@styled
def plot_sweep_decay(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw one decay curve for each spectral norm of a sweep.

    Parameters
    ----------
    frame
        Columns of ``sweep_profiles.csv`` with ``gamma`` of each point; natural logarithms. Of
        several networks of one gamma, those that reach the longest lag, the median is drawn.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: lag in steps against log10 of the norm; color is gamma.
    """
    ax = axes_or_new(ax, SIZE)
    curves = _curves(frame)
    gammas = list(curves)
    scale = Normalize(min(gammas, default=0.0), max(gammas, default=1.0))
    collection = LineCollection(
        list(curves.values()), colors=COLORS(scale(gammas)), linewidths=1.3, capstyle="round"
    )
    ax.add_collection(collection)
    ax.axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    _fit(ax, list(curves.values()), float(frame["lag"].max()))
    label_in_decades(ax.yaxis)
    ax.set_xlabel("lag  $l = t - k$  (time steps)")
    ax.set_ylabel(r"median norm of $\partial h_t/\partial h_k$  (spectral)")
    ax.set_title("Measured decay by spectral norm")
    bar = figure_of(ax).colorbar(ScalarMappable(scale, COLORS), ax=ax, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(r"spectral norm $\gamma_w$ of $W_{hh}$ (factor per step)")
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each curve is the measured median norm over the networks of one spectral norm, of several "
        "lengths those that were run longest; the gray line at 10⁰ is a gradient that arrives "
        "unchanged. Curves of a spectral norm above 1 that still fall are the false friend: the "
        "bound alone would allow them to grow."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    ends = [
        f"{factor(curve[-1][1] * math.log(10.0))} for gamma {plain(gamma)}"
        for gamma, curve in _curves(frame).items()
    ]
    if not ends:
        return "No point of the sweep has a finite norm."
    lag = int(frame["lag"].max())
    return f"The median norm at lag {lag} goes from {ends[0]} to {ends[-1]}."


def _curves(frame: pd.DataFrame) -> dict[float, NDArray[np.float64]]:
    """For each gamma in rising order, the finite points (lag, decades) of its median curve."""
    gammas = np.unique(frame["gamma"].dropna())
    chosen = gammas[np.unique(np.linspace(0, len(gammas) - 1, MAX_CURVES).astype(int))]
    curves: dict[float, NDArray[np.float64]] = {}
    for gamma in chosen:
        rows = _of_equal_length(frame[frame["gamma"] == gamma])
        median = rows.groupby("lag", sort=True)["log_norm_median"].median().reset_index()
        median = thinned(median[np.isfinite(column(median, "log_norm_median"))], "log_norm_median")
        if len(median):
            decades = to_decades(column(median, "log_norm_median"))
            curves[float(gamma)] = np.column_stack([column(median, "lag"), decades])
    return curves


def _of_equal_length(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the points that reach the longest lag: a curve over all would jump at shorter ends.

    A table without points is of one network each.
    """
    if "point" not in rows.columns:
        return rows
    longest = rows.groupby("point")["lag"].transform("max")
    kept: pd.DataFrame = rows[longest == longest.max()]
    return kept


def _fit(ax: Axes, curves: list[NDArray[np.float64]], last: float) -> None:
    heights = np.concatenate([curve[:, 1] for curve in curves] or [np.zeros(1)])
    low, high = min(float(heights.min()), 0.0), max(float(heights.max()), 0.0)
    margin = max(0.04 * (high - low), 0.05)
    ax.set_xlim(0.0, last)
    ax.set_ylim(low - margin, high + margin)
    count_in_wholes(ax.xaxis)
