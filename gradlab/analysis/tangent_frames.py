"""A frame of tangent vectors, carried along a trajectory by its Jacobians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from gradlab.analysis.frame_factors import (
    RANGE,
    CholeskyFactor,
    HouseholderFactor,
    largest_spread,
)
from gradlab.analysis.products.scaled import EPSILON
from gradlab.arrays import Array

# Forward action of one step's Jacobian on columns, one sequence in front.
Push = Callable[[Float[Array, "1 n k"]], Float[Array, "1 n k"]]

LOG_RANGE = math.log(RANGE)
# Ratio of column lengths to pivots that a step may have on average: rounding leaves eps times that
# of the smallest pivot, and so 1e-10 of the exponents.
SPREAD_A_STEP = 1e-10 / EPSILON
# Steps between factorizations at most; the share of the admitted logarithm that is aimed at, since
# steps beyond it are in vain; the weight of the newest block in the mean spread of a step.
LONGEST, AIM, NEWEST = 32, 0.9, 0.3


class TangentFrame:
    """Columns that span the images of Q_0, kept apart by triangular factors.

    Several steps pass between two factorizations, as many as the spread of the pivots allows. That
    is checked when the block is done; if it failed, the half of the block is taken. A block may
    spend what the blocks before it have left of the admitted mean error. A column that the
    Jacobians map to nothing is left out from then on.
    """

    def __init__(self, Q: Float[Array, "n k"]) -> None:
        self.Q = Q[None]
        self.columns = Q.shape[1]
        self.alive = np.arange(self.columns)
        self.lost = self.alive[:0]
        self.interval = 1
        self.resolved = largest_spread(len(Q))
        self.log_spread = 0.0  # of a step, on average
        self.allowance = 0.0  # sum of such ratios that is left over
        self.cholesky, self.householder = CholeskyFactor(), HouseholderFactor()

    def push(self, steps: Sequence[Push]) -> Float[Array, " columns"]:
        """Carry the frame through some steps.

        Returns
        -------
        growth
            ln of the diagonal of R, summed over the steps, by column; nats, -inf for columns lost.
        """
        growth = np.zeros(self.columns)
        done = 0
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            while done < len(steps) and len(self.alive):
                left = len(steps) - done
                count = -(-left // -(-left // self.interval))  # blocks of nearly equal length
                done += self._block(steps[done : done + count], growth)
        growth[self.lost] = -np.inf
        return growth

    def orthonormalize(self) -> Float[Array, " columns"]:
        """Replace the frame by its orthonormal one; what `push` left over is returned."""
        growth = np.zeros(self.columns)
        self.allowance = 0.0
        self._replace(np.asarray(self.Q[0]), growth)
        growth[self.lost] = -np.inf
        return growth

    def _block(self, steps: Sequence[Push], growth: Float[Array, " columns"]) -> int:
        """Steps made: all of them, half of them, or none because even that were too many."""
        whole, X, half = len(steps), self.Q, self.Q
        for index, step in enumerate(steps, 1):
            X = step(X)
            if index == whole // 2:
                half = X
        if self._factored(X, whole, growth):
            return whole
        if whole == 1:
            self._replace(X[0], growth)
            return 1
        if self._factored(half, whole // 2, growth):
            return whole // 2
        self.interval = max(1, whole // 4)
        return 0

    def _factored(self, X: Float[Array, "1 n k"], steps: int, growth: Array) -> bool:
        """Whether X, the frame after so many steps, could replace it by a Cholesky factor."""
        X = np.ascontiguousarray(X)  # what is factored in place must be the array that is kept
        limit = self._limit(steps)
        factor = self.cholesky(X[0], limit)
        if factor is None:
            self.log_spread = max(self.log_spread, math.log(limit) / steps)
            return False
        log_pivots, low, high = factor
        growth[self.alive] += log_pivots
        self.allowance += steps * SPREAD_A_STEP - math.exp(high - low)
        self.Q, self.interval = X, self._interval(low, high, steps)
        return True

    def _replace(self, X: Float[Array, "n k"], growth: Float[Array, " columns"]) -> None:
        log_pivots, Q, kept = self.householder(X)
        growth[self.alive] += log_pivots
        self.alive = self.alive[kept]
        self.lost = np.setdiff1d(np.arange(self.columns), self.alive)
        self.Q = Q[None]

    def _limit(self, steps: int) -> float:
        """Spread that a block of so many steps may have."""
        return min(self.resolved, self.allowance + steps * SPREAD_A_STEP)

    def _interval(self, low: float, high: float, steps: int) -> int:
        """Steps that the next block may have, judged by the blocks so far."""
        self.log_spread += NEWEST * ((high - low) / steps - self.log_spread)
        size = max(abs(low), abs(high), 1e-9) / steps
        fitting = min(math.log(self._limit(steps)) / max(self.log_spread, 1e-9), LOG_RANGE / size)
        return max(1, min(LONGEST, 2 * steps, int(AIM * fitting)))
