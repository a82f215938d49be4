"""The command ``gradlab``: registers the commands, and turns wrong usage into one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import gradlab as gl
from gradlab_cli.commands.analyze import analyze
from gradlab_cli.commands.check import check
from gradlab_cli.commands.compare import compare
from gradlab_cli.commands.design import design
from gradlab_cli.commands.inspect import inspect
from gradlab_cli.commands.plot import plot
from gradlab_cli.commands.report import report
from gradlab_cli.commands.sweep import sweep
from gradlab_cli.commands.train import train
from gradlab_cli.commands.verify import verify
from gradlab_cli.errors import complain, guarded, usage_line
from gradlab_cli.groups import spread


class PlainGroup(TyperGroup):
    """The list of commands in plain text: to load what draws boxes would take half of its time."""

    def __init__(self, **settings: Any) -> None:
        """As any group of commands."""
        super().__init__(**settings)
        self.rich_markup_mode = None


app = typer.Typer(
    name="gradlab",
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

COMMANDS = (inspect, analyze, sweep, report, plot, train, compare, check, design, verify)

for command in COMMANDS:
    # Given in full, for the list of commands would cut the docstring short.
    app.command(command.__name__, short_help=command.__doc__)(guarded(spread(command)))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gradlab {gl.__version__}")
        raise typer.Exit


@app.callback()
def gradlab(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Measure how far back in time the gradient of a recurrent network reaches, and why."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments
        Without the program's name; those of the process if None.

    Raises
    ------
    SystemExit
        Always: 0 fine, 1 known error, 2 wrong usage, 3 a check that failed, 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=words or ["--help"], prog_name="gradlab", standalone_mode=False)
    except typer.TyperException as error:
        complain(usage_line(error))
        code = error.exit_code
    sys.exit(code or 0)
