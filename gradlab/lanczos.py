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
CERTIFIED = 2e-11
# Relative error of the eigenvalue that ends the iteration: far below what is certified.
CONVERGED = 1e-12
# Steps before the first look at the values, and at most: a quarter of the size or these. Beyond, an
# eigenvalue solve is cheaper.
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
    certified: Bool[Array, " count"]  # whether the largest is proven to be <= value (1 + 2e-11)²
    steps: int  # taken until all had settled


def leading_values(
    matrices: Float[Array, "count m n"],
    start: Float[Array, "count n"],
    *,
    expected: int = FIRST_CHECK,
    squares: Float[Array, " count"] | None = None,
) -> LeadingValues:
    r"""Lanczos steps with full reorthogonalization.

    Parameters
    ----------
    matrices
        Symmetric matrices G without negative eigenvalues, none of them zero; or, if ``squares`` are
        given, P with G = PᵀP, which is not formed: r is then the difference of traces alone.
    start
        Vectors to start from, not zero.
    expected
        Lanczos steps that matrices like these took.
    squares
        Squared Frobenius norms of P.

    Notes
    -----
    With Q the Krylov basis, T = QᵀGQ and :math:`\theta_i` its eigenvalues, all of G outside of Q
    is at most :math:`r = \min(\mathrm{tr}\,G - \mathrm{tr}\,T,
    (\lVert G \rVert_F^2 - \lVert T \rVert_F^2 - 2 \beta^2)^{1/2})`, where :math:`\beta` couples
    the last vector of Q to what is outside. For :math:`\lambda = \theta_1 (1 + 10^{-11})^2` the
    matrix :math:`\lambda I - G` is positive definite if :math:`r < \lambda` and its Schur
    complement is, :math:`\sum_i c_i^2/(\lambda - \theta_i) \le \lambda - r`, with :math:`c_i` that
    coupling of the i-th Ritz vector. A basis that lost its orthogonality would make Ritz values too
    large, and so pass; therefore the value returned is wᵀ G w, and one that differs from its Ritz
    value is not certified. Source: Lanczos (1950), J. Res. Nat. Bur. Standards 45; docs/theory.md,
    "Certified norms".
    """
    run = _Tridiagonalization(matrices, start, squares)
    most = min(MOST_STEPS, max(FIRST_CHECK, matrices.shape[2] // 4))
    check = min(max(2 * expected // 3, FIRST_CHECK), most)
    while True:
        run.advance()
        if run.steps < check:
            continue
        values, vectors = run.ritz()
        if run.steps == most or run.settled(values, vectors):
            return _certify(run, values, vectors)
        check = min(most, run.steps + max(2, run.steps // 3))


class _Tridiagonalization:
    """Bases Q with G Q = Q T and the next column's share, T tridiagonal, grown column by column."""

    def __init__(
        self,
        matrices: Float[Array, "count m n"],
        start: Float[Array, "count n"],
        squares: Float[Array, " count"] | None,
    ) -> None:
        count, _, n = matrices.shape
        most = min(MOST_STEPS, n)
        self.matrices, self.squares, self.steps = matrices, squares, 0
        self.Q = np.empty((count, most + 1, n))
        self.alpha, self.beta = np.empty((count, most)), np.empty((count, most))
        self.Q[:, 0] = start / np.sqrt(np.vecdot(start, start))[:, None]

    def apply(self, x: Float[Array, "count n"]) -> Float[Array, "count n"]:
        """G x."""
        image = np.matvec(self.matrices, x)
        return np.asarray(image if self.squares is None else np.vecmat(image, self.matrices))

    def advance(self) -> None:
        """One column more of Q."""
        j = self.steps
        basis = self.Q[:, : j + 1]
        g = self.apply(self.Q[:, j])
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
        T = np.zeros((len(self.alpha), j, j))
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
        alpha, beta = self.alpha[:, : self.steps], self.beta[:, : self.steps]
        whole = self.squares
        if whole is None:
            whole = np.trace(self.matrices, axis1=1, axis2=2)
        trace = whole - alpha.sum(axis=1)
        bound = np.maximum(trace, 0.0)
        if self.squares is None:
            square = np.vecdot(entries := self.matrices.reshape(len(alpha), -1), entries)
            square = square - np.vecdot(alpha, alpha) - 2.0 * np.vecdot(beta, beta)
            bound = np.minimum(bound, np.sqrt(np.maximum(square, 0.0)))
        # A trace below zero tells of a basis that is none.
        return np.where(trace < -ROUNDING * whole, np.inf, bound + ROUNDING * whole)


def _certify(
    run: _Tridiagonalization,
    values: Float[Array, "count j"],
    vectors: Float[Array, "count j j"],
) -> LeadingValues:
    w = np.vecmat(vectors[:, :, -1], run.Q[:, : run.steps])
    w /= np.sqrt(np.vecdot(w, w))[:, None]
    found, largest = np.vecdot(w, run.apply(w)), values[:, -1]
    limit = largest * (1.0 + 0.5 * CERTIFIED) ** 2
    room = limit - run.outside()
    coupled = (run.coupling[:, None] * vectors[:, -1]) ** 2
    complement = (coupled / _nonzero(limit[:, None] - values)).sum(axis=1)
    proven = (room > 0.0) & (complement <= room)
    honest = np.abs(found - largest) <= 0.2 * CERTIFIED * largest
    honest &= 2 * run.steps <= run.matrices.shape[2]
    return LeadingValues(values=found, vectors=w, certified=proven & honest, steps=run.steps)


def largest_eigenpair(gram: Float[Array, "m m"]) -> tuple[float, Float[Array, " m"]]:
    """Root of the largest eigenvalue, and its vector; the argument is overwritten."""
    from scipy.linalg import lapack

    m = len(gram)
    # The transpose is the layout of Fortran, without a copy.
    values, vectors, *_ = lapack.dsyevr(gram.T, range="I", il=m, iu=m, lower=1, overwrite_a=1)
    return float(np.sqrt(max(values[0], 0.0))), vectors[:, 0]


def root_eigenvalues(grams: Float[Array, "count n n"]) -> Float[Array, " count"]:
    """Roots of the largest eigenvalues, by all of them: one call for many small matrices."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(grams)[:, -1], 0.0))


def gram_dominated(gram: Float[Array, "n n"], norm: float) -> bool:
    """Whether norm (1 + 2e-11) is proven to be above the roots of all eigenvalues."""
    from scipy.linalg import lapack

    above = np.negative(gram)
    above.flat[:: len(gram) + 1] += (norm * (1.0 + CERTIFIED)) ** 2
    # The transpose is the layout of Fortran, without a copy.
    return bool(lapack.dpotrf(above.T, lower=1, overwrite_a=1, clean=0)[1] == 0)


def _nonzero(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return np.where(x > 0.0, x, 1.0)
