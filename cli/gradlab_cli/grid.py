"""The options of a sweep's grid: each takes one value, a comma list, or a range."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from gradlab_cli import axes
from gradlab_cli.groups import option_name

PANEL = "Grid: one value, a comma list, or start:stop:count"


def _axis(help_text: str, default: str, metavar: str = "NUMBERS") -> Any:
    return typer.Option(
        metavar=metavar, help=help_text, show_default=default, rich_help_panel=PANEL
    )


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """The axes as typed; None where there is none and the library's default holds."""

    gamma: Annotated[str | None, _axis("Exact largest singular value of W_hh.", "not rescaled")] = (
        None
    )
    radius: Annotated[str | None, _axis("Exact spectral radius of W_hh.", "not rescaled")] = None
    gain: Annotated[str | None, _axis("Gain g of the ensemble.", "1.0")] = None
    density: Annotated[str | None, _axis("Share of non-zero entries, if sparse.", "0.1")] = None
    bias: Annotated[str | None, _axis("Mean of the bias.", "0.0")] = None
    bias_std: Annotated[str | None, _axis("Standard deviation of the bias.", "0.0")] = None
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


COUNTS = ("hidden_size", "input_size", "length", "batch")
NAMES = ("recurrent", "activation")


def grid_axes(options: GridOptions) -> dict[str, list[Any]]:
    """Values of each axis that was given, by the name of its column.

    Parameters
    ----------
    options
        The axes as typed.

    Returns
    -------
    axes
        In the fixed order of the options, so that equal grids give equal tables.

    Raises
    ------
    typer.BadParameter
        If a text is no axis.
    """
    typed = {field.name: getattr(options, field.name) for field in fields(options)}
    return {name: _values(name, text) for name, text in typed.items() if text is not None}


def _values(name: str, text: str) -> list[Any]:
    read = axes.names if name in NAMES else axes.integers if name in COUNTS else axes.floats
    return list(read(option_name(name), text))
