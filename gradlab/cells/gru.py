r"""Gated recurrent unit, with the variants that papers and frameworks disagree on.

.. math::
   r, z = \sigma(W x + U h + b), \quad
   n = \varphi(W x + b + r \odot (U h + b_h)) \text{ or } \varphi(W x + b + U (r \odot h)), \quad
   h' = (1 - z) \odot n + z \odot h

Source: Cho et al. (2014), "Learning phrase representations using RNN encoder-decoder for
statistical machine translation", EMNLP; z is taken in the sense of the frameworks, see ``update``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.activations import clipped
from gradlab.cells.base import Nonlinearity
from gradlab.cells.convex import ConvexStep
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import (
    blocks,
    chrono_bias,
    driven,
    freeze,
    hidden_size_of,
    random_weights,
    require_choice,
    require_shapes,
    row_blocks,
)
from gradlab.cells.gru_after import AfterFunctions, after_backward, after_unroll
from gradlab.cells.layer import GatedLayer
from gradlab.cells.linear_steps import LinearSteps
from gradlab.cells.reset import ResetFactors, ResetStep, ResetWeights, reset_backward
from gradlab.cells.row_bounds import (
    Reach,
    candidate_rows_after,
    candidate_rows_before,
    row_bounded_steps,
    row_bounds,
)
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

GATES = ("r", "z", "n")
RESETS = ("after", "before")
UPDATES = ("keep", "overwrite")


@dataclass(frozen=True, kw_only=True, eq=False)
class GRUCell(GatedLayer):
    """Gated recurrent unit layer; its state is h alone.

    Parameters
    ----------
    W_x
        Input weights, (3N, D): blocks of rows for the gates r, z, n.
    W_h
        Recurrent weights, (3N, N).
    b_x, b_h
        The two biases of a framework, (3N,); they add up but for the candidate's: with reset
        after the product, b_h is inside the reset. Zeros if None.
    reset
        ``"after"``: r multiplies U h + b_h (cuDNN, PyTorch, Keras ``reset_after``, ONNX
        ``linear_before_reset = 1``). ``"before"``: r multiplies h.
    update
        ``"keep"``: z keeps the old state, h' = (1 - z) n + z h (PyTorch, Keras, ONNX).
        ``"overwrite"``: the other sense, h' = z n + (1 - z) h (Chung et al. 2014, Haiku).
    activation
        Of the candidate n.
    recurrent_activation
        Of the gates r and z.
    clip
        Limit of the argument of every activation; none if None.
    dtype
        Type the states are computed in, float64 or float32. Jacobians are always float64.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    UnknownNameError
        If there is no such activation, reset, update or type.
    SettingError
        If the clip is not positive.
    """

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows n"]
    b_x: Float[Array, " rows"] | None = None
    b_h: Float[Array, " rows"] | None = None
    reset: str = "after"
    update: str = "keep"
    activation: str = "tanh"
    recurrent_activation: str = "sigmoid"
    clip: float | int | None = None
    dtype: str = "float64"
    kind: str = field(default="gru", init=False)

    def __post_init__(self) -> None:
        """Check names, shapes and entries; make the arrays read-only."""
        require_choice("reset", self.reset, RESETS)
        require_choice("update", self.update, UPDATES)
        for name in (self.activation, self.recurrent_activation):
            clipped(name, self.clip)
        n = hidden_size_of(self.W_h, 3)
        zeros = np.zeros(3 * n)
        biases = {
            "b_x": zeros if self.b_x is None else self.b_x,
            "b_h": zeros if self.b_h is None else self.b_h,
        }
        freeze(self, self.dtype, {"W_x": self.W_x, "W_h": self.W_h, **biases})
        shapes = {"W_x": (3 * n, -1), "b_x": (3 * n,), "b_h": (3 * n,)}
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
        chrono: int | None = None,
        reset: str = "after",
        activation: str = "tanh",
        dtype: str = "float64",
    ) -> GRUCell:
        """Random layer.

        Parameters
        ----------
        input_size, hidden_size
            D and N.
        rng
            Source of all randomness.
        recurrent, gain
            Kind and factor of every gate's recurrent block, see `random_weights`.
        forget_bias
            Stored in b_x of the gate z: above 0 it keeps more of the old state. Other biases are 0.
        chrono
            Longest lag that matters: biases of z are ln u with u uniform in (1, chrono - 1), in
            place of ``forget_bias``.
        reset
            As in the constructor.
        activation
            Of the candidate.
        dtype
            Type the states are computed in.

        Raises
        ------
        SettingError
            If ``chrono`` is below 3.
        """
        W_x, W_h = random_weights(
            3,
            input_size=input_size,
            hidden_size=hidden_size,
            rng=rng,
            recurrent=recurrent,
            gain=gain,
        )
        b_x = np.zeros((3, hidden_size))
        b_x[1] = forget_bias if chrono is None else chrono_bias(hidden_size, chrono, rng)
        return cls(
            W_x=W_x, W_h=W_h, b_x=b_x.ravel(), reset=reset, activation=activation, dtype=dtype
        )

    @property
    def gate(self) -> Activation:
        """Activation of r and z."""
        return clipped(self.recurrent_activation, self.clip)

    @property
    def phi(self) -> Activation:
        """Activation of the candidate."""
        return clipped(self.activation, self.clip)

    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps rows"]:
        """W_x x_t and the biases, for all steps in one product.

        With reset after the product a fourth block holds the candidate's b_h.
        """
        n, b_x, b_h = self.hidden_size, np.asarray(self.b_x), np.asarray(self.b_h)
        if self.reset == "before":
            return driven(inputs, self.W_x, b_x + b_h)
        drive = np.empty((*inputs.shape[:-1], 4 * n), dtype=np.result_type(inputs, self.W_x))
        inner = b_x + np.concatenate([b_h[: 2 * n], np.zeros_like(b_h[2 * n :])])
        driven(inputs, self.W_x, inner, out=drive.reshape(-1, 4 * n)[:, : 3 * n])
        drive[..., 3 * n :] = b_h[2 * n :]
        return drive

    def advance(
        self, drive: Float[Array, "batch rows"], state: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "batch rows"], Float[Array, "batch n"]]:
        """Pre-activations and next state of one step.

        With reset after the product the fourth block is q = U_n h + b_h,n, which the Jacobian
        needs.
        """
        n = self.hidden_size
        a = drive.copy()
        if self.reset == "after":
            product = state @ self.W_h.T
            a[:, : 2 * n] += product[:, : 2 * n]
            a[:, 3 * n :] += product[:, 2 * n :]
            gates = self.gate.function(a[:, : 2 * n])
            a[:, 2 * n : 3 * n] += gates[:, :n] * a[:, 3 * n :]
        else:
            a[:, : 2 * n] += state @ self.W_h[: 2 * n].T
            gates = self.gate.function(a[:, : 2 * n])
            a[:, 2 * n :] += (gates[:, :n] * state) @ self.W_h[2 * n :].T
        candidate = self.phi.function(a[:, 2 * n : 3 * n])
        kept = self._kept(gates[:, n:])
        return a, (candidate + kept * (state - candidate)).astype(self.dtype, copy=False)

    def unroll(
        self, drive: Float[Array, "time batch rows"], start: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "time batch rows"], Float[Array, "times batch n"]]:
        """Pre-activations of all steps and states for t = 0..T; ``drive`` may be overwritten."""
        if self.reset == "before":
            return super().unroll(drive, start)
        return after_unroll(self.W_h, self._after, drive, start)

    def linearize(self, trajectory: Trajectory) -> LinearSteps:
        """Jacobians along a trajectory."""
        z, h = trajectory.z.astype(np.float64), trajectory.states.astype(np.float64)
        W_x, W_h = self.W_x.astype(np.float64), self.W_h.astype(np.float64)
        if self.reset == "before":
            weights, mixed = ResetWeights(W_x=W_x, W_h=W_h), self._before(z, h[:-1])
            return row_bounded_steps(
                self,
                trajectory,
                lambda j: ResetStep(weights=weights, factors=mixed.at(j), before=h[j]),
            )
        own = self._after.factors(z, h[:-1])

        def at(j: int) -> ConvexStep:
            alpha = own.alpha[:, j].swapaxes(0, 1)
            return ConvexStep(
                W_x=W_x,
                W_h=W_h,
                carry=own.carry[j],
                alpha=alpha[:, [1, 2, 0]],
                alpha_x=alpha[:, 1:],
                before=h[j],
            )

        return row_bounded_steps(self, trajectory, at)

    def whole_backward(
        self, trajectory: Trajectory, upstream: Float[Array, "time batch n"]
    ) -> BackwardPass:
        """Gradients through the whole past."""
        if self.reset == "after":
            return after_backward(self.W_x, self.W_h, self._after, trajectory, upstream)
        weights = ResetWeights(W_x=self.W_x, W_h=self.W_h)
        return reset_backward(weights, self._before, trajectory, upstream)

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """Gates r and z, and the candidate n."""
        parts = dict(zip(GATES, self._parts(trajectory.z), strict=True))
        phis = {"r": self.gate, "z": self.gate, "n": self.phi}
        return {
            name: Nonlinearity(activation=phis[name], z=a, value=phis[name].function(a))
            for name, a in parts.items()
        }

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """z, or 1 - z where z overwrites."""
        return {"z": self._kept(self.gate.function(self._parts(trajectory.z)[1]))}

    def row_bounds(self, reach: Reach) -> Float[Array, "*lead n"]:
        """ψ of `gradlab.cells.row_bounds`, one value a unit, while no |h| exceeds the reach."""
        U_r, U_z, U_n = row_blocks(self.W_h.astype(np.float64), GATES).values()
        b_n = np.asarray(self.b_h)[2 * self.hidden_size :].astype(np.float64)
        if self.reset == "after":
            beta = candidate_rows_after(U_r, U_n, b_n, reach)
        else:
            beta = candidate_rows_before(U_r, U_n, reach)
        return row_bounds(U_z, beta, self.phi, reach)

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "_ _"]]:
        """Blocks of W_h by gate, and the whole as ``stack``."""
        return row_blocks(self.W_h, GATES) | {"stack": self.W_h}

    @property
    def _after(self) -> AfterFunctions:
        """The elementwise part with reset after the product."""
        return AfterFunctions(gate=self.gate, candidate=self.phi, keeps=self.update == "keep")

    def _parts(self, a: Float[Array, "*lead rows"]) -> list[Float[Array, "*lead n"]]:
        """Pre-activations of r, z and n."""
        return blocks(a[..., : 3 * self.hidden_size], 3)

    def _kept(self, z: Float[Array, "*lead n"]) -> Float[Array, "*lead n"]:
        """Share of the old state that stays."""
        return z if self.update == "keep" else 1.0 - z

    def _mixing(
        self, a: Float[Array, "*lead rows"], h: Float[Array, "*lead n"]
    ) -> tuple[Array, Array, Array]:
        """Factors k, ζ and β of dh' = k dh + ζ da_z + β da_n."""
        _, a_z, a_n = self._parts(a)
        z, z_slope = self.gate.value_and_slope(a_z)
        candidate, n_slope = self.phi.value_and_slope(a_n)
        kept = self._kept(z)
        toward = h - candidate if self.update == "keep" else candidate - h
        return kept, toward * z_slope, (1.0 - kept) * n_slope

    def _before(self, a: Float[Array, "*lead rows"], h: Float[Array, "*lead n"]) -> ResetFactors:
        kept, zeta, beta = self._mixing(a, h)
        r, r_slope = self.gate.value_and_slope(self._parts(a)[0])
        return ResetFactors(carry=kept, zeta=zeta, beta=beta, r=r, rho=h * r_slope)
