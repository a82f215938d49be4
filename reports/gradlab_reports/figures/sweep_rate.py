"""Measured rate of a sweep against the rate that the bound allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, drawn_share, some_rows
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.scatter import scatter
from gradlab_reports.spelling import plain, shortened
from gradlab_reports.style import (
    BOUNDS,
    FAINT,
    INK,
    MEASURED,
    SERIES,
    VERMILLION,
    styled,
)
from gradlab_reports.sweep_axes import combined, told_apart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 4.5)
LEVEL_COLUMNS = ["mean_field_rate", "mean_field_low", "mean_field_high"]


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
    ax = axes_or_new(ax, SIZE)
    points = _drawable(frame)
    axes = told_apart(points, len(SERIES))
    points = points.assign(series=combined(points, axes))
    names = list(dict.fromkeys(points["series"]))
    palette = dict(zip(names, SERIES, strict=False)) if len(names) > 1 else {}
    markers = some_rows(points)
    own = {name: markers["series"].to_numpy() == name for name in names}
    look: dict[str, Any] = {"s": 24, "linewidth": 0.4, "alpha": 0.8, "zorder": 4}
    scatter(ax, markers, "log_gamma_w", "rate", own, **look)
    ax.axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    theory = _draw_levels(ax, frame, axes, palette) or _draw_mean_field(ax, points)
    labels = [label for label in (_draw_bound(ax, points), theory) if label]
    if len(names) == 1 and len(points):
        height = float(points.sort_values("log_gamma_w")["rate"].iloc[-1])
        words = "measured,\none marker a network"
        labels.append(EndLabel(height=height, text=words, color=MEASURED))
    _say_regimes(ax)
    ax.set_xlabel(r"$\ln\,\gamma_w$   (logarithm of the largest singular value of $W_{hh}$)")
    ax.set_ylabel("rate of the gradient norm (nats per step)")
    share = drawn_share(frame, len(markers)) if len(markers) < len(points) else ""
    ax.set_title(f"Measured rate against the spectral norm{share}")
    if len(names) > 1:
        # Beside the axes: inside them no corner is free of markers, lines and words.
        look = {"loc": "lower left", "bbox_to_anchor": (1.02, 0.0), "alignment": "left"}
        ax.legend(title=shortened(" · ".join(axes)), borderaxespad=0.0, **look)
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
        "and biases would do; the band around it is where single networks of this size are "
        "expected."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    points = _drawable(frame)
    if points.empty:
        return "No point of the sweep has a finite rate."
    loose = points[(points["log_gamma_w"] > 0.0) & (points["rate"] < 0.0)]
    count = frame.attrs.get("rows", len(frame))
    chosen = f" drawn at random from {count}" if count > len(frame) else ""
    return (
        f"{len(points)} networks{chosen} with rates from {plain(float(points['rate'].min()))} to "
        f"{plain(float(points['rate'].max()))} per step; {len(loose)} shrink the gradient although "
        "their spectral norm exceeds 1."
    )


def _drawable(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with finite rate, and their ln gamma_w."""
    rows = frame[np.isfinite(column(frame, "rate")) & (column(frame, "gamma_w") > 0.0)]
    return rows.assign(log_gamma_w=np.log(column(rows, "gamma_w")))


def _draw_bound(ax: Axes, points: pd.DataFrame) -> EndLabel | None:
    style = BOUNDS[0]
    line = _line(points, "bound_rate")
    if line is None:
        return None
    x, y = line
    ax.plot(x, y, color=VERMILLION, linewidth=1.5, linestyle=(0, style.dashes), zorder=2)
    return EndLabel(height=float(y[-1]), text=r"bound: $\ln\,\gamma_a\gamma_w$", color=style.ink)


def _draw_levels(
    ax: Axes, frame: pd.DataFrame, axes: list[str], palette: dict[str, str]
) -> EndLabel | None:
    """Theory with its band, a line a series, where the sweep's analysis is beside its table."""
    import pandas as pd

    levels = pd.DataFrame(frame.attrs.get("levels", {}))
    if levels.empty or not {*axes} <= {*levels.columns}:
        return None
    levels = levels[np.isfinite(column(levels, "mean_field_rate"))]
    end = None
    for name, rows in levels.groupby(pd.Series(combined(levels, axes), levels.index), sort=False):
        line = rows.groupby(rows["log_gamma_w"].round(9), sort=True)[LEVEL_COLUMNS].mean()
        x, color = line.index.to_numpy(), palette.get(str(name), INK)
        y, low, high = (line[which].to_numpy() for which in LEVEL_COLUMNS)
        ax.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0, zorder=1)
        ax.plot(x, y, color=color, linewidth=1.2, linestyle=(0, (1.2, 1.8)), zorder=3)
        end = float(y[-1]) if end is None else max(end, float(y[-1]))
    if end is None:
        return None
    return EndLabel(height=end, text="mean-field theory,\nband of single networks", color=INK)


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
