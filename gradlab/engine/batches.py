"""What a task is: a source of batches, and the numbers its results are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Sequences with targets, and the steps that have a loss; arguments of `bptt`."""

    inputs: Float[Array, "time batch features"]
    targets: Array  # as `bptt` takes them
    lengths: Int[Array, " batch"] | None = None
    at: str | None = None
    mask: Bool[Array, "time batch"] | None = None


@runtime_checkable
class Task(Protocol):
    """A source of batches, with the numbers that its results are compared with."""

    @property
    def name(self) -> str:
        """Spelling in files and options."""

    @property
    def input_size(self) -> int:
        """Features of an input step."""

    @property
    def output_size(self) -> int:
        """Outputs or classes."""

    @property
    def loss(self) -> str:
        """Loss of the readout; the task's loss is its mean over the steps that have one."""

    @property
    def baseline(self) -> float:
        """Mean loss of the best guess that remembers nothing."""

    @property
    def baseline_accuracy(self) -> float:
        """Share of right answers of the best guess that remembers nothing."""

    @property
    def tolerance(self) -> float:
        """Error below which a real answer counts as right; nan for classes."""

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Fresh sequences."""


def accuracy(
    task: Task, outputs: Float[Array, "time batch outputs"], targets: Array, chosen: Array
) -> float:
    """Share of right answers at the chosen steps.

    A class is right if its output is the largest, a real answer if its error is below the task's
    tolerance. Targets may lack the time axis, as for `bptt`.
    """
    classes = task.loss == "cross_entropy"
    shape = chosen.shape if classes else (*chosen.shape, task.output_size)
    wanted = np.broadcast_to(targets, shape)[chosen]
    given = outputs[chosen]
    if classes:
        return float(np.mean(given.argmax(axis=1) == wanted))
    return float(np.mean((np.abs(given - wanted) < task.tolerance).all(axis=1)))
