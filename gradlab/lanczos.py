"""Largest eigenvalues of many Gram matrices by Lanczos steps, with a certificate from above.

All matrices of a stack take their steps at once: the calls, not the arithmetic, are what small
matrices cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradlab.arrays import Array

# Relative error of a norm that a certificate lets pass.
CERTIFIED = 1e-10
# Relative error of the eigenvalue that ends the iteration: far below what is certified.
CONVERGED = 1e-12
FIRST_CHECK, MOST_STEPS = 6, 60
# Share of the largest eigenvalue below which a new direction is mostly rounding.
CANCELED, VANISHED = 1e-5, 1e-13
# Share of the trace that rounding may hide from what is left outside of the basis.
ROUNDING = 1e-10
LEAST_GAP = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeadingValues:
    """Largest eigenvalues as far as Lanczos steps find them."""

    values: Float[Array, " count"]  # wᵀ G w of the vectors below: lower bounds, whatever happened
    vectors: Float[Array, "count n"]  # unit vectors w
    certified: Bool[Array, " count"]  # whether the largest is proven to be <= value (1 + 1e-10)²
    steps: int  # taken until all had settled


def leading_values(
    grams: Float[Array, "count n n"], start: Float[Array, "count n"], *, expected: int = FIRST_CHECK
) -> LeadingValues:
    r"""Lanczos steps with full reorthogonalization.

    Parameters
    ----------
    grams
        Symmetric matrices G without negative eigenvalues, none of them zero.
    start
        Vectors to start from, not zero.
    expected
        Steps after which the values are looked at for the first time.

    Notes
    -----
    With Q the Krylov basis, T = QᵀGQ and :math:`\theta_i` its eigenvalues, all of G outside of Q
    is at most :math:`r = \min(\mathrm{tr}\,G - \mathrm{tr}\,T,
    (\lVert G \rVert_F^2 - \lVert T \rVert_F^2 - 2 \beta^2)^{1/2})`, where :math:`\beta` couples
    the last vector of Q to what is outside. For :math:`\lambda = \theta_1 (1 + 10^{-10})^2` the
    matrix :math:`\lambda I - G` is positive definite if :math:`r < \lambda` and its Schur
    complement is, :math:`\sum_i c_i^2/(\lambda - \theta_i) \le \lambda - r`, with :math:`c_i` that
    coupling of the i-th Ritz vector. A basis that lost its orthogonality would make Ritz values too
    large, and so pass; therefore the value returned is wᵀ G w, and one that differs from its Ritz
    value is not certified. Source: Lanczos (1950), J. Res. Nat. Bur. Standards 45; docs/theory.md,
    "Certified norms".
    """
    run = _Tridiagonalization(grams, start)
    most = min(MOST_STEPS, grams.shape[1])
    check = min(max(2 * expected // 3, FIRST_CHECK), most)
    while True:
        run.advance()
        if run.steps < check:
            continue
        values, vectors = run.ritz()
        if run.steps == most or run.settled(values, vectors):
            return _certify(run, values, vectors)
        check = min(most, run.steps + max(2, run.steps // 6))


class _Tridiagonalization:
    """Bases Q with G Q = Q T and the next column's share, T tridiagonal, grown column by column."""

    def __init__(self, grams: Float[Array, "count n n"], start: Float[Array, "count n"]) -> None:
        count, n, _ = grams.shape
        most = min(MOST_STEPS, n)
        self.G, self.steps = grams, 0
        self.Q = np.empty((count, most + 1, n))
        self.alpha, self.beta = np.empty((count, most)), np.empty((count, most))
        self.Q[:, 0] = start / np.sqrt(np.vecdot(start, start))[:, None]

    def advance(self) -> None:
        """One column more of Q."""
        j = self.steps
        basis = self.Q[:, : j + 1]
        g = np.matvec(self.G, self.Q[:, j])
        shares = np.matvec(basis, g)
        g -= np.vecmat(shares, basis)
        self.alpha[:, j] = shares[:, j]
        length = np.sqrt(np.vecdot(g, g))
        size = self.alpha[:, 0]
        if (length < CANCELED * size).any():
            g -= np.vecmat(np.matvec(basis, g), basis)
            length = np.sqrt(np.vecdot(g, g))
            # An invariant subspace: zeros from here on leave the Ritz values as they are.
            length[length <= VANISHED * size] = 0.0
        self.beta[:, j] = length
        self.Q[:, j + 1] = g * np.where(length > 0.0, 1.0 / _nonzero(length), 0.0)[:, None]
        self.steps += 1

    def ritz(self) -> tuple[Float[Array, "count j"], Float[Array, "count j j"]]:
        """Ritz values, ascending, and their vectors in the basis Q."""
        j = self.steps
        place = np.arange(j)
        T = np.zeros((len(self.G), j, j))
        T[:, place, place] = self.alpha[:, :j]
        T[:, place[1:], place[:-1]] = self.beta[:, : j - 1]
        values, vectors = np.linalg.eigh(T)  # reads the lower triangle
        return values, vectors

    @property
    def coupling(self) -> Float[Array, " count"]:
        """Length of what the last column of Q is coupled to outside."""
        return self.beta[:, self.steps - 1]

    def settled(self, values: Float[Array, "count j"], vectors: Float[Array, "count j j"]) -> bool:
        """Whether the largest values will change no more."""
        top = _nonzero(values[:, -1])
        residual = self.coupling * vectors[:, -1, -1] / top
        second = values[:, -2] if self.steps > 1 else np.zeros_like(top)
        gap = np.maximum((top - second) / top, LEAST_GAP)
        return bool((residual**2 <= CONVERGED * gap).all())

    def outside(self) -> Float[Array, " count"]:
        """Bound on all eigenvalues of what G does outside of Q."""
        j, count = self.steps, len(self.G)
        alpha, beta = self.alpha[:, :j], self.beta[:, :j]
        trace = np.trace(self.G, axis1=1, axis2=2)
        by_trace = trace - alpha.sum(axis=1)
        square = np.vecdot(entries := self.G.reshape(count, -1), entries)
        square = square - np.vecdot(alpha, alpha) - 2.0 * np.vecdot(beta, beta)
        by_square = np.sqrt(np.maximum(square, 0.0))
        bound = np.minimum(np.maximum(by_trace, 0.0), by_square) + ROUNDING * trace
        return np.where(by_trace < -ROUNDING * trace, np.inf, bound)  # a basis that is none


def _certify(
    run: _Tridiagonalization,
    values: Float[Array, "count j"],
    vectors: Float[Array, "count j j"],
) -> LeadingValues:
    w = np.vecmat(vectors[:, :, -1], run.Q[:, : run.steps])
    w /= np.sqrt(np.vecdot(w, w))[:, None]
    found, largest = np.vecdot(w, np.matvec(run.G, w)), values[:, -1]
    limit = largest * (1.0 + 0.5 * CERTIFIED) ** 2
    room = limit - run.outside()
    coupled = (run.coupling[:, None] * vectors[:, -1]) ** 2
    complement = (coupled / _nonzero(limit[:, None] - values)).sum(axis=1)
    proven = (room > 0.0) & (complement <= room)
    honest = np.abs(found - largest) <= 0.2 * CERTIFIED * largest
    short = 2 * run.steps <= run.G.shape[1]
    return LeadingValues(
        values=found, vectors=w, certified=proven & honest & short, steps=run.steps
    )


def _nonzero(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return np.where(x > 0.0, x, 1.0)
