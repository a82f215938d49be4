"""``gradlab plot``: one figure from a saved run or its table."""

from __future__ import annotations

from pathlib import Path

import typer

from gradlab_cli.console import Console
from gradlab_cli.groups import MessageOptions
from gradlab_cli.options.figure import (
    FacetOption,
    FigureFileOption,
    FigureSourceArgument,
    HueOption,
    KindOption,
    RecurrenceOption,
    ThemeOption,
    XOption,
    YOption,
)
from gradlab_cli.options.output import ForceOption
from gradlab_cli.outputs import claim_file

FORMATS = (".png", ".svg", ".pdf")


def plot(
    source: FigureSourceArgument,
    *,
    kind: KindOption,
    output: FigureFileOption,
    recurrence: RecurrenceOption = None,
    x: XOption = None,
    y: YOption = None,
    hue: HueOption = None,
    facet: FacetOption = None,
    theme: ThemeOption = "light",
    force: ForceOption = False,
    messages: MessageOptions,
) -> None:
    """Draw one figure from the numbers of a saved run; nothing is computed again."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    _check_words(kind, output)
    claim_file(output, force=force)
    from gradlab_reports import write_figure

    chosen = {"x": x, "y": y, "hue": hue, "facet": facet}
    columns = {name: value for name, value in chosen.items() if value is not None}
    with console.working("drawing"):
        write_figure(
            source, kind, output, recurrence=recurrence, columns=columns, theme=theme, force=force
        )
    console.document({"schema": 1, "kind": kind, "figure": str(output)})
    console.text(str(output))


def _check_words(kind: str, output: Path) -> None:
    from gradlab_reports import figure_kinds

    if kind not in figure_kinds():
        expected = ", ".join(figure_kinds())
        raise typer.BadParameter(f"{kind!r} found, expected one of {expected}", param_hint="--kind")
    if output.suffix.lower() not in FORMATS:
        raise typer.BadParameter(
            f"{output} found, expected a name that ends in {', '.join(FORMATS)}",
            param_hint="--output",
        )
