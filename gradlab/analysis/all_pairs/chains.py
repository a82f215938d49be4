"""Sequences of step matrices as products are made of them: Jacobians, or their inverses."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from gradlab.analysis.products.scaled import (
    RESOLUTION,
    RowScaled,
    UnitRowInverse,
    pulled_rows,
    verdict,
)
from gradlab.arrays import Array
from gradlab.cells.base import Linearization, LinearStep


@runtime_checkable
class Chain(Protocol):
    """Square matrices K_0, K_1, ... of equal size, of which products K_{t-1} ... K_k are wanted."""

    @property
    def size(self) -> int:
        """Rows of each."""

    @property
    def log_scales(self) -> Float[Array, " time"]:
        """Logarithms of what the matrices are still to be multiplied by."""

    def matrix(self, j: int) -> Float[Array, "n n"]:
        """K_j, without its scale."""

    def push(self, j: int, X: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """K_j X, in new memory."""

    def pull(self, j: int, X: Float[Array, "m n"]) -> Float[Array, "m n"]:
        """X K_j, in new memory."""


class JacobianChain:
    """The Jacobians of one sequence; a gated cell's are applied by their factors."""

    def __init__(self, linearization: Linearization, length: int) -> None:
        self.linearization = linearization
        self.log_scales = np.zeros(length)
        self.size = linearization[0].matrix().shape[1]

    def matrix(self, j: int) -> Float[Array, "n n"]:
        """J of the step that leads to time j + 1."""
        return np.asarray(self.linearization[j].matrix()[0])

    def push(self, j: int, X: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """J X."""
        return np.asarray(self.linearization[j].apply(X[None])[0])

    def pull(self, j: int, X: Float[Array, "m n"]) -> Float[Array, "m n"]:
        """X J."""
        return np.asarray(pulled_rows(self.linearization[j], X[None])[0])


class InverseChain:
    r"""Transposed inverses :math:`J^{-T}`: their products have the inverses' singular values.

    As in `gradlab.analysis.products.scaled.InverseProducts`, rows of each J are brought to unit
    length first; a step's largest factor is left to ``log_scales``.
    """

    def __init__(self, linearization: Linearization, length: int) -> None:
        self.inverses: list[Array] = []
        self.weights: list[Array] = []
        self.log_scales, self.errors = np.zeros(length), np.zeros(length)
        self.lost = np.zeros(length, dtype=bool)
        self._shared: tuple[Array, UnitRowInverse] | None = None
        for j in range(length):
            self._append(j, linearization[j])
        self.size = self.inverses[0].shape[0]

    def _append(self, j: int, step: LinearStep) -> None:
        rows, factors = self._rows(step)
        scaled = rows.scaled(factors)
        self.inverses.append(rows.inverse[0])
        self.weights.append(scaled.weights[0])
        self.log_scales[j], self.errors[j] = scaled.log_scale[0], rows.error[0]
        self.lost[j] = scaled.lost[0]

    def _rows(self, step: LinearStep) -> tuple[UnitRowInverse, Float[Array, "1 n"]]:
        if not isinstance(step, RowScaled):
            J = step.matrix()
            return UnitRowInverse.of(J), np.ones(J.shape[:2])
        W, factors = step.row_scaled
        if self._shared is None or self._shared[0] is not W:
            self._shared = W, UnitRowInverse.of(W[None])
        return self._shared[1], factors

    def matrix(self, j: int) -> Float[Array, "n n"]:
        """Transposed inverse, rows weighted."""
        return np.ascontiguousarray(self.inverses[j].T) * self.weights[j][:, None]

    def push(self, j: int, X: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """J⁻ᵀ X."""
        return np.asarray((self.inverses[j].T @ X) * self.weights[j][:, None])

    def pull(self, j: int, X: Float[Array, "m n"]) -> Float[Array, "m n"]:
        """X J⁻ᵀ."""
        return np.asarray((X * self.weights[j]) @ self.inverses[j].T)

    def verdict(self, reach: int) -> Float[Array, "times lags"]:
        """What may be said of σ_min by end time and lag, as `products.verdict` has it."""
        unresolved = ~(self.errors <= RESOLUTION)
        error = _over_lags(np.where(unresolved, 0.0, self.errors), reach)
        doubtful = _over_lags(unresolved.astype(np.float64), reach) > 0.0
        lost = _over_lags(self.lost.astype(np.float64), reach) > 0.0
        return verdict(np.where(doubtful, np.inf, error), lost)


def _over_lags(steps: Float[Array, " time"], reach: int) -> Float[Array, "times lags"]:
    """Sum of the steps' numbers from t - lag to t, by t = 0..T and lag = 0..reach; else 0."""
    until = np.concatenate([[0.0], np.cumsum(steps)])
    t, lag = np.arange(len(until))[:, None], np.arange(reach + 1)
    return np.asarray(until[t] - until[np.maximum(t - lag, 0)])
