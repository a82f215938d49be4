"""A sweep: where its settings come from, and what does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

SOURCES = "Where settings come from"
WORK = "Work"

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TOML",
        help="File of settings under the options' names, such as the sweep.toml of an earlier "
        "sweep. Options come before variables GRADLAB_GAMMA, …, and these before the file.",
        show_default=False,
        rich_help_panel=SOURCES,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Networks of files in place of random ones; None where nothing was typed."""

    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILES",
            help="Model files in place of random networks, as a quoted pattern such as "
            "'ckpt/*.pt'; may be given several times.",
            show_default="random networks",
            rich_help_panel=SOURCES,
        ),
    ] = None
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Sequences to run on, (time, batch, features).",
            show_default="synthetic",
            rich_help_panel=SOURCES,
        ),
    ] = None
    batch_first: Annotated[
        bool | None,
        typer.Option(
            "--batch-first",
            help="The input file is (batch, time, features).",
            show_default=False,
            rich_help_panel=SOURCES,
        ),
    ] = None
    map: Annotated[
        str | None,
        typer.Option(
            metavar="TOML",
            help="Mapping for model files with names of their own.",
            show_default="by the names of the arrays",
            rich_help_panel=SOURCES,
        ),
    ] = None


InclusiveOption = Annotated[
    bool | None,
    typer.Option(
        "--inclusive",
        help="An activation exactly at the threshold counts too.",
        show_default=False,
        rich_help_panel="Measurement",
    ),
]

JobsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COUNT",
        help="Processes, one BLAS thread each; 0 or auto for all cores. Any number gives the same "
        "bytes.",
        show_default="all cores",
        rich_help_panel=WORK,
    ),
]

SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Dask scheduler that hands the points out: tcp://host:8786, or its scheduler file.",
        show_default="processes of this machine",
        rich_help_panel=WORK,
    ),
]

DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only count the points, and estimate time and room from a few of them.",
        rich_help_panel=WORK,
    ),
]

TableFormat = Literal["csv", "parquet"]

TableFormatOption = Annotated[
    TableFormat,
    typer.Option(
        "--format",
        help="Format of the tables: parquet writes sweep.parquet and sweep_profiles.parquet beside "
        "the CSV files.",
        rich_help_panel="Output",
    ),
]

ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume",
        help="Go on where an unfinished sweep in the folder stopped.",
        rich_help_panel="Output",
    ),
]

SeedsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Networks at each place of the grid, with the seeds from --seed on.",
        show_default="1",
        rich_help_panel="Measurement",
    ),
]

FirstSeedOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="Seed of everything random.", show_default="0", rich_help_panel="Measurement"
    ),
]
