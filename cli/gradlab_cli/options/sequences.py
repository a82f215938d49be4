"""The sequences: a file and its layout, or made-up inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

SEQUENCES = "Sequences"

Synthetic = Literal["gaussian", "zeros", "sine", "white_noise"]

InputsOption = Annotated[
    Path | None,
    typer.Option(
        help="Sequences to run on, .npy, .npz, .csv or .parquet: (time, batch, features), or "
        "(time, features) for one sequence.",
        show_default="synthetic",
        rich_help_panel=SEQUENCES,
    ),
]

TokensOption = Annotated[
    Path | None,
    typer.Option(
        help="Token ids in place of --inputs, .npy, .npz or .csv: (time, batch), or (time,) for "
        "one sequence; they are looked up in an embedding of the model file.",
        show_default=False,
        rich_help_panel=SEQUENCES,
    ),
]

EmbeddingOption = Annotated[
    str | None,
    typer.Option(
        metavar="TENSOR",
        help="Embedding of --tokens, (vocabulary, features), such as embedding.weight.",
        show_default="the one that is named so",
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
