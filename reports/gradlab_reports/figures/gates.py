"""Gates over time: how open each one is, and how its units differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlab_reports.canvas import axes_or_new, stacked
from gradlab_reports.frames import column, thinned, title_of
from gradlab_reports.spelling import plain, shortened
from gradlab_reports.style import INK, MEASURED, SKY, styled
from gradlab_reports.ticks import count_in_wholes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

WIDTH, GATE_HEIGHT, MARGIN = 5.4, 0.95, 0.75
# A joint state has the gates of all its layers: more panels than this would be too flat to read.
MAX_GATES = 8


@styled
def plot_gates(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the values of every gate along the sequences.

    Parameters
    ----------
    frame
        Columns of ``gates.csv`` for one recurrence.
    ax
        Axes to draw on, split into a panel a gate; a new figure without pyplot when None.

    Returns
    -------
    ax
        The panel of the first gate: time in steps against the mean over units and sequences, with
        a band between the mean 5 and 95 % quantiles of the units, and a thin line for the first
        of several sequences.
    """
    gates = list(dict.fromkeys(frame["gate"]))[:MAX_GATES]
    top = axes_or_new(ax, (WIDTH, MARGIN + GATE_HEIGHT * len(gates)))
    panels = stacked(top, [1.0] * len(gates))
    for panel, gate in zip(panels, gates, strict=True):
        _draw_gate(panel, frame[frame["gate"] == gate], str(gate))
    first, last = float(frame["t"].min()), float(frame["t"].max())
    panels[-1].set_xlim(first, max(last, first + 1.0))
    count_in_wholes(panels[-1].xaxis)
    panels[-1].set_xlabel("time t (steps)")
    title_of(top, "Gates over time", frame)
    return top


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each panel is one gate: the mean of its values over units and sequences, and a band that "
        "holds 5 to 95 % of the units; the thin line is the first sequence alone. A logistic gate "
        "near 1 is open, near 0 shut; the candidate (g or n) lies between −1 and 1. The gate that "
        "keeps the old state, f of an LSTM, z of a GRU, multiplies the direct path of the gradient "
        "at every step."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    means = frame.groupby("gate", sort=False)["mean"].mean()
    said = ", ".join(f"{gate} {plain(float(value))}" for gate, value in means.items())
    return f"Mean value over units and {frame['t'].nunique()} steps by gate: {said}."


def _draw_gate(ax: Axes, rows: pd.DataFrame, gate: str) -> None:
    steps = rows.groupby("t", sort=True)[["mean", "q05", "q95"]].mean().reset_index()
    shown = thinned(steps, "mean")
    t, low = shown["t"], min(float(column(steps, "q05").min()), 0.0)
    ax.fill_between(t, column(shown, "q05"), column(shown, "q95"), color=SKY, alpha=0.35, lw=0)
    mark: dict[str, Any] = {"marker": "o", "markersize": 2.8}
    every = max(1, len(shown) // 40)
    ax.plot(t, shown["mean"], color=MEASURED, linewidth=1.2, markevery=every, **mark)
    if rows["sequence"].nunique() > 1:
        first = thinned(rows[rows["sequence"] == rows["sequence"].min()], "mean")
        ax.plot(first["t"], first["mean"], color=INK, linewidth=0.7)
    high = max(float(column(steps, "q95").max()), 1.0)
    ax.set_ylim(-1.05 if low < 0.0 else -0.05, 1.05)
    if low < -1.05 or high > 1.05:  # a candidate without a squashing function
        ax.set_ylim(1.05 * low, 1.05 * high)
    else:
        ax.set_yticks([-1.0, 0.0, 1.0] if low < 0.0 else [0.0, 0.5, 1.0])
    look: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center", "fontweight": "bold"}
    ax.set_ylabel(shortened(gate, 24), color=INK, labelpad=8.0, parse_math=False, **look)
