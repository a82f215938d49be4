"""The measurement: what is measured, from which seed, on how many cores."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

MEASUREMENT = "Measurement"

AnchorsOption = Annotated[
    str,
    typer.Option(
        help="End times t of the pairs (t, k): all, last, a number of evenly spaced ones, or "
        "auto: as many as --max-pairs allows.",
        rich_help_panel=MEASUREMENT,
    ),
]

MaxPairsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Pairs (t, k) that --anchors auto may measure in a recurrence of up to 64 numbers; "
        "fewer by the cube of the size in larger ones.",
        show_default="20000",
        rich_help_panel=MEASUREMENT,
    ),
]

ProcessesOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        min=0,
        metavar="COUNT",
        help="Processes that measure beside each other, one BLAS thread each; 0 for all cores. Any "
        "number gives the same bytes.",
        rich_help_panel=MEASUREMENT,
    ),
]

EstimateOption = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Only tell what the measurement would take, in time and memory.",
        rich_help_panel=MEASUREMENT,
    ),
]

MaxLagOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Longest lag t − k.",
        show_default="the whole run",
        rich_help_panel=MEASUREMENT,
    ),
]

ThresholdOption = Annotated[
    float,
    typer.Option(
        help="Share of its range from which an activation counts as saturated.",
        rich_help_panel=MEASUREMENT,
    ),
]

InclusiveOption = Annotated[
    bool,
    typer.Option(
        "--inclusive",
        help="An activation exactly at the threshold counts too.",
        rich_help_panel=MEASUREMENT,
    ),
]

BlockOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Steps that one factor of the block rung of the bound ladder spans.",
        show_default="as many as stay well conditioned",
        rich_help_panel=MEASUREMENT,
    ),
]

ExponentsOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Lyapunov exponents to measure, from the largest on; 0 for none.",
        show_default="all of states of up to 256 numbers, 16 of larger ones",
        rich_help_panel=MEASUREMENT,
    ),
]

TransientOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Steps at the start of each sequence that do not count for the exponents.",
        show_default="a tenth of the shortest sequence",
        rich_help_panel=MEASUREMENT,
    ),
]

CertificatesOption = Annotated[
    Literal["cheap", "all"],
    typer.Option(
        help="Certificates that hold for every input: the cheap ones, or those that have to be "
        "searched for too (seconds from about a hundred units on).",
        rich_help_panel=MEASUREMENT,
    ),
]

KernelOption = Annotated[
    Literal["auto", "numpy", "numba"],
    typer.Option(
        help="What measures the norms of long products: numpy, numba (small states, needs the "
        "extra fast), or auto, numba where it is installed and saves seconds.",
        rich_help_panel=MEASUREMENT,
    ),
]

DtypeOption = Annotated[
    Literal["float64", "float32"],
    typer.Option(help="Floating-point type of the run.", rich_help_panel=MEASUREMENT),
]

SeedOption = Annotated[
    int,
    typer.Option(min=0, help="Seed of everything random.", rich_help_panel=MEASUREMENT),
]
