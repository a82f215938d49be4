"""Any column of a sweep against any other, told apart by a third, side by side by a fourth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import gradlab as gl
from gradlab_reports.canvas import axes_or_new, beside
from gradlab_reports.frames import drawn_share, some_rows
from gradlab_reports.spelling import plain, shortened
from gradlab_reports.style import MEASURED, SERIES, SERIES_MARKERS, styled
from gradlab_reports.sweep_axes import name_places, short_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 3.0, 4.2  # inches of a panel, beside 3.6 for axis and legend
MOST_PANELS = 6
NAMES = {
    "gamma": r"spectral norm $\gamma_w$ of $W_{hh}$",
    "gamma_w": r"spectral norm $\gamma_w$ of $W_{hh}$",
    "spectral_radius": r"spectral radius $\rho$ of $W_{hh}$",
    "rate": "measured rate of the gradient norm (nats per step)",
    "rate_se": "standard error of the rate (nats per step)",
    "bound_rate": "rate that the bound allows (nats per step)",
    "mean_field_rate": "rate of mean-field theory (nats per step)",
    "lyapunov_leading": "leading Lyapunov exponent (nats per step)",
    "saturated_share": "saturated share",
    "horizon_1pct": "lag from which the norm stays below 1 % (steps)",
    "length": "length of the sequences (steps)",
    "hidden_size": "units",
}


@styled
def plot_sweep_columns(
    frame: pd.DataFrame,
    *,
    ax: Axes | None = None,
    x: str = "gamma_w",
    y: str = "rate",
    hue: str | None = None,
    facet: str | None = None,
) -> Axes:
    """Draw one column of a sweep against another.

    Parameters
    ----------
    frame
        Columns of ``sweep.csv``; rows without a finite ``y`` are left out.
    ax
        Axes to draw on; a new figure without pyplot when None. With facets they are shared out.
    x, y
        Columns across and up; ``y`` holds numbers.
    hue
        Column told apart by color and marker.
    facet
        Column with a panel for each value, six at most.

    Returns
    -------
    ax
        The first panel: medians with a band of 90 % of the points where several share a place,
        else markers.

    Raises
    ------
    gl.UnknownNameError
        If there is no such column.
    gl.SettingError
        If ``y`` holds no numbers, or there are too many panels.
    """
    from pandas.api.types import is_numeric_dtype

    _check(frame, y, [name for name in (x, y, hue, facet) if name is not None])
    rows = _drawable(frame, x, y)
    values = [None] if facet is None else list(dict.fromkeys(rows[facet]))
    if len(values) > MOST_PANELS:
        raise gl.SettingError(
            f"{facet} has {len(values)} values: expected {MOST_PANELS} panels at most; choose "
            "another facet"
        )
    size = (3.6 + WIDTH * max(len(values), 1), HEIGHT)
    panels = beside(axes_or_new(ax, size), max(len(values), 1))
    for panel, value in zip(panels, values, strict=False):
        part = rows if facet is None else rows[rows[facet] == value]
        _draw(panel, part, rows, (x, y, hue), last=panel is panels[-1])
        panel.set_xlabel(NAMES.get(x, x))
        if not is_numeric_dtype(rows[x]):
            shown = list(dict.fromkeys(part[x].astype(str)))
            name_places(panel, short_names(shown) if x == "model" else shown)
        panel.set_ylabel(NAMES.get(y, y) if panel is panels[0] else "")
        if facet is not None:
            panel.set_title(shortened(f"{facet} {value}", 40), parse_math=False)
    if facet is None:
        absent = len(frame) - len(rows)
        words = f" · {absent} of {len(frame)} points have none" if absent else ""
        words += drawn_share(frame, len(frame))
        panels[0].set_title(f"{y} against {x}{words}", parse_math=False)
    return panels[0]


def caption() -> str:
    """Say how to read the figure."""
    return (
        "One column of the sweep's table against another. Where several networks share a place, "
        "the line or marker is their median and the band or bar holds 90 % of them; otherwise each "
        "marker is one network."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = _drawable(frame, "gamma_w", "rate")
    if rows.empty:
        return "No point of the sweep has a finite rate."
    low, high = float(rows["rate"].min()), float(rows["rate"].max())
    return f"{len(rows)} networks with rates from {plain(low)} to {plain(high)} nats per step."


def _check(frame: pd.DataFrame, y: str, names: Sequence[str]) -> None:
    import pandas as pd

    for name in names:
        if name not in frame.columns:
            raise gl.unknown_name("column of the sweep", name, [str(n) for n in frame.columns])
    if not pd.api.types.is_numeric_dtype(frame[y]):
        raise gl.SettingError(f"the column {y} holds words: expected numbers to draw upward")


def _drawable(frame: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    import pandas as pd

    rows = frame[np.isfinite(frame[y].to_numpy(dtype=np.float64))]
    if pd.api.types.is_numeric_dtype(rows[x]):
        rows = rows[np.isfinite(rows[x].to_numpy(dtype=np.float64))]
        # Spectral norms are met to rounding: places that differ by 1e-16 are one place.
        rows = rows.assign(**{x: rows[x].round(9)})
    kept: pd.DataFrame = rows.reset_index(drop=True)
    return kept


def _draw(
    panel: Axes,
    part: pd.DataFrame,
    rows: pd.DataFrame,
    columns: tuple[str, str, str | None],
    *,
    last: bool,
) -> None:
    import seaborn as sns
    from pandas.api.types import is_numeric_dtype

    x, y, hue = columns
    look = _look(rows, hue, last)
    places = [name for name in (x, hue) if name is not None]
    several = {"estimator": "median", "errorbar": ("pi", 90)}
    if len(part.groupby(places)) * 2 > len(part):
        sns.scatterplot(some_rows(part), x=x, y=y, ax=panel, s=24, linewidth=0.4, alpha=0.8, **look)
    elif is_numeric_dtype(part[x]):
        look |= several | {"err_kws": {"linewidth": 0}, "markersize": 5}
        sns.lineplot(part, x=x, y=y, ax=panel, dashes=False, **look)
    else:
        sns.pointplot(part, x=x, y=y, ax=panel, **several, **_bars(part, hue, look))
    low, high = panel.get_ylim()
    if low < 0.0 < high:
        panel.axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    legend = panel.get_legend()
    if legend is not None:
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((1.02, 1.0))
        for text in legend.get_texts():
            text.set_parse_math(False)


def _bars(part: pd.DataFrame, hue: str | None, look: dict[str, Any]) -> dict[str, Any]:
    """Look of medians over words: bars beside each other, no lines between words."""
    bars = {"linestyle": "none", "markersize": 5, "err_kws": {"linewidth": 1.4}}
    if hue is None:
        return {"color": MEASURED, "legend": False, "marker": "o", **bars}
    kept = {name: value for name, value in look.items() if name in ("hue", "palette", "legend")}
    markers = list(look["markers"].values()) if "markers" in look else "o"
    return {**kept, "markers": markers, "dodge": 0.3 if part[hue].nunique() > 1 else False, **bars}


def _look(rows: pd.DataFrame, hue: str | None, last: bool) -> dict[str, Any]:
    if hue is None:
        return {"color": MEASURED, "legend": False, "marker": "o"}
    values = list(dict.fromkeys(rows[hue]))
    legend = "auto" if last else False
    if len(values) > len(SERIES):  # too many to tell apart one by one: an order of colors
        return {"hue": hue, "palette": "viridis", "legend": "brief" if last else False}
    return {
        "hue": hue,
        "style": hue,
        "palette": dict(zip(values, SERIES, strict=False)),
        "markers": dict(zip(values, SERIES_MARKERS, strict=False)),
        "legend": legend,
    }
