"""The loss whose gradient is taken apart: targets, and what reads the states."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

LOSS = "Loss (with --targets)"

Loss = Literal["cross_entropy", "squared_error"]

TargetsOption = Annotated[
    Path | None,
    typer.Option(
        help="Take the gradient of a loss apart: integers (time, batch) or reals "
        "(time, batch, outputs), .npy; with --at last without the time axis.",
        show_default="no loss",
        rich_help_panel=LOSS,
    ),
]

ReadoutOption = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Linear layer of the model file that the loss reads, by the name of its weight.",
        show_default="the only one that fits",
        rich_help_panel=LOSS,
    ),
]

LossOption = Annotated[
    Loss,
    typer.Option(
        metavar="KIND", help="cross_entropy or squared_error, a sum.", rich_help_panel=LOSS
    ),
]

AtOption = Annotated[
    Literal["all", "last"],
    typer.Option(
        metavar="STEPS",
        help="Steps with a loss: all, or the last of each sequence.",
        rich_help_panel=LOSS,
    ),
]
