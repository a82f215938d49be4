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
        "lyapunov or saturation, with a loss gradient or gradient-pairs, of gated cells gates or "
        "paths; of a sweep: rate or decay-by-gamma; of a comparison: compare; of a training: "
        "training or clipping.",
        show_default=False,
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
