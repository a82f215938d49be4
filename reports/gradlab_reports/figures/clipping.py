"""Audit of clipping: how the norms of the gradient are spread, and what a threshold would cut."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, figure_of, stacked
from gradlab_reports.frames import column
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import LN10, factor, plain, share
from gradlab_reports.style import MEASURED, ORANGE, VERMILLION, styled
from gradlab_reports.ticks import label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 5.0)
HEIGHTS = (1.0, 1.5)
BINS = 40
MAX_POINTS = 600
MAX_CANDIDATES = 5
CANDIDATE_RANGE = (0.05, 0.995)  # quantiles of the norms that candidates lie between
QUANTILES = {0.5: "median", 0.9: "90 % quantile", 0.95: "95 % quantile", 0.99: "99 % quantile"}

Values = NDArray[np.float64]


@styled
def plot_clipping(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of the gradient's norms before clipping, and the share above each.

    Parameters
    ----------
    frame
        Columns of ``clipping.csv``; where it is there, ``threshold``, at which was clipped.
    ax
        Axes to draw on, split in two; a new figure without pyplot when None.

    Returns
    -------
    ax
        The upper axes: log10 of the norm against the number of updates. Below it, over the same
        norms, log10 of the share of updates above each, with quantiles and round candidates.
    """
    upper, lower = stacked(axes_or_new(ax, SIZE), HEIGHTS)
    norms = _norms(frame)
    decades = _decades(norms)
    threshold = _threshold(frame)
    _fit_norms(upper, decades, threshold)
    counts, _, _ = upper.hist(decades, bins=_edges(decades).tolist(), color=MEASURED, alpha=0.55)
    # Room above the bars for the words at the threshold.
    upper.set_ylim(0.0, 1.3 * max(float(np.max(counts)), 1.0))
    upper.set_ylabel("updates")
    _draw_shares(lower, norms)
    _draw_threshold(upper, lower, norms, threshold)
    label_in_decades(lower.xaxis)
    lower.set_xlabel("norm of the gradient before clipping, over all weights")
    figure_of(upper).align_ylabels([upper, lower])
    upper.set_title("Norms of the gradient, and what a threshold cuts")
    return upper


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Above: how many updates had a gradient of which norm. Below: the share of updates with a "
        "norm above each value, which is the share that a threshold there clips. Circles are "
        "quantiles of the norms, squares round candidates for a threshold; the dashed line is the "
        "threshold in use. The norms are those of this training: another threshold would have led "
        "to other weights, and so to other norms."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    norms, threshold = _norms(frame), _threshold(frame)
    missing = len(frame) - len(norms)
    unfinished = f" {missing} more had no finite gradient." if missing else ""
    if not len(norms):
        return f"None of {len(frame)} updates had a finite gradient."
    words = ", ".join(f"{name} {plain(_quantile(norms, q))}" for q, name in QUANTILES.items())
    clipped = "No threshold in use is known."
    if math.isinf(threshold):
        clipped = "Nothing was clipped."
    elif not math.isnan(threshold):
        clipped = f"The threshold {threshold:g} clipped {share(_above(norms, threshold))}."
    return f"Norms of {len(norms)} updates: {words}. {clipped}{unfinished}"


def _norms(frame: pd.DataFrame) -> Values:
    """Norms in ascending order, without the updates that have none."""
    norms = column(frame, "norm_before")
    ordered: Values = np.sort(norms[~np.isnan(norms)])
    return ordered


def _threshold(frame: pd.DataFrame) -> float:
    """Threshold in use: inf without clipping, nan where it is not known."""
    return float(column(frame, "threshold")[0]) if len(frame) else math.nan


def _decades(norms: Values) -> Values:
    """Decades of the norms that have a place on the axis: zeros and infinities have none."""
    return to_decades(np.log(norms[(norms > 0.0) & np.isfinite(norms)]))


def _above(norms: Values, threshold: float) -> float:
    return float(np.mean(norms > threshold))


def _quantile(norms: Values, q: float) -> float:
    """Quantile of ordered norms, linear between order statistics; infinities may be among them."""
    place = q * (len(norms) - 1)
    low, high = float(norms[math.floor(place)]), float(norms[math.ceil(place)])
    return low if low == high else low + (place - math.floor(place)) * (high - low)


def _fit_norms(ax: Axes, decades: Values, threshold: float) -> None:
    """Limits around the norms, and around a threshold that is not far from them."""
    low, high = (float(decades.min()), float(decades.max())) if len(decades) else (-1.0, 1.0)
    if 0.0 < threshold < math.inf:
        place = math.log(threshold) / LN10
        room = max(high - low, 1.0)
        low, high = max(min(low, place), low - room), min(max(high, place), high + room)
    margin = max(0.03 * (high - low), 0.02)
    ax.set_xlim(low - margin, high + margin)


def _edges(decades: Values) -> Values:
    low, high = (float(decades.min()), float(decades.max())) if len(decades) else (0.0, 1.0)
    # Norms that are all equal still make a bar of some width.
    widened = max(0.01 - (high - low), 0.0) / 2.0
    return np.linspace(low - widened, high + widened, BINS + 1)


