"""Training of one cell on one task, step by step, with a state that a file can hold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network
from gradlab.engine.batches import Batch, Task, accuracy
from gradlab.engine.bptt import bptt, forward_runs, read_outputs
from gradlab.engine.clipping import ClipLog, clip_by_norm
from gradlab.engine.losses import Readout, chosen_steps, loss_terms
from gradlab.engine.optimizers import Optimizer
from gradlab.engine.regularizer import carry_penalty
from gradlab.engine.rollout import rollout
from gradlab.errors import SettingError
from gradlab.records.clipping import ClipAudit
from gradlab.records.training import TrainingLog

CELL, READOUT, OPTIMIZER, CLIP = "cell.", "readout.", "optimizer.", "clip."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How a training goes.

    ``clip`` is the threshold of `clip_by_norm`, inf for none; ``nonfinite`` its policy; ``window``
    that of `bptt`; ``omega`` the weight of `carry_penalty`.
    """

    task: Task
    optimizer: Optimizer
    batch_size: int = 20
    clip: float = 1.0
    nonfinite: str = "raise"
    window: int | None = None
    omega: float = 0.0

    def __post_init__(self) -> None:
        """Check what no one else will."""
        if self.batch_size < 1:
            raise SettingError(f"batch_size {self.batch_size}: expected at least 1")
        if not (math.isfinite(self.omega) and self.omega >= 0.0):
            raise SettingError(f"omega {self.omega}: expected a finite number, 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """One step of a training, as it happened; the loss is that before the step."""

    step: int  # from 1
    loss: float  # mean over the steps with a loss
    gradient_norm: float  # before clipping; nan for a step that was skipped
    clipped_norm: float
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """A network that was trained, and what was measured on the way."""

    cell: Cell
    readout: Readout
    steps: int
    log: TrainingLog
    clipping: ClipAudit
    settings: Mapping[str, Any]  # as resolved; what a checkpoint must agree with
    baseline: Mapping[str, float]  # loss and accuracy of the task's best guess without memory
    probe_length: int  # steps of the shortest sequence that the dynamics are measured along

    def _repr_html_(self) -> str:
        """Table for notebooks: that of the log."""
        return self.log._repr_html_()


class TrainingRun:
    """A training that may stop after any step and go on from its state.

    Parameters
    ----------
    settings
        Task, optimizer and what else shapes a step.
    cell, readout
        Where to start; the readout's average is over the steps that have a loss.
    rng
        Source of the batches.
    """

    def __init__(
        self, settings: TrainingSettings, cell: Cell, readout: Readout, rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self.cell = cell
        self.readout = dataclasses.replace(readout, average="steps")
        self.rng = rng
        self.step = 0
        self.optimizer_state = settings.optimizer.start(self.weights)
        self.clip_log = ClipLog(settings.clip)

    @property
    def weights(self) -> dict[str, Array]:
        """Weights of the cell and the readout, by attribute name."""
        return {**self.cell.parameters, **self.readout.parameters}

    def advance(self) -> StepOutcome:
        """Take one step on fresh sequences.

        Raises
        ------
        NonFiniteError
            If the gradient or a weight is not finite.
        DivergenceError
            If a state leaves the range of its type.
        """
        batch = self.settings.task.batch(self.settings.batch_size, self.rng)
        loss, gradients = self._gradients(batch)
        clipped, norm = clip_by_norm(gradients, self.settings.clip, self.settings.nonfinite)
        self.clip_log.add(gradients, clipped, norm)
        if not math.isnan(norm):
            moved, self.optimizer_state = self.settings.optimizer.update(
                self.weights, clipped, self.optimizer_state
            )
            self._replace(moved)
        self.step += 1
        return StepOutcome(
            step=self.step,
            loss=loss,
            gradient_norm=norm,
            clipped_norm=self.clip_log.after[-1],
            clipped=norm > self.settings.clip,
        )

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that later steps depend on: arrays by name, and a JSON document."""
        arrays = {CELL + name: array for name, array in self.cell.parameters.items()}
        arrays |= {READOUT + name: array for name, array in self.readout.parameters.items()}
        arrays |= {OPTIMIZER + name: array for name, array in self.optimizer_state.items()}
        arrays |= {CLIP + name: array for name, array in self.clip_log.state().items()}
        return arrays, {"step": self.step, "rng": self.rng.bit_generator.state}

    def restore(self, arrays: Mapping[str, Array], document: Mapping[str, Any]) -> None:
        """Go on from a state that `state` gave."""
        self._replace({**_under(CELL, arrays), **_under(READOUT, arrays)})
        self.optimizer_state = _under(OPTIMIZER, arrays)
        self.clip_log = ClipLog.restored(self.settings.clip, _under(CLIP, arrays))
        self.step = document["step"]
        self.rng.bit_generator.state = document["rng"]

    def _gradients(self, batch: Batch) -> tuple[float, dict[str, Array]]:
        loss, gradients = bptt(
            self.cell,
            self.readout,
            batch.inputs,
            batch.targets,
            lengths=batch.lengths,
            mask=batch.mask,
            at=batch.at,
            window=self.settings.window,
        )
        if self.settings.omega == 0.0:
            return loss, dict(gradients)
        run = rollout(self.cell, batch.inputs, lengths=batch.lengths)
        penalty = carry_penalty(self.cell, run, gradients.adjoints)
        added = {
            name: gradients[name] + self.settings.omega * gradient
            for name, gradient in penalty.gradients.items()
        }
        return loss, {**gradients, **added}

    def _replace(self, weights: Mapping[str, Array]) -> None:
        own = {name: weights[name] for name in self.cell.parameters}
        self.cell = dataclasses.replace(self.cell, **own)  # type: ignore[type-var]
        read = {name: weights[name] for name in self.readout.parameters}
        self.readout = dataclasses.replace(self.readout, **read)  # type: ignore[arg-type]


def evaluate(cell: Cell, readout: Readout, task: Task, batch: Batch) -> tuple[float, float]:
    """Mean loss and share of right answers on given sequences."""
    network = Network.of(cell)
    runs = forward_runs(network, batch.inputs, lengths=batch.lengths)
    hidden = read_outputs(network, runs)
    lengths = next(iter(runs.values())).lengths
    chosen = chosen_steps(lengths, len(hidden), at=batch.at, mask=batch.mask)
    mean = dataclasses.replace(readout, average="steps")
    loss = loss_terms(mean, hidden, batch.targets, chosen).value
    return loss, accuracy(task, readout.outputs(hidden), batch.targets, chosen)


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
