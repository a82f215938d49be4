r"""The vanilla recurrent layer, :math:`h_t = \varphi(W_{hh} h_{t-1} + W_{xh} x_t + b_h)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close, read_only, require_finite
from gradlab.cells.activations import clipped
from gradlab.cells.base import Linearization, LinearStep, Nonlinearity
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import driven
from gradlab.cells.initializers import input_weights, recurrent_weights
from gradlab.cells.kernels import multiplicand
from gradlab.cells.vanilla_backward import backward_pass
from gradlab.cells.windows import truncated_backward
from gradlab.errors import SettingError, ShapeError
from gradlab.linalg import log
from gradlab.norms import spectral_norm
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

DTYPES = ("float64", "float32")


@dataclass(frozen=True, kw_only=True, eq=False)
class VanillaCell:
    """Elman network layer.

    Parameters
    ----------
    W_hh
        Recurrent weights; rows are outputs.
    W_xh
        Input weights.
    b_h
        Bias; zeros if None. Two additive biases of a framework are summed into it.
    activation
        Name of the non-linearity.
    clip
        Limit of the non-linearity's argument, as ONNX has it; none if None.
    dtype
        Type the states are computed in, float64 or float32. Jacobians are always float64.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    UnknownNameError
        If there is no such activation.
    SettingError
        If the clip is not positive, or there is no such type.
    """

    W_hh: Float[Array, "n n"]
    W_xh: Float[Array, "n features"]
    b_h: Float[Array, " n"] | None = None
    activation: str = "tanh"
    clip: float | int | None = None
    dtype: str = "float64"
    kind: str = field(default="rnn", init=False)

    def __post_init__(self) -> None:
        """Check names, shapes and entries; make the arrays read-only."""
        clipped(self.activation, self.clip)
        if self.dtype not in DTYPES:
            raise SettingError(f"dtype {self.dtype!r}: expected one of {', '.join(DTYPES)}")
        n = np.shape(self.W_hh)[0] if np.ndim(self.W_hh) else 0
        bias = np.zeros(n) if self.b_h is None else self.b_h
        for name, value in (("W_hh", self.W_hh), ("W_xh", self.W_xh), ("b_h", bias)):
            array = read_only(value, self.dtype)
            require_finite(name, array)
            object.__setattr__(self, name, array)
        _check_shapes(self.W_hh, self.W_xh, np.asarray(self.b_h))

    @classmethod
    def initialize(
        cls,
        *,
        input_size: int,
        hidden_size: int,
        rng: np.random.Generator,
        recurrent: str = "gaussian",
        gain: float = 1.0,
        gamma: float | None = None,
        radius: float | None = None,
        density: float = 0.1,
        activation: str = "tanh",
        bias: float = 0.0,
        bias_std: float = 0.0,
        dtype: str = "float64",
    ) -> VanillaCell:
        """Random layer.

        Parameters
        ----------
        input_size, hidden_size
            D and N.
        rng
            Source of all randomness.
        recurrent
            Kind of recurrent matrix: gaussian, orthogonal, identity, uniform or sparse.
        gain
            Factor g; Gaussian entries are N(0, g²/N).
        gamma, radius
            Exact target for the largest singular value, or for the spectral radius.
        density
            Share of non-zero entries of a sparse matrix.
        activation
            Name of the non-linearity.
        bias, bias_std
            Mean and standard deviation of the bias.
        dtype
            Type the states are computed in.

        Returns
        -------
        cell
            W_xh has entries N(0, 1/D), so that inputs of unit variance drive every unit with unit
            variance.

        Raises
        ------
        UnreachableTargetError
            If no rescaling reaches the target.
        """
        W_hh = recurrent_weights(
            recurrent, hidden_size, gain=gain, gamma=gamma, radius=radius, density=density, rng=rng
        )
        W_xh = input_weights(hidden_size, input_size, rng=rng)
        b_h = bias + bias_std * rng.standard_normal(hidden_size)
        return cls(W_hh=W_hh, W_xh=W_xh, b_h=b_h, activation=activation, dtype=dtype)

    @property
    def hidden_size(self) -> int:
        """N."""
        return int(self.W_hh.shape[0])

    @property
    def state_size(self) -> int:
        """N: the state is h alone."""
        return self.hidden_size

    @property
    def state_parts(self) -> Mapping[str, slice]:
        """The whole state, h."""
        return {"h": slice(0, self.hidden_size)}

    @property
    def input_size(self) -> int:
        """D."""
        return int(self.W_xh.shape[1])

    @property
    def phi(self) -> Activation:
        """The non-linearity, clipped as it is."""
        return clipped(self.activation, self.clip)

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
        z = state @ self.W_hh.T
        z += drive
        return z, self.phi.function(z).astype(self.dtype, copy=False)

    def unroll(
        self, drive: Float[Array, "time batch n"], start: Float[Array, "batch n"]
    ) -> tuple[Float[Array, "time batch n"], Float[Array, "times batch n"]]:
        """Pre-activations of all steps, in place of the drive, and states for t = 0..T."""
        W, write = multiplicand(self.W_hh.T, len(start)), self.phi.writer
        states = np.empty((len(drive) + 1, *start.shape), dtype=start.dtype)
        states[0], product = start, np.empty(start.shape, dtype=start.dtype)
        h = states[0]
        for z, following in zip(drive, states[1:], strict=True):
            h.dot(W, product)
            np.add(z, product, z)
            write(z, following)
            h = following
        return drive, states

    def step(
        self, x: Float[Array, "batch features"], state: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        """Next state."""
        return self.advance(self.drive(x), state)[1]

    def output(self, states: Float[Array, "*steps n"]) -> Float[Array, "*steps n"]:
        """The whole state."""
        return states

    def linearize(self, trajectory: Trajectory) -> VanillaLinearization:
        r"""Jacobians :math:`J_t = \mathrm{diag}(\varphi'(z_t)) W_{hh}` along a trajectory.

        Source: Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
        networks", ICML, section 2, with rows as outputs.
        """
        slopes = self.phi.derivative(trajectory.z.astype(np.float64))
        return VanillaLinearization(
            W_hh=self.W_hh.astype(np.float64, order="F"),  # products with few rows are faster so
            W_xh=self.W_xh.astype(np.float64),
            slopes=slopes,
            gamma_a=self.phi.sup_derivative,
            before=trajectory.states[:-1],
        )

    def backward(
        self,
        trajectory: Trajectory,
        upstream: Float[Array, "time batch n"],
        *,
        window: int | None = None,
    ) -> BackwardPass:
        """Gradients of a scalar L along a trajectory.

        Parameters
        ----------
        trajectory
            A run of this cell.
        upstream
            ``upstream[t - 1]`` is the part of dL/dh_t from outside the recurrence: from the loss at
            t and the layers above; 0 behind a sequence's end.
        window
            Steps each of them flows back; the whole past if None.

        Returns
        -------
        gradients
            In the cell's own floating-point type; entries beyond its range are infinite.
        """
        if window is not None:
            return truncated_backward(self, trajectory, upstream, window)
        return backward_pass(self.W_hh, self.W_xh, self.phi, trajectory, upstream)

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """The activation, under its own name."""
        states = trajectory.states[1:]
        return {self.activation: Nonlinearity(activation=self.phi, z=trajectory.z, value=states)}

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """None: every step replaces the whole state."""
        return {}

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "n n"]]:
        """W_hh alone."""
        return {"W_hh": self.W_hh}

    def gamma_factors(self) -> tuple[float, float]:
        """γ_w = σ_max(W_hh) and γ_a = sup |φ'|."""
        return spectral_norm(self.W_hh), self.phi.sup_derivative


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VanillaStep:
    """J = diag(d) W for every sequence, without forming the diagonal."""

    W_hh: Float[Array, "n n"]
    W_xh: Float[Array, "n features"]
    d: Float[Array, "batch n"]  # phi'(z)

    @property
    def row_scaled(self) -> tuple[Float[Array, "n n"], Float[Array, "batch n"]]:
        """W and d."""
        return self.W_hh, self.d

    def apply(self, V: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """J V."""
        product = np.asarray(self.W_hh @ V)
        product *= self.d[:, :, None]
        return product

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Jᵀ U, from rows: those of Uᵀ follow each other in memory where products are long."""
        batch, n, m = U.shape
        rows = U.transpose(0, 2, 1) * self.d[:, None, :]
        return np.asarray((rows.reshape(-1, n) @ self.W_hh).reshape(batch, m, n).transpose(0, 2, 1))

    def pull_rows(
        self, rows: Float[Array, "batch m n"], out: Float[Array, "batch m n"] | None
    ) -> Float[Array, "batch m n"]:
        """Rows times J."""
        batch, m, n = rows.shape
        scaled = rows * self.d[:, None, :]
        if batch == 1:
            return np.asarray(np.matmul(scaled, self.W_hh, out=out))
        target = None if out is None else out.reshape(batch * m, n)
        return np.matmul(scaled.reshape(-1, n), self.W_hh, out=target).reshape(batch, m, n)

    def apply_input(self, V: Float[Array, "batch features m"]) -> Float[Array, "batch n m"]:
        """diag(d) W_xh V."""
        return np.asarray(self.d[:, :, None] * (self.W_xh @ V))

    def apply_input_transpose(
        self, U: Float[Array, "batch n m"]
    ) -> Float[Array, "batch features m"]:
        """W_xhᵀ diag(d) U."""
        return np.asarray(self.W_xh.T @ (self.d[:, :, None] * U))

    def matrix(self) -> Float[Array, "batch n n"]:
        """Dense J."""
        return np.asarray(self.d[:, :, None] * self.W_hh)

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J| = ln |det W| + sum of ln phi'."""
        return log_abs_det(self.W_hh, self.d)


class VanillaLinearization(Linearization):
    r"""T steps J_t = diag(d_t) W with their scalar factors.

    Rungs: ``gamma``, :math:`\gamma_a \gamma_w`, and ``saturation``,
    :math:`\lVert D_t \rVert \gamma_w`.
    """

    def __init__(
        self,
        *,
        W_hh: Float[Array, "n n"],
        W_xh: Float[Array, "n features"],
        slopes: Float[Array, "time batch n"],
        gamma_a: float,
        before: Float[Array, "time batch n"],
    ) -> None:
        self.W_hh, self.W_xh = close(W_hh), close(W_xh)
        self.slopes = close(slopes)
        self.gamma_a = gamma_a
        self.before = before  # h_{t-1}

    def __len__(self) -> int:
        """T."""
        return len(self.slopes)

    @overload
    def __getitem__(self, index: int) -> LinearStep: ...
    @overload
    def __getitem__(self, index: slice) -> list[LinearStep]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Step leading to time index + 1."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return VanillaStep(W_hh=self.W_hh, W_xh=self.W_xh, d=self.slopes[index])

    @property
    def row_scaled(self) -> tuple[Float[Array, "n n"], Float[Array, "time batch n"]]:
        """W and the slopes phi'(z)."""
        return self.W_hh, self.slopes

    def log_abs_det(self) -> Float[Array, "time batch"]:
        """ln |det J| of every step; W is factored once."""
        return log_abs_det(self.W_hh, self.slopes)

    def recurrent_terms(
        self, step: int, U: Float[Array, "batch n m"]
    ) -> list[tuple[Float[Array, "batch n m"], Float[Array, "batch n"]]]:
        """(φ'(z_k) ⊙ u) h_{k-1}ᵀ for every column u."""
        return [(self.slopes[step][:, :, None] * U, self.before[step].astype(np.float64))]

    @property
    def log_bound_factors(self) -> Mapping[str, Float[Array, "time batch"]]:
        """Logarithms of the one-step bounds, loosest first; nats."""
        log_gamma_w = log(np.asarray(spectral_norm(self.W_hh)))
        largest = np.abs(self.slopes).max(axis=2)
        constant = np.full(largest.shape, np.log(self.gamma_a) + log_gamma_w)
        return {"gamma": constant, "saturation": log(largest) + log_gamma_w}


def log_abs_det(W: Float[Array, "n n"], d: Float[Array, "*steps n"]) -> Float[Array, "*steps"]:
    """ln |det diag(d) W|, nats; -inf where that is singular."""
    sign, log_det = np.linalg.slogdet(W)
    return np.asarray(log(np.abs(d)).sum(axis=-1) + (log_det if sign else -np.inf))


def _check_shapes(W_hh: Array, W_xh: Array, b_h: Array) -> None:
    if W_hh.ndim != 2 or W_hh.shape[0] != W_hh.shape[1] or W_hh.shape[0] == 0:
        raise ShapeError(f"W_hh has shape {W_hh.shape}: expected a square matrix (N, N), N >= 1")
    n = W_hh.shape[0]
    if W_xh.ndim != 2 or W_xh.shape[0] != n:
        raise ShapeError(
            f"W_xh has shape {W_xh.shape} but W_hh has shape {W_hh.shape}: expected ({n}, D)"
        )
    if b_h.shape != (n,):
        raise ShapeError(
            f"b_h has shape {b_h.shape} but W_hh has shape {W_hh.shape}: expected ({n},)"
        )
