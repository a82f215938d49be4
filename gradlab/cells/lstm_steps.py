r"""Jacobians of the LSTM as operators.

With :math:`A = \sum \alpha_g U_g`, :math:`Q = \mathrm{diag}(\alpha_o) U_o` and the output
:math:`h' = R m` (R the projection, or the identity),

.. math::
   \frac{\partial(h', c')}{\partial(h, c)} =
   \begin{pmatrix} R(Q + SA) & RSF \\ A & F \end{pmatrix} =
   \begin{pmatrix} I & RS \\ 0 & I \end{pmatrix}
   \begin{pmatrix} RQ & 0 \\ A & F \end{pmatrix}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.linalg import log


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMWeights:
    """Weights of an LSTM in float64, rows i, f, g, o."""

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows hidden"]
    W_hr: Float[Array, "hidden n"] | None

    def release(self, m: Float[Array, "batch n cols"]) -> Float[Array, "batch hidden cols"]:
        """The output h from m."""
        return m if self.W_hr is None else np.asarray(self.W_hr @ m)

    def retract(self, u: Float[Array, "batch hidden cols"]) -> Float[Array, "batch n cols"]:
        """Transpose of `release`."""
        return u if self.W_hr is None else np.asarray(self.W_hr.T @ u)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMStep:
    """One step's Jacobian for every sequence; no diagonal is formed."""

    weights: LSTMWeights
    alpha: Float[Array, "batch 4 n"]  # as in LSTMFactors
    F: Float[Array, "batch n"]
    S: Float[Array, "batch n"]
    before: Float[Array, "batch hidden"]  # h

    def apply(self, V: Float[Array, "batch state m"]) -> Float[Array, "batch state m"]:
        """J V."""
        hidden = self.weights.W_h.shape[1]
        return self._forward(self.weights.W_h @ V[:, :hidden], V[:, hidden:])

    def apply_transpose(self, U: Float[Array, "batch state m"]) -> Float[Array, "batch state m"]:
        """Jᵀ U."""
        da, dc = self.pull(U)
        return np.concatenate([self.weights.W_h.T @ da, self.F[:, :, None] * dc], axis=1)

    def apply_input(self, V: Float[Array, "batch features m"]) -> Float[Array, "batch state m"]:
        """Change of the state with the input."""
        return self._forward(self.weights.W_x @ V, None)

    def apply_input_transpose(
        self, U: Float[Array, "batch state m"]
    ) -> Float[Array, "batch features m"]:
        """Transpose of `apply_input`."""
        return np.asarray(self.weights.W_x.T @ self.pull(U)[0])

    def matrix(self) -> Float[Array, "batch state state"]:
        """Dense J, from A and Q."""
        batch, _, n = self.alpha.shape
        hidden = self.weights.W_h.shape[1]
        A, Q = self.A(), self.Q()
        J = np.empty((batch, hidden + n, hidden + n))
        J[:, :hidden, :hidden] = self.weights.release(Q + self.S[:, :, None] * A)
        carried = np.zeros((batch, n, n))
        carried[:, np.arange(n), np.arange(n)] = self.S * self.F
        J[:, :hidden, hidden:] = self.weights.release(carried)
        J[:, hidden:, :hidden] = A
        J[:, hidden:, hidden:] = 0.0
        J[:, hidden + np.arange(n), hidden + np.arange(n)] = self.F
        return J

    def A(self) -> Float[Array, "batch n hidden"]:  # noqa: N802  the letter of the derivation
        """dc'/dh."""
        n = self.F.shape[1]
        U = self.weights.W_h
        return np.asarray(sum(self.alpha[:, g, :, None] * U[g * n : (g + 1) * n] for g in range(3)))

    def Q(self) -> Float[Array, "batch n hidden"]:  # noqa: N802
        """dm/dh at a fixed new cell state."""
        return np.asarray(self.alpha[:, 3, :, None] * self.weights.W_h[3 * self.F.shape[1] :])

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J| = sum of ln F + ln |det RQ|, by the factorization of J."""
        kept = log(np.abs(self.F)).sum(axis=1)
        if self.weights.W_hr is None:
            sign, log_det = np.linalg.slogdet(self.weights.W_h[3 * self.F.shape[1] :])
            own = log(np.abs(self.alpha[:, 3])).sum(axis=1) + (log_det if sign else -np.inf)
            return np.asarray(kept + own)
        return np.asarray(kept + np.linalg.slogdet(self.weights.release(self.Q()))[1])

    def pull(
        self, U: Float[Array, "batch state m"]
    ) -> tuple[Float[Array, "batch rows m"], Float[Array, "batch n m"]]:
        """Derivatives by the gates' pre-activations and by the new cell state, from those by s'."""
        hidden = self.weights.W_h.shape[1]
        dm = self.weights.retract(U[:, :hidden])
        dc = U[:, hidden:] + self.S[:, :, None] * dm
        batch, n, columns = dc.shape
        da = np.empty((batch, 4, n, columns))
        np.multiply(self.alpha[:, :3, :, None], dc[:, None], out=da[:, :3])
        np.multiply(self.alpha[:, 3, :, None], dm, out=da[:, 3])
        return da.reshape(batch, 4 * n, columns), dc

    def terms(
        self, U: Float[Array, "batch state m"]
    ) -> list[tuple[Float[Array, "batch rows m"], Float[Array, "batch hidden"]]]:
        """da hᵀ for every column, da the derivative by the gates' pre-activations."""
        return [(self.pull(U)[0], self.before)]

    def _forward(
        self, da: Float[Array, "batch rows m"], dc: Float[Array, "batch n m"] | None
    ) -> Float[Array, "batch state m"]:
        """Change of the state with the gates' pre-activations and the old cell state."""
        batch, rows, columns = da.shape
        scaled = da.reshape(batch, 4, rows // 4, columns) * self.alpha[:, :, :, None]
        dc_next = scaled[:, 0] + scaled[:, 1] + scaled[:, 2]
        if dc is not None:
            dc_next += self.F[:, :, None] * dc
        dm = scaled[:, 3] + self.S[:, :, None] * dc_next
        return np.concatenate([self.weights.release(dm), dc_next], axis=1)
