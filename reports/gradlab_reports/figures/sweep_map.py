"""Map of the rates of a sweep: spectral norm across, another setting up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import CenteredNorm

from gradlab_reports.canvas import axes_or_new, figure_of
from gradlab_reports.frames import column
from gradlab_reports.spelling import plain
from gradlab_reports.style import MISSING, ON_DARK, ON_PALE, SHRINK_GROW, styled
from gradlab_reports.sweep_axes import row_axis, scale_axis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE, FLAT = (6.6, 4.2), (6.6, 2.3)  # a single row needs no height
LONGEST = 28  # letters at a row; longer names would leave no room for the map
MOST_SIGNS = 900  # cells; of more the signs would run into each other
SIGNS = {"vanishing": "−", "exploding": "+", "near-critical": "•", "undecided": "?"}
LEGEND = "−  vanishing     +  exploding     •  near-critical     ?  undecided"


@styled
def plot_sweep_map(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the mean measured rate at every place of a grid.

    Parameters
    ----------
    frame
        Columns of ``sweep.csv``; rows without a finite rate are left out.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: the spectral norm (or radius, or gain) across, up the length or, where that was
        not swept, another setting; color is the rate in nats per step, white at zero; a sign in
        each cell is the regime that most of its networks have.
    """
    across, up = scale_axis(frame), row_axis(frame)
    ax = axes_or_new(ax, SIZE if up else FLAT)
    rows = frame[np.isfinite(column(frame, "rate"))].reset_index(drop=True)
    rows = rows.assign(up=rows[up] if up else "")
    rates = rows.pivot_table(index="up", columns=across, values="rate", aggfunc="mean", sort=True)
    half = max(float(np.nanmax(np.abs(rates.to_numpy()), initial=0.0)), 1e-3)
    image = ax.imshow(
        rates.to_numpy(),
        cmap=SHRINK_GROW.with_extremes(bad=MISSING),
        norm=CenteredNorm(0.0, half),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
    )
    if rates.size <= MOST_SIGNS:
        _sign(ax, rows, rates, across, half)
    _name_ticks(ax, rates)
    ax.grid(visible=False)
    ax.set_xlabel(NAMES.get(across, across))
    ax.set_ylabel(NAMES.get(up, up) or "all networks")
    ax.set_title("Rate of the gradient norm over the sweep")
    bar = figure_of(ax).colorbar(image, ax=ax, pad=0.02)
    bar.outline.set_visible(False)
    # The scale is even on both sides of 0; the bar shows the part of it that occurs.
    found = rates.to_numpy()[np.isfinite(rates.to_numpy())]
    bar.ax.set_ylim(float(found.min(initial=-0.05 * half)), float(found.max(initial=0.05 * half)))
    bar.set_label("mean measured rate (nats per step)" if up else "mean rate\n(nats per step)")
    return ax


NAMES = {
    "gamma": r"spectral norm $\gamma_w$ of $W_{hh}$",
    "gamma_w": r"spectral norm $\gamma_w$ of $W_{hh}$",
    "radius": r"spectral radius $\rho$ of $W_{hh}$",
    "gain": r"gain of $W_{hh}$",
    "length": "length of the sequences (steps)",
    "hidden_size": "units",
}


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each cell is the mean over the networks of one place of the grid: blue where the measured "
        "gradient shrinks, vermillion where it grows, white where it keeps its size. The sign is "
        f"the regime that most of them have: {LEGEND}. Where the colors do not change from row to "
        "row, the rate does not depend on what the rows stand for."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = frame[np.isfinite(column(frame, "rate"))]
    if rows.empty:
        return "No point of the sweep has a finite rate."
    rates = rows.groupby(scale_axis(rows), sort=True)["rate"].mean()
    ends = f"{plain(float(rates.iloc[0]))} to {plain(float(rates.iloc[-1]))}"
    return f"Along the horizontal axis the mean rate goes from {ends} nats per step."


def _sign(ax: Axes, rows: pd.DataFrame, rates: pd.DataFrame, across: str, half: float) -> None:
    for i, up in enumerate(rates.index):
        for j, place in enumerate(rates.columns):
            found = rows.loc[(rows["up"] == up) & (rows[across] == place), "regime"].mode()
            sign = SIGNS.get(str(found.iloc[0]), "") if len(found) else ""
            dark = abs(float(rates.to_numpy()[i, j])) > 0.35 * half
            color = ON_DARK if dark else ON_PALE
            ax.text(j, i, sign, ha="center", va="center", color=color, fontsize=8)
    below: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": 8}
    ax.annotate(LEGEND, (0.0, 0.0), (0.0, -46.0), annotation_clip=False, **below)


def _name_ticks(ax: Axes, rates: pd.DataFrame) -> None:
    """Name cells in their middles, as many as have room."""
    for axis, values in ((ax.xaxis, rates.columns), (ax.yaxis, rates.index)):
        places = range(0, len(values), max(1, -(-len(values) // 12)))
        axis.set_ticks(list(places), [_word(values[place]) for place in places])


def _word(value: object) -> str:
    """A value of few digits; of a file's long path, the end, which tells it from others."""
    if isinstance(value, float):
        return f"{value:.4g}"
    word = str(value)
    return word if len(word) <= LONGEST else f"…{word[1 - LONGEST :]}"
