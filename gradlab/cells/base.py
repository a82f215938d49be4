"""What every analysis may ask of a recurrent cell, whatever its equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.activations import Activation
from gradlab.records.trajectory import Trajectory


@runtime_checkable
class LinearStep(Protocol):
    """The Jacobian of one step, as an operator: rows are outputs, one matrix a sequence."""

    def apply(self, V: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Forward action J V."""

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Backward action Jᵀ U."""

    def matrix(self) -> Float[Array, "batch n n"]:
        """Dense J."""

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J|, nats; -inf where J is singular."""


class Linearization(Sequence[LinearStep]):
    """The T linear steps along a trajectory; step j leads to time t = j + 1."""

    @property
    def log_bound_factors(self) -> Mapping[str, Float[Array, "time batch"]]:
        """Logarithms of proven one-step bounds by the rung's name, loosest first; nats.

        Empty for cells whose Jacobian has no scalar factors.
        """
        return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nonlinearity:
    """One elementwise function inside a cell, along a trajectory."""

    activation: Activation
    z: Float[Array, "time batch n"]
    value: Float[Array, "time batch n"]


@runtime_checkable
class Cell(Protocol):
    """A recurrent layer: the next state from an input and a state."""

    @property
    def kind(self) -> str:
        """Spelling of the cell in files and tables: rnn, leaky, lstm, gru, mgu."""

    @property
    def state_size(self) -> int:
        """Length of the whole state vector."""

    @property
    def hidden_size(self) -> int:
        """Length of the output h."""

    @property
    def input_size(self) -> int:
        """Number of features of an input step."""

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Weights by attribute name."""

    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps gates"]:
        """Part of the pre-activation that does not depend on the state, for all steps at once."""

    def advance(
        self, drive: Float[Array, "batch gates"], state: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "batch gates"], Float[Array, "batch n"]]:
        """Pre-activation and next state of one step."""

    def step(
        self, x: Float[Array, "batch features"], state: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        """Next state."""

    def output(self, states: Float[Array, "*steps n"]) -> Float[Array, "*steps hidden"]:
        """The part of the state that the next layer reads."""

    def linearize(self, trajectory: Trajectory) -> Linearization:
        """Jacobians of every step along the trajectory."""

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """Elementwise functions by name: the activation of a vanilla cell, the gates of others."""

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "n m"]]:
        """Square recurrent blocks by gate; ``W_hh`` where there are no gates."""

    def gamma_factors(self) -> tuple[float | None, float | None]:
        """γ_w = σ_max(W_hh) and γ_a = sup |φ'| of the textbook bound; None for gated cells."""
