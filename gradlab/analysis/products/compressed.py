"""A long product kept by the few directions at its end in which it is not negligible.

Singular values of a product spread with its length; rows that belong to those far below the
largest need not be multiplied any more. What was dropped is watched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradlab.analysis.products.row_basis import RowBasis
from gradlab.analysis.products.scaled import (
    HIGH,
    LOG_2,
    LOW,
    WORTH_REFINING,
    Pull,
    ScaledProducts,
    pulled_rows,
    refined,
)
from gradlab.arrays import Array
from gradlab.lanczos import FIRST_CHECK
from gradlab.linalg import certified_norms, log

# Squared Frobenius norm, relative to the squared norm, of what a compression may drop: a bound that
# is about ten times what it does drop.
DROPS = (5e-14, 1e-15)
# Estimated square of what was dropped, relative to that of the norm, beyond which a product is
# multiplied anew without dropping anything: two digits below what is certified.
TOLERATED = 2e-12
# Combinations of the dropped rows that are multiplied on, to estimate what has become of them.
PROBES = 4
# Lag of the first compression, growth from one to the next, and shares of the rows that make it
# worth while.
FIRST, GROWTH, WORTHWHILE, FEWEST = 6, 1.35, 0.95, 2
# Spread of squared row lengths up to which all rows of a product are resolved together.
TOGETHER = 1e-12
NEVER = -1
# Entry and squared norm below which digits are lost.
SMALLEST = 2.0**-900
# Norms taken at a time: enough to make the calls cheap, few enough to stay in the cache.
MATRICES, MATRIX_BYTES = 128, 1 << 20


class DroppedRowsGrowError(Exception):
    """What was dropped may count again: the product is to be multiplied anew, as a whole."""


class CompressedProduct:
    r"""One product P, after a few steps as Y = Zᵀ P for an orthonormal basis Z at time t.

    With E the dropped rows, :math:`\sigma_1(Y)^2 \le \sigma_1(P)^2 \le \sigma_1(Y)^2 + \|E\|_F^2`.
    Gaussian combinations of the rows of E ride along, the mean of whose squared lengths estimates
    :math:`\|E\|_F^2` at every later step.

    Products of several steps wait for their norms, and are compressed only after these were taken.
    One whose rows are far apart in size, or with zeros besides whole rows and columns (units that
    do not reach each other), is never compressed: there a row too small to be seen beside the
    others may overtake them.
    """

    def __init__(self, n: int, drop: float = DROPS[0]) -> None:
        self.batch, self.drop = 1, drop
        self.whole = ScaledProducts(1, n)
        self.whole.renew(np.zeros(0, dtype=bool), begin=True)
        self.lag, self.next = 0, FIRST
        self.scale = 0  # power of two of Y
        self.waiting = _Waiting(n, n, 0)
        self.last: Array = np.empty((1, 0, n))  # Y, and below it what rides along
        self.left = np.full(n, 1.0 / np.sqrt(n))  # leading left direction
        self.random = np.random.default_rng(n)
        self.steps = FIRST_CHECK  # of Lanczos that norms take
        self.norm = 0.0  # of the last matrix whose norm was taken

    def renew(self, kept: Bool[Array, " ends"], *, begin: bool) -> None:
        """Nothing: it begins with the identity, and there is but one."""

    @property
    def rank(self) -> int:
        """Rows of Y; 0 before anything was dropped."""
        return self.waiting.rank

    @property
    def full(self) -> bool:
        """Whether norms have to be taken before the next step."""
        return self.waiting.full or self.lag == self.next

    def extend(self, step: Pull) -> None:
        """Multiply by the Jacobian of an earlier step."""
        if self.lag == self.next:
            self._compress()
        self.lag += 1
        if not self.rank:
            self.whole.extend(step)
            matrix, log_scale = self.whole.assembled()
            self.waiting.put(matrix[0], float(log_scale[0, 0]))
            return
        slot = self.waiting.slot()
        pulled_rows(step, self.last, out=slot)
        # Row 0 is the longest, or was: the others are looked at with their norms.
        first = slot[0, 0]
        with np.errstate(over="ignore"):
            level = LOW < first.dot(first) < HIGH
        if not level:
            self._rescale(slot[0])
        self.waiting.put(slot, self.scale * LOG_2)
        self.last = slot

    def take(self) -> tuple[Float[Array, " steps"], Float[Array, " steps"]]:
        """ln of the spectral and of the Frobenius norm, step by step; nothing waits any more.

        Raises
        ------
        DroppedRowsGrowError
            If what was dropped may count, or left the range of float64.
        """
        norms = self.waiting.take(self.left, self.steps)
        self.left, self.norm, self.steps = norms.left, norms.last, norms.steps
        return norms.log_norm, norms.log_frobenius

    def _rescale(self, slot: Float[Array, "rows n"]) -> None:
        largest = float(np.abs(slot[: self.rank]).max())
        if not SMALLEST < largest < np.inf:
            raise DroppedRowsGrowError
        exponent = int(np.frexp(largest)[1])
        slot *= 2.0**-exponent
        self.scale += exponent

    def _compress(self) -> None:
        if not self.rank and not self._mixed():
            self.next = NEVER
            return
        self.next = max(self.lag + 1, int(np.ceil(GROWTH * self.lag)))
        Y, probes = self._parts()
        basis = RowBasis.of(Y, self.drop * self.norm**2)
        if basis.size > WORTHWHILE * len(Y) or len(Y) <= FEWEST:
            return
        if not self.rank:
            self.scale = int(self.whole.exponent[0, 0, 0])
        kept = basis.coordinates(Y)
        mixture = self.random.standard_normal((PROBES, len(Y)))
        probes = probes + mixture @ Y - basis.coordinates(mixture.T).T @ kept
        self.left = basis.coordinates(self.left[:, None])[:, 0]
        self.last = np.concatenate([kept, probes])[None]
        self.waiting = _Waiting(self.last.shape[1], Y.shape[1], basis.size)

    def _parts(self) -> tuple[Float[Array, "rows n"], Float[Array, "probes n"]]:
        if self.rank:
            return self.last[0, : self.rank], self.last[0, self.rank :]
        rows = self.whole.rows[0, 0]
        return rows, np.zeros((PROBES, rows.shape[1]))

    def _mixed(self) -> bool:
        """Whether all rows are of one size, and all units reach each other."""
        rows = self.whole.rows[0, 0]
        present = rows != 0.0
        reached = np.outer(present.any(axis=1), present.any(axis=0))
        squares = np.vecdot(rows, rows)[present.any(axis=1)]
        even = len(squares) > 0 and bool(squares.min() > TOGETHER * squares.max())
        return self.whole.level and even and bool((present == reached).all())


class _Waiting:
    """Matrices of one shape that wait for their norms."""

    def __init__(self, rows: int, n: int, rank: int) -> None:
        self.rank = rank  # rows above those that ride along; 0 if there are none of these
        self.depth = max(1, min(MATRICES, MATRIX_BYTES // (8 * rows * n)))
        # The last matrix is multiplied on, and must outlive the others.
        self.slots = np.empty((self.depth + 1 if rank else 0, rows, n))
        self.each = [self.slots[i : i + 1] for i in range(len(self.slots))]
        self.first = 0
        self.matrices: list[Array] = []
        self.log_scale: list[float] = []

    @property
    def full(self) -> bool:
        """Whether enough matrices wait."""
        return len(self.matrices) >= self.depth

    def slot(self) -> Float[Array, "1 rows n"]:
        """Memory of the next matrix."""
        return self.each[self.first + len(self.matrices)]

    def put(self, matrix: Float[Array, "1 rows n"], log_scale: float) -> None:
        """Let a matrix wait, which must not change any more."""
        self.matrices.append(matrix)
        self.log_scale.append(log_scale)

    def take(self, left: Float[Array, " rank"], expected: int) -> _Norms:
        """Norms of all that wait, from a leading left direction; nothing waits any more."""
        Y, dropped = self._stacked()
        frobenius = np.vecdot(entries := Y.reshape(len(Y), -1), entries)
        if self.rank and not (frobenius.min() > SMALLEST and frobenius.max() < np.inf):
            raise DroppedRowsGrowError
        left = refined(left, Y[-1]) if len(Y) >= WORTH_REFINING else left
        start = np.broadcast_to(left, (len(Y), len(left)))
        image = left @ Y[-1]
        rest = max(float(frobenius[-1] / max(image @ image, SMALLEST)) - 1.0, 0.0)
        found = certified_norms(
            Y.transpose(0, 2, 1), start, frobenius, expected=expected, rest=rest
        )
        norms = found.norms
        if (dropped > TOLERATED * norms**2).any():
            raise DroppedRowsGrowError
        log_scale = np.array(self.log_scale)
        self.first = 1 if self.first + len(Y) == 1 else 0
        self.matrices, self.log_scale = [], []
        return _Norms(
            log_norm=log(norms) + log_scale,
            log_frobenius=0.5 * log(frobenius + dropped) + log_scale,
            left=found.right[-1],
            steps=found.steps,
            last=float(norms[-1]),
        )

    def _stacked(self) -> tuple[Float[Array, "steps rank n"], Float[Array, " steps"]]:
        """Matrices one after another, and estimated squared Frobenius norms of what was dropped."""
        count = len(self.matrices)
        if not self.rank:
            first = self.matrices[0]
            return (np.concatenate(self.matrices) if count > 1 else first), np.zeros(count)
        stack = self.slots[self.first : self.first + count]
        probes = stack[:, self.rank :].reshape(count, -1)
        return stack[:, : self.rank], np.vecdot(probes, probes) / PROBES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Norms:
    """Norms of consecutive products, and what the next ones start from."""

    log_norm: Float[Array, " steps"]
    log_frobenius: Float[Array, " steps"]
    left: Float[Array, " rank"]
    steps: int  # of Lanczos
    last: float  # norm of the last matrix, at its own scale
