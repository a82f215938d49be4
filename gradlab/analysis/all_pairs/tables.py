"""Norms of products by end time and lag, and what rounding may have done to them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array

EPSILON = float(np.finfo(np.float64).eps)
# Estimated relative error of a product beyond which its norms are in doubt.
DOUBTFUL = 1e-10


class PairTables:
    """Logarithms of norms of K_{t-1} ... K_k, rows t = 0..T and columns the lag t - k.

    Lag 0 is the identity, whose norms are taken as 1.
    """

    def __init__(self, length: int, reach: int, n: int) -> None:
        shape = (length + 1, reach + 1)
        self.reach, self.n = reach, n
        self.log_norm = np.full(shape, np.nan)
        self.log_frobenius = np.full(shape, np.nan)
        self.error = np.zeros(shape)  # an estimate, relative to the Frobenius norm
        self.log_norm[:, 0] = self.log_frobenius[:, 0] = 0.0
        self.counts = {"short": 0, "halves": 0, "formed": 0}  # pairs by the way to their norms

    @property
    def doubtful(self) -> Bool[Array, "times lags"]:
        """Pairs that are to be measured otherwise: rounding may count, or the norm is none."""
        return np.asarray(~((self.error <= DOUBTFUL) & np.isfinite(self.log_frobenius)))

    def estimate_errors(self, first: int, middle: int, last: int) -> None:
        """Write the errors of products K_{t-1} ... K_k with first <= k < middle < t <= last.

        Each step's own rounding error is multiplied with the steps before and after it as those
        were in the products of the halves. Errors of different steps add like random numbers.
        """
        t, k = np.arange(middle + 1, last + 1), np.arange(first, middle)
        after, before = self._after(middle, t), self._before(middle, k)
        t, k = t[:, None], k[None]
        within = t - k <= self.reach
        lag = np.minimum(t - k, self.reach)
        halves = self.log_frobenius[t, t - middle] + self.log_frobenius[middle, middle - k]
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.exp(halves - self.log_frobenius[t, lag])
            error = (EPSILON + after[:, None] + before) * growth
        self.error[np.broadcast_to(t, lag.shape)[within], lag[within]] = error[within]

    def _after(self, middle: int, t: Int[Array, " times"]) -> Float[Array, " times"]:
        """Relative errors of K_{t-1} ... K_middle."""
        j = np.arange(middle, t[-1])
        own = self._one_step(j) + self.log_frobenius[j, j - middle]
        lag = t[:, None] - j - 1
        carried = self.log_frobenius[t[:, None], np.maximum(lag, 0)] + own
        return _gathered(carried, lag, self.log_frobenius[t, t - middle])

    def _before(self, middle: int, k: Int[Array, " times"]) -> Float[Array, " times"]:
        """Relative errors of K_{middle-1} ... K_k."""
        j = np.arange(k[0], middle)
        own = self._one_step(j) + self.log_frobenius[middle, middle - j - 1]
        lag = j - k[:, None]
        carried = self.log_frobenius[j, np.maximum(lag, 0)] + own
        return _gathered(carried, lag, self.log_frobenius[middle, middle - k])

    def _one_step(self, j: Int[Array, " steps"]) -> Float[Array, " steps"]:
        """ln of the root mean square of the singular values of K_j."""
        return np.asarray(self.log_frobenius[j + 1, 1] - 0.5 * np.log(self.n))


def _gathered(
    carried: Float[Array, "times steps"],
    lag: Int[Array, "times steps"],
    whole: Float[Array, " times"],
) -> Float[Array, " times"]:
    with np.errstate(over="ignore", invalid="ignore"):
        each = np.where(lag >= 0, np.exp(carried - whole[:, None]), 0.0)
        return np.asarray(EPSILON * np.sqrt(np.square(each).sum(axis=1)))
