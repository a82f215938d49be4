"""How far a sweep is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gradlab_cli.console import Console

Told = Callable[[int, int], None]

EVERY_SECONDS = 10.0  # between two plain lines


@contextmanager
def sweep_progress(console: Console, total: int) -> Iterator[Told]:
    """Progress of a sweep: points done, rate, time left, failures.

    Yields
    ------
    on_done
        To be called with the number of points just finished, and how many of these failed.
    """
    if console.live:
        with _bar(total) as on_done:
            yield on_done
    elif console.quiet:
        yield _nothing
    else:
        yield PlainProgress(total=total, write=console.note).tell


@contextmanager
def _bar(total: int) -> Iterator[Told]:
    from rich.console import Console as Terminal
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("measuring"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[failures]}"),
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=total, rate="", failures="")
        counted = Counted()

        def on_done(finished: int, failed: int) -> None:
            counted.add(finished, failed)
            bar.update(
                task,
                completed=counted.done,
                rate=f"{counted.rate:.3g}/s" if counted.rate else "",
                failures=f"{counted.failed} failed" if counted.failed else "",
            )

        yield on_done


@dataclass(kw_only=True)
class Counted:
    """Points done and failed, and how fast they come."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    failed: int = 0
    before: int | None = None  # finished by an earlier run

    def add(self, finished: int, failed: int) -> None:
        """Count points; the first that are told belong to an earlier run."""
        if self.before is None:
            self.before = finished
        self.done += finished
        self.failed += failed

    @property
    def rate(self) -> float:
        """Points a second."""
        elapsed = time.monotonic() - self.started
        return (self.done - (self.before or 0)) / elapsed if elapsed > 0.0 else 0.0


@dataclass(kw_only=True)
class PlainProgress:
    """A line now and then."""

    total: int
    write: Callable[[str], None]
    every: float = EVERY_SECONDS
    counted: Counted = field(default_factory=Counted)
    said: float = field(default_factory=time.monotonic)

    def tell(self, finished: int, failed: int) -> None:
        """Count points, and say so if it is time."""
        self.counted.add(finished, failed)
        now = time.monotonic()
        if now - self.said >= self.every:
            self.said = now
            self.write(self.line())

    def line(self) -> str:
        """Where the sweep is."""
        counted = self.counted
        left = (self.total - counted.done) / counted.rate if counted.rate else None
        rest = "" if left is None else f", {counted.rate:.3g}/s, {spoken_time(left)} left"
        failures = f", {counted.failed} failed" if counted.failed else ""
        share = counted.done / self.total
        return f"{counted.done} of {self.total} points ({share:.0%}){rest}{failures}"


def spoken_time(seconds: float) -> str:
    """Duration in two digits and a unit, or hours and minutes."""
    if seconds < 60.0:
        return f"{seconds:.2g} s"
    if seconds < 3600.0:
        return f"{seconds / 60.0:.2g} min"
    if seconds < 100.0 * 3600.0:
        return f"{seconds / 3600.0:.2g} h"
    return f"{seconds / 86400.0:.3g} days"


def _nothing(finished: int, failed: int) -> None:
    """Progress that nobody sees."""
