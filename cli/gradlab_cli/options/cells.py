"""Random cells of several kinds: their common shape, and what only some kinds have."""

from __future__ import annotations

from typing import Annotated

import typer

from gradlab_cli.options.network import Recurrent

CELLS = "Random cells (NAMES are kinds of cells)"

ComparedArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NAMES",
        help="Two or more kinds of cells (rnn, leaky, lstm, gru, mgu), or folders of saved runs; "
        "RUN/RECURRENCE names one recurrence of a run.",
        show_default=False,
    ),
]

HiddenSizeOption = Annotated[
    int | None,
    typer.Option(min=1, help="Units N of every cell.", show_default="64", rich_help_panel=CELLS),
]

InputSizeOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Features D of an input.",
        show_default="those of --inputs, else 8",
        rich_help_panel=CELLS,
    ),
]

RecurrentOption = Annotated[
    Recurrent | None,
    typer.Option(
        metavar="KIND",
        help="Ensemble of every recurrent block: gaussian, orthogonal, identity, uniform or "
        "sparse.",
        show_default="gaussian",
        rich_help_panel=CELLS,
    ),
]

GainOption = Annotated[
    float | None,
    typer.Option(help="Gain of every recurrent block.", show_default="1.0", rich_help_panel=CELLS),
]

ActivationOption = Annotated[
    str | None,
    typer.Option(
        help="Activation of states and candidates; gates stay logistic.",
        show_default="tanh",
        rich_help_panel=CELLS,
    ),
]

ForgetBiasOption = Annotated[
    float | None,
    typer.Option(
        help="Bias of the gate that keeps the old state (lstm, gru, mgu).",
        show_default="1.0",
        rich_help_panel=CELLS,
    ),
]

ChronoOption = Annotated[
    int | None,
    typer.Option(
        min=3,
        help="Spread these biases for lags up to this one, in place of --forget-bias (lstm, gru).",
        show_default="not spread",
        rich_help_panel=CELLS,
    ),
]

LeakOption = Annotated[
    float | None,
    typer.Option(
        help="Share of the state that a step replaces (leaky).",
        show_default="0.25",
        rich_help_panel=CELLS,
    ),
]
