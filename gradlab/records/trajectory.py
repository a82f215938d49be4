"""A run of one cell over sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """Inputs, states and pre-activations of a cell, time-major; steps past a sequence's end are 0.

    Time counts from 0 (the initial state) to T. Arrays are read-only.
    """

    inputs: Float[Array, "time batch features"]
    states: Float[Array, "times batch n"]  # times = time + 1: h_0 first
    z: Float[Array, "time batch gates"]  # pre-activations, in the cell's own row order
    lengths: Int[Array, " batch"]  # valid steps of each sequence, 1..T

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("inputs", "states", "z", "lengths"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def steps(self) -> int:
        """Steps of the longest sequence, T."""
        return int(self.z.shape[0])

    @property
    def batch(self) -> int:
        """Number of sequences."""
        return int(self.z.shape[1])

    @property
    def valid(self) -> Bool[Array, "time batch"]:
        """Whether step t of a sequence is data rather than padding."""
        return np.arange(self.steps)[:, None] < self.lengths[None, :]

    @property
    def final_states(self) -> Float[Array, "batch n"]:
        """State of each sequence after its own last step."""
        return np.asarray(self.states[self.lengths, np.arange(self.batch)])

    def select(self, sequences: Int[Array, " chosen"]) -> Trajectory:
        """The given sequences alone, without the padding that all of them share."""
        steps = int(self.lengths[sequences].max())
        return Trajectory(
            inputs=self.inputs[:steps, sequences],
            states=self.states[: steps + 1, sequences],
            z=self.z[:steps, sequences],
            lengths=self.lengths[sequences],
        )

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(
            self,
            {
                "sequences": self.batch,
                "steps": self.steps,
                "valid steps": int(self.lengths.sum()),
                "input features": self.inputs.shape[2],
                "entries of a state": self.states.shape[2],
                "largest |state|": float(np.abs(self.states).max()),
                "type": str(self.states.dtype),
            },
        )

    def to_frame(self) -> pd.DataFrame:
        """Long table: sequence, t, unit, state; valid steps and h_0 only."""
        t, sequence = np.nonzero(np.vstack([np.ones((1, self.batch), bool), self.valid]).T)[::-1]
        units = self.states.shape[2]
        return frame(
            sequence=np.repeat(sequence, units),
            t=np.repeat(t, units),
            unit=np.tile(np.arange(units), len(t)),
            state=self.states[t, sequence].ravel(),
        )
