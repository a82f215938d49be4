"""The gradient of a loss by lag: which lags its terms come from, and what bounds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import axes_or_new, stacked
from gradlab_reports.frames import column, thinned, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import factor, share
from gradlab_reports.style import BOUNDS, FAINT, INK, MEASURED, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (7.2, 4.8)
HELD = (0.5, 0.9, 0.99)
# Room above the shares for the words of the marks, as a part of the highest share.
HEADROOM = 0.55
MAX_MARKERS = 40
# Decades of the median term that are drawn at most, below the largest.
MAX_DECADES = 24.0


@styled
def plot_gradient(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the share of every lag in a gradient, and the norm of its terms beside their bound.

    Parameters
    ----------
    frame
        Columns of ``gradient.csv`` for one recurrence.
    ax
        Axes to draw on, split in two; a new figure without pyplot when None.

    Returns
    -------
    ax
        The upper axes: lag in steps against per cent of the sum of all terms' norms, with the lags
        that hold 50, 90 and 99 % of it. Below them log10 of the median term and of its bound.
    """
    upper, lower = stacked(axes_or_new(ax, SIZE), (1.25, 1.0))
    rows = frame.sort_values("lag")
    last = float(rows["lag"].max())
    upper.set_xlim(-0.5, max(last, 1.0) + 0.5)
    _draw_shares(upper, rows)
    _mark_held(upper, rows)
    labels = _draw_terms(lower, rows)
    count_in_wholes(lower.xaxis)
    lower.set_xlabel("lag  $l = t - k$  (time steps)")
    upper.set_ylabel("share of the\ngradient (%)")
    lower.set_ylabel("norm of a term\n(median)")
    label_in_decades(lower.yaxis)
    title_of(upper, "Where the gradient of the loss comes from", frame)
    write_end_labels(lower, labels)
    return upper


def caption() -> str:
    """Say how to read the figure."""
    return (
        "The gradient of the recurrent weights is a sum of terms, one for each step t of the loss "
        "and each step k at which the weights were used. Above: the share of a lag t − k in the "
        "sum of all terms' norms; up to a vertical line the lags hold 50, 90 and 99 % of it. What "
        "lies to the right of the last line teaches the network next to nothing. Below: the median "
        "norm of a term (markers), and dashed what the weights' spectral norm alone would allow. "
        "Terms may cancel in the sum: the cancellation ratio is among the numbers."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = frame.sort_values("lag")
    lags = [lag_holding(rows, held) for held in HELD]
    if None in lags:
        return "Every term of the gradient is exactly 0."
    first = float(column(rows, "share")[0])
    half, most, nearly_all = lags
    return (
        f"Half of the gradient comes from lags up to {half}, 90 % from lags up to {most}, 99 % "
        f"from lags up to {nearly_all}; the step of the loss itself (lag 0) has {share(first)}."
    )


def lag_holding(rows: pd.DataFrame, held: float) -> int | None:
    """Return the first lag whose cumulative share reaches a level; None if none does."""
    reached = np.flatnonzero(column(rows, "cumulative_share") >= held * (1.0 - 1e-12))
    return int(rows["lag"].iloc[reached[0]]) if len(reached) else None


def _draw_shares(ax: Axes, rows: pd.DataFrame) -> None:
    shown = thinned(rows, "share")
    lag, percent = shown["lag"].to_numpy(), 100.0 * column(shown, "share")
    ax.fill_between(lag, 0.0, percent, step="mid", color=MEASURED, alpha=0.24, lw=0)
    look: dict[str, Any] = {"marker": "o", "markersize": 3.2, "drawstyle": "steps-mid"}
    every = max(1, -(-len(shown) // MAX_MARKERS))
    ax.plot(lag, percent, color=MEASURED, linewidth=1.2, markevery=every, **look)
    highest = float(np.nanmax(percent, initial=0.0))
    ax.set_ylim(0.0, (1.0 + HEADROOM) * highest if highest > 0.0 else 1.0)
    if highest == 0.0:
        words = "every term is exactly 0"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", color=FAINT)


def _mark_held(ax: Axes, rows: pd.DataFrame) -> None:
    """Vertical lines with words beside them, each a line of text lower than the one before."""
    low, high = ax.get_xlim()
    for index, held in enumerate(HELD):
        lag = lag_holding(rows, held)
        if lag is None:
            return
        top = 0.99 - 0.115 * index
        ax.plot([lag, lag], [0.0, top], transform=ax.get_xaxis_transform(), color=INK, lw=0.9)
        on_left = lag > low + 0.6 * (high - low)
        ax.annotate(
            f"{100.0 * held:g} % up to lag {lag}",
            xy=(lag, top),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-4 if on_left else 4, 0),
            textcoords="offset points",
            ha="right" if on_left else "left",
            va="top",
            fontsize=8.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )


def _draw_terms(ax: Axes, rows: pd.DataFrame) -> list[EndLabel]:
    """Median term and its bound; the axis holds the terms, and the bound as far as it goes."""
    shown = thinned(rows, "log_term_norm_median")
    lag = shown["lag"].to_numpy()
    term, bound = (
        to_decades(column(shown, f"log_term_{name}_median")) for name in ("norm", "bound")
    )
    finite = np.isfinite(term)
    if not finite.any():
        return []
    low, high = _limits(term[finite], bound[np.isfinite(bound)])
    ax.set_ylim(low, high)
    every = max(1, -(-int(finite.sum()) // MAX_MARKERS))
    mark: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markevery": every}
    ax.plot(lag[finite], term[finite], color=MEASURED, linewidth=1.3, **mark)
    reach = (float(lag[finite][-1]) + 0.5) / (max(float(lag[-1]), 1.0) + 1.0)
    labels = [
        EndLabel(height=float(term[finite][-1]), text="measured", color=MEASURED, reach=reach)
    ]
    bounded = np.isfinite(bound)
    if bounded.any():
        style = BOUNDS[0]
        look: dict[str, Any] = {"color": style.color, "linestyle": (0, style.dashes)}
        ax.plot(lag[bounded], bound[bounded], linewidth=1.5, **look)
        labels.append(_bound_label(float(bound[bounded][-1]), high, style.ink))
    return labels


def _limits(term: np.ndarray, bound: np.ndarray) -> tuple[float, float]:
    high = float(term.max())
    low = max(float(term.min()), high - MAX_DECADES)
    reach = max(3.0, 2.0 * (high - low))
    high = min(float(bound.max(initial=high)), high + reach)
    margin = max(0.05 * (high - low), 0.1)
    return low - margin, high + margin


def _bound_label(end: float, high: float, ink: str) -> EndLabel:
    if end <= high:
        return EndLabel(height=end, text="bound", color=ink)
    words = f"bound\n↑ to {factor(end * float(np.log(10.0)), 2)}"
    return EndLabel(height=end, text=words, color=ink, leader=False)
