"""The output: where it goes, and what is said about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OUTPUT = "Output"

RunFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder to save the run in.",
        show_default="only print",
        rich_help_panel=OUTPUT,
    ),
]

ReportFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the numbers, the figures and the page.",
        show_default="the run folder itself",
        rich_help_panel=OUTPUT,
    ),
]

SweepFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the tables and figures. An unfinished sweep there is gone on with.",
        show_default="required, but for --dry-run",
        rich_help_panel=OUTPUT,
    ),
]

ComparisonFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the table, the figure and the page compare.html.",
        show_default="only print",
        rich_help_panel=OUTPUT,
    ),
]

PairsOption = Annotated[
    bool,
    typer.Option(
        "--pairs",
        help="Also save pairs.csv, one row for each pair (t, k).",
        rich_help_panel=OUTPUT,
    ),
]

ReportPairsOption = Annotated[
    bool,
    typer.Option(
        help="Save pairs.csv, one row for each pair (t, k), and draw its map.",
        rich_help_panel=OUTPUT,
    ),
]

FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="LIST",
        help="Formats of the page, with commas between: html, md, json.",
        rich_help_panel=OUTPUT,
    ),
]

ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Replace an output that exists.", rich_help_panel=OUTPUT),
]

JsonOption = Annotated[
    bool,
    typer.Option(
        "--json", help="One JSON document on stdout in place of text.", rich_help_panel=OUTPUT
    ),
]

QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No progress and no messages: only the data, and errors.",
        rich_help_panel=OUTPUT,
    ),
]

DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Write the traceback of an error before its line.",
        rich_help_panel=OUTPUT,
    ),
]
