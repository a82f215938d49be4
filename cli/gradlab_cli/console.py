"""The output sink: data on stdout, progress and messages on stderr."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

import gradlab as gl

FRAME = 3  # cells that a frame puts between two columns, at most


class Console:
    """Where a command's data and messages go.

    Parameters
    ----------
    as_json
        One JSON document on stdout is the only data; text for people is left out.
    quiet
        No progress and no messages.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet

    def text(self, text: str) -> None:
        """Write data for people to stdout."""
        if not self.as_json:
            typer.echo(text)

    def document(self, document: Mapping[str, Any] | Sequence[Any]) -> None:
        """Write data for programs to stdout: one document of strict JSON."""
        if self.as_json:
            typer.echo(json.dumps(gl.strict_json(document), indent=2, allow_nan=False))

    def note(self, message: str) -> None:
        """Write a message to stderr."""
        if not self.quiet:
            typer.echo(message, err=True)

    def assumptions(self, sentences: Iterable[str]) -> None:
        """Write to stderr what was read, taken or left out; each sentence says which it is."""
        for sentence in sentences:
            self.note(f"note: {sentence}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table to stdout: framed on a terminal with room for it, else plain."""
        if self.as_json:
            return
        if sys.stdout.isatty() and fits(columns, rows, shutil.get_terminal_size().columns):
            _framed_table(columns, rows)
        else:
            typer.echo("\n".join(aligned([columns, *rows])))

    @property
    def live(self) -> bool:
        """Whether something that moves may be shown: only to a person at a terminal."""
        return sys.stderr.isatty() and not self.quiet

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        """Bar on a terminal; the value is to be called with the number of things just done."""
        if not self.live:
            yield _nothing
            return
        from rich.console import Console as Terminal
        from rich.progress import Progress

        with Progress(console=Terminal(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda count: bar.advance(task, count)

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        """Sign of life on a terminal while something of unknown length runs."""
        if not self.live:
            yield
            return
        from rich.console import Console as Terminal

        with Terminal(stderr=True).status(label):
            yield


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a plain table, two blanks between columns, nothing cut and nothing wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return [line.rstrip() for line in lines]


def fits(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether a framed table has room for every cell; only the words of a heading may wrap."""
    cells = zip(*rows, strict=True) if rows else ([] for _ in columns)
    words = ([*name.split(), *column] for name, column in zip(columns, cells, strict=True))
    return sum(max(map(len, column)) + FRAME for column in words) <= width


def _framed_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console as Terminal
    from rich.table import Table

    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for row in rows:
        table.add_row(*row)
    Terminal().print(table, markup=False)


def _nothing(count: int) -> None:
    """Progress that nobody sees."""
