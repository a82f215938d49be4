"""Decay of the gradient with lag: what was measured, and the bounds above it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import gradlab as gl
from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, first_zero_lag, thinned, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import LN10, factor
from gradlab_reports.style import BOUNDS, FAINT, INK, MEASURED, BoundStyle, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 4.3)
Values = NDArray[np.float64]
MAX_MARKERS = 45
SLACK = "#c9ced3"
PREDICTED = "log_norm_predicted"
LINES = (*(style.column for style in BOUNDS), PREDICTED)

# Formats whose ends are drawn, by the words beside the line; two of them end at one place.
FLOORS = {"float16": "float16", "bfloat16, float32": "float32", "float64": "float64"}


@styled
def plot_decay(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the norm of the long-term Jacobian against lag, with the rungs of the bound ladder.

    Parameters
    ----------
    frame
        Columns of ``lag_profile.csv`` for one recurrence, and where there is theory the norm it
        predicts, ``log_norm_predicted``; natural logarithms.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: lag in steps against log10 of the norm. Measurements are markers and bands,
        bounds are dashed lines, mean-field theory is dotted; an exact zero is marked where it
        begins.
    """
    ax = axes_or_new(ax, SIZE)
    shown = thinned(frame.sort_values("lag"), "log_norm_median")
    low, high = value_range(shown)
    ax.set_ylim(low, high)
    _fit_lags(ax, shown)
    _draw_floors(ax, shown)
    ax.axhline(0.0, color="#9aa0a6", linewidth=0.8, zorder=1)
    _shade_slack(ax, shown)
    labels = [label for style in BOUNDS if (label := _draw_bound(ax, shown, style))]
    labels += _draw_measured(ax, shown) + _draw_theory(ax, shown)
    _mark_exact_zero(ax, frame)
    label_in_decades(ax.yaxis)
    ax.set_xlabel("lag  $l = t - k$  (time steps)")
    ax.set_ylabel(r"norm of $\partial h_t/\partial h_k$  (spectral)")
    title_of(ax, "Gradient norm by lag", frame)
    write_end_labels(ax, labels)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Markers are the measured median norm of ∂h_t/∂h_k over end times and sequences, the band "
        "holds 5 to 95 % of them, the faint band all. Dashed lines are bounds: no measured value "
        "can lie above them; the gray room between the lowest of them and the markers is its "
        "slack. The dotted curve, where there is one, is what mean-field theory predicts for a "
        "random network of the same size, gain and inputs: no measurement, and no bound. The gray "
        "line at 10⁰ is a gradient that arrives unchanged; faint dotted lines are where number "
        "formats run out."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = frame.sort_values("lag")
    first, last = rows.iloc[0], rows.iloc[-1]
    words = (
        f"The measured median norm goes from {factor(first['log_norm_median'])} at lag "
        f"{int(first['lag'])} to {factor(last['log_norm_median'])} at lag {int(last['lag'])}"
    )
    bound = column(rows, "log_bound_gamma")[-1]
    if math.isnan(bound):
        return words + "."
    return f"{words}, where the bound from the spectral norm alone allows {factor(bound)}."


def value_range(frame: pd.DataFrame) -> tuple[float, float]:
    """Limits of the norm axis in decades.

    All that was measured fits in; a bound that would press it flat is cut at the upper edge.

    Parameters
    ----------
    frame
        Columns of ``lag_profile.csv``.

    Returns
    -------
    low, high
        Limits in decades, with a margin.
    """
    measured = _finite(frame, "log_norm_median", "log_norm_q05", "log_norm_q95")
    bounds = _finite(frame, *(style.column for style in BOUNDS), PREDICTED)
    anchor = np.append(measured if measured.size else bounds, 0.0)
    low, high = float(anchor.min()), float(anchor.max())
    reach = max(12.0, 4.0 * (high - low))
    extremes = _finite(frame, "log_norm_min", "log_norm_max")
    low = max(low - 0.5 * (high - low), min(low, float(extremes.min(initial=low))))
    high = max(high, float(extremes.max(initial=high)))
    ceiling = float(bounds.max(initial=high))
    high = ceiling if ceiling <= high + 1.5 * reach else high + reach
    margin = max(0.04 * (high - low), 0.05)
    return low - margin, high + margin


def _finite(frame: pd.DataFrame, *names: str) -> Values:
    values = np.concatenate([to_decades(column(frame, name)) for name in names])
    finite: Values = values[np.isfinite(values)]
    return finite


