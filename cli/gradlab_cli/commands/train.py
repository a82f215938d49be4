"""``gradlab train``: let a small network learn a task, and watch its gradient meanwhile."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.groups import MessageOptions
from gradlab_cli.learning import chosen_optimizer, chosen_task, fresh_cell, training_bar
from gradlab_cli.options.measurement import SeedOption
from gradlab_cli.options.output import ForceOption, FormatOption
from gradlab_cli.options.training import (
    CellOptions,
    LearningOptions,
    TaskArgument,
    TaskOptions,
    TrainingFolderOption,
)
from gradlab_cli.outputs import chosen_formats, keeping_numbers, tell_failures


def train(
    task: TaskArgument,
    *,
    cell: CellOptions,
    settings: TaskOptions,
    learning: LearningOptions,
    seed: SeedOption = 0,
    output: TrainingFolderOption,
    force: ForceOption = False,
    format: FormatOption = "html",
    messages: MessageOptions,
) -> None:
    """Train a small network on a task, and log how far its gradient reaches while it learns."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    formats = chosen_formats(format)
    problem = chosen_task(task, settings)
    start = fresh_cell(cell, problem, seed)
    optimizer = chosen_optimizer(learning)
    checkpoint = gl.claim_training(output, force=force)
    if checkpoint.exists():
        console.note(f"going on with the unfinished training in {output}")
    steps = learning.epochs * learning.every
    with training_bar(console, steps) as (on_step, on_row):
        training = gl.train(
            problem,
            start,
            steps=steps,
            seed=seed,
            optimizer=optimizer,
            batch_size=learning.batch_size,
            clip=None if math.isinf(learning.clip) else learning.clip,
            nonfinite=learning.nonfinite,
            window=learning.window,
            omega=learning.omega,
            every=learning.every,
            checkpoint=checkpoint,
            on_step=on_step,
            on_row=on_row,
        )
    gl.save_training(training, output, argv=sys.argv)
    from gradlab_reports import write_training

    with keeping_numbers(output) as failures, console.working("drawing"):
        page = write_training(output, formats=formats)
    gl.finish_training(output)
    _tell(problem, training, output, page, console)
    tell_failures(failures, output)


def _tell(task: Any, training: Any, folder: Path, page: Path, console: Console) -> None:
    last = training.log.rows()[-1]
    console.document(
        {
            "schema": 1,
            "training": str(folder),
            "page": str(page),
            "task": task.name,
            "baseline": {"loss": task.baseline, "accuracy": task.baseline_accuracy},
            "last": last,
            "clipping": training.clipping.summary(),
        }
    )
    console.text("\n".join(_lines(task, last)))
    console.text(str(page))
    console.text(str(folder / "training.csv"))


def _lines(task: Any, last: dict[str, Any]) -> list[str]:
    reach = last["horizon_1pct"]
    horizon = "not down to 1 % within the sequence"
    if not math.isnan(reach):
        horizon = f"down to 1 % after {reach:g} steps"
    return [
        f"{task.name}, {last['step']} steps: test loss {last['test_loss']:.4g} "
        f"(without memory {task.baseline:.4g}), right {last['accuracy']:.1%} "
        f"(without memory {task.baseline_accuracy:.1%})",
        f"gradient: {last['regime']}, {last['rate']:+.3g} per step, {horizon}; "
        f"{_percent(last['clipped_share'])} of the last steps clipped",
    ]


def _percent(share: float) -> str:
    return "none" if math.isnan(share) else f"{share:.0%}"
