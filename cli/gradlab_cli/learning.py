"""From the options of a training to its task, cell and optimizer, and what is shown meanwhile."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.groups import given, option_name
from gradlab_cli.options.training import CellOptions, LearningOptions, TaskOptions

Seen = Callable[[Any], None]

LEAK = 0.25  # of a leaky cell, where none was typed


def chosen_task(name: str, options: TaskOptions) -> Any:
    """Task with the settings that were typed.

    Raises
    ------
    GradlabError
        If there is no such task, or it has no such setting.
    """
    return gl.task(name, **given(options))


def fresh_cell(options: CellOptions, task: Any, seed: int) -> Any:
    """Cell before its first step.

    Raises
    ------
    typer.BadParameter
        If a setting was typed that the cell does not have.
    GradlabError
        If a setting is out of range.
    """
    import numpy as np

    initialize = gl.CELLS[options.cell].initialize
    settings = {name: value for name, value in given(options).items() if name != "cell"}
    for name in settings:
        if name not in inspect.signature(initialize).parameters:
            raise typer.BadParameter(
                f"is no setting of the cell {options.cell}", param_hint=option_name(name)
            )
    if options.cell == "leaky":
        settings.setdefault("leak", LEAK)
    rng = np.random.default_rng([seed, 1])
    sizes = {"input_size": task.input_size, "hidden_size": options.hidden_size}
    return initialize(**(settings | sizes), rng=rng)


def chosen_optimizer(options: LearningOptions) -> Any:
    """Optimizer with the settings that were typed.

    Raises
    ------
    GradlabError
        If it has no such setting, or one is out of range.
    """
    typed = {"learning_rate": options.learning_rate, "momentum": options.momentum}
    settings = {name: value for name, value in typed.items() if value is not None}
    return gl.optimizer(options.optimizer, **settings)


@contextmanager
def training_bar(console: Console, total: int) -> Iterator[tuple[Seen, Seen]]:
    """Bar on a terminal with loss, gradient norm, clipped share and rate.

    Yields
    ------
    on_step, on_row
        To be called with every step's outcome and every row of the log.
    """
    if not console.live:
        yield _nothing, _nothing
        return
    from rich.console import Console as Terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=total, said="")
        state = {"loss": math.nan, "norm": math.nan, "clipped": math.nan, "rate": math.nan}

        def on_step(outcome: Any) -> None:
            state.update(loss=outcome.loss, norm=outcome.gradient_norm)
            bar.update(task, completed=outcome.step, said=_said(state))

        def on_row(row: Any) -> None:
            state.update(clipped=row["clipped_share"], rate=row["rate"])
            bar.update(task, said=_said(state))

        yield on_step, on_row


def _said(state: dict[str, float]) -> str:
    known = (
        f"{name} {state[name]:{how}}"
        for name, how in (("loss", ".3g"), ("norm", ".3g"), ("clipped", ".0%"), ("rate", "+.3g"))
        if not math.isnan(state[name])
    )
    return "  ".join(known)


def _nothing(seen: Any) -> None:
    """Progress that nobody sees."""
