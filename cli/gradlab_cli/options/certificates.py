"""Certificates of a model file: how long to search, and for which inputs."""

from __future__ import annotations

from typing import Annotated

import typer

CERTIFICATES = "Certificates"

BudgetOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="Seconds to search for certificates, all recurrences of the file together.",
        rich_help_panel=CERTIFICATES,
    ),
]

InputBoundOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="Largest absolute value of an input, for the certificates of gated cells.",
        rich_help_panel=CERTIFICATES,
    ),
]
