"""Decay curves of several recurrences in one figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, first_zero_lag, thinned
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import factor, shortened
from gradlab_reports.style import CURVES, INK, CurveStyle, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (7.0, 4.5)
MARKERS = 12  # of one curve; those of two curves stand at different lags
LABEL_WIDTH = 22

Values = NDArray[np.float64]


@styled
def plot_compare(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the measured norm of the long-term Jacobian by lag, one curve a label.

    Parameters
    ----------
    frame
        Columns of ``compare.csv``; natural logarithms. At most as many labels as `CURVES`.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: lag in steps against log10 of the norm. Lines are medians, bands hold 5 to 95 %;
        an exact zero is marked at the lower edge where it begins.

    Raises
    ------
    ValueError
        If there are more labels than curves can be told apart.
    """
    ax = axes_or_new(ax, SIZE)
    curves = list(_curves(frame))
    if len(curves) > len(CURVES):
        raise ValueError(f"{len(curves)} labels: expected at most {len(CURVES)} in one figure")
    ax.set_ylim(*value_range(frame))
    ax.set_xlim(0.0, max(float(frame["lag"].max()), 1.0))
    count_in_wholes(ax.xaxis)
    ax.axhline(0.0, color="#9aa0a6", linewidth=0.8, zorder=1)
    opacity = 0.2 if len(curves) <= 3 else 0.1
    for (_, rows), style in zip(curves, CURVES, strict=False):
        _draw_band(ax, rows, style, opacity)
    labels = [
        _draw_curve(ax, label, rows, style, place / len(curves))
        for place, ((label, rows), style) in enumerate(zip(curves, CURVES, strict=False))
    ]
    label_in_decades(ax.yaxis)
    ax.set_xlabel("lag  $l = t - k$  (time steps)")
    ax.set_ylabel(r"norm of $\partial h_t/\partial h_k$  (spectral)")
    ax.set_title("Gradient norm by lag")
    write_end_labels(ax, labels)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each line is the measured median norm of ∂h_t/∂h_k over end times and sequences, its band "
        "holds 5 to 95 % of them; no bound is drawn. The gray line at 10⁰ is a gradient that "
        "arrives unchanged: the higher a line at a lag, the more of the gradient is left there."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    curves = list(_curves(frame))
    lag = min(int(rows["lag"].max()) for _, rows in curves)
    ends = [
        f"{factor(float(rows['log_norm_median'][rows['lag'] == lag].iloc[0]))} ({label})"
        for label, rows in curves
    ]
    return f"At lag {lag} the measured median norm is {', '.join(ends)}."


def value_range(frame: pd.DataFrame) -> tuple[float, float]:
    """Limits of the norm axis in decades: all medians, and the bands unless they would press them.

    Parameters
    ----------
    frame
        Columns of ``compare.csv``.

    Returns
    -------
    low, high
        Limits in decades, with a margin.
    """
    median = np.append(_finite(frame, "log_norm_median"), 0.0)
    low, high = float(median.min()), float(median.max())
    room = max(0.5 * (high - low), 0.5)
    low = max(low - room, min(low, float(_finite(frame, "log_norm_q05").min(initial=low))))
    high = min(high + room, max(high, float(_finite(frame, "log_norm_q95").max(initial=high))))
    margin = max(0.04 * (high - low), 0.05)
    return low - margin, high + margin


def _finite(frame: pd.DataFrame, name: str) -> Values:
    values = to_decades(column(frame, name))
    finite: Values = values[np.isfinite(values)]
    return finite


def _curves(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows of every label by rising lag, in the order of the table."""
    for label in dict.fromkeys(frame["label"]):
        yield str(label), frame[frame["label"] == label].sort_values("lag")


def _draw_band(ax: Axes, rows: pd.DataFrame, style: CurveStyle, opacity: float) -> None:
    """Fill between two quantiles; a lower one of exactly zero reaches the lower edge."""
    floor = ax.get_ylim()[0]
    rows = thinned(rows, "log_norm_median")
    lower, upper = (to_decades(column(rows, name)) for name in ("log_norm_q05", "log_norm_q95"))
    there = np.isfinite(upper) & ~np.isnan(lower)
    ax.fill_between(
        rows["lag"].to_numpy()[there],
        np.maximum(lower, floor)[there],
        upper[there],
        color=style.color,
        alpha=opacity,
        linewidth=0,
        zorder=2,
    )


def _draw_curve(
    ax: Axes, label: str, rows: pd.DataFrame, style: CurveStyle, shift: float
) -> EndLabel:
    """Draw one median, and give the words for its end."""
    name = f"{style.glyph} {shortened(label, LABEL_WIDTH)}"
    shown = thinned(rows[np.isfinite(column(rows, "log_norm_median"))], "log_norm_median")
    lag, height = column(shown, "lag"), to_decades(column(shown, "log_norm_median"))
    ax.plot(
        lag,
        height,
        color=style.color,
        linewidth=1.5,
        marker=style.marker,
        markersize=7.0 if style.marker == "*" else 4.6,
        markeredgecolor=style.ink,
        markeredgewidth=0.7,
        markevery=_marked(lag, ax.get_xlim()[1], shift),
        label=label,
        clip_on=False,
        zorder=4,
    )
    zero = first_zero_lag(rows)
    if zero is not None:
        _mark_zero(ax, (lag, height), zero, style)
        return _end(ax, float(zero), ax.get_ylim()[0], f"{name}:\nexactly 0 from lag {zero}", style)
    if not len(lag):
        return _end(ax, 0.0, 0.0, f"{name}: unresolved", style)
    return _end(ax, float(lag[-1]), float(height[-1]), name, style)


def _end(ax: Axes, lag: float, height: float, words: str, style: CurveStyle) -> EndLabel:
    reach = min(lag / ax.get_xlim()[1], 1.0)
    return EndLabel(height=height, text=words, color=style.ink, reach=reach, literal=True)


def _marked(lag: Values, last: float, shift: float) -> list[int]:
    """Indices of evenly spaced lags, shifted by a part of their distance; the last one too."""
    if not len(lag):
        return []
    wanted = (np.arange(MARKERS) + 0.25 + shift) * last / MARKERS
    found = np.searchsorted(lag, wanted[wanted <= lag[-1]])
    return sorted({*found.tolist(), len(lag) - 1})


def _mark_zero(ax: Axes, curve: tuple[Values, Values], zero: int, style: CurveStyle) -> None:
    edge = ax.get_ylim()[0]
    look: dict[str, Any] = {"color": style.color, "clip_on": False, "zorder": 5}
    lag, height = curve
    if len(lag):
        line = ([lag[-1], zero], [height[-1], edge])
        ax.plot(*line, linewidth=1.0, linestyle=(0, (1, 2)), **look)
    ax.plot([zero], [edge], marker="v", markersize=8, markeredgecolor=INK, **look)
