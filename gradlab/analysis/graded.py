r"""Long products with all their singular values, also those far below rounding of the largest.

The transposed product is carried as :math:`P^T = Q\,\mathrm{diag}(e^{s})\,U` with Q orthogonal and
rows of U of unit length. A step multiplies by a triangular matrix, whose small rows take nothing
from large ones, so that every row keeps its own digits. Orthogonalizing the rows of
:math:`\mathrm{diag}(e^s) U` by rotations then leaves the singular values as their lengths.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.products.scaled import EPSILON, RESOLUTION, unit_rows
from gradlab.arrays import Array
from gradlab.linalg import log

# Cosine between rows below which they count as orthogonal, and sweeps over all pairs at most.
ORTHOGONAL = 1e-12
SWEEPS = 40
# Relative error of a row that is noise alone, however much larger the noise.
LOST = 1e300
# A singular value this much above an unresolved one is not changed by it within 1e-6.
CLEAR = float(np.log(1e3))


class GradedProducts:
    """P_{t,k} of several sequences, extended by earlier steps.

    Rows whose accumulated estimate of the relative error passes 1e-6 are unresolved. A step adds
    n · eps · |B| times the largest row from there down, over the length of the new row, where B is
    its Jacobian with rows of unit length. Exact rank losses stay exact.
    """

    def __init__(self, batch: int, n: int) -> None:
        self.Q = np.broadcast_to(np.eye(n), (batch, n, n))
        self.rows = self.Q.copy()
        self.log_rows = np.zeros((batch, n))
        self.error = np.zeros((batch, n))

    def extend(self, J: Float[Array, "batch n n"]) -> None:
        """Multiply every product by J from the right."""
        B, log_lengths, _ = unit_rows(J)
        lost = (J == 0.0).all(axis=2)
        longest = np.where(lost, -np.inf, log_lengths).max(axis=1)
        longest = np.where(np.isneginf(longest), 0.0, longest)
        lengths = np.where(lost, 0.0, np.exp(log_lengths - longest[:, None]))
        self._sort(B, lengths)
        Q, R = _by_size(lengths[:, :, None] * self.Q)
        self.Q, R_B = _by_size(B.transpose(0, 2, 1) @ Q)
        rounding = log(B.shape[-1] * EPSILON * np.linalg.norm(B, axis=(1, 2)))
        self._multiply(R_B @ R, self._log_noise(R) + rounding[:, None])
        self.log_rows = self.log_rows + longest[:, None]

    def log_singular_values(
        self,
    ) -> tuple[Float[Array, "batch n"], Float[Array, " batch"]]:
        """Largest first, nats, and the ceiling of the unresolved.

        An exact zero is -inf. What float64 does not resolve is nan and lies below the ceiling,
        which is -inf where there is none.
        """
        values = log_lengths_of_orthogonalized(self.rows, self.log_rows)
        doubtful = self.error > RESOLUTION
        heights = np.where(doubtful, self.log_rows + np.log1p(self.error), -np.inf)
        ceiling = heights.max(axis=1) + CLEAR
        hidden = np.asarray(np.isfinite(ceiling))[:, None] & (values < ceiling[:, None])
        return np.where(hidden, np.nan, values), ceiling

    def _sort(self, B: Float[Array, "batch n n"], lengths: Float[Array, "batch n"]) -> None:
        """Bring the columns of Q, with their rows, in the order of what they will become."""
        pulled = B.transpose(0, 2, 1) @ (lengths[:, :, None] * self.Q)
        heights = log(np.linalg.norm(pulled, axis=1)) + self.log_rows
        order = np.argsort(-heights, axis=1, kind="stable")
        self.Q = np.take_along_axis(self.Q, order[:, None, :], axis=2)
        self.rows = np.take_along_axis(self.rows, order[:, :, None], axis=1)
        self.log_rows = np.take_along_axis(self.log_rows, order, axis=1)
        self.error = np.take_along_axis(self.error, order, axis=1)

    def _log_noise(self, R: Float[Array, "batch n n"]) -> Float[Array, "batch n"]:
        """ln of the largest row from each one down, of R diag(e^s) U: what noise is made of."""
        heights = (log(np.abs(R)) + self.log_rows[:, None, :]).max(axis=2)
        return np.maximum.accumulate(heights[:, ::-1], axis=1)[:, ::-1]

    def _multiply(self, R: Float[Array, "batch n n"], log_noise: Float[Array, "batch n"]) -> None:
        """Multiply diag(e^s) U by a triangle from the left, row by row on its own scale."""
        heights = log(np.abs(R)) + self.log_rows[:, None, :]
        highest = heights.max(axis=2)
        base = np.where(np.isneginf(highest), 0.0, highest)
        weights = np.sign(R) * np.exp(heights - base[:, :, None])
        self.rows, lengths = _normalized(weights @ self.rows)
        self.log_rows = base + log(lengths)
        told = lengths > 0.0
        inherited = _root_of_squares(weights * self.error[:, None, :])
        added = np.exp(np.minimum(log_noise - np.where(told, self.log_rows, 0.0), 700.0))
        error = inherited / np.where(told, lengths, 1.0) + added
        self.error = np.where(told, np.minimum(error, LOST), 0.0)


def log_lengths_of_orthogonalized(
    rows: Float[Array, "batch n n"], log_lengths: Float[Array, "batch n"]
) -> Float[Array, "batch n"]:
    r"""ln of the singular values of diag(e^s) U, largest first; nats.

    Parameters
    ----------
    rows
        U: rows of unit length, or zero.
    log_lengths
        s: their lengths, over any range; -inf for rows of zeros.

    Notes
    -----
    One-sided Jacobi rotations on the rows, n/2 disjoint pairs at a time: accurate to the condition
    of U, not of the product. Source: Demmel and Veselić (1992), "Jacobi's method is more accurate
    than QR", SIAM Journal on Matrix Analysis and Applications 13.
    """
    order = np.argsort(-log_lengths, axis=1, kind="stable")
    U = np.take_along_axis(rows, order[:, :, None], axis=1)
    s = np.take_along_axis(log_lengths, order, axis=1)
    rounds = _pairings(U.shape[1])
    for _ in range(SWEEPS):
        if max((_rotate(U, s, p, q) for p, q in rounds), default=0.0) <= ORTHOGONAL:
            break
    return -np.sort(-s, axis=1)


def _rotate(
    U: Float[Array, "batch n n"],
    s: Float[Array, "batch n"],
    p: Int[Array, " pairs"],
    q: Int[Array, " pairs"],
) -> float:
    """Make the rows p and q orthogonal, in place; the largest cosine between them before."""
    swap = s[:, p] < s[:, q]
    long, short = np.where(swap, q, p), np.where(swap, p, q)
    batch = np.arange(len(s))[:, None]
    u, v = U[batch, long], U[batch, short]
    cosine = np.vecdot(u, v)
    with np.errstate(invalid="ignore"):
        ratio = np.exp(np.nan_to_num(s[batch, short] - s[batch, long], nan=-np.inf))
    gap = (1.0 - ratio) * (1.0 + ratio)
    root = gap + np.hypot(gap, 2.0 * ratio * cosine)
    slant = 2.0 * cosine / np.where(root > 0.0, root, 1.0)  # tangent of the angle / ratio
    shrink = -0.5 * np.log1p((slant * ratio) ** 2)
    turned, lengths = _normalized(u + (slant * ratio**2)[:, :, None] * v)
    U[batch, long], s[batch, long] = turned, s[batch, long] + shrink + log(lengths)
    turned, lengths = _normalized(v - slant[:, :, None] * u)
    U[batch, short], s[batch, short] = turned, s[batch, short] + shrink + log(lengths)
    return float(np.abs(cosine).max(initial=0.0))


def _normalized(
    rows: Float[Array, "batch some n"],
) -> tuple[Float[Array, "batch some n"], Float[Array, "batch some"]]:
    """Rows of unit length, and their lengths; rows of zeros stay."""
    lengths = np.sqrt(np.vecdot(rows, rows))
    return rows / np.where(lengths > 0.0, lengths, 1.0)[:, :, None], lengths


def _root_of_squares(terms: Float[Array, "batch n some"]) -> Float[Array, "batch n"]:
    """Lengths of rows whose squares may be far outside the range of float64."""
    largest = np.abs(terms).max(axis=2)
    scale = np.where(largest > 0.0, largest, 1.0)
    relative = terms / scale[:, :, None]
    return np.asarray(scale * np.sqrt(np.vecdot(relative, relative)))


def _by_size(
    X: Float[Array, "batch n n"],
) -> tuple[Float[Array, "batch n n"], Float[Array, "batch n n"]]:
    """QR with the longest rows first: short rows keep their digits, and zeros stay zeros."""
    order = np.argsort(-np.abs(X).max(axis=2), axis=1, kind="stable")[:, :, None]
    Q, R = np.linalg.qr(np.take_along_axis(X, order, axis=1))
    back = np.argsort(order, axis=1, kind="stable")
    return np.take_along_axis(Q, back, axis=1), R


def _pairings(n: int) -> list[tuple[Int[Array, " pairs"], Int[Array, " pairs"]]]:
    """Every pair of n rows once, in rounds of disjoint pairs: a round-robin tournament."""
    ring = np.arange(1, n + n % 2)
    rounds = []
    for turn in range(len(ring)):
        order = np.concatenate([[0], np.roll(ring, turn)])
        p, q = order[: len(order) // 2], order[::-1][: len(order) // 2]
        real = (p < n) & (q < n)
        rounds.append((p[real], q[real]))
    return rounds
