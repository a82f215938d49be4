"""The options of all commands, each written once.

A default of None leaves the choice to the library or to the file; ``show_default`` names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

NETWORK = "Random network (SOURCE is random)"
READING = "What a model file does not say"
SEQUENCES = "Sequences"
MEASUREMENT = "Measurement"
OUTPUT = "Output"

Recurrent = Literal["gaussian", "orthogonal", "identity", "uniform", "sparse"]
Synthetic = Literal["gaussian", "zeros", "sine", "white_noise"]

# What the command reads.

ModelArgument = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Model file: .pt, .safetensors or .npz."),
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Model file (.pt, .safetensors, .npz), a scenario (vanishing, exploding, saturated), "
        "or random.",
        show_default=False,
    ),
]
ReportSourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A scenario (vanishing, exploding, saturated), a model file, random, or the folder of "
        "a saved run, which is only rendered.",
        show_default=False,
    ),
]
FigureSourceArgument = Annotated[
    Path,
    typer.Argument(metavar="RUN_FOLDER|FILE.csv", help="Folder of a saved run, or its CSV file."),
]

# What a model file does not say.

NonlinearityOption = Annotated[
    str | None,
    typer.Option(
        help="Activation of the recurrences in a file that does not store it: tanh, relu, …",
        show_default="tanh, and said so",
        rich_help_panel=READING,
    ),
]
DtypeOption = Annotated[
    Literal["float64", "float32"],
    typer.Option(help="Floating-point type of the run.", rich_help_panel=MEASUREMENT),
]

# A random network.

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

# Sequences.

InputsOption = Annotated[
    Path | None,
    typer.Option(
        help="Sequences to run on, .npy, .npz or .csv: (time, batch, features), or "
        "(time, features) for one sequence.",
        show_default="synthetic",
        rich_help_panel=SEQUENCES,
    ),
]
BatchFirstOption = Annotated[
    bool,
    typer.Option(
        "--batch-first",
        help="The input file is (batch, time, features).",
        rich_help_panel=SEQUENCES,
    ),
]
SeparatorOption = Annotated[
    str, typer.Option(help="Between the cells of a .csv.", rich_help_panel=SEQUENCES)
]
DecimalOption = Annotated[
    str, typer.Option(help="Decimal sign of a .csv.", rich_help_panel=SEQUENCES)
]
RaggedOption = Annotated[
    bool,
    typer.Option(
        "--ragged",
        help="Each row of the .csv is one sequence of one feature, of its own length.",
        rich_help_panel=SEQUENCES,
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="Columns of the .csv that are features, by name, with commas between.",
        show_default="all",
        rich_help_panel=SEQUENCES,
    ),
]
SyntheticOption = Annotated[
    Synthetic | None,
    typer.Option(
        metavar="KIND",
        help="Made-up inputs in place of --inputs: gaussian, zeros, sine or white_noise; the "
        "report says that they are synthetic.",
        show_default="gaussian",
        rich_help_panel=SEQUENCES,
    ),
]
LengthOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Steps of a synthetic sequence.",
        show_default="100",
        rich_help_panel=SEQUENCES,
    ),
]
BatchOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of synthetic sequences.",
        show_default="8",
        rich_help_panel=SEQUENCES,
    ),
]
InputStdOption = Annotated[
    float | None,
    typer.Option(
        help="Standard deviation of synthetic inputs.",
        show_default="0.5",
        rich_help_panel=SEQUENCES,
    ),
]
InitialStateOption = Annotated[
    Path | None,
    typer.Option(
        help="State before the first step, .npy of shape (batch, N) or (N,); for several "
        "recurrences an .npz with their names.",
        show_default="zeros",
        rich_help_panel=SEQUENCES,
    ),
]

# The measurement.

AnchorsOption = Annotated[
    str,
    typer.Option(
        help="End times t of the pairs (t, k): all, last, a number of evenly spaced ones, or auto.",
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
    int,
    typer.Option(
        min=1,
        help="Steps that one factor of the block rung of the bound ladder spans.",
        rich_help_panel=MEASUREMENT,
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(min=0, help="Seed of everything random.", rich_help_panel=MEASUREMENT),
]

# Output.

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
        help="Folder for the numbers, the figures and report.html.",
        show_default="the run folder itself",
        rich_help_panel=OUTPUT,
    ),
]
SweepFolderOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Folder for the table.", rich_help_panel=OUTPUT
    ),
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

# A sweep.

SeedsOption = Annotated[
    int,
    typer.Option(
        min=1,
        help="Networks at each place of the grid, with the seeds from --seed on.",
        rich_help_panel=MEASUREMENT,
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes, one BLAS thread each. Any number gives the same bytes.",
        show_default="all cores",
        rich_help_panel=MEASUREMENT,
    ),
]

# A figure.

KindOption = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="Of a run: decay, ladder, pairs, spectrum, singular-values or saturation; of a sweep: "
        "rate or decay-by-gamma.",
        show_default=False,
    ),
]
RecurrenceOption = Annotated[
    str | None,
    typer.Option(help="Which recurrence to draw, by its name.", show_default="the only one"),
]
