"""Raster of the units: how steep each one is at every time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, figure_of, stacked
from gradlab_reports.frames import title_of
from gradlab_reports.spelling import share, shortened
from gradlab_reports.style import INK, MISSING, MORE, styled
from gradlab_reports.ticks import count_in_wholes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

WIDTH, MARGIN, ALONE, PANEL = 5.4, 0.8, 3.4, 1.35  # inches; one panel is higher than each of many
HIGHEST = 6.4  # of many panels together
MAX_PANELS = 8
# Of the steps: what counts as saturated most of the time, and as always so.
MOSTLY, ALWAYS = 0.5, 1.0

Values = NDArray[np.float64]


@styled
def plot_units(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the derivative of every unit at every time.

    Parameters
    ----------
    frame
        Columns of ``units.csv`` for one recurrence.
    ax
        Axes to draw on, split into a panel a non-linearity; a new figure without pyplot when None.

    Returns
    -------
    ax
        The top panel: time in steps across, units upward in the order of their mean derivative,
        the flattest on top; color is the mean of phi' over the sequences as a part of gamma_a,
        dark where it is 0.
    """
    kinds = list(dict.fromkeys(frame["activation"]))[:MAX_PANELS]
    height = ALONE if len(kinds) == 1 else min(PANEL * len(kinds), HIGHEST)
    top = axes_or_new(ax, (WIDTH, MARGIN + height))
    panels = stacked(top, [1.0] * len(kinds))
    for panel, kind in zip(panels, kinds, strict=True):
        image = _draw(panel, frame[frame["activation"] == kind])
        if len(kinds) > 1:
            look: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center", "labelpad": 10.0}
            name = shortened(str(kind), 24)
            panel.set_ylabel(name, color=INK, fontweight="bold", parse_math=False, **look)
    bar = figure_of(top).colorbar(image, ax=panels, pad=0.03, shrink=0.92)
    bar.outline.set_visible(False)
    bar.set_label(r"mean derivative $\varphi'(z_t)$, as a part of its supremum $\gamma_a$")
    count_in_wholes(panels[-1].xaxis)
    panels[-1].set_xlabel("time t (steps)")
    if len(kinds) == 1:
        top.set_ylabel("units, the flattest on top")
    title_of(top, "Saturation unit by unit", frame)
    return top


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each row is a unit (or a few neighbors of a large layer), each column a time: the darker, "
        "the smaller the derivative φ', by which the step multiplies the unit's gradient, beside "
        "the largest possible. Rows are in the order of their mean, the flattest on top. A row "
        "dark throughout is a unit that passes nothing back; dark columns are times at which the "
        "whole layer saturates."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    said = []
    for kind, rows in frame.groupby("activation", sort=False):
        steps = rows["t_last"] - rows["t_first"] + 1
        saturated = (rows["saturated_share"] * steps).groupby(rows["unit_first"]).sum()
        part = saturated / steps.groupby(rows["unit_first"]).sum()
        said.append(
            f"{kind}: {share(float((part >= MOSTLY).mean()))} of the units are saturated at half "
            f"of the steps or more, {share(float((part >= ALWAYS).mean()))} at all of them"
        )
    return f"{'; '.join(said)}."


def _draw(ax: Axes, rows: pd.DataFrame) -> AxesImage:
    rows = rows.assign(part=rows["derivative_mean"] / rows["derivative_sup"])
    table = rows.pivot_table(index="unit_first", columns="t_first", values="part")
    values: Values = table.to_numpy()
    order = np.argsort(-values.mean(axis=1), kind="stable")
    units = float(rows["unit_last"].max()) + 1.0
    edges = (float(rows["t_first"].min()) - 0.5, float(rows["t_last"].max()) + 0.5, 0.0, units)
    ax.grid(visible=False)
    count_in_wholes(ax.yaxis)
    return ax.imshow(
        values[order],
        cmap=MORE.reversed().with_extremes(bad=MISSING),
        norm=Normalize(0.0, 1.0),
        extent=edges,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
    )
