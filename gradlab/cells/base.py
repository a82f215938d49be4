"""What every analysis may ask of a recurrent cell, whatever its equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.elementwise import Activation
from gradlab.errors import SettingError
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory


@runtime_checkable
class LinearStep(Protocol):
    """The Jacobian of one step, as an operator: rows are outputs, one matrix a sequence.

    A step may have a method ``pull_rows(rows, out)`` besides: rows times J, in ``out`` or in new
    memory if that is None.
    """

    def apply(self, V: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Forward action J V."""

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Backward action Jᵀ U."""

    def apply_input(self, V: Float[Array, "batch features m"]) -> Float[Array, "batch n m"]:
        """Action of the Jacobian with respect to the step's input."""

    def apply_input_transpose(
        self, U: Float[Array, "batch n m"]
    ) -> Float[Array, "batch features m"]:
        """Transposed action of the Jacobian with respect to the step's input."""

    def matrix(self) -> Float[Array, "batch n n"]:
        """Dense J."""

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J|, nats; -inf where J is singular."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Majorant:
    """Small matrices without negative entries that bound the blocks of every step's Jacobian.

    Entry (a, b) is at least the norm of block (a, b); such matrices multiply like the Jacobians, so
    that the norm of their product, times ``exp(log_factor)``, bounds that of the long-term
    Jacobian.
    """

    matrices: Float[Array, "time batch blocks blocks"]
    log_factor: float = 0.0  # ln of what it costs to return from another norm to the spectral one
    constant: bool = False  # meant as one matrix for a whole stretch: the largest of its steps


class Linearization(Sequence[LinearStep]):
    """The T linear steps along a trajectory; step j leads to time t = j + 1."""

    @property
    def row_scaled(self) -> tuple[Float[Array, "n n"], Float[Array, "time batch n"]] | None:
        """W and d of J = diag(d) W where all steps share a W, None if they do not."""
        return None

    @property
    def log_bound_factors(self) -> Mapping[str, Float[Array, "time batch"]]:
        """Logarithms of proven one-step bounds by the rung's name, loosest first; nats.

        Empty for cells whose Jacobian has no scalar factors.
        """
        return {}

    @property
    def majorants(self) -> Mapping[str, Callable[[], Majorant]]:
        """Makers of proven bounds by blocks of the Jacobian, by the rung's name, loosest first."""
        return {}

    @property
    def absent_bounds(self) -> Mapping[str, str]:
        """Reasons why a rung that one might expect is not there, by its name."""
        return {}

    def log_abs_det(self) -> Float[Array, "time batch"]:
        """ln |det J| of every step, nats; -inf where J is singular."""
        return np.stack([step.log_abs_det() for step in self])

    def recurrent_terms(
        self, step: int, U: Float[Array, "batch n m"]
    ) -> Sequence[tuple[Float[Array, "batch rows m"], Float[Array, "batch columns"]]]:
        r"""Rank-one terms of the gradient of the recurrent weights that one step adds.

        Parameters
        ----------
        step
            Index of the step, leading to time k = step + 1.
        U
            Columns of total derivatives of a loss with respect to the state at time k.

        Returns
        -------
        blocks
            Pairs (left, right), one for each block of rows of the stacked recurrent weights, top to
            bottom: column j of ``left`` times ``right`` transposed is the block's term of column j
            of U, with the rest of the past held fixed.

        Raises
        ------
        SettingError
            If the cell does not tell its terms.
        """
        name = type(self).__name__
        raise SettingError(f"{name} does not tell the terms of its gradient: use bptt for the sum")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nonlinearity:
    """One elementwise function inside a cell, along a trajectory."""

    activation: Activation
    z: Float[Array, "time batch n"]
    value: Float[Array, "time batch n"]


@runtime_checkable
class Cell(Protocol):
    """A recurrent layer: the next state from an input and a state.

    The output h comes first in the state, whatever follows it.
    """

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
    def state_parts(self) -> Mapping[str, slice]:
        """Places of the state's parts, by the letter of each: h, and c of an LSTM."""

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

    def unroll(
        self, drive: Float[Array, "time batch gates"], start: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "time batch gates"], Float[Array, "times batch n"]]:
        """Pre-activations of all steps and states for t = 0..T; ``drive`` may be overwritten."""

    def step(
        self, x: Float[Array, "batch features"], state: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        """Next state."""

    def output(self, states: Float[Array, "*steps n"]) -> Float[Array, "*steps hidden"]:
        """The part of the state that the next layer reads."""

    def linearize(self, trajectory: Trajectory) -> Linearization:
        """Jacobians of every step along the trajectory."""

    def backward(
        self,
        trajectory: Trajectory,
        upstream: Float[Array, "time batch n"],
        *,
        window: int | None = None,
    ) -> BackwardPass:
        """Gradients of a scalar L along a trajectory.

        ``upstream[t - 1]`` is the part of dL/d(state_t) from outside the recurrence, 0 behind a
        sequence's end; ``window`` the steps each of them flows back, the whole past if None.
        """

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """Elementwise functions by name: the activation of a vanilla cell, the gates of others."""

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """Factors by which a step keeps the old state, by the gate that sets them.

        Empty for cells without such a direct path.
        """

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "_ _"]]:
        """Recurrent weights by gate; ``W_hh`` where there are no gates.

        Gated cells add the whole matrix under the name ``stack``. Blocks are square, but for the
        stack and for cells whose output has another size than their gates.
        """

    def gamma_factors(self) -> tuple[float | None, float | None]:
        """γ_w = σ_max(W_hh) and γ_a = sup |φ'| of the textbook bound; None for gated cells."""
