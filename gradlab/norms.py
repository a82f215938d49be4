"""Largest singular value and largest modulus of an eigenvalue of one matrix, as fast as is safe."""

from __future__ import annotations

import logging

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, require_finite
from gradlab.linalg import dominates, norms_by_eigenvalues, rescale

# Below the first size a full decomposition is as fast as anything, below the second the eigenvalues
# of the Gram matrix are.
SMALLEST_FOR_GRAM, SMALLEST_FOR_LANCZOS = 24, 192
# Powers of two between entries and one that leave squares and their sums in range.
SAFE = 400
# Steps before the first look at the Ritz values, between two looks as a part of those taken, and at
# most.
FIRST_LOOK, LOOK, MOST_STEPS = 12, 7, 400
# Relative error of a squared norm at which steps end, and what it may have grown since a look.
SETTLED, GROWN = 1e-12, 1e-9
# Share of a vector's length below which what is left of it is mostly rounding, or nothing.
CANCELED, VANISHED = 1e-2, 1e-13
# From this size on the leading eigenvalues are searched for, twice. One alone may be the wrong one.
SMALLEST_FOR_ARNOLDI, LEADING, BASIS, RESTARTS = 1024, 6, 160, 30
AGREEMENT = 1e-10

logger = logging.getLogger(__name__)


def spectral_norm(W: Float[Array, "rows columns"], *, certify: bool = False) -> float:
    r"""Largest singular value, in float64.

    Parameters
    ----------
    W
        Any finite matrix.
    certify
        Whether to prove, where both sides are 192 or more, that no singular value is larger than
        the one found times 1 + 2e-11: by a Cholesky factor, which takes two to four times as long.

    Returns
    -------
    sigma_max
        0 for the zero matrix. Entries far from one are scaled by a power of two, so that neither
        1e200 nor 1e-200 leaves the range.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.

    Notes
    -----
    All singular values where the shorter side is below 24; all eigenvalues of the Gram matrix below
    192; from there on Golub-Kahan-Lanczos steps from a random vector, until the error of the value
    is below 1e-12 and it has not grown since the look before. Without the certificate that is very
    likely and not proven: the steps could miss the top of a cluster of singular values that agree
    in their leading digits. Where they do not settle, or the certificate fails, all eigenvalues of
    the Gram matrix decide. Source: Golub and Kahan (1965), SIAM J. Numer. Anal. 2.
    """
    scaled, exponent = _in_range(W)
    with np.errstate(over="ignore"):  # a norm beyond float64 is inf
        return float(np.ldexp(_norm(scaled, certify), exponent))


def _in_range(W: Float[Array, "rows columns"]) -> tuple[Float[Array, "rows columns"], int]:
    """W in float64 over a power of two that keeps squares in range, mostly 1, and its exponent."""
    wide = np.asarray(W, dtype=np.float64)
    largest = max(wide.max(initial=0.0), -wide.min(initial=0.0))
    if not np.isfinite(largest):
        require_finite("W", W)
    if largest == 0.0 or abs(int(np.frexp(largest)[1])) < SAFE:
        return wide, 0
    scaled, exponent = rescale(wide)
    return scaled, int(exponent)


def _norm(W: Float[Array, "rows columns"], certify: bool) -> float:
    shorter = min(W.shape)
    if shorter < SMALLEST_FOR_GRAM:
        return float(np.linalg.svd(W, compute_uv=False)[0])
    if shorter >= SMALLEST_FOR_LANCZOS and W.any():
        found = _by_lanczos(W)
        if found is not None and (not certify or dominates(W, found)):
            return found
    return float(norms_by_eigenvalues(W[None])[0])


