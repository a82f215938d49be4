"""A frame of tangent vectors, carried along a trajectory by its Jacobians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from gradlab.analysis.frame_factors import RANGE, SPREAD, CholeskyFactor, HouseholderFactor
from gradlab.arrays import Array

# Forward action of one step's Jacobian on columns, one sequence in front.
Push = Callable[[Float[Array, "1 n k"]], Float[Array, "1 n k"]]

LOG_SPREAD, LOG_RANGE = math.log(SPREAD), math.log(RANGE)
# Steps between factorizations at most, and the share of the admitted spread that is aimed at: a
# block beyond it was in vain.
LONGEST, AIM = 32, 0.95


class TangentFrame:
    """Columns that span the images of Q_0, kept apart by triangular factors.

    Several steps pass between two factorizations, as many as the spread of the pivots allows; that
    is checked when the block is done, and the block is done again in halves if it failed. A column
    that the Jacobians map to nothing is left out from then on.
    """

    def __init__(self, Q: Float[Array, "n k"]) -> None:
        self.Q = Q[None]
        self.columns = Q.shape[1]
        self.alive = np.arange(self.columns)
        self.lost = self.alive[:0]
        self.interval = 1
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
        self._replace(np.asarray(self.Q[0]), growth)
        growth[self.lost] = -np.inf
        return growth

    def _block(self, steps: Sequence[Push], growth: Float[Array, " columns"]) -> int:
        """Steps made: all of them, or none because their number was too large."""
        X = self.Q
        for step in steps:
            X = step(X)
        X = np.ascontiguousarray(X)
        log_pivots = self.cholesky(X[0])
        if log_pivots is not None:
            self.Q = X
            growth[self.alive] += log_pivots
            self.interval = _interval(log_pivots, len(steps))
        elif len(steps) > 1:
            self.interval = len(steps) // 2
            return 0
        else:
            self._replace(X[0], growth)
        return len(steps)

    def _replace(self, X: Float[Array, "n k"], growth: Float[Array, " columns"]) -> None:
        log_pivots, Q, kept = self.householder(X)
        growth[self.alive] += log_pivots
        self.alive = self.alive[kept]
        self.lost = np.setdiff1d(np.arange(self.columns), self.alive)
        self.Q = Q[None]


def _interval(log_pivots: Float[Array, " k"], steps: int) -> int:
    """Steps that the next block may have, judged by the last one."""
    low, high = log_pivots.min(), log_pivots.max()
    spread, size = max(high - low, 1e-9), max(abs(low), abs(high), 1e-9)
    return max(1, min(LONGEST, int(AIM * steps * min(LOG_SPREAD / spread, LOG_RANGE / size))))
