"""Markers for points, told apart by color and marker where they are of several series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.style import CURVES, MEASURED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Markers beyond this are drawn as an image inside an SVG: its size stays below a picture's.
MAX_VECTORS = 2000


def scatter(
    ax: Axes,
    points: pd.DataFrame,
    x: str,
    y: str,
    series: Mapping[str, Any],
    **look: Any,
) -> None:
    """Draw points.

    Parameters
    ----------
    ax
        Where to.
    points
        Rows with the two columns.
    x, y
        Columns across and up.
    series
        Rows of each series by its name, as many as `CURVES`; a single one has the color of a
        measurement.
    look
        Of every marker, as of matplotlib's ``scatter``.
    """
    place = points[x].to_numpy(dtype=np.float64), points[y].to_numpy(dtype=np.float64)
    looks = [(curve.color, curve.marker) for curve in CURVES]
    if len(series) == 1:
        looks = [(MEASURED, "o")]
    for (name, rows), (color, marker) in zip(series.items(), looks, strict=False):
        ax.scatter(
            place[0][rows],
            place[1][rows],
            color=color,
            marker=marker,
            label=name,
            edgecolors="white",
            rasterized=len(points) > MAX_VECTORS,
            **look,
        )
