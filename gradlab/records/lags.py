"""Order statistics of logarithms grouped by lag, right in the presence of -inf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class LagGroups:
    """Pairs of equal lag, lag by lag.

    Quantiles interpolate linearly between order statistics and are -inf where a neighbor with
    weight is -inf; a group with an unresolved member (nan) is unresolved.
    """

    lag: Int[Array, " lags"]  # the lags that occur, ascending
    counts: Int[Array, " lags"]
    of_pairs: Int[Array, " pairs"]  # the lag of every pair, in the pairs' own order

    @classmethod
    def of(cls, of_pairs: Int[Array, " pairs"]) -> LagGroups:
        """Groups of the pairs with the given lags."""
        lag, counts = np.unique(of_pairs, return_counts=True)
        return cls(lag, counts, of_pairs)

    def quantile(self, values: Float[Array, " pairs"], q: float) -> Float[Array, " lags"]:
        """Quantile of every group."""
        ordered = values[np.lexsort((values, self.of_pairs))]
        start = np.cumsum(self.counts) - self.counts
        place = q * (self.counts - 1)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, self.counts - 1)
        low, high, weight = ordered[start + below], ordered[start + above], place - below
        last = ordered[start + self.counts - 1]  # nan sorts last
        with np.errstate(invalid="ignore"):
            between = np.where(np.isneginf(low), low, low + weight * (high - low))
        return np.where(np.isnan(last), np.nan, np.where(weight == 0.0, low, between))

    def mean(self, values: Float[Array, " pairs"]) -> Float[Array, " lags"]:
        """Mean of every group; -inf where a member is."""
        ordered = values[np.argsort(self.of_pairs, kind="stable")]
        return np.asarray(np.add.reduceat(ordered, np.cumsum(self.counts) - self.counts)) / (
            self.counts
        )