def _by_lanczos(W: Float[Array, "n m"]) -> float | None:
    """Length of W v for a unit vector v that Lanczos steps find; None where they do not settle."""
    steps = _Steps(W)
    look, last = FIRST_LOOK, 0.0
    while steps.count < steps.most:
        steps.advance()
        if steps.count < look and not steps.ended:
            continue
        value, residual, gap, vector = steps.leading()
        close = residual**2 <= SETTLED * max(gap, residual)
        if steps.ended or (close and value - last <= GROWN * value):
            image = W @ vector
            return float(np.sqrt(image @ image))
        look, last = steps.count + max(3, steps.count // LOOK), value
    return None


class _Steps:
    """Golub-Kahan bidiagonalization of one large matrix, whose products are what costs."""

    def __init__(self, W: Float[Array, "n m"]) -> None:
        n, m = W.shape
        self.W, self.count, self.ended = W, 0, False
        self.most = min(MOST_STEPS, n // 2, m // 2)
        self.V, self.u = np.empty((self.most + 1, m)), np.zeros(n)
        self.alpha, self.beta = np.zeros(self.most), np.zeros(self.most + 1)
        start = np.random.default_rng(0).standard_normal(m)
        self.V[0] = start / np.sqrt(start @ start)

    def advance(self) -> None:
        """One step more; it ends where nothing new is reached."""
        j, V = self.count, self.V[: self.count + 1]
        u = self.W @ V[j]
        u -= self.beta[j - 1] * self.u
        self.alpha[j] = length = np.sqrt(u @ u)
        self.u = u / length if length > 0.0 else u
        w = self.u @ self.W
        before = np.sqrt(w @ w)
        w -= (V @ w) @ V
        left = np.sqrt(w @ w)
        if left < CANCELED * before:
            w -= (V @ w) @ V
            left = np.sqrt(w @ w)
        self.count += 1
        self.ended = bool(left <= VANISHED * self.alpha[0])
        self.beta[j] = left
        self.V[j + 1] = 0.0 if self.ended else w / left

    def leading(self) -> tuple[float, float, float, Float[Array, " m"]]:
        """Largest squared Ritz value, its relative residual and gap, and its vector."""
        from scipy.linalg import eigh_tridiagonal

        j = self.count
        diagonal = self.alpha[:j] ** 2
        diagonal[1:] += self.beta[: j - 1] ** 2
        values, vectors = eigh_tridiagonal(
            diagonal,
            self.alpha[: j - 1] * self.beta[: j - 1],
            select="i",
            select_range=(max(j - 2, 0), j - 1),
            check_finite=False,
        )
        value, weights = float(values[-1]), vectors[:, -1]
        residual = self.beta[j - 1] * self.alpha[j - 1] * abs(weights[-1]) / value
        gap = (value - float(values[0])) / value
        return value, float(residual), gap, weights @ self.V[:j]


def spectral_radius(W: Float[Array, "n n"]) -> float:
    """Largest modulus of an eigenvalue.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.

    Notes
    -----
    All eigenvalues by a dense solve below 1024 units. From there on the six leading ones by Arnoldi
    steps from two random vectors, since one search may settle on a wrong one among many of nearly
    equal modulus. Where the two disagree in ten digits or one does not settle, the logger
    ``gradlab.norms`` says so, and the dense solve decides. Source: Lehoucq, Sorensen and Yang
    (1998), "ARPACK Users' Guide", SIAM.
    """
    require_finite("W", W)
    wide = np.asarray(W, dtype=np.float64)
    if len(wide) >= SMALLEST_FOR_ARNOLDI:
        first, second = (_by_arnoldi(wide, seed) for seed in (0, 1))
        if abs(first - second) <= AGREEMENT * first:
            return max(first, second)
        logger.info(
            "two searches for the leading eigenvalue found %s and %s: all eigenvalues are computed",
            first,
            second,
        )
    return float(np.abs(np.linalg.eigvals(wide)).max())


def _by_arnoldi(W: Float[Array, "n n"], seed: int) -> float:
    """Modulus of the leading eigenvalue that a search finds; nan where it does not settle."""
    from scipy.sparse.linalg import ArpackError, eigs

    try:
        found = eigs(
            W,
            k=LEADING,
            ncv=BASIS,
            v0=np.random.default_rng(seed).standard_normal(len(W)),
            maxiter=RESTARTS,
            return_eigenvectors=False,
        )
    except ArpackError:
        return np.nan
    return float(np.abs(found).max())