def _draw_shares(ax: Axes, norms: Values) -> None:
    """Share of updates above each norm, with its quantiles and candidates named at the right."""
    ax.set_ylabel("share of updates\nabove it")
    if not len(norms):
        return
    floor = -math.log10(len(norms)) if len(norms) > 1 else -1.0
    ax.set_ylim(min(floor, -0.5) - 0.1, 0.05)
    _curve(ax, norms, _thinned(norms))
    _label_shares(ax)
    labels = [
        label
        for q, name in QUANTILES.items()
        if (label := _point(ax, norms, _quantile(norms, q), f"{name} ", "o", MEASURED))
    ]
    for value in _candidates(norms):
        label = _point(ax, norms, value, "above ", "s", ORANGE)
        labels += [label] if label else []
    write_end_labels(ax, labels)


def _thinned(norms: Values) -> Values:
    """Norms enough for the curve to look the same, the few largest all among them."""
    last = len(norms) - 1
    evenly = np.linspace(0, last, MAX_POINTS).round()
    from_the_top = last - (np.geomspace(1, last + 1, MAX_POINTS).round() - 1)
    return np.unique(norms[np.union1d(evenly, from_the_top).astype(int)])


def _curve(ax: Axes, norms: Values, chosen: Values) -> None:
    """Steps down at each norm, up to the largest: nothing is above that."""
    shares = 1.0 - np.searchsorted(norms, chosen, side="right") / len(norms)
    drawn = (chosen > 0.0) & np.isfinite(chosen) & (shares > 0.0)
    heights = to_decades(
        np.log([max(float(np.mean(norms > 0.0)), 1.0 / len(norms)), *shares[drawn]])
    )
    places = [ax.get_xlim()[0], *to_decades(np.log(chosen[drawn]))]
    end = float(_decades(norms).max(initial=places[-1]))
    ax.plot(
        [*places, end],
        [*heights, heights[-1]],
        drawstyle="steps-post",
        color=MEASURED,
        linewidth=1.4,
        zorder=2,
    )


def _point(
    ax: Axes, norms: Values, value: float, words: str, marker: str, color: str
) -> EndLabel | None:
    """Mark a norm on the curve; None where it has no place there."""
    above = _above(norms, value)
    if not (0.0 < value < math.inf) or above == 0.0:
        return None
    place, height = math.log(value) / LN10, math.log(above) / LN10
    ax.plot([place], [height], marker=marker, markersize=5.0, color=color, zorder=4)
    low, high = ax.get_xlim()
    text = f"{words}{factor(math.log(value))}"
    if marker == "s":
        text = f"{words}{factor(math.log(value), 1)}: {share(above)}"
    ink = MEASURED if color == MEASURED else "#8a5f00"
    reach = (place - low) / (high - low)
    return EndLabel(height=height, text=text, color=ink, reach=reach)


def _candidates(norms: Values) -> list[float]:
    """Round thresholds where the norms are, without the smallest and the few largest."""
    decades = _decades(norms)
    if not len(decades):
        return []
    low, high = (float(edge) for edge in np.quantile(decades, CANDIDATE_RANGE))
    powers = range(math.floor(low), math.ceil(high))
    ladder = [float(f"{m}e{k}") for k in powers for m in (1, 2, 5)]
    inside = [value for value in ladder if low <= math.log10(value) < high]
    if len(inside) <= MAX_CANDIDATES:
        return inside
    chosen = np.linspace(0, len(inside) - 1, MAX_CANDIDATES).round().astype(int)
    return [inside[index] for index in chosen]


def _label_shares(ax: Axes) -> None:
    """Ticks at whole, half and fifth parts of each power of ten, in per cent."""
    low = ax.get_ylim()[0]
    shares = [m * 10.0**k for k in range(math.floor(low), 1) for m in (1, 2, 5)]
    ticks = [math.log10(value) for value in shares if low <= math.log10(value) <= 0.0]
    wide = [tick for tick in ticks if math.isclose(tick, round(tick), abs_tol=1e-9)]
    ax.yaxis.set_major_locator(FixedLocator(ticks if low > -2.2 else wide))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: share(10.0**tick)))


def _draw_threshold(upper: Axes, lower: Axes, norms: Values, threshold: float) -> None:
    if not 0.0 < threshold < math.inf or not len(norms):
        return
    place = math.log(threshold) / LN10
    low, high = upper.get_xlim()
    for panel in (upper, lower):
        panel.axvline(place, color=VERMILLION, linewidth=1.3, linestyle=(0, (6, 2)), zorder=3)
    right = place < 0.5 * (low + high)
    look: dict[str, Any] = {"color": "#b34f00", "fontsize": 8.5, "va": "top"}
    upper.annotate(
        f"threshold {threshold:g}: clips {share(_above(norms, threshold))}",
        xy=(place, 0.97),
        xycoords=upper.get_xaxis_transform(),
        xytext=(5 if right else -5, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        **look,
    )
