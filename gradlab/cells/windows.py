"""Truncated backpropagation through time, for any cell: every loss step sees a window of its past.

The window of w steps that ends in a loss step is run backward as a sequence of its own; the state
before its first step counts as a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, close
from gradlab.cells.base import Cell
from gradlab.errors import SettingError
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Pre-activations gathered at a time.
CHUNK_BYTES = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Windows:
    """Stretches of at most `window` steps, each of one sequence."""

    window: int
    t: Int[Array, " windows"]  # end times, 1..T
    sequence: Int[Array, " windows"]
    steps: int  # T of the whole run

    @property
    def first(self) -> Int[Array, " windows"]:
        """Time of the state before each window's first step."""
        return np.asarray(np.maximum(self.t - self.window, 0))

    @property
    def lengths(self) -> Int[Array, " windows"]:
        """Steps of each window; shorter than `window` at the beginning of a sequence."""
        return self.t - self.first

    def gather(self, run: Trajectory) -> Trajectory:
        """Windows of a run, as its own run with one sequence a window."""
        inside = np.minimum(self._places(self.window), self.steps - 1)
        states = np.minimum(self._places(self.window + 1), self.steps)
        return Trajectory(
            inputs=close(run.inputs[inside, self.sequence]),
            states=close(run.states[states, self.sequence]),
            z=close(run.z[inside, self.sequence]),
            lengths=self.lengths,
        )

    def ends_only(self, upstream: Float[Array, "time batch n"]) -> Float[Array, "window windows n"]:
        """Upstream gradient of each window's last step, zero elsewhere."""
        own = np.zeros((self.window, len(self.t), upstream.shape[2]), dtype=upstream.dtype)
        own[self.lengths - 1, np.arange(len(self.t))] = upstream[self.t - 1, self.sequence]
        return own

    def scatter(
        self, whole: Float[Array, "time batch m"], own: Float[Array, "window windows m"]
    ) -> None:
        """Add values of the windows' steps to those of the whole run."""
        place, window = np.nonzero(np.arange(self.window)[:, None] < self.lengths)
        where = (self.first[window] + place, self.sequence[window])
        np.add.at(whole, where, own[place, window])

    def scatter_states(
        self, whole: Float[Array, "times batch n"], own: Float[Array, "places windows n"]
    ) -> None:
        """Add adjoints of the windows' states, but of those that count as constants."""
        self.scatter(whole[1:], own[1:])
        reached = self.t < self.window  # lag t of the state h_0 is still inside the window
        np.add.at(whole[0], self.sequence[reached], own[0, reached])

    def _places(self, count: int) -> Int[Array, "count windows"]:
        return self.first + np.arange(count)[:, None]


def windows_of(
    run: Trajectory, upstream: Float[Array, "time batch n"], window: int
) -> Iterator[Windows]:
    """Windows of all steps with an upstream gradient, in chunks of bounded memory.

    Raises
    ------
    SettingError
        If the window has no step.
    """
    if window < 1:
        raise SettingError(f"window {window}: expected at least 1 step")
    window = min(window, run.steps + 1)  # longer ones leave nothing out either
    t, sequence = np.nonzero(np.any(upstream != 0.0, axis=2))
    chunk = max(1, CHUNK_BYTES // (window * run.z.shape[2] * run.z.itemsize))
    for start in range(0, len(t), chunk):
        part = slice(start, start + chunk)
        yield Windows(window=window, t=t[part] + 1, sequence=sequence[part], steps=run.steps)


class WindowSum:
    """Sum of the windows' passes over one cell's run."""

    def __init__(self, cell: Cell, run: Trajectory) -> None:
        self.gradients = {name: np.zeros_like(array) for name, array in cell.parameters.items()}
        self.inputs = np.zeros_like(run.inputs)
        self.adjoints = np.zeros_like(run.states)

    def add(self, windows: Windows, part: BackwardPass) -> None:
        """Add the pass over some windows."""
        for name, gradient in part.gradients.items():
            self.gradients[name] += gradient
        windows.scatter(self.inputs, part.inputs)
        windows.scatter_states(self.adjoints, part.adjoints)

    def close(self) -> BackwardPass:
        """The sum; nothing more is added."""
        return BackwardPass(
            gradients={name: close(gradient) for name, gradient in self.gradients.items()},
            inputs=close(self.inputs),
            initial_state=close(self.adjoints)[0],
            adjoints=self.adjoints,
        )


def truncated_backward(
    cell: Cell, run: Trajectory, upstream: Float[Array, "time batch n"], window: int
) -> BackwardPass:
    """Backward pass in which each upstream gradient reaches `window` steps of the cell.

    Of the terms (t, k) those with t - k < window are kept, of weights, inputs and states alike.

    Raises
    ------
    SettingError
        If the window has no step.
    """
    total = WindowSum(cell, run)
    for windows in windows_of(run, upstream, window):
        total.add(windows, cell.backward(windows.gather(run), windows.ends_only(upstream)))
    return total.close()
