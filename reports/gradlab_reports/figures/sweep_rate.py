"""Measured rate of a sweep against the rate that the bound allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import plain, shortened
from gradlab_reports.style import (
    BOUNDS,
    FAINT,
    INK,
    MEASURED,
    SERIES,
    SERIES_MARKERS,
    VERMILLION,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 4.5)

# The columns that are results; every other one was an axis of the sweep.
RESULTS = frozenset(
    "point,gamma_w,spectral_radius,rate,rate_se,bound_rate,mean_field_rate,saturated_share,"
    "lyapunov_leading,horizon_1pct,regime,status,message,recurrence".split(",")
)
# Axes that move along the drawing's own axis, or are mere repeats.
ALONG = frozenset({"gamma", "radius", "gain", "seed"})


@styled
def plot_sweep_rate(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw every point's measured rate against the logarithm of its spectral norm.

    Parameters
    ----------
    frame
        Columns of ``sweep.csv``; rows without a finite rate are left out.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: ln gamma_w against rate in nats per step; measured points as markers, the rate of
        the bound dashed, mean-field theory dotted where it is finite, and the line of no change.
    """
    import seaborn as sns

    ax = axes_or_new(ax, SIZE)
    points = _drawable(frame)
    names = list(dict.fromkeys(points["series"]))[: len(SERIES)]
    look: dict[str, Any] = {"color": MEASURED, "legend": False}
    if len(names) > 1:
        look = {
            "hue": "series",
            "style": "series",
            "palette": dict(zip(names, SERIES, strict=False)),
            "markers": dict(zip(names, SERIES_MARKERS, strict=False)),
        }
    points = points[points["series"].isin(names)]
    sns.scatterplot(
        points, x="log_gamma_w", y="rate", s=24, linewidth=0.4, alpha=0.8, ax=ax, zorder=4, **look
    )
    ax.axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    labels = [label for label in (_draw_bound(ax, points), _draw_mean_field(ax, points)) if label]
    if len(names) == 1 and len(points):
        height = float(points.sort_values("log_gamma_w")["rate"].iloc[-1])
        words = "measured,\none marker a network"
        labels.append(EndLabel(height=height, text=words, color=MEASURED))
    _say_regimes(ax)
    ax.set_xlabel(r"$\ln\,\gamma_w$   (logarithm of the largest singular value of $W_{hh}$)")
    ax.set_ylabel("rate of the gradient norm (nats per step)")
    ax.set_title("Measured rate against the spectral norm")
    if len(names) > 1:
        ax.legend(title="", loc="upper left")
    write_end_labels(ax, labels)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each marker is one network: across, the logarithm of its spectral norm; upward, the rate "
        "at which the gradient really shrinks (below 0) or grows (above 0) per step back. The "
        "dashed line is the rate that the bound allows: networks right of 0 and below the "
        "horizontal line vanish although their spectral norm exceeds 1. The dotted line, where "
        "there is one, is mean-field theory: what infinitely many units of the same gain, inputs "
        "and biases would do."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    points = _drawable(frame)
    if points.empty:
        return "No point of the sweep has a finite rate."
    loose = points[(points["log_gamma_w"] > 0.0) & (points["rate"] < 0.0)]
    return (
        f"{len(points)} networks with rates from {plain(float(points['rate'].min()))} to "
        f"{plain(float(points['rate'].max()))} per step; {len(loose)} shrink the gradient although "
        "their spectral norm exceeds 1."
    )


def _drawable(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with finite rate, their ln gamma_w, and the name of the series each belongs to."""
    rows = frame[np.isfinite(column(frame, "rate")) & (column(frame, "gamma_w") > 0.0)]
    axes = [
        name
        for name in rows.columns
        if name not in RESULTS | ALONG and rows[name].nunique() > 1 and rows[name].nunique() <= 6
    ]
    series = ["" for _ in range(len(rows))]
    for name in axes:
        series = [
            f"{have}, {name} {value}" if have else f"{name} {value}"
            for have, value in zip(series, rows[name], strict=True)
        ]
    named = [shortened(words, 40) for words in series]
    return rows.assign(log_gamma_w=np.log(column(rows, "gamma_w")), series=named)


def _draw_bound(ax: Axes, points: pd.DataFrame) -> EndLabel | None:
    style = BOUNDS[0]
    line = _line(points, "bound_rate")
    if line is None:
        return None
    x, y = line
    ax.plot(x, y, color=VERMILLION, linewidth=1.5, linestyle=(0, style.dashes), zorder=2)
    return EndLabel(height=float(y[-1]), text=r"bound: $\ln\,\gamma_a\gamma_w$", color=style.ink)


def _draw_mean_field(ax: Axes, points: pd.DataFrame) -> EndLabel | None:
    line = _line(points, "mean_field_rate")
    if line is None:
        return None
    x, y = line
    ax.plot(x, y, color=INK, linewidth=1.2, linestyle=(0, (1.2, 1.8)), zorder=3)
    return EndLabel(height=float(y[-1]), text="mean-field theory", color=INK)


def _line(points: pd.DataFrame, name: str) -> tuple[Any, Any] | None:
    """A theory's finite values in the order of ln gamma_w, equal places averaged."""
    finite = points[np.isfinite(column(points, name))]
    if finite.empty:
        return None
    # Targets are met to rounding: places that differ by 1e-16 are one place.
    line = finite.groupby(finite["log_gamma_w"].round(9), sort=True)[name].mean()
    return line.index.to_numpy(), line.to_numpy()


def _say_regimes(ax: Axes) -> None:
    """Name the two sides of the line of no change, where there is room for words."""
    low, high = ax.get_ylim()
    room = 0.05 * (high - low)
    look: dict[str, Any] = {"fontsize": 8, "color": FAINT, "transform": ax.get_yaxis_transform()}
    if high > room:
        ax.text(0.01, 0.01 * (high - low), "grows", va="bottom", **look)
    if low < -room:
        ax.text(0.01, -0.01 * (high - low), "shrinks", va="top", **look)