def _fit_lags(ax: Axes, frame: pd.DataFrame) -> None:
    last = float(frame["lag"].max())
    ax.set_xlim(0.0, max(last, 1.0))
    count_in_wholes(ax.xaxis)


def _draw_floors(ax: Axes, frame: pd.DataFrame) -> None:
    """Mark the ends of the number formats that the measured norms come near."""
    low, high = ax.get_ylim()
    measured = _finite(frame, "log_norm_median", "log_norm_q95")
    taken = [0.0]
    for name, format_name in FLOORS.items():
        limits = gl.FLOAT_FORMATS[format_name]
        for words, log_limit in (
            ("smallest normal", limits.log_smallest_normal),
            ("overflow", limits.log_largest),
        ):
            height = log_limit / LN10
            reached = height < float(measured.max(initial=0.0))
            near_other = min(abs(height - other) for other in taken) < 0.03 * (high - low)
            if low < height < high and reached and not near_other:
                taken.append(height)
                _draw_floor(ax, frame, height, f"{name}: {words}")


def _draw_floor(ax: Axes, frame: pd.DataFrame, height: float, words: str) -> None:
    ax.axhline(height, color=FAINT, linewidth=0.7, linestyle=(0, (1, 2.5)), zorder=1)
    width = 0.0115 * len(words)
    for start in np.arange(0.012, 0.99 - width, 0.08):
        if _is_free(ax, frame, height, (float(start), float(start) + width)):
            where = ax.get_yaxis_transform()
            look: dict[str, Any] = {"va": "bottom", "fontsize": 7.5, "color": FAINT}
            ax.text(float(start), height, words, transform=where, **look)
            return


def _is_free(ax: Axes, frame: pd.DataFrame, height: float, span: tuple[float, float]) -> bool:
    """Whether no curve passes through words above a height, between two parts of the width."""
    low, high = ax.get_ylim()
    room = 0.038 * (high - low)
    lag = frame["lag"].to_numpy(dtype=np.float64) / ax.get_xlim()[1]
    # A lag beyond each end, so that a steep curve cannot jump over the words.
    inside = (lag >= span[0] - 0.02) & (lag <= span[1] + 0.02)
    for name in ("log_norm_median", "log_norm_q05", "log_norm_q95", *LINES):
        values = to_decades(column(frame, name)[inside])
        values = values[~np.isnan(values)]
        if values.size and values.min() < height + room and values.max() > height - 0.2 * room:
            return False
    return not -room < height < 0.0  # the line of an unchanged gradient


def _draw_bound(ax: Axes, frame: pd.DataFrame, style: BoundStyle) -> EndLabel | None:
    values = to_decades(column(frame, style.column))
    finite = np.isfinite(values)
    if not finite.any():
        return None
    lag = frame["lag"].to_numpy()
    ax.plot(
        lag[finite],
        values[finite],
        color=style.color,
        linewidth=1.5,
        linestyle=(0, style.dashes),
        marker="_" if finite.sum() == 1 else "",  # a single lag makes no line
        label=style.column,
        zorder=2,
    )
    end = float(values[finite][-1])
    if end <= ax.get_ylim()[1]:
        return EndLabel(height=end, text=style.label, color=style.ink)
    words = f"{style.label}\n↑ to {factor(end * LN10, 2)}"
    return EndLabel(height=end, text=words, color=style.ink, leader=False)


def _shade_slack(ax: Axes, frame: pd.DataFrame) -> None:
    """Shade the room between the measured median and the lowest bound, and name it where wide."""
    bounds = np.stack([to_decades(column(frame, style.column)) for style in BOUNDS])
    median = to_decades(column(frame, "log_norm_median"))
    there = np.isfinite(bounds).any(axis=0) & np.isfinite(median)
    if there.sum() < 2:
        return
    lowest = np.where(np.isfinite(bounds), bounds, np.inf).min(axis=0)[there]
    lag, median = frame["lag"].to_numpy(dtype=np.float64)[there], median[there]
    ax.fill_between(lag, median, lowest, color=SLACK, alpha=0.22, linewidth=0, zorder=0.5)
    _name_slack(ax, lag, median, np.minimum(lowest, ax.get_ylim()[1]))


