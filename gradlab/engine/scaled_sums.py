"""Sums of arrays that may lie outside the range of float64, as may the sum."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.linalg import log, log_euclidean_norm

LOG_2 = float(np.log(2.0))


class ScaledSum:
    """A running sum, kept as an array of moderate entries and an integer power of two.

    It has the shape of what is added.
    """

    def __init__(self, array: Float[Array, "..."] | None = None, exponent: int = 0) -> None:
        self.array = np.zeros(()) if array is None else array
        self.exponent = exponent

    def add(self, term: Float[Array, "..."], exponent: int = 0) -> None:
        """Add ``term`` times two to the given power; the term itself is finite."""
        largest = float(np.max(np.abs(term), initial=0.0))
        own = int(np.frexp(largest)[1])
        if largest == 0.0:
            exponent = self.exponent
        elif not self.array.any():
            self.exponent = exponent + own
        common = max(self.exponent, exponent + own)
        # What lies 2000 powers below the sum is nothing beside it.
        before = np.ldexp(self.array, max(self.exponent - common, -2000))
        self.array = before + np.ldexp(term, max(exponent - common, -own - 2000))
        self.exponent = common

    @property
    def value(self) -> Float[Array, "..."]:
        """The sum as float64; infinite where it leaves its range."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(self.array, self.exponent))

    @property
    def log_norm(self) -> float:
        """ln of the root of the sum of squares of all entries, whatever its size."""
        return log_euclidean_norm(self.array) + self.exponent * LOG_2


def log_norms(x: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """ln of Euclidean norms along an axis, by entries scaled to order one; -inf for zeros."""
    largest = np.abs(x).max(axis=axis, keepdims=True, initial=0.0)
    scaled = x / np.where(largest > 0.0, largest, 1.0)
    squares = np.sum(scaled * scaled, axis=axis)
    return np.asarray(log(np.squeeze(largest, axis=axis)) + 0.5 * log(np.maximum(squares, 1.0)))
