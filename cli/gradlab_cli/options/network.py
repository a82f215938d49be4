"""The network: which file or scenario, what a file does not say, and the shape of a random one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

NETWORK = "Random network (SOURCE is random)"
READING = "What a model file does not say"

Recurrent = Literal["gaussian", "orthogonal", "identity", "uniform", "sparse"]

ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Model file: .pt, .safetensors, .npz, .keras, .h5, .onnx or .msgpack.",
    ),
]

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Model file (.pt, .safetensors, .npz, .onnx, …), a scenario (vanishing, exploding, "
        "saturated), or random.",
        show_default=False,
    ),
]

ReportSourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A scenario (vanishing, exploding, saturated), a model file, random, or the folder of "
        "a saved run, comparison or training, which is only rendered.",
        show_default=False,
    ),
]

NonlinearityOption = Annotated[
    str | None,
    typer.Option(
        help="Activation of the recurrences in a file that does not store it: tanh, relu, …",
        show_default="tanh, and said so",
        rich_help_panel=READING,
    ),
]

RecurrentActivationOption = Annotated[
    str | None,
    typer.Option(
        metavar="ACTIVATION",
        help="Activation of the gates in a file of Keras weights that does not store it: sigmoid, "
        "hard_sigmoid, …",
        show_default="by the version of Keras, and said so",
        rich_help_panel=READING,
    ),
]

KerasVersionOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="MAJOR",
        help="Major version of the Keras that wrote a file of weights which does not say it.",
        show_default="by the file's layout, and said so",
        rich_help_panel=READING,
    ),
]

MapOption = Annotated[
    Path | None,
    typer.Option(
        metavar="TOML",
        help="Mapping that says which arrays of a file with names of its own are a recurrent "
        "layer; `gradlab inspect MODEL --propose-map` prints one to edit.",
        show_default="by the names of the arrays",
        rich_help_panel=READING,
    ),
]

ListOption = Annotated[
    bool,
    typer.Option("--list", help="List every array in the file instead, with shape and type."),
]

ProposeMapOption = Annotated[
    bool,
    typer.Option(
        "--propose-map",
        help="Print a mapping (TOML) for the arrays that could be recurrent layers instead; edit "
        "it and pass it with --map.",
    ),
]

MaxBytesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="BYTES",
        help="Largest size that one tensor or archive member of a model file may declare.",
        show_default="2 GiB",
        rich_help_panel=READING,
    ),
]

RecurrentOption = Annotated[
    Recurrent | None,
    typer.Option(
        metavar="KIND",
        help="Ensemble of W_hh: gaussian, orthogonal, identity, uniform or sparse.",
        show_default="gaussian",
        rich_help_panel=NETWORK,
    ),
]

GainOption = Annotated[
    float | None,
    typer.Option(
        help="Gain g of the ensemble (gaussian: entries N(0, g²/N)).",
        show_default="1.0",
        rich_help_panel=NETWORK,
    ),
]

GammaOption = Annotated[
    float | None,
    typer.Option(
        help="Rescale W_hh so that its largest singular value is exactly this.",
        show_default="not rescaled",
        rich_help_panel=NETWORK,
    ),
]

RadiusOption = Annotated[
    float | None,
    typer.Option(
        help="Rescale W_hh so that its spectral radius is exactly this.",
        show_default="not rescaled",
        rich_help_panel=NETWORK,
    ),
]

DensityOption = Annotated[
    float | None,
    typer.Option(
        help="Share of entries that are not zero in a sparse W_hh.",
        show_default="0.1",
        rich_help_panel=NETWORK,
    ),
]

ActivationOption = Annotated[
    str | None,
    typer.Option(
        help="tanh, relu, leaky_relu, identity, sigmoid, hard_tanh, erf, softsign, softplus, "
        "gelu, silu, elu or selu.",
        show_default="tanh",
        rich_help_panel=NETWORK,
    ),
]

HiddenSizeOption = Annotated[
    int | None,
    typer.Option(min=1, help="Units N.", show_default="64", rich_help_panel=NETWORK),
]

InputSizeOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Features D of an input.",
        show_default="those of --inputs, else 8",
        rich_help_panel=NETWORK,
    ),
]

BiasOption = Annotated[
    float | None,
    typer.Option(help="Mean of the bias.", show_default="0.0", rich_help_panel=NETWORK),
]

BiasStdOption = Annotated[
    float | None,
    typer.Option(
        help="Standard deviation of the bias.", show_default="0.0", rich_help_panel=NETWORK
    ),
]
