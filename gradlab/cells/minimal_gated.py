r"""Minimal gated unit: a GRU whose one gate both resets and updates.

.. math::
   f = \sigma(W x + U h + b), \quad n = \varphi(W x + b + U (f \odot h)), \quad
   h' = (1 - f) \odot h + f \odot n

Source: Zhou, Wu, Zhang and Zhou (2016), "Minimal gated unit for recurrent neural networks",
International Journal of Automation and Computing 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.activations import activation
from gradlab.cells.base import Nonlinearity
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import (
    blocks,
    driven,
    freeze,
    hidden_size_of,
    random_weights,
    require_shapes,
    row_blocks,
)
from gradlab.cells.layer import GatedLayer
from gradlab.cells.linear_steps import LinearSteps
from gradlab.cells.reset import ResetFactors, ResetStep, ResetWeights, reset_backward
from gradlab.cells.row_bounds import (
    Reach,
    candidate_rows_before,
    row_bounded_steps,
    row_bounds,
)
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

GATES = ("f", "n")


@dataclass(frozen=True, kw_only=True, eq=False)
class MinimalGatedCell(GatedLayer):
    """Minimal gated unit layer; its state is h alone.

    Parameters
    ----------
    W_x
        Input weights, (2N, D): blocks of rows for the gate f and the candidate n.
    W_h
        Recurrent weights, (2N, N).
    b_x, b_h
        Biases, (2N,), which add up; zeros if None.
    activation
        Of the candidate n.
    recurrent_activation
        Of the gate f, which overwrites: the old state is kept by 1 - f.
    dtype
        Type the states are computed in, float64 or float32. Jacobians are always float64.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    UnknownNameError
        If there is no such activation or type.
    """

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows n"]
    b_x: Float[Array, " rows"] | None = None
    b_h: Float[Array, " rows"] | None = None
    activation: str = "tanh"
    recurrent_activation: str = "sigmoid"
    dtype: str = "float64"
    kind: str = field(default="mgu", init=False)

    def __post_init__(self) -> None:
        """Check names, shapes and entries; make the arrays read-only."""
        activation(self.activation)
        activation(self.recurrent_activation)
        n = hidden_size_of(self.W_h, 2)
        zeros = np.zeros(2 * n)
        biases = {
            "b_x": zeros if self.b_x is None else self.b_x,
            "b_h": zeros if self.b_h is None else self.b_h,
        }
        freeze(self, self.dtype, {"W_x": self.W_x, "W_h": self.W_h, **biases})
        shapes = {"W_x": (2 * n, -1), "b_x": (2 * n,), "b_h": (2 * n,)}
        require_shapes(self, shapes, f"N = {n} from W_h of shape {self.W_h.shape}")

    @classmethod
    def initialize(
        cls,
        *,
        input_size: int,
        hidden_size: int,
        rng: np.random.Generator,
        recurrent: str = "orthogonal",
        gain: float | int = 1.0,
        forget_bias: float | int = 0.0,
        activation: str = "tanh",
        dtype: str = "float64",
    ) -> MinimalGatedCell:
        """Random layer.

        Parameters
        ----------
        input_size, hidden_size
            D and N.
        rng
            Source of all randomness.
        recurrent, gain
            Kind and factor of both recurrent blocks, see `random_weights`.
        forget_bias
            Above 0 it keeps more of the old state: its opposite is stored in b_x of f.
        activation
            Of the candidate.
        dtype
            Type the states are computed in.
        """
        W_x, W_h = random_weights(
            2,
            input_size=input_size,
            hidden_size=hidden_size,
            rng=rng,
            recurrent=recurrent,
            gain=gain,
        )
        b_x = np.zeros((2, hidden_size))
        b_x[0] = -forget_bias
        return cls(W_x=W_x, W_h=W_h, b_x=b_x.ravel(), activation=activation, dtype=dtype)

    @property
    def gate(self) -> Activation:
        """Activation of f."""
        return activation(self.recurrent_activation)

    @property
    def phi(self) -> Activation:
        """Activation of the candidate."""
        return activation(self.activation)

    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps rows"]:
        """W_x x_t and both biases, for all steps in one product."""
        return driven(inputs, self.W_x, np.asarray(self.b_x) + self.b_h)

    def advance(
        self, drive: Float[Array, "batch rows"], state: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "batch rows"], Float[Array, "batch n"]]:
        """Pre-activations of f and n, and next state of one step."""
        n = self.hidden_size
        a = drive.copy()
        a[:, :n] += state @ self.W_h[:n].T
        f = self.gate.function(a[:, :n])
        a[:, n:] += (f * state) @ self.W_h[n:].T
        mixed = state + f * (self.phi.function(a[:, n:]) - state)
        return a, mixed.astype(self.dtype, copy=False)

    def linearize(self, trajectory: Trajectory) -> LinearSteps:
        """Jacobians along a trajectory."""
        z, h = trajectory.z.astype(np.float64), trajectory.states.astype(np.float64)
        weights = ResetWeights(W_x=self.W_x.astype(np.float64), W_h=self.W_h.astype(np.float64))
        own = self._factors(z, h[:-1])
        return row_bounded_steps(
            self, trajectory, lambda j: ResetStep(weights=weights, factors=own.at(j), before=h[j])
        )

    def whole_backward(
        self, trajectory: Trajectory, upstream: Float[Array, "time batch n"]
    ) -> BackwardPass:
        """Gradients through the whole past."""
        weights = ResetWeights(W_x=self.W_x, W_h=self.W_h)
        return reset_backward(weights, self._factors, trajectory, upstream)

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """The gate f and the candidate n."""
        a_f, a_n = blocks(trajectory.z, 2)
        return {
            "f": Nonlinearity(activation=self.gate, z=a_f, value=self.gate.function(a_f)),
            "n": Nonlinearity(activation=self.phi, z=a_n, value=self.phi.function(a_n)),
        }

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """1 - f."""
        return {"f": 1.0 - self.gate.function(blocks(trajectory.z, 2)[0])}

    def row_bounds(self, reach: Reach) -> Float[Array, "*lead n"]:
        """ψ of `gradlab.cells.row_bounds`, one value a unit, while no |h| exceeds the reach."""
        U_f, U_n = row_blocks(self.W_h.astype(np.float64), GATES).values()
        return row_bounds(U_f, candidate_rows_before(U_f, U_n, reach), self.phi, reach)

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "_ _"]]:
        """Blocks of W_h of f and n, and the whole as ``stack``."""
        return row_blocks(self.W_h, GATES) | {"stack": self.W_h}

    def _factors(self, a: Float[Array, "*lead rows"], h: Float[Array, "*lead n"]) -> ResetFactors:
        a_f, a_n = blocks(a, 2)
        f, f_slope = self.gate.value_and_slope(a_f)
        candidate, n_slope = self.phi.value_and_slope(a_n)
        return ResetFactors(
            carry=1.0 - f,
            zeta=(candidate - h) * f_slope,
            beta=f * n_slope,
            r=f,
            rho=h * f_slope,
        )
