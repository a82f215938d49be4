"""What each figure of a sweep draws, from its tables and those beside them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import gradlab as gl
from gradlab_reports.catalog import KINDS, SWEEP_MODELS, FigureKind
from gradlab_reports.run_folder import read_table
from gradlab_reports.sweep_axes import row_axis, scale_axis
from gradlab_reports.sweep_tables import averaged, beside, blocks, curves, sampled

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("log_gamma_w", "mean_field_rate", "mean_field_low", "mean_field_high")


def sweep_frame(path: Path, kind: FigureKind) -> pd.DataFrame:
    """Rows that a figure of a sweep draws; of very long tables as many as it can show.

    Parameters
    ----------
    path
        The table that the kind is drawn from.
    kind
        The kind of figure.

    Raises
    ------
    gl.RunFolderError
        If a table is missing or damaged, or does not fit the kind.
    """
    if kind.table == "sweep_profiles.csv":
        return _profiles(path, kind)
    rows = sampled(path, kind.columns)
    if "regime" in kind.columns and rows.attrs["rows"] > len(rows):
        names = [name for name in (scale_axis(rows), row_axis(rows)) if name]
        return averaged(path, kind.columns, names)
    return _with_levels(rows, path)


def fitting_kinds(folder: Path) -> list[FigureKind]:
    """Figures that the table of a sweep gives something to see; all where it cannot tell."""
    rate, decay, regimes = (KINDS[name] for name in ("rate", "decay-by-gamma", "regime-map"))
    path = beside(folder, "sweep")
    if not path.is_file():
        return [rate, decay, regimes]
    import numpy as np

    from gradlab_reports.frames import column

    models: set[str] = set()
    norms = False
    for block in blocks(path, ("gamma_w",)):
        norms = norms or bool(np.isfinite(column(block, "gamma_w")).any())
        models.update(block["model"].astype(str) if "model" in block.columns else ())
    several = len(models) > 1
    over_norms = [rate, decay] if several else [rate, decay, regimes]
    return [SWEEP_MODELS] * several + over_norms * norms


def _profiles(path: Path, kind: FigureKind) -> pd.DataFrame:
    """Decay curves, with each point's spectral norm from the table of points beside them."""
    table = beside(path.parent, "sweep")
    if not table.is_file():
        raise gl.RunFolderError(
            f"{path.parent} holds no sweep.csv beside {path.name}: expected a folder as written by "
            "gradlab sweep -o"
        )
    points = sampled(table, ("gamma_w",))
    if "gamma" not in points.columns:
        points = points.assign(gamma=points["gamma_w"])
    points = points[["point", "gamma", "gamma_w"]]
    return curves(path, points, kind.columns).merge(points, on="point", how="left")


def _with_levels(points: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Hang what theory expects at each level onto the table, where the sweep was analyzed."""
    levels = path.parent / "sweep_analysis.csv"
    if levels.is_file():
        with suppress(gl.RunFolderError):  # no level, or not of this version: drawn without
            points.attrs["levels"] = read_table(levels, LEVELS).to_dict("list")
    return points