def _name_slack(ax: Axes, lag: Values, floor: Values, ceiling: Values) -> None:
    """Write where the room is wide and holds neither words nor the line of no change."""
    low, high = ax.get_ylim()
    line = 0.045 * (high - low)
    taken = [0.0, *(0.5 * line + float(text.get_position()[1]) for text in ax.texts)]
    for part in (0.72, 0.85, 0.6, 0.5):
        near = np.abs(lag / ax.get_xlim()[1] - part) < 0.06
        if not near.any():
            continue
        start, end = float(floor[near].max()) + 0.6 * line, float(ceiling[near].min()) - 0.6 * line
        for share in (0.62, 0.85, 0.4, 0.15):  # nearer to the bound: below are bands and theory
            height = start + share * (end - start)
            if end > start and all(abs(height - other) > line for other in taken):
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5}
                ax.text(part * ax.get_xlim()[1], height, "slack", color=FAINT, zorder=1, **look)
                return


def _draw_measured(ax: Axes, frame: pd.DataFrame) -> list[EndLabel]:
    lag = frame["lag"].to_numpy()
    for lower, upper, alpha in (
        ("log_norm_min", "log_norm_max", 0.10),
        ("log_norm_q05", "log_norm_q95", 0.24),
    ):
        _draw_band(ax, lag, column(frame, lower), column(frame, upper), alpha)
    median = to_decades(column(frame, "log_norm_median"))
    finite = np.isfinite(median)
    if not finite.any():
        return []
    ax.plot(
        lag[finite],
        median[finite],
        color=MEASURED,
        linewidth=1.4,
        marker="o",
        markersize=3.6,
        markevery=max(1, math.ceil(finite.sum() / MAX_MARKERS)),
        label="log_norm_median",
        clip_on=False,
        zorder=4,
    )
    banded = np.isfinite(column(frame, "log_norm_q05")).any()
    words = "measured median" + ("\n(bands: 5–95 %, all)" if banded else "")
    end, height = float(lag[finite][-1]), float(median[finite][-1])
    if end >= 0.95 * ax.get_xlim()[1]:
        return [EndLabel(height=height, text=words, color=MEASURED)]
    look: dict[str, Any] = {"textcoords": "offset points", "color": MEASURED, "fontsize": 8.5}
    ax.annotate(words, xy=(end, height), xytext=(7, -7), va="top", **look)
    return []


def _draw_theory(ax: Axes, frame: pd.DataFrame) -> list[EndLabel]:
    values = to_decades(column(frame, PREDICTED))
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return []
    dots: Any = (0, (1.2, 1.8))
    look: dict[str, Any] = {"color": INK, "linewidth": 1.3, "linestyle": dots, "zorder": 5}
    ax.plot(frame["lag"].to_numpy()[finite], values[finite], label=PREDICTED, **look)
    end, (low, high) = float(values[finite][-1]), ax.get_ylim()
    if low <= end <= high:
        return [EndLabel(height=end, text="mean-field theory", color=INK)]
    words = f"mean-field theory\n{'↑' if end > high else '↓'} to {factor(end * LN10, 2)}"
    return [EndLabel(height=end, text=words, color=INK, leader=False)]


def _draw_band(
    ax: Axes,
    lag: Values,
    lower: Values,
    upper: Values,
    alpha: float,
) -> None:
    """Fill between two quantiles; a lower one of exactly zero reaches the lower edge."""
    low, high = ax.get_ylim()
    there = ~(np.isnan(lower) | np.isnan(upper)) & np.isfinite(upper)
    below = np.maximum(to_decades(lower), low - (high - low))
    ax.fill_between(
        lag[there],
        below[there],
        to_decades(upper)[there],
        color=MEASURED,
        alpha=alpha,
        linewidth=0,
        zorder=3,
    )


def _mark_exact_zero(ax: Axes, frame: pd.DataFrame) -> None:
    lag = first_zero_lag(frame)
    if lag is None:
        return
    edge = ax.get_xaxis_transform()
    mark: dict[str, Any] = {"color": MEASURED, "clip_on": False, "zorder": 5}
    ax.plot([lag], [0.0], marker="v", markersize=8, transform=edge, **mark)
    before = frame[np.isfinite(column(frame, "log_norm_median"))].sort_values("lag")
    if len(before):
        height = float(to_decades(column(before, "log_norm_median"))[-1])
        line = ([before["lag"].iloc[-1], lag], [height, ax.get_ylim()[0]])
        ax.plot(*line, linewidth=1.0, linestyle=(0, (1, 2)), **mark)
    on_left = lag > 0.6 * ax.get_xlim()[1]
    ax.annotate(
        f"exactly 0 from lag {lag}",
        xy=(lag, 0.0),
        xycoords=edge,
        xytext=(-9 if on_left else 9, 7),
        textcoords="offset points",
        ha="right" if on_left else "left",
        color=MEASURED,
        fontsize=8.5,
    )
