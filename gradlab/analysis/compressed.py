"""A long product kept by the few directions at its end in which it is not negligible.

Singular values of a product spread with its length; rows that belong to those below 1e-8 of the
largest need not be multiplied any more. What was dropped is watched.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.analysis.products import HIGH, LOG_2, LOW, Pull, ScaledProducts, pulled_rows
from gradlab.arrays import Array

# Singular values below this share of the largest are dropped.
DROP = 5e-8
# Estimated square of what was dropped, relative to that of the norm, beyond which a product is
# multiplied anew without dropping anything: two digits below what is certified.
TOLERATED = 2e-12
# Combinations of the dropped rows that are multiplied on, to estimate what has become of them.
PROBES = 4
# Lag of the first compression, growth from one to the next, and shares of the rows that make it
# worth while.
FIRST, GROWTH, WORTHWHILE, FEWEST = 6, 1.35, 0.9, 8
# Spread of squared row lengths up to which all rows of a product are resolved together.
TOGETHER = 1e-12
NEVER = -1


class DroppedRowsGrowError(Exception):
    """What was dropped may count again: the product is to be multiplied anew, as a whole."""


class CompressedProducts(ScaledProducts):
    r"""One product P, after a few steps as Y = Zᵀ P for an orthonormal basis Z at time t.

    With E the dropped rows, :math:`\sigma_1(Y)^2 \le \sigma_1(P)^2 \le \sigma_1(Y)^2 + \|E\|_F^2`.
    Gaussian combinations of the rows of E ride along, the mean of whose squared lengths estimates
    :math:`\|E\|_F^2` at every later step, see `dropped`.

    A product whose rows are far apart in size, or with zeros besides whole rows and columns
    (units that do not reach each other), is never compressed: there a row too small to be seen
    beside the others may overtake them.
    """

    def __init__(self, n: int) -> None:
        super().__init__(1, n)
        self.lag, self.next = 0, FIRST
        self.rank = 0  # rows of Y once something was dropped
        self.scale = 0  # power of two of Y

    def extend(self, step: Pull) -> None:
        """Multiply by the Jacobian of an earlier step."""
        if self.rank:
            self.rows = pulled_rows(step, self.rows[0])[None]
            self._keep_in_range()
        else:
            super().extend(step)
        self.lag += 1
        if self.lag == self.next:
            self._compress()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of Y."""
        return self.rank or self.rows.shape[2], self.rows.shape[3]

    @property
    def dropped(self) -> float:
        """Estimated squared Frobenius norm of what was dropped, at the scale of the matrix."""
        probes = self.rows[:, :, self.rank :]
        return float(np.vdot(probes, probes)) / PROBES if self.rank else 0.0

    def assembled(self) -> tuple[Float[Array, "1 1 rank n"], Float[Array, "1 1"]]:
        """Y, of order one, and the logarithm of its scale."""
        if not self.rank:
            return super().assembled()
        return self.rows[:, :, : self.rank], np.full((1, 1), self.scale * LOG_2)

    def _keep_in_range(self) -> None:
        Y = self.rows[0, 0, : self.rank]
        with np.errstate(over="ignore"):
            largest = float(np.vecdot(Y, Y).max())
        if not 0.0 < largest < np.inf:
            raise DroppedRowsGrowError
        if not LOW < largest < HIGH:
            exponent = int(np.frexp(np.sqrt(largest))[1])
            self.rows, self.scale = self.rows * 2.0**-exponent, self.scale + exponent

    def _compress(self) -> None:
        if not self.rank and not self._mixed():
            self.next = NEVER
            return
        self.next = int(np.ceil(GROWTH * self.lag))
        Y, probes = self._parts()
        values, vectors = np.linalg.eigh(Y @ Y.T)
        kept = int(np.count_nonzero(values > DROP**2 * values[-1]))
        if kept > WORTHWHILE * len(Y) or len(Y) <= FEWEST:
            return
        leading = vectors[:, ::-1]
        mixture = np.random.default_rng(self.lag).standard_normal((PROBES, len(Y) - kept))
        probes = probes + (mixture @ leading[:, kept:].T) @ Y
        if not self.rank:
            self.scale = int(self.exponent[0, 0, 0])
        self.rows, self.rank = np.concatenate([leading[:, :kept].T @ Y, probes])[None, None], kept

    def _parts(self) -> tuple[Float[Array, "rows n"], Float[Array, "probes n"]]:
        rows = self.rows[0, 0]
        if self.rank:
            return rows[: self.rank], rows[self.rank :]
        return rows, np.zeros((PROBES, rows.shape[1]))

    def _mixed(self) -> bool:
        """Whether all rows are of one size, and all units reach each other."""
        rows = self.rows[0, 0]
        present = rows != 0.0
        reached = np.outer(present.any(axis=1), present.any(axis=0))
        squares = np.vecdot(rows, rows)[present.any(axis=1)]
        even = len(squares) > 0 and bool(squares.min() > TOGETHER * squares.max())
        return self.level and even and bool((present == reached).all())
