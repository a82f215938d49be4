"""Largest singular values of many matrices by Lanczos steps, with a certificate from above.

Golub-Kahan bidiagonalization of a whole stack at once: the calls, not the arithmetic, are what
small matrices cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradlab.arrays import Array

# Relative error of a norm that a certificate lets pass.
CERTIFIED = 1e-10
# Error of the squared value, relative to it, that ends the iteration: far below what is certified.
CONVERGED = 1e-13
FIRST_CHECK, MOST_STEPS = 6, 60
# Share of the first length below which a new direction is mostly rounding.
CANCELED, VANISHED = 1e-5, 1e-13
# Negative remainder of the squared Frobenius norm that rounding explains.
ROUNDING = 1e-10
LEAST_GAP = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeadingValues:
    """Largest singular values as far as Lanczos steps find them."""

    norms: Float[Array, " count"]  # |P w| of the vectors below: lower bounds, whatever happened
    right: Float[Array, "count m"]  # unit vectors w
    certified: Bool[Array, " count"]  # whether sigma_max <= norm (1 + 1e-10) is proven


def leading_values(
    stack: Float[Array, "count n m"],
    start: Float[Array, "count m"],
    frobenius: Float[Array, " count"],
) -> LeadingValues:
    r"""Golub-Kahan-Lanczos with full reorthogonalization.

    Parameters
    ----------
    stack
        Matrices P of order one, none of them zero.
    start
        Vectors to start from, not zero.
    frobenius
        Squared Frobenius norms.

    Notes
    -----
    With V the Krylov basis and :math:`\theta_i` the Ritz values, all of :math:`P^T P` outside of V
    is at most :math:`r = \lVert P \rVert_F^2 - \sum_i \theta_i^2`. For
    :math:`\lambda = (\theta_1 (1 + 10^{-10}))^2` the matrix :math:`\lambda I - P^T P` is positive
    definite if :math:`r < \lambda` and its Schur complement is,
    :math:`\sum_i c_i^2/(\lambda - \theta_i^2) \le \lambda - r`, where :math:`c_i` couples the i-th
    Ritz vector to what is outside. A basis that lost its orthogonality would make Ritz values too
    large, and so pass; therefore the value returned is the length of P w, and one that differs from
    its Ritz value is not certified. Source: Golub and Kahan (1965), SIAM J. Numer. Anal. 2;
    docs/theory.md, "Certified norms".
    """
    run = _Bidiagonalization(stack, start)
    most = min(MOST_STEPS, *stack.shape[1:])
    check = min(FIRST_CHECK, most)
    while True:
        run.advance()
        if run.steps < check:
            continue
        values, vectors = run.ritz()
        if run.steps == most or run.settled(values, vectors):
            return _certify(run, values, vectors, frobenius)
        check = min(most, run.steps + max(3, run.steps // 4))


class _Bidiagonalization:
    """Bases U, V with P V = U B, B upper bidiagonal, grown by a column each at a time."""

    def __init__(self, stack: Float[Array, "count n m"], start: Float[Array, "count m"]) -> None:
        count, n, m = stack.shape
        most = min(MOST_STEPS, n, m)
        self.P, self.steps = stack, 0
        self.U, self.V = np.empty((count, most, n)), np.empty((count, most + 1, m))
        self.alpha, self.beta = np.empty((count, most)), np.empty((count, most))
        self.V[:, 0] = start / np.sqrt(np.vecdot(start, start))[:, None]

    def advance(self) -> None:
        """One column more of U and of V."""
        j, v = self.steps, self.V[:, self.steps]
        u = np.matvec(self.P, v)
        if j:
            u -= self.beta[:, j - 1, None] * self.U[:, j - 1]
            u = _orthogonal(u, self.U[:, :j])
        self.alpha[:, j] = np.sqrt(np.vecdot(u, u))
        self.U[:, j] = u / _nonzero(self.alpha[:, j])[:, None]
        w = _orthogonal(np.vecmat(self.U[:, j], self.P), self.V[:, : j + 1])
        length = np.sqrt(np.vecdot(w, w))
        if (length < CANCELED * self.alpha[:, 0]).any():
            w = _orthogonal(w, self.V[:, : j + 1])
            length = np.sqrt(np.vecdot(w, w))
        # An invariant subspace: zeros from here on leave the Ritz values as they are.
        length[length <= VANISHED * self.alpha[:, 0]] = 0.0
        self.beta[:, j] = length
        self.V[:, j + 1] = w * np.where(length > 0.0, 1.0 / _nonzero(length), 0.0)[:, None]
        self.steps += 1

    def ritz(self) -> tuple[Float[Array, "count j"], Float[Array, "count j j"]]:
        """Squared Ritz values, ascending, and their vectors in the basis V."""
        j = self.steps
        place, alpha, beta = np.arange(j), self.alpha[:, :j], self.beta[:, : j - 1]
        T = np.zeros((len(self.P), j, j))
        T[:, place, place] = alpha**2
        T[:, place[1:], place[1:]] += beta**2
        T[:, place[1:], place[:-1]] = alpha[:, :-1] * beta
        values, vectors = np.linalg.eigh(T)  # reads the lower triangle
        return np.maximum(values, 0.0), vectors

    def coupling(self) -> Float[Array, " count"]:
        """Length of what the last column of V is coupled to outside."""
        return np.asarray(self.beta[:, self.steps - 1] * self.alpha[:, self.steps - 1])

    def settled(self, values: Float[Array, "count j"], vectors: Float[Array, "count j j"]) -> bool:
        """Whether the largest values will change no more."""
        top = _nonzero(values[:, -1])
        residual = self.coupling() * np.abs(vectors[:, -1, -1]) / top
        second = values[:, -2] if self.steps > 1 else np.zeros_like(top)
        gap = np.maximum((top - second) / top, LEAST_GAP)
        return bool((residual**2 <= CONVERGED * gap).all())


def _certify(
    run: _Bidiagonalization,
    values: Float[Array, "count j"],
    vectors: Float[Array, "count j j"],
    frobenius: Float[Array, " count"],
) -> LeadingValues:
    w = np.vecmat(vectors[:, :, -1], run.V[:, : run.steps])
    w /= np.sqrt(np.vecdot(w, w))[:, None]
    image = np.matvec(run.P, w)
    norms, largest = np.sqrt(np.vecdot(image, image)), np.sqrt(values[:, -1])
    limit = (largest * (1.0 + 0.5 * CERTIFIED)) ** 2
    rest = frobenius - values.sum(axis=1)
    coupled = (run.coupling()[:, None] * vectors[:, -1]) ** 2
    complement = (coupled / _nonzero(limit[:, None] - values)).sum(axis=1)
    proven = (rest < limit) & (complement <= limit - rest) & (rest >= -ROUNDING * frobenius)
    honest = np.abs(norms - largest) <= 0.2 * CERTIFIED * largest
    short = 2 * run.steps <= min(run.P.shape[1:])
    return LeadingValues(norms=norms, right=w, certified=proven & honest & short)


def _orthogonal(
    x: Float[Array, "count n"], basis: Float[Array, "count j n"]
) -> Float[Array, "count n"]:
    return np.asarray(x - np.vecmat(np.matvec(basis, x), basis))


def _nonzero(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return np.where(x > 0.0, x, 1.0)
