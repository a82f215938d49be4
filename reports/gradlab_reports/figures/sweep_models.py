"""Rate and horizon over the model files of a sweep, such as the checkpoints of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import axes_or_new, stacked
from gradlab_reports.frames import column
from gradlab_reports.spelling import plain, shortened
from gradlab_reports.style import FAINT, MEASURED, SERIES, SERIES_MARKERS, styled
from gradlab_reports.sweep_axes import combined, name_places, short_names, told_apart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 5.4)
HORIZON = "horizon_1pct"
LABELS = {
    "rate": "rate of the gradient norm\n(nats per step)",
    HORIZON: "lag from which the norm\nstays below 1 % (steps)",
}


@styled
def plot_sweep_models(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the measured rate and horizon of every model file.

    Parameters
    ----------
    frame
        Columns of ``sweep.csv`` with ``model``; of several rows of a file the medians are drawn.
    ax
        Axes to draw on; a new figure without pyplot when None. They are shared out.

    Returns
    -------
    ax
        The upper panel: files in their order against the rate in nats per step; below it, the lag
        from which the norm stays below 1 %, where there is one within the run.
    """
    ax = axes_or_new(ax, SIZE)
    panels = stacked(ax, (1.0, 1.0))
    models = list(dict.fromkeys(frame["model"].astype(str)))
    places = {model: place for place, model in enumerate(models)}
    axes = told_apart(frame.drop(columns="model"), len(SERIES))
    points = frame.assign(
        place=frame["model"].astype(str).map(places), series=combined(frame, axes)
    )
    names = list(dict.fromkeys(points["series"]))
    looks = list(zip(SERIES, SERIES_MARKERS, strict=True)) if len(names) > 1 else [(MEASURED, "o")]
    for panel, quantity in zip(panels, LABELS, strict=True):
        for name, (color, marker) in zip(names, looks, strict=False):
            line = _medians(points[points["series"] == name], quantity, len(models))
            panel.plot(line, color=color, marker=marker, markersize=4, linewidth=1.3, label=name)
        panel.set_ylabel(LABELS[quantity])
    panels[0].axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    _say_beyond(panels[1], frame)
    panels[1].set_ylim(bottom=0.0)
    panels[1].set_xlim(-0.5, len(models) - 0.5)
    name_places(panels[1], short_names(models))
    panels[1].set_xlabel("model file")
    panels[0].set_title("Measured rate and horizon over the model files")
    if len(names) > 1:
        look: dict[str, Any] = {
            "loc": "upper left",
            "bbox_to_anchor": (1.02, 1.0),
            "alignment": "left",
        }
        legend = panels[0].legend(title=shortened(" · ".join(axes)), borderaxespad=0.0, **look)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Files from left to right, in the order of their names. Above, the rate at which the "
        "measured gradient shrinks (below 0) or grows (above 0) per step back; below, the lag from "
        "which its norm stays under 1 %, which is absent where it does not within the run. Of "
        "several measurements of a file the median is drawn; a gap is a file that could not be "
        "measured."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = frame[np.isfinite(column(frame, "rate"))]
    if rows.empty:
        return "None of the 0 measured models has a finite rate."
    rates = rows.groupby("model", sort=False)["rate"].median()
    first, last = short_names([str(name) for name in rates.index])[:: max(len(rates) - 1, 1)][:2]
    return (
        f"Over {len(rates)} models from {first} to {last} the rate goes from "
        f"{plain(float(rates.iloc[0]))} to {plain(float(rates.iloc[-1]))} nats per step."
    )


def _medians(rows: pd.DataFrame, quantity: str, count: int) -> list[float]:
    """Median of the finite values at each place; nan where there is none."""
    finite = rows[np.isfinite(column(rows, quantity))]
    medians = finite.groupby("place")[quantity].median()
    return [float(medians.get(place, np.nan)) for place in range(count)]


def _say_beyond(panel: Axes, frame: pd.DataFrame) -> None:
    """Count those whose norm does not stay below 1 % within the run."""
    measured = np.isfinite(column(frame, "rate"))
    beyond = int((measured & ~np.isfinite(column(frame, HORIZON))).sum())
    if beyond:
        words = f"not within the run: {beyond} of {int(measured.sum())} networks"
        panel.text(0.01, 0.96, words, transform=panel.transAxes, va="top", fontsize=8, color=FAINT)
