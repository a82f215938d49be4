"""The options of a sweep's grid: each takes one value, a comma list, or a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from gradlab_cli import axes

PANEL = "Grid: one value, a comma list, or start:stop:count, also :log"


def _axis(help_text: str, default: str, metavar: str = "NUMBERS") -> Any:
    return typer.Option(
        metavar=metavar, help=help_text, show_default=default, rich_help_panel=PANEL
    )


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """The axes as typed; None where there is none and the library's default holds."""

    recurrence: Annotated[
        str | None, _axis("Recurrences of the model files.", "all of the first file", "NAMES")
    ] = None
    nonlinearity: Annotated[
        str | None,
        _axis("Activations that the model files do not store.", "tanh, and said so", "NAMES"),
    ] = None
    recurrent_activation: Annotated[
        str | None,
        _axis(
            "Activations of the gates that files of Keras weights do not store: sigmoid, "
            "hard_sigmoid, …",
            "by the version of Keras",
            "NAMES",
        ),
    ] = None
    keras_version: Annotated[
        str | None,
        _axis("Major version of the Keras that wrote the weights.", "by the file's layout"),
    ] = None
    cell: Annotated[
        str | None, _axis("Kinds of cells: rnn, leaky, lstm, gru, mgu.", "rnn", "NAMES")
    ] = None
    gamma: Annotated[str | None, _axis("Exact largest singular value of W_hh.", "not rescaled")] = (
        None
    )
    radius: Annotated[str | None, _axis("Exact spectral radius of W_hh.", "not rescaled")] = None
    gain: Annotated[str | None, _axis("Gain g of the ensemble.", "1.0")] = None
    density: Annotated[str | None, _axis("Share of non-zero entries, if sparse.", "0.1")] = None
    bias: Annotated[str | None, _axis("Mean of the bias.", "0.0")] = None
    bias_std: Annotated[str | None, _axis("Standard deviation of the bias.", "0.0")] = None
    forget_bias: Annotated[
        str | None, _axis("Bias of the gate that keeps the old state (lstm, gru, mgu).", "1.0")
    ] = None
    chrono: Annotated[
        str | None,
        _axis("Spread these biases for lags up to this one (lstm, gru).", "not spread"),
    ] = None
    leak: Annotated[str | None, _axis("Share of the state replaced by a step (leaky).", "0.25")] = (
        None
    )
    reset: Annotated[
        str | None, _axis("Reset of a GRU: after or before the product.", "after", "NAMES")
    ] = None
    input_std: Annotated[str | None, _axis("Standard deviation of the inputs.", "0.5")] = None
    hidden_size: Annotated[str | None, _axis("Units N.", "64")] = None
    input_size: Annotated[str | None, _axis("Features D of an input.", "8")] = None
    length: Annotated[str | None, _axis("Steps of a sequence.", "100")] = None
    batch: Annotated[str | None, _axis("Number of sequences.", "4")] = None
    recurrent: Annotated[
        str | None,
        _axis("Ensembles: gaussian, orthogonal, identity, uniform, sparse.", "gaussian", "NAMES"),
    ] = None
    activation: Annotated[str | None, _axis("Activations: tanh, relu, …", "tanh", "NAMES")] = None
    synthetic: Annotated[
        str | None, _axis("Inputs: gaussian, zeros, sine, white_noise.", "gaussian", "NAMES")
    ] = None
    anchors: Annotated[
        str | None, _axis("End times t: all, last, or a number of them.", "last", "NAMES")
    ] = None
    max_lag: Annotated[str | None, _axis("Longest lag t − k.", "the whole run")] = None
    threshold: Annotated[
        str | None, _axis("Share of its range from which a unit counts as saturated.", "0.97")
    ] = None
    transient: Annotated[
        str | None,
        _axis(
            "Steps at the start that do not count for the Lyapunov exponent.",
            "a tenth of the shortest sequence",
        ),
    ] = None
    dtype: Annotated[
        str | None, _axis("Types of the run: float64, float32.", "float64", "NAMES")
    ] = None


COUNTS = (
    "keras_version",
    "chrono",
    "hidden_size",
    "input_size",
    "length",
    "batch",
    "max_lag",
    "transient",
)
FROM_ZERO = ("transient",)
NAMES = (
    "recurrence",
    "nonlinearity",
    "recurrent_activation",
    "cell",
    "reset",
    "recurrent",
    "activation",
    "synthetic",
    "anchors",
    "dtype",
)


def axis_values(name: str, text: str, origin: str) -> Sequence[Any]:
    """Values of an axis.

    Parameters
    ----------
    name
        The option's field.
    text
        As typed.
    origin
        Where it was typed, for the message.

    Raises
    ------
    typer.BadParameter
        If the text is no axis.
    """
    if name in COUNTS:
        return axes.integers(origin, text, at_least=0 if name in FROM_ZERO else 1)
    if name not in NAMES:
        return axes.floats(origin, text)
    words = axes.names(origin, text)
    if name == "anchors":
        return [int(word) if word.isdecimal() else word for word in words]
    return words
