"""The pairs of a profile as stretches: one end time of one sequence, with lags 1, 2, 3, ..."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.records.jacobians import JacobianProfile

# Values of the lags 1..lags, from a sequence, an end time and their number.
Make = Callable[[int, int, int], Array]


class Stretches:
    """Stretches of a profile, in the order of its pairs."""

    def __init__(self, profile: JacobianProfile) -> None:
        first = np.flatnonzero(profile.lag == 1)
        lags = np.diff(np.append(first, len(profile.lag)))
        parts = (profile.sequence[first], profile.t[first], lags)
        self.each = list(zip(*(part.tolist() for part in parts), strict=True))
        self.ends = np.unique(profile.t)

    def gather(self, make: Make) -> Float[Array, " pairs"]:
        """Values of all pairs, stretch by stretch."""
        return np.concatenate([make(sequence, t, lags) for sequence, t, lags in self.each])

    def sums(self, table: Float[Array, "batch times"]) -> Float[Array, " pairs"]:
        """Sums of the values of a stretch's steps; ``table`` has a step's value at its time t.

        An exact zero, -inf, stays one even beside an unresolved value.
        """
        return self.gather(lambda sequence, t, lags: _sums(table[sequence, 1 : t + 1], lags))

    def largest(self, table: Float[Array, "batch times"]) -> Float[Array, " pairs"]:
        """The largest value of a stretch's steps, as often as it has steps."""

        def make(sequence: int, t: int, lags: int) -> Array:
            back = table[sequence, 1 : t + 1][::-1][:lags]
            return np.asarray(np.maximum.accumulate(back) * np.arange(1, lags + 1))

        return self.gather(make)


def _sums(values: Float[Array, " steps"], lags: int) -> Float[Array, " lags"]:
    back = values[::-1][:lags]
    lost = np.maximum.accumulate(np.isneginf(back))
    return np.where(lost, -np.inf, np.cumsum(np.where(lost, 0.0, back)))
