r"""Cells whose candidate reads the old state through a gate, before the product.

.. math:: h' = k \odot h + (1 - k) \odot n, \qquad n = \varphi(\ldots + U_n (r \odot h))

With :math:`\zeta = dh'/da_z`, :math:`\beta = (1 - k) \odot \varphi'` and
:math:`\rho = h \odot dr/da_r`,

.. math:: J = \mathrm{diag}(k) + \mathrm{diag}(\zeta) U_z
    + \mathrm{diag}(\beta) U_n (\mathrm{diag}(r) + \mathrm{diag}(\rho) U_r).

The GRU of Cho et al. (2014) is of this form; in the minimal gated unit one gate plays both parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Pre-activations whose factors are computed at a time: few enough to stay in the cache.
BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResetFactors:
    """Elementwise factors of the steps of a run."""

    carry: Float[Array, "*lead n"]  # k
    zeta: Float[Array, "*lead n"]
    beta: Float[Array, "*lead n"]
    r: Float[Array, "*lead n"]
    rho: Float[Array, "*lead n"]

    def at(self, index: int) -> ResetFactors:
        """Factors of one step."""
        return ResetFactors(
            carry=self.carry[index],
            zeta=self.zeta[index],
            beta=self.beta[index],
            r=self.r[index],
            rho=self.rho[index],
        )


Factoring = Callable[[Float[Array, "*lead rows"], Float[Array, "*lead n"]], ResetFactors]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResetWeights:
    """Stacked weights: the rows of the gates, r before z or one gate for both, then those of n."""

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows n"]

    @property
    def gate_rows(self) -> int:
        """Rows of the gates: 2N, or N where one gate plays both parts."""
        return int(self.W_h.shape[0] - self.W_h.shape[1])

    @property
    def shared(self) -> bool:
        """Whether one gate plays both parts."""
        return bool(self.gate_rows == self.W_h.shape[1])

    def parts(self, q: Float[Array, "batch gaterows m"]) -> tuple[Array, Array]:
        """Blocks of the gates r and z."""
        n = self.W_h.shape[1]
        return q[:, :n], q[:, -n:]

    def joined(
        self, da_r: Float[Array, "batch n *columns"], da_z: Float[Array, "batch n *columns"]
    ) -> Float[Array, "batch gaterows *columns"]:
        """Derivatives by the gates' rows, from those by the parts they play."""
        return da_r + da_z if self.shared else np.concatenate([da_r, da_z], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResetStep:
    """One step's Jacobian for every sequence; no diagonal is formed."""

    weights: ResetWeights
    factors: ResetFactors
    before: Float[Array, "batch n"]  # h

    def apply(self, V: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """J V."""
        own, rows = self.factors, self.weights.gate_rows
        q_r, q_z = self.weights.parts(np.asarray(self.weights.W_h[:rows] @ V))
        read = _scaled(own.r, V) + _scaled(own.rho, q_r)
        candidate = _scaled(own.beta, np.asarray(self.weights.W_h[rows:] @ read))
        return np.asarray(_scaled(own.carry, V) + _scaled(own.zeta, q_z) + candidate)

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Jᵀ U."""
        own, rows = self.factors, self.weights.gate_rows
        gates, _, read = self.pull(U)
        through_gates = np.asarray(self.weights.W_h[:rows].T @ gates)
        return np.asarray(_scaled(own.carry, U) + _scaled(own.r, read) + through_gates)

    def apply_input(self, V: Float[Array, "batch features m"]) -> Float[Array, "batch n m"]:
        """Change of the state with the input."""
        own, rows = self.factors, self.weights.gate_rows
        q = self.weights.W_x @ V
        q_r, q_z = self.weights.parts(q[:, :rows])
        candidate = q[:, rows:] + self.weights.W_h[rows:] @ _scaled(own.rho, q_r)
        return _scaled(own.zeta, q_z) + _scaled(own.beta, candidate)

    def apply_input_transpose(
        self, U: Float[Array, "batch n m"]
    ) -> Float[Array, "batch features m"]:
        """Transpose of `apply_input`."""
        gates, candidate, _ = self.pull(U)
        return np.asarray(self.weights.W_x.T @ np.concatenate([gates, candidate], axis=1))

    def matrix(self) -> Float[Array, "batch n n"]:
        """Dense J."""
        own, rows = self.factors, self.weights.gate_rows
        n = own.carry.shape[1]
        diagonal = np.arange(n)
        U_r, U_z = self.weights.parts(self.weights.W_h[None, :rows])
        read = own.rho[:, :, None] * U_r
        read[:, diagonal, diagonal] += own.r
        J = _scaled(own.zeta, U_z) + _scaled(own.beta, self.weights.W_h[rows:] @ read)
        J[:, diagonal, diagonal] += own.carry
        return J

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J|, by an LU factorization."""
        return np.asarray(np.linalg.slogdet(self.matrix())[1])

    def terms(
        self, U: Float[Array, "batch n m"]
    ) -> list[tuple[Float[Array, "batch rows m"], Float[Array, "batch n"]]]:
        """Gates' rows with h, the candidate's with r ⊙ h."""
        gates, candidate, _ = self.pull(U)
        return [(gates, self.before), (candidate, self.factors.r * self.before)]

    def pull(self, U: Float[Array, "batch n m"]) -> tuple[Array, Array, Array]:
        """Derivatives by the gates' rows, by the candidate's and by r ⊙ h, from those by h'."""
        own, rows = self.factors, self.weights.gate_rows
        candidate = _scaled(own.beta, U)
        read = self.weights.W_h[rows:].T @ candidate
        gates = self.weights.joined(_scaled(own.rho, read), _scaled(own.zeta, U))
        return gates, candidate, np.asarray(read)


def reset_backward(
    weights: ResetWeights,
    factoring: Factoring,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> BackwardPass:
    """Gradients by one sweep from the last step to the first.

    Parameters
    ----------
    weights
        In the type of the trajectory.
    factoring
        Factors from pre-activations and old states.
    trajectory
        A run of the cell.
    upstream
        Partial derivatives of L by h_t from outside the recurrence, t = 1..T.

    Notes
    -----
    Source of the recursion: Werbos (1990), Proc. IEEE 78. Weights' gradients are matrix products
    over all steps and sequences. The two biases add up and have the same gradient.
    """
    rows, n = weights.gate_rows, weights.W_h.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        da, read, adjoints = _sweep(weights, factoring, trajectory, upstream)
        flat = da.reshape(-1, da.shape[2])
        h = trajectory.states[:-1].reshape(len(flat), n)
        bias = flat.sum(axis=0)
        recurrent = [flat[:, :rows].T @ h, flat[:, rows:].T @ read.reshape(len(flat), n)]
        gradients = {
            "W_x": flat.T @ trajectory.inputs.reshape(len(flat), -1),
            "W_h": np.concatenate(recurrent),
            "b_x": bias,
            "b_h": bias.copy(),
        }
        inputs = (flat @ weights.W_x).reshape(trajectory.inputs.shape)
    return BackwardPass(
        gradients={name: close(array) for name, array in gradients.items()},
        inputs=close(inputs),
        initial_state=adjoints[0],
        adjoints=adjoints,
    )


def _sweep(
    weights: ResetWeights,
    factoring: Factoring,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> tuple[Array, Array, Array]:
    """Derivatives by the pre-activations, what the candidates read (r ⊙ h), and adjoints."""
    rows, h, z = weights.gate_rows, trajectory.states[:-1], trajectory.z
    U_gates, U_n = weights.W_h[:rows], weights.W_h[rows:]
    adjoints = np.zeros_like(trajectory.states)
    adjoints[1:] = upstream
    da, read = np.empty_like(z), np.empty_like(h)
    block = max(1, BLOCK_BYTES // max(1, z[0].nbytes))
    for stop in range(trajectory.steps, 0, -block):
        start = max(0, stop - block)
        own = factoring(z[start:stop], h[start:stop])
        np.multiply(own.r, h[start:stop], out=read[start:stop])
        for t in range(stop - 1, start - 1, -1):
            now = own.at(t - start)
            delta = adjoints[t + 1]
            np.multiply(now.beta, delta, out=da[t, :, rows:])
            by_read = da[t, :, rows:] @ U_n
            da[t, :, :rows] = weights.joined(now.rho * by_read, now.zeta * delta)
            adjoints[t] += now.carry * delta
            adjoints[t] += now.r * by_read
            adjoints[t] += da[t, :, :rows] @ U_gates
    return da, read, close(adjoints)


def _scaled(
    factor: Float[Array, "batch n"], V: Float[Array, "lead n m"]
) -> Float[Array, "batch n m"]:
    """Rows scaled."""
    return np.asarray(factor[:, :, None] * V)
