"""What a network is designed for, and what it is to be like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

GIVEN = "What is given"
CHECK = "Check by simulation"

HorizonOption = Annotated[
    int,
    typer.Option(
        min=1,
        help="Wished lag from which the median gradient stays below 1 %.",
        show_default=False,
    ),
]

CellOption = Annotated[
    Literal["rnn", "lstm", "gru"],
    typer.Option(metavar="CELL", help="Kind of the cell: rnn, lstm or gru."),
]

SolveOption = Annotated[
    Literal["gain", "input_std", "forget_bias"] | None,
    typer.Option(
        metavar="SETTING",
        help="Setting to find: gain or input_std (rnn), forget_bias (lstm, gru).",
        show_default="the first that is not given",
    ),
]


@dataclass(frozen=True, kw_only=True)
class GivenOptions:
    """The network, but for the setting to be found."""

    hidden_size: Annotated[int, typer.Option(min=1, help="Units N.", rich_help_panel=GIVEN)] = 64
    input_size: Annotated[
        int, typer.Option(min=1, help="Features D of an input.", rich_help_panel=GIVEN)
    ] = 8
    gain: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Gain of every recurrent block.",
            show_default="found for rnn, else 0.5",
            rich_help_panel=GIVEN,
        ),
    ] = None
    input_std: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Standard deviation of the inputs.",
            show_default="0.5",
            rich_help_panel=GIVEN,
        ),
    ] = None
    activation: Annotated[
        str, typer.Option(help="Activation of states and candidates.", rich_help_panel=GIVEN)
    ] = "tanh"
    recurrent: Annotated[
        Literal["gaussian", "orthogonal"],
        typer.Option(
            metavar="KIND",
            help="Ensemble of every recurrent block: gaussian or orthogonal.",
            rich_help_panel=GIVEN,
        ),
    ] = "gaussian"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How the design is checked."""

    networks: Annotated[
        int, typer.Option(min=1, help="Networks to draw and measure.", rich_help_panel=CHECK)
    ] = 3
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of the first network; the others count on.", rich_help_panel=CHECK
        ),
    ] = 0
