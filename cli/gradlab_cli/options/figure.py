"""One figure: from what, of which kind, into which file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OUTPUT = "Output"

FigureSourceArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN_FOLDER|FILE.csv", help="Folder of a saved run, or its CSV file."),
]

KindOption = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="Of a run: decay, ladder, bounds, directions, pairs, spectrum, singular-values, "
        "lyapunov, saturation, slopes or units, with a loss gradient or gradient-pairs, of gated "
        "cells gates or paths; of a sweep: rate, decay-by-gamma, regime-map, of model files "
        "models, or sweep for any of its columns; of a comparison: compare; of a training: "
        "training or clipping.",
        show_default=False,
    ),
]

ThemeOption = Annotated[
    str, typer.Option(metavar="THEME", help="light, or dark for dark slides and pages.")
]

COLUMNS = "Columns of a sweep (--kind sweep)"

XOption = Annotated[
    str | None,
    typer.Option(
        "--x",
        metavar="COLUMN",
        help="Column across.",
        show_default="gamma_w",
        rich_help_panel=COLUMNS,
    ),
]

YOption = Annotated[
    str | None,
    typer.Option(
        "--y", metavar="COLUMN", help="Column up.", show_default="rate", rich_help_panel=COLUMNS
    ),
]

HueOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column told apart by color and marker.",
        show_default="none",
        rich_help_panel=COLUMNS,
    ),
]

FacetOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with a panel for each value.",
        show_default="none",
        rich_help_panel=COLUMNS,
    ),
]

RecurrenceOption = Annotated[
    str | None,
    typer.Option(help="Which recurrence to draw, by its name.", show_default="the only one"),
]

FigureFileOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Picture to write: .png, .svg or .pdf.",
        rich_help_panel=OUTPUT,
    ),
]
