"""A training: the task, the cell that learns it, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

TASK = "Task"
CELL = "Cell"
LEARNING = "Learning"

Cell = Literal["rnn", "leaky", "lstm", "gru", "mgu"]
Recurrent = Literal["gaussian", "orthogonal", "identity", "uniform", "sparse"]
Optimizer = Literal["sgd", "adam", "rmsprop"]
Policy = Literal["raise", "skip", "zero"]

TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="adding, adding_1997, copy, temporal_order, temporal_order_3, echo or digits.",
        show_default=False,
    ),
]


def _option(help_text: str, panel: str, default: str | None = None, **more: Any) -> Any:
    shown: dict[str, Any] = {} if default is None else {"show_default": default}
    return typer.Option(help=help_text, rich_help_panel=panel, **shown, **more)


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Settings of the task; None where its own default holds."""

    length: Annotated[int | None, _option("Steps T.", TASK, "the task's own", min=1)] = None
    delay: Annotated[int | None, _option("Steps until the echo.", TASK, "8", min=0)] = None
    count: Annotated[int | None, _option("Symbols to copy.", TASK, "10", min=1)] = None
    symbols: Annotated[
        int | None, _option("Symbols to choose from when copying.", TASK, "8", min=2)
    ] = None
    folder: Annotated[
        Path | None,
        _option("Folder of the digits, as examples/digits.", TASK, "none", metavar="DIR"),
    ] = None
    permutation: Annotated[
        int | None, _option("Seed of a fixed order of the pixels.", TASK, "as they are")
    ] = None


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """The network before its first step; None where the cell's own default holds."""

    cell: Annotated[Cell, _option("rnn, leaky, lstm, gru or mgu.", CELL, "rnn", metavar="KIND")] = (
        "rnn"
    )
    hidden_size: Annotated[int, _option("Units N.", CELL, "64", min=1)] = 64
    recurrent: Annotated[
        Recurrent | None,
        _option(
            "Ensemble of the recurrent weights: gaussian, orthogonal, identity, uniform or sparse.",
            CELL,
            "gaussian (rnn), else orthogonal",
            metavar="KIND",
        ),
    ] = None
    gain: Annotated[float | None, _option("Gain of the ensemble.", CELL, "1.0")] = None
    activation: Annotated[str | None, _option("Activation.", CELL, "tanh")] = None
    leak: Annotated[float | None, _option("Leak of the leaky cell.", CELL, "0.25")] = None
    forget_bias: Annotated[
        float | None, _option("Bias of the gate that keeps the old state.", CELL, "0.0")
    ] = None
    chrono: Annotated[
        int | None,
        _option("Biases for memories of up to this many steps (lstm, gru).", CELL, "none", min=2),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """The optimizer, clipping, and how long."""

    optimizer: Annotated[
        Optimizer, _option("sgd, adam or rmsprop.", LEARNING, "adam", metavar="NAME")
    ] = "adam"
    learning_rate: Annotated[
        float | None, _option("Learning rate.", LEARNING, "0.001; sgd 0.01")
    ] = None
    momentum: Annotated[float | None, _option("Momentum (sgd).", LEARNING, "0.0")] = None
    batch_size: Annotated[int, _option("Fresh sequences a step.", LEARNING, "20", min=1)] = 20
    clip: Annotated[
        float, _option("Largest norm of the gradient, over all weights; inf for none.", LEARNING)
    ] = 1.0
    nonfinite: Annotated[
        Policy,
        _option(
            "What to do about NaN or infinite gradients: raise, skip or zero.",
            LEARNING,
            "raise",
            metavar="POLICY",
        ),
    ] = "raise"
    window: Annotated[
        int | None,
        _option("Steps the gradient of each loss flows back.", LEARNING, "the whole past", min=1),
    ] = None
    omega: Annotated[
        float, _option("Weight of the penalty that keeps the gradient's norm.", LEARNING)
    ] = 0.0
    epochs: Annotated[int, _option("Epochs.", LEARNING, min=0)] = 20
    every: Annotated[
        int,
        _option("Steps of an epoch, which ends with a row and a checkpoint.", LEARNING, min=1),
    ] = 100


TrainingFolderOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the tables and the weights. An unfinished training there is gone on with.",
        rich_help_panel="Output",
    ),
]
