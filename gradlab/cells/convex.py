r"""Jacobians of cells that mix the old state with a candidate, read straight from the old state.

.. math:: J = \mathrm{diag}(k) + \sum_g \mathrm{diag}(\alpha_g) U_g

The leaky layer (one block) and the GRU with the reset gate after the product (three) are of this
form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvexStep:
    """One step's Jacobian for every sequence; no diagonal is formed."""

    W_x: Float[Array, "rows features"]
    W_h: Float[Array, "rows n"]  # blocks U_g
    carry: Float[Array, "batch n"]  # k
    alpha: Float[Array, "batch gates n"]  # of the recurrent weights' products
    alpha_x: Float[Array, "batch gates n"]  # of the input weights' products
    before: Float[Array, "batch n"]  # h

    def apply(self, V: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """J V."""
        return np.asarray(self.carry[:, :, None] * V + _weighted(self.W_h @ V, self.alpha))

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Jᵀ U."""
        return np.asarray(self.carry[:, :, None] * U + self.W_h.T @ _spread(U, self.alpha))

    def apply_input(self, V: Float[Array, "batch features m"]) -> Float[Array, "batch n m"]:
        """Change of the state with the input."""
        return _weighted(self.W_x @ V, self.alpha_x)

    def apply_input_transpose(
        self, U: Float[Array, "batch n m"]
    ) -> Float[Array, "batch features m"]:
        """Transpose of `apply_input`."""
        return np.asarray(self.W_x.T @ _spread(U, self.alpha_x))

    def matrix(self) -> Float[Array, "batch n n"]:
        """Dense J."""
        n = self.carry.shape[1]
        J: Array = np.einsum("bgi,gij->bij", self.alpha, self.W_h.reshape(-1, n, n))
        J[:, np.arange(n), np.arange(n)] += self.carry
        return J

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J|, by an LU factorization."""
        return np.asarray(np.linalg.slogdet(self.matrix())[1])

    def terms(
        self, U: Float[Array, "batch n m"]
    ) -> list[tuple[Float[Array, "batch rows m"], Float[Array, "batch n"]]]:
        """(α_g ⊙ u) hᵀ for every column u and gate g."""
        return [(_spread(U, self.alpha), self.before)]


def _weighted(
    q: Float[Array, "batch rows m"], alpha: Float[Array, "batch gates n"]
) -> Float[Array, "batch n m"]:
    """Sum over the gates of the blocks of q, weighted row by row."""
    batch, gates, n = alpha.shape
    return np.asarray((q.reshape(batch, gates, n, -1) * alpha[:, :, :, None]).sum(axis=1))


def _spread(
    U: Float[Array, "batch n m"], alpha: Float[Array, "batch gates n"]
) -> Float[Array, "batch rows m"]:
    """Transpose of `_weighted`."""
    batch, gates, n = alpha.shape
    return (alpha[:, :, :, None] * U[:, None]).reshape(batch, gates * n, -1)
