"""Trainings with the gradient's dynamics logged while the network learns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.precision import precision_horizon
from gradlab.analysis.regime import regime
from gradlab.analysis.saturation import saturation
from gradlab.cells.base import Cell
from gradlab.engine.batches import Batch, Task
from gradlab.engine.losses import Readout
from gradlab.engine.optimizers import Adam, Optimizer
from gradlab.engine.rollout import rollout
from gradlab.engine.training import (
    StepOutcome,
    Training,
    TrainingRun,
    TrainingSettings,
    evaluate,
)
from gradlab.errors import DivergenceError, RunFolderError, SettingError
from gradlab.linalg import single_threaded_blas
from gradlab.norms import spectral_radius
from gradlab.provenance import sha256
from gradlab.records.training import COLUMNS, TrainingLog
from gradlab.storage.checkpoint import read_checkpoint, write_checkpoint

SCHEMA = 1
ROWS = "rows."
PROBE_SIZE = 4  # sequences along which Jacobians are multiplied
TEST_SIZE = 200  # sequences of the test loss

Row = dict[str, Any]


def train(
    task: Task,
    cell: Cell,
    readout: Readout | None = None,
    *,
    steps: int,
    seed: int,
    optimizer: Optimizer | None = None,
    batch_size: int = 20,
    clip: float | None = 1.0,
    nonfinite: str = "raise",
    window: int | None = None,
    omega: float = 0.0,
    every: int = 100,
    checkpoint: Path | str | None = None,
    on_step: Callable[[StepOutcome], None] | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Training:
    """Train a cell on a task, and log its gradient's dynamics while it learns.

    Parameters
    ----------
    task
        See `gradlab.task`.
    cell
        Where to start; any cell.
    readout
        Where to start; small random weights if None. Its average is over the steps with a loss.
    steps
        Updates in all, those before an interruption included.
    seed
        Of the sequences, and of the readout if there is none.
    optimizer
        See `gradlab.optimizer`; Adam with its defaults if None.
    batch_size
        Fresh sequences a step.
    clip, nonfinite
        Threshold of `clip_by_norm`, None for no clipping, and its policy.
    window
        Truncation of the gradient, see `bptt`.
    omega
        Weight of the penalty on changes of the gradient's norm from step to step, see
        `carry_penalty`.
    every
        Steps between two rows of the log, and between two checkpoints.
    checkpoint
        File that the training can go on from. If it exists, it does: the numbers are those of a
        training that was never interrupted. It may be continued to more steps.
    on_step, on_row
        Called with every step's outcome and every row of the log.

    Returns
    -------
    training
        With the row of the last step.

    Raises
    ------
    SettingError
        If a setting is out of range, or the cell does not read the task's inputs.
    NonFiniteError, DivergenceError
        If a gradient or a state is not finite; the last checkpoint stays.
    RunFolderError
        If the checkpoint is damaged or belongs to another training.
    OutputError
        If it cannot be written.
    """
    settings = TrainingSettings(
        task=task,
        optimizer=optimizer or Adam(),
        batch_size=batch_size,
        clip=math.inf if clip is None else clip,
        nonfinite=nonfinite,
        window=window,
        omega=omega,
    )
    if every < 1 or steps < 0:
        raise SettingError(f"steps {steps}, every {every}: expected 0 or more, and at least 1")
    with single_threaded_blas():
        session = _Session(settings, cell, readout, seed, every)
        if checkpoint is not None and Path(checkpoint).exists():
            session.restore(Path(checkpoint))
        for outcome in session.until(steps, checkpoint, on_row or _ignore):
            if on_step is not None:
                on_step(outcome)
        return session.result(on_row or _ignore)


def measure(cell: Cell, readout: Readout, task: Task, test: Batch, probe: Batch) -> Row:
    """What holds of a network now: the columns of the log from ``test_loss`` on.

    A network whose states leave the range of their type has the regime ``diverged`` and no numbers.
    """
    gamma_w = cell.gamma_factors()[0]
    W_hh = cell.recurrent_matrices().get("W_hh")
    weights = {
        "gamma_w": math.nan if gamma_w is None else gamma_w,
        "spectral_radius": math.nan if W_hh is None else spectral_radius(W_hh),
    }
    try:
        loss, right = evaluate(cell, readout, task, test)
        return {"test_loss": loss, "accuracy": right, **weights, **_dynamics(cell, probe)}
    except DivergenceError:
        missing = dict.fromkeys(COLUMNS[COLUMNS.index("test_loss") : -1], math.nan)
        return {**missing, **weights, "regime": "diverged"}


def _dynamics(cell: Cell, probe: Batch) -> Row:
    run = rollout(cell, probe.inputs, lengths=probe.lengths)
    profile = jacobian_profile(cell, run, anchors="last", smallest=False)
    verdict = regime(profile, bound_ladder(cell, run, profile=profile, block=None))
    groups = profile.groups
    median = groups.quantile(profile.log_norm, 0.5)
    horizon = precision_horizon(groups.lag, median, verdict.rate, verdict.intercept).lag_1pct
    return {
        "saturated_share": saturation(cell, run).saturated_share,
        "rate": verdict.rate,
        "horizon_1pct": math.nan if horizon is None else float(horizon),
        "regime": verdict.name,
    }


class _Session:
    """A training run with its log and its checkpoints."""

    def __init__(
        self,
        settings: TrainingSettings,
        cell: Cell,
        readout: Readout | None,
        seed: int,
        every: int,
    ) -> None:
        task = settings.task
        _require_fit(task, cell, readout)
        batches, test, probe, weights = (
            np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(4)
        )
        if readout is None:
            readout = Readout.initialize(
                hidden_size=cell.hidden_size,
                output_size=task.output_size,
                rng=weights,
                loss=task.loss,
                dtype=next(iter(cell.parameters.values())).dtype.name,
            )
        self.every = every
        self.test, self.probe = task.batch(TEST_SIZE, test), task.batch(PROBE_SIZE, probe)
        self.run = TrainingRun(settings, cell, readout, batches)
        self.described = _described(settings, seed, every) | {
            "cell": cell.kind,
            "sha256_weights": sha256(self.run.weights),
        }
        self.rows: list[Row] = []
        self.recent: list[StepOutcome] = []

    def until(
        self, steps: int, checkpoint: Path | str | None, on_row: Callable[[Row], None]
    ) -> Iterator[StepOutcome]:
        """Outcomes of the steps up to the given one."""
        if not self.rows:
            on_row(self.add_row())
        while self.run.step < steps:
            outcome = self.run.advance()
            self.recent.append(outcome)
            if self.run.step % self.every == 0:
                on_row(self.add_row())
                if checkpoint is not None:
                    self.save(Path(checkpoint))
            yield outcome

    def add_row(self) -> Row:
        """Measure now, and close the stretch since the row before."""
        row = {
            "step": self.run.step,
            "loss": _mean([each.loss for each in self.recent]),
            "gradient_norm": _mean([each.gradient_norm for each in self.recent]),
            "clipped_norm": _mean([each.clipped_norm for each in self.recent]),
            "clipped_share": _mean([float(each.clipped) for each in self.recent]),
            **measure(
                self.run.cell, self.run.readout, self.run.settings.task, self.test, self.probe
            ),
        }
        self.rows.append(row)
        self.recent = []
        return row

    def result(self, on_row: Callable[[Row], None]) -> Training:
        """The training as it is now, with a row of its last step."""
        if self.recent:
            on_row(self.add_row())
        task = self.run.settings.task
        return Training(
            cell=self.run.cell,
            readout=self.run.readout,
            steps=self.run.step,
            log=TrainingLog.of(self.rows),
            clipping=self.run.clip_log.audit(),
            settings=self.described,
            baseline={"loss": task.baseline, "accuracy": task.baseline_accuracy},
            probe_length=_shortest(self.probe),
        )

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        arrays, document = self.run.state()
        rows = {ROWS + name: column for name, column in TrainingLog.of(self.rows).columns.items()}
        write_checkpoint(
            path, {**arrays, **rows}, {"schema": SCHEMA, "settings": self.described, **document}
        )

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint of the same training."""
        arrays, document = read_checkpoint(path)
        _require_same(path, document.get("settings", {}), self.described)
        self.run.restore(arrays, document)
        columns = {name: arrays[ROWS + name] for name in COLUMNS}
        self.rows = TrainingLog(columns=columns).rows()


