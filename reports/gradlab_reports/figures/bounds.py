"""The measured norm between proven curves: upper bounds above it, lower bounds below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.rung_styles import LOWER, UPPER
from gradlab_reports.rungs import RUNGS
from gradlab_reports.spelling import LN10, factor
from gradlab_reports.style import MEASURED, BoundStyle, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 4.3)
# Markers on a curve of sparsely measured lags, or on the measured one.
MAX_MARKERS = 40
# How far the axis reaches beyond what was measured, in its own heights, and in decades at least.
REACH, LEAST_REACH = 1.5, 3.0


@styled
def plot_bounds(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw every rung of the bound ladder against lag, with the measured norm between them.

    Parameters
    ----------
    frame
        Columns of ``ladder.csv`` for one recurrence; natural logarithms.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: lag in steps against log10 of the norm. The measurement is solid with markers,
        upper bounds are dashed, lower bounds dotted; a curve that leaves the axes is named with
        where it goes.
    """
    ax = axes_or_new(ax, SIZE)
    ax.set_ylim(*_limits(frame))
    ax.set_xlim(0.0, max(float(frame["lag"].max()), 1.0))
    ax.axhline(0.0, color="#9aa0a6", linewidth=0.8, zorder=1)
    styles = UPPER | LOWER
    labels = [label for rung, style in styles.items() if (label := _draw(ax, frame, rung, style))]
    labels += _draw_exact(ax, frame)
    count_in_wholes(ax.xaxis)
    label_in_decades(ax.yaxis)
    ax.set_xlabel("lag  $l = t - k$  (time steps)")
    ax.set_ylabel(r"norm of $\partial h_t/\partial h_k$  (spectral)")
    title_of(ax, "The norm between proven bounds", frame)
    _mark_zero(ax, frame)
    write_end_labels(ax, labels)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "The solid curve is measured, at the last end time. Dashed curves are proven to lie above "
        "the norm and dotted ones below it: the truth cannot leave the room between the lowest "
        "dashed and the highest dotted curve, whatever was measured. A bound far from the solid "
        "curve is true and says little: a rising dashed curve allows growth, and shows none."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    lag = int(frame["lag"].max())
    rows = frame[frame["lag"] == lag]
    exact = _value(rows, "exact")
    words = f"At lag {lag} the measured norm is {factor(exact)}"
    above = [(value, rung) for rung in UPPER if not np.isnan(value := _value(rows, rung))]
    below = [(value, rung) for rung in LOWER if np.isfinite(value := _value(rows, rung))]
    if above:
        value, rung = min(above)
        words += f", proven to be at most {factor(value)} ({RUNGS[rung].words})"
    if below:
        value, rung = max(below)
        words += f" and at least {factor(value)} ({RUNGS[rung].words})"
    return words + "."


def _value(rows: pd.DataFrame, rung: str) -> float:
    found = column(rows[rows["rung"] == rung], "log_bound")
    return float(found[0]) if len(found) else np.nan


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    """All that was measured, and so much of the bounds that it is not pressed flat."""
    bounds = to_decades(column(frame, "log_bound"))
    exact = bounds[(frame["rung"] == "exact").to_numpy()]
    exact, bounds = exact[np.isfinite(exact)], bounds[np.isfinite(bounds)]
    anchor = np.append(exact if exact.size else bounds, 0.0)
    low, high = float(anchor.min()), float(anchor.max())
    reach = max(LEAST_REACH, REACH * (high - low))
    low = max(low - reach, min(low, float(bounds.min(initial=low))))
    high = min(high + reach, max(high, float(bounds.max(initial=high))))
    margin = max(0.04 * (high - low), 0.05)
    return low - margin, high + margin


def _draw(ax: Axes, frame: pd.DataFrame, rung: str, style: BoundStyle) -> EndLabel | None:
    rows = frame[frame["rung"] == rung].sort_values("lag")
    values = to_decades(column(rows, "log_bound"))
    finite = np.isfinite(values)
    if not finite.any():
        return _zero_label(ax, style, values)
    lag = rows["lag"].to_numpy()[finite]
    ax.plot(
        lag,
        values[finite],
        color=style.color,
        linewidth=1.5,
        linestyle=(0, style.dashes),
        marker="_" if len(lag) == 1 else "",  # a single lag makes no line
        label=rung,
        zorder=2,
    )
    if np.isneginf(values[-1]):
        return _zero_label(ax, style, values)
    return _end_label(ax, style, float(values[finite][-1]))


def _zero_label(ax: Axes, style: BoundStyle, values: NDArray[np.float64]) -> EndLabel | None:
    """Name a curve that ends in exact zeros, which no axis of decades reaches."""
    if not np.isneginf(values).any():
        return None
    words = f"{style.label}\n↓ to exactly 0"
    return EndLabel(height=ax.get_ylim()[0], text=words, color=style.ink, leader=False)


def _end_label(ax: Axes, style: BoundStyle, end: float) -> EndLabel:
    low, high = ax.get_ylim()
    if low <= end <= high:
        return EndLabel(height=end, text=style.label, color=style.ink)
    arrow = "↑" if end > high else "↓"
    words = f"{style.label}\n{arrow} to {factor(end * LN10, 2)}"
    return EndLabel(height=end, text=words, color=style.ink, leader=False)


def _draw_exact(ax: Axes, frame: pd.DataFrame) -> list[EndLabel]:
    rows = frame[frame["rung"] == "exact"].sort_values("lag")
    values = to_decades(column(rows, "log_bound"))
    finite = np.isfinite(values)
    if not finite.any():
        return []
    lag = rows["lag"].to_numpy()[finite]
    ax.plot(
        lag,
        values[finite],
        color=MEASURED,
        linewidth=1.4,
        marker="o",
        markersize=3.2,
        markevery=max(1, -(-len(lag) // MAX_MARKERS)),
        label="exact",
        zorder=4,
    )
    if not finite[-1]:
        return []  # the mark of the exact zero names it
    return [EndLabel(height=float(values[-1]), text="measured", color=MEASURED)]


def _mark_zero(ax: Axes, frame: pd.DataFrame) -> None:
    """Mark where the measured norm becomes exactly 0."""
    rows = frame[frame["rung"] == "exact"].sort_values("lag")
    zero = np.isneginf(column(rows, "log_bound"))
    if not zero.any():
        return
    lag = int(rows["lag"].to_numpy()[zero][0])
    edge = ax.get_xaxis_transform()
    look: dict[str, Any] = {"color": MEASURED, "clip_on": False, "zorder": 5}
    ax.plot([lag], [0.0], marker="v", markersize=8, transform=edge, **look)
    on_left = lag > 0.6 * ax.get_xlim()[1]
    ax.annotate(
        f"measured norm exactly 0 from lag {lag} on",
        xy=(lag, 0.0),
        xycoords=edge,
        xytext=(-9 if on_left else 9, 7),
        textcoords="offset points",
        ha="right" if on_left else "left",
        color=MEASURED,
        fontsize=8.5,
    )
