r"""The leaky vanilla layer, :math:`h_t = (1 - a) h_{t-1} + a \varphi(W_{hh} h_{t-1} + \dots)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.activations import activation
from gradlab.cells.base import Nonlinearity
from gradlab.cells.convex import ConvexStep
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import driven, freeze, require_shapes
from gradlab.cells.initializers import input_weights, recurrent_weights
from gradlab.cells.layer import Layer
from gradlab.cells.linear_steps import LinearSteps
from gradlab.errors import SettingError
from gradlab.linalg import log
from gradlab.norms import spectral_norm
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Slopes at which a norm is taken; between them chords bound it.
NODES = 33


@dataclass(frozen=True, kw_only=True, eq=False)
class LeakyCell(Layer):
    r"""Layer of leaky integrators, as in echo state networks.

    Parameters
    ----------
    W_hh
        Recurrent weights; rows are outputs.
    W_xh
        Input weights.
    b_h
        Bias; zeros if None.
    activation
        Name of the non-linearity φ.
    leak
        a in (0, 1]: share of the state that a step replaces. 1 is the vanilla layer.
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
    SettingError
        If the leak is not in (0, 1].

    Notes
    -----
    The Jacobian is :math:`(1 - a) I + a\,\mathrm{diag}(\varphi') W_{hh}`: neither the norm nor the
    radius of W_hh alone decides.
    """

    W_hh: Float[Array, "n n"]
    W_xh: Float[Array, "n features"]
    b_h: Float[Array, " n"] | None = None
    activation: str = "tanh"
    leak: float | int = 1.0
    dtype: str = "float64"
    kind: str = field(default="leaky", init=False)

    def __post_init__(self) -> None:
        """Check names, shapes and entries; make the arrays read-only."""
        activation(self.activation)
        if not 0.0 < self.leak <= 1.0:
            raise SettingError(f"leak {self.leak}: expected a share in (0, 1]")
        n = np.shape(self.W_hh)[0] if np.ndim(self.W_hh) else 0
        bias = np.zeros(n) if self.b_h is None else self.b_h
        freeze(self, self.dtype, {"W_hh": self.W_hh, "W_xh": self.W_xh, "b_h": bias})
        shapes = {"W_hh": (n, n), "W_xh": (n, -1), "b_h": (n,)}
        require_shapes(self, shapes, f"N = {n} rows of W_hh")

    @classmethod
    def initialize(
        cls,
        *,
        input_size: int,
        hidden_size: int,
        rng: np.random.Generator,
        leak: float | int,
        recurrent: str = "gaussian",
        gain: float | int = 1.0,
        activation: str = "tanh",
        dtype: str = "float64",
    ) -> LeakyCell:
        """Random layer without bias; kinds and gain of W_hh as `recurrent_weights` has them."""
        return cls(
            W_hh=recurrent_weights(recurrent, hidden_size, gain=float(gain), rng=rng),
            W_xh=input_weights(hidden_size, input_size, rng=rng),
            activation=activation,
            leak=leak,
            dtype=dtype,
        )

    @property
    def hidden_size(self) -> int:
        """N."""
        return int(self.W_hh.shape[0])

    @property
    def input_size(self) -> int:
        """D."""
        return int(self.W_xh.shape[1])

    @property
    def phi(self) -> Activation:
        """The non-linearity."""
        return activation(self.activation)

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Weights by attribute name."""
        return {"W_hh": self.W_hh, "W_xh": self.W_xh, "b_h": np.asarray(self.b_h)}

    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps n"]:
        """W_xh x_t + b_h, for all steps in one product."""
        return driven(inputs, self.W_xh, np.asarray(self.b_h))

    def advance(
        self, drive: Float[Array, "batch n"], state: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "batch n"], Float[Array, "batch n"]]:
        """Pre-activation and next state of one step."""
        z = drive + state @ self.W_hh.T
        mixed = (1.0 - self.leak) * state + self.leak * self.phi.function(z)
        return z, mixed.astype(self.dtype, copy=False)

    def linearize(self, trajectory: Trajectory) -> LinearSteps:
        r"""Jacobians :math:`(1 - a) I + a\,\mathrm{diag}(\varphi'(z_t)) W_{hh}`.

        Rungs: with slopes between m - d and m + d,
        :math:`\lVert (1 - a) I + a m W_{hh} \rVert + a d \gamma_w`; ``gamma`` from the extreme
        slopes of φ, ``saturation`` from those of the step. Never above
        :math:`(1 - a) + a \gamma_a \gamma_w`; proof: docs/theory.md, "Leaky units".
        """
        slopes = self.phi.derivative(trajectory.z.astype(np.float64))
        alpha = self.leak * slopes[:, :, None]
        kept = np.full(slopes.shape[1:], 1.0 - self.leak)
        h = trajectory.states.astype(np.float64)
        W_x, W_h = self.W_xh.astype(np.float64), self.W_hh.astype(np.float64)

        def at(j: int) -> ConvexStep:
            return ConvexStep(
                W_x=W_x, W_h=W_h, carry=kept, alpha=alpha[j], alpha_x=alpha[j], before=h[j]
            )

        return LinearSteps(trajectory.steps, at, log_bound_factors=lambda: self._log_bounds(slopes))

    def whole_backward(
        self, trajectory: Trajectory, upstream: Float[Array, "time batch n"]
    ) -> BackwardPass:
        """Gradients through the whole past."""
        with np.errstate(over="ignore", invalid="ignore"):
            dz, adjoints = self._sweep(trajectory, upstream)
            flat = dz.reshape(-1, self.hidden_size)
            gradients = {
                "W_hh": flat.T @ trajectory.states[:-1].reshape(flat.shape),
                "W_xh": flat.T @ trajectory.inputs.reshape(len(flat), -1),
                "b_h": flat.sum(axis=0),
            }
            inputs = (flat @ self.W_xh).reshape(trajectory.inputs.shape)
        return BackwardPass(
            gradients={name: close(array) for name, array in gradients.items()},
            inputs=close(inputs),
            initial_state=adjoints[0],
            adjoints=adjoints,
        )

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """The activation, under its own name; its value is φ(z), not the state."""
        phi = self.phi
        value = phi.function(trajectory.z)
        return {self.activation: Nonlinearity(activation=phi, z=trajectory.z, value=value)}

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """The constant 1 - a."""
        return {"leak": np.full(trajectory.z.shape, 1.0 - self.leak)}

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "n n"]]:
        """W_hh, and the Jacobian at unit slope, (1 - a) I + a W_hh, as ``effective``."""
        effective = self.leak * self.W_hh + (1.0 - self.leak) * np.eye(self.hidden_size)
        return {"W_hh": self.W_hh, "effective": effective}

    def gamma_factors(self) -> tuple[float, float]:
        """γ_w = σ_max(W_hh) and γ_a = sup |φ'|."""
        return spectral_norm(self.W_hh), self.phi.sup_derivative

    def _log_bounds(self, slopes: Float[Array, "time batch n"]) -> dict[str, Array]:
        """Bounds on every step whose slopes lie between those of φ, and between its own."""
        phi, gamma_w = self.phi, spectral_norm(self.W_hh)
        # The norm of (1 - a) I + a m W is convex in m: chords between nodes lie above it.
        nodes = np.unique(np.linspace(phi.inf_derivative, phi.sup_derivative, NODES))
        heights = [self._norm_at(float(node)) for node in nodes]

        def log_bound(low: Array, high: Array) -> Array:
            middle = np.interp(0.5 * (low + high), nodes, heights)
            return log(middle + self.leak * 0.5 * (high - low) * gamma_w)

        ends = np.array([phi.inf_derivative]), np.array([phi.sup_derivative])
        constant = np.full(slopes.shape[:2], log_bound(*ends)[0])
        return {
            "gamma": constant,
            "saturation": log_bound(slopes.min(axis=2), slopes.max(axis=2)),
        }

    def _norm_at(self, slope: float) -> float:
        """Norm of the Jacobian where all slopes are equal."""
        W = self.W_hh.astype(np.float64)
        return spectral_norm(self.leak * slope * W + (1.0 - self.leak) * np.eye(self.hidden_size))

    def _sweep(self, trajectory: Trajectory, upstream: Array) -> tuple[Array, Array]:
        """Derivatives of L by the pre-activations and by the states."""
        slopes = self.leak * self.phi.derivative(trajectory.z)
        adjoints = np.zeros_like(trajectory.states)
        adjoints[1:] = upstream
        dz = np.empty_like(trajectory.z)
        for t in range(trajectory.steps - 1, -1, -1):
            np.multiply(slopes[t], adjoints[t + 1], out=dz[t])
            adjoints[t] += (1.0 - self.leak) * adjoints[t + 1]
            adjoints[t] += dz[t] @ self.W_hh
        return dz, close(adjoints)
