"""Singular values of the recurrent matrix, the largest being the gamma_w of the bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.figures.spectrum import gates_of, gates_title
from gradlab_reports.frames import column, title_of
from gradlab_reports.spelling import plain
from gradlab_reports.style import CURVES, FAINT, MEASURED, styled
from gradlab_reports.ticks import count_in_wholes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 3.7)
MAX_MARKERS = 300
SIGMA_INK = "#b34f00"


@styled
def plot_singular_values(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the singular values in falling order.

    Parameters
    ----------
    frame
        Columns of ``spectrum.csv`` for one recurrence; gates, if any, in colors of their own.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: place in the order against singular value, both without unit; a line at 1.
    """
    ax = axes_or_new(ax, SIZE)
    gates = gates_of(frame)
    for gate, look in zip(gates, CURVES, strict=False):
        rows = frame[frame["gate"] == gate] if len(gates) > 1 else frame
        values = np.sort(column(rows, "singular_value"))[::-1]
        every = max(1, len(values) // MAX_MARKERS)
        ax.plot(
            np.arange(1, len(values) + 1),
            values,
            color=look.color if len(gates) > 1 else MEASURED,
            marker=look.marker,
            markersize=3.4,
            markevery=every,
            linewidth=0.8,
            label=gate,
        )
    _draw_lines(ax, frame, gates)
    drawn = frame[frame["gate"].isin(gates)] if len(gates) > 1 else frame
    ax.set_ylim(0.0, 1.1 * float(column(drawn, "singular_value").max()) or 1.0)
    ax.set_xlim(left=0.0)
    count_in_wholes(ax.xaxis)
    ax.set_xlabel("place in falling order")
    ax.set_ylabel("singular value (factor per step)")
    title_of(ax, "Singular values of the recurrent matrix", frame)
    if len(gates) > 1:
        ax.legend(title=gates_title(gates))
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each value is how much the matrix alone stretches one direction in one step. The largest "
        "of W_hh is γ_w, the base of the bound γ_w^l; all the others are why the bound is seldom "
        "reached. Values all at 1 are an orthogonal matrix, which keeps every gradient's length. "
        "Those of a gate bound no gradient."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    gates = gates_of(frame)
    if len(gates) > 1:
        largest = frame.groupby("gate", sort=False)["singular_value"].max()
        said = ", ".join(f"{gate} {plain(float(largest[gate]))}" for gate in gates)
        return f"Largest singular value by gate: {said}."
    values = column(frame, "singular_value")
    return (
        f"{len(values)} singular values from {plain(float(values.max()))} down to "
        f"{plain(float(values.min()))}; {int((values > 1.0).sum())} are larger than 1."
    )


def _draw_lines(ax: Axes, frame: pd.DataFrame, gates: list[str]) -> None:
    """Mark a length that is kept, where the axes reach it, and the largest value."""
    if ax.get_ylim()[1] >= 1.0:
        ax.axhline(1.0, color="#5f6368", linewidth=0.9, zorder=1)
        side: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 7.5, "color": FAINT}
        ax.text(0.99, 1.0, "1: length kept", transform=ax.get_yaxis_transform(), **side)
    if len(gates) > 1:
        return
    largest = float(column(frame, "singular_value").max())
    diamond: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": SIGMA_INK}
    ax.plot([1], [largest], marker="D", markersize=6, linestyle="none", **diamond)
    ax.annotate(
        rf"$\gamma_w = \sigma_\max = $ {plain(largest)}",
        xy=(1, largest),
        xytext=(7, 4),
        textcoords="offset points",
        va="bottom",
        fontsize=8.5,
        color=SIGMA_INK,
    )