def _ignore(row: Row) -> None:
    """A row that nobody watches."""


def _mean(values: list[float]) -> float:
    """Mean of the values that are numbers; nan without any."""
    counted = [value for value in values if not math.isnan(value)]
    return float(np.mean(counted)) if counted else math.nan


def _shortest(batch: Batch) -> int:
    return len(batch.inputs) if batch.lengths is None else int(np.min(batch.lengths))


def _require_fit(task: Task, cell: Cell, readout: Readout | None) -> None:
    if cell.input_size != task.input_size:
        raise SettingError(
            f"the cell reads {cell.input_size} features a step: expected {task.input_size} for the "
            f"task {task.name}"
        )
    if readout is not None and (readout.output_size, readout.loss) != (task.output_size, task.loss):
        raise SettingError(
            f"the readout has {readout.output_size} outputs and the loss {readout.loss}: expected "
            f"{task.output_size} and {task.loss} for the task {task.name}"
        )


def _described(settings: TrainingSettings, seed: int, every: int) -> dict[str, Any]:
    """Everything that shapes the numbers, for the checkpoint and the manifest."""
    plain = ("batch_size", "clip", "nonfinite", "window", "omega")
    described = {name: getattr(settings, name) for name in plain}
    described["clip"] = None if math.isinf(settings.clip) else settings.clip
    return {
        "task": {"name": settings.task.name, **_fields(settings.task)},
        "optimizer": {"name": settings.optimizer.name, **_fields(settings.optimizer)},
        **described,
        "seed": seed,
        "every": every,
    }


def _fields(record: Any) -> dict[str, Any]:
    """Fields of a dataclass, arrays by their hash."""
    values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {
        name: sha256({name: value}) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def _require_same(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    for name, value in here.items():
        if there.get(name) != value:
            raise RunFolderError(
                f"{path} belongs to another training ({name} {there.get(name)!r} there, {value!r} "
                "here): expected a checkpoint with the same settings; name another file or "
                "remove it"
            )
