"""The direct path through the gates beside the gradient, and the parts of the state it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, stacked
from gradlab_reports.frames import column, thinned, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import LN10, factor, share, shortened
from gradlab_reports.style import CURVES, GREEN, INK, MEASURED, ORANGE, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 4.4)
MAX_MARKERS = 30
# Product of a gate, by the curve's name: words, color, marker, ink of the words.
PRODUCTS = (
    ("carry_log_norm", "largest unit", ORANGE, "s", "#8a5f00"),
    ("carry_log_median", "median unit", GREEN, "^", "#00724f"),
)
KINDS = ("log_norm", "carry_log_norm", "share")
# Of parts of the state, for print without colors; their colors are those of curves.
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "||", "oo")


@styled
def plot_paths(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the products of the gate that keeps the old state beside the measured gradient.

    Parameters
    ----------
    frame
        Columns of ``paths.csv`` for one recurrence; logarithms are natural.
    ax
        Axes to draw on, split in two where the state has several parts; a new figure without
        pyplot when None.

    Returns
    -------
    ax
        The upper axes: lag in steps against log10 of the measured median norm and of the products
        of the gate. Below it the shares of the gradient that flow through the parts of the state.
    """
    upper = axes_or_new(ax, SIZE)
    parts = list(dict.fromkeys(frame.loc[frame["quantity"] == "share", "name"]))
    panels = stacked(upper, (3.0, 1.2) if len(parts) > 1 else (1.0,))
    curves = _curves(frame)
    low, high = _limits(curves)
    upper.set_ylim(low, high)
    upper.set_xlim(0.0, max(float(frame["lag"].max()), 1.0))
    upper.axhline(0.0, color="#9aa0a6", linewidth=0.8, zorder=1)
    write_end_labels(upper, [label for curve in curves for label in _draw(upper, curve, low)])
    label_in_decades(upper.yaxis)
    upper.set_ylabel("norm, or product of gates")
    if len(parts) > 1:
        _draw_shares(panels[1], frame, parts)
    count_in_wholes(panels[-1].xaxis)
    panels[-1].set_xlabel("lag  $l = t - k$  (time steps)")
    title_of(upper, "Direct path and gradient", frame)
    return upper


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Circles are the measured median norm of the Jacobian of the whole state. Squares and "
        "triangles are products of the gate that keeps the old state, of the unit with the largest "
        "product and of the median unit: what the direct path alone would carry. Where the circles "
        "lie above them, the gradient runs through the other gates and the recurrent weights; the "
        "products are no bound. Below: the part of the last output's gradient that arrives at each "
        "part of the state, h or c, as a share of its square."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    lag = int(frame["lag"].max())
    last = frame[frame["lag"] == lag]
    norms, products, shares = (
        list(zip(rows["name"], rows["value"].astype(float), strict=True))
        for rows in (last[last["quantity"] == kind] for kind in KINDS)
    )
    said = [f"the measured median norm is {factor(value)}" for _, value in norms]
    said += [
        f"the largest product of {name} over a unit {factor(value)}" for name, value in products
    ]
    words = f"At lag {lag} {' and '.join(said)}"
    if len(shares) < 2:
        return f"{words}."
    flows = " and ".join(f"{share(value)} is in {name}" for name, value in shares)
    return f"{words}; of the square of the gradient {flows}."


class _Curve:
    """One curve in decades, with its words and looks."""

    def __init__(self, rows: pd.DataFrame, words: str, color: str, marker: str, ink: str) -> None:
        shown = thinned(rows.sort_values("lag"), "value")
        values = to_decades(column(shown, "value"))
        finite = np.isfinite(values)
        self.lag: NDArray[np.float64] = shown["lag"].to_numpy(dtype=np.float64)[finite]
        self.values: NDArray[np.float64] = values[finite]
        self.words, self.color, self.marker, self.ink = words, color, marker, ink


def _curves(frame: pd.DataFrame) -> list[_Curve]:
    measured = frame[frame["quantity"] == "log_norm"]
    curves = [_Curve(measured, "measured norm", MEASURED, "o", MEASURED)]
    for quantity, words, color, marker, ink in PRODUCTS:
        for name, rows in frame[frame["quantity"] == quantity].groupby("name", sort=False):
            curves.append(
                _Curve(rows, f"product of {shortened(str(name), 20)},\n{words}", color, marker, ink)
            )
    return [curve for curve in curves if len(curve.values)]


def _limits(curves: list[_Curve]) -> tuple[float, float]:
    """All that was measured, and of the products as much again below it."""
    if not curves:
        return -1.0, 1.0
    measured = np.append(curves[0].values, 0.0)
    low, high = float(measured.min()), float(measured.max())
    lowest = min(float(curve.values.min()) for curve in curves)
    low = max(lowest, low - max(3.0, 1.5 * (high - low)))
    high = max(high, *(float(curve.values.max()) for curve in curves))
    margin = max(0.05 * (high - low), 0.05)
    return low - margin, high + margin


def _draw(ax: Axes, curve: _Curve, low: float) -> list[EndLabel]:
    every = max(1, -(-len(curve.lag) // MAX_MARKERS))
    mark: dict[str, Any] = {"marker": curve.marker, "markersize": 3.4, "markevery": every}
    ax.plot(curve.lag, curve.values, color=curve.color, linewidth=1.3, **mark)
    end = float(curve.values[-1])
    if end >= low:
        return [EndLabel(height=end, text=curve.words, color=curve.ink, literal=True)]
    words = f"{curve.words}\n↓ to {factor(end * LN10, 2)}"
    return [EndLabel(height=end, text=words, color=curve.ink, leader=False, literal=True)]


def _draw_shares(ax: Axes, frame: pd.DataFrame, parts: list[str]) -> None:
    """Shares of the parts of the state, stacked up to 100 %, named at their ends."""
    shares = frame[frame["quantity"] == "share"]
    table = shares.pivot(index="lag", columns="name", values="value")[parts].dropna()
    ax.set_ylim(0.0, 100.0)
    base, labels = np.zeros(len(table)), []
    for name, curve, hatch in zip(parts, CURVES, HATCHES, strict=False):
        top = base + 100.0 * table[name].to_numpy()
        look: dict[str, Any] = {"color": curve.color, "alpha": 0.45, "lw": 0, "hatch": hatch}
        ax.fill_between(table.index, base, top, **look)
        if len(table):
            middle = 0.5 * float(base[-1] + top[-1])
            words = f"through {shortened(name, 20)}"
            labels.append(EndLabel(height=middle, text=words, color=INK, literal=True))
        base = top
    write_end_labels(ax, labels)
    ax.set_yticks([0, 50, 100])
    ax.set_ylabel("share of the\ngradient (%)")
