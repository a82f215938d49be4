"""What layers share whatever their equations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.base import Linearization, Nonlinearity
from gradlab.cells.windows import truncated_backward
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory


class Layer(ABC):
    """A recurrent layer whose state is h alone, unless it says otherwise."""

    kind: str

    @property
    @abstractmethod
    def hidden_size(self) -> int:
        """Length of the output h."""

    @property
    def state_size(self) -> int:
        """Length of the whole state vector."""
        return self.hidden_size

    @property
    def state_parts(self) -> Mapping[str, slice]:
        """Places of the state's parts: h first, and c where there is more."""
        parts = {"h": slice(0, self.hidden_size)}
        more = {"c": slice(self.hidden_size, self.state_size)}
        return parts | (more if self.state_size > self.hidden_size else {})

    @property
    @abstractmethod
    def input_size(self) -> int:
        """D."""

    @property
    @abstractmethod
    def parameters(self) -> Mapping[str, Array]:
        """Weights by attribute name."""

    @abstractmethod
    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps rows"]:
        """Part of the pre-activations that does not depend on the state, for all steps at once."""

    @abstractmethod
    def advance(
        self, drive: Float[Array, "batch rows"], state: Float[Array, "batch state"]
    ) -> tuple[Float[Array, "batch rows"], Float[Array, "batch state"]]:
        """Pre-activations and next state of one step."""

    def unroll(
        self, drive: Float[Array, "time batch rows"], start: Float[Array, "batch state"]
    ) -> tuple[Float[Array, "time batch rows"], Float[Array, "times batch state"]]:
        """Pre-activations of all steps and states for t = 0..T; ``drive`` may be overwritten."""
        z = np.empty_like(drive)
        states = np.empty((len(drive) + 1, *start.shape), dtype=start.dtype)
        states[0] = start
        for t, own in enumerate(drive):
            z[t], states[t + 1] = self.advance(own, states[t])
        return z, states

    def step(
        self, x: Float[Array, "batch features"], state: Float[Array, "batch state"]
    ) -> Float[Array, "batch state"]:
        """Next state."""
        return self.advance(self.drive(x), state)[1]

    def output(self, states: Float[Array, "*steps state"]) -> Float[Array, "*steps hidden"]:
        """The part of the state that the next layer reads: it comes first."""
        return states[..., : self.hidden_size]

    def backward(
        self,
        trajectory: Trajectory,
        upstream: Float[Array, "time batch state"],
        *,
        window: int | None = None,
    ) -> BackwardPass:
        """Gradients of a scalar L along a trajectory.

        Parameters
        ----------
        trajectory
            A run of this cell.
        upstream
            ``upstream[t - 1]`` is the part of dL/d(state_t) from outside the recurrence: from the
            loss at t and the layers above; 0 behind a sequence's end.
        window
            Steps each of them flows back; the whole past if None.

        Returns
        -------
        gradients
            In the cell's own floating-point type; entries beyond its range are infinite.
        """
        if window is not None:
            return truncated_backward(self, trajectory, upstream, window)
        return self.whole_backward(trajectory, upstream)

    @abstractmethod
    def whole_backward(
        self, trajectory: Trajectory, upstream: Float[Array, "time batch state"]
    ) -> BackwardPass:
        """Gradients through the whole past."""

    @abstractmethod
    def linearize(self, trajectory: Trajectory) -> Linearization:
        """Jacobians of every step along the trajectory."""

    @abstractmethod
    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """Elementwise functions by name."""

    @abstractmethod
    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """Factors by which a step keeps the old state, by the gate that sets them."""

    @abstractmethod
    def recurrent_matrices(self) -> Mapping[str, Float[Array, "_ _"]]:
        """Recurrent weights by gate."""

    @abstractmethod
    def gamma_factors(self) -> tuple[float | None, float | None]:
        """γ_w = σ_max(W_hh) and γ_a = sup |φ'|; None for gated cells."""


class GatedLayer(Layer):
    """A layer with one block of rows a gate in W_x (rows, D) and W_h (rows, hidden)."""

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows hidden"]

    @property
    def hidden_size(self) -> int:
        """Length of the output h."""
        return int(self.W_h.shape[1])

    @property
    def input_size(self) -> int:
        """D."""
        return int(self.W_x.shape[1])

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Weights by attribute name."""
        return {name: getattr(self, name) for name in ("W_x", "W_h", "b_x", "b_h")}

    def gamma_factors(self) -> tuple[None, None]:
        """None: no single matrix bounds the Jacobian of a gated cell."""
        return None, None
