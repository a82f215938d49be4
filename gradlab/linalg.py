"""Norms, radii and products that never leave the range of floating point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, require_finite

# Relative error that the power step may leave in a squared norm before the exact SVD is used.
POWER_TOLERANCE = 1e-13
POWER_STEPS = 12
# Squared residual of a power step below which its vector has settled.
SETTLED = 1e-2


def log(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Natural logarithm with ln 0 = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def spectral_norm(W: Float[Array, "rows columns"]) -> float:
    """Largest singular value, by a full SVD in float64.

    Parameters
    ----------
    W
        Any finite matrix.

    Returns
    -------
    sigma_max
        0 for the zero matrix. The entries are scaled by a power of two first, so that neither
        1e200 nor 1e-200 leaves the range.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.
    """
    require_finite("W", W)
    return float(singular_values(W)[0])


def spectral_radius(W: Float[Array, "n n"]) -> float:
    """Largest modulus of an eigenvalue, from all eigenvalues by a dense solve.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.
    """
    require_finite("W", W)
    return float(np.abs(np.linalg.eigvals(np.asarray(W, dtype=np.float64))).max())


def sign_fixed_qr(
    A: Float[Array, "n m"],
) -> tuple[Float[Array, "n m"], Float[Array, "m m"]]:
    """QR factorization with a non-negative diagonal of R: unique, Haar for Gaussian A."""
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diag(R) < 0.0, -1.0, 1.0)
    return Q * signs, R * signs[:, None]


def log_euclidean_norm(x: Float[Array, "..."]) -> float:
    """ln of the root of the sum of squares of all entries, scaled so that nothing overflows."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0:
        return -np.inf
    scaled = np.asarray(x, dtype=np.float64) / largest
    return float(np.log(largest) + 0.5 * np.log(np.sum(scaled**2)))


def rescale(
    stack: Float[Array, "*count n m"],
) -> tuple[Float[Array, "*count n m"], Int[Array, "*count"]]:
    """Matrices divided by exact powers of two, so that the largest entry is in [1/2, 1).

    Returns
    -------
    stack, exponent
        ``stack * 2**exponent`` is the argument, to the last bit; a zero matrix stays zero.
    """
    largest = np.abs(stack).max(axis=(-2, -1), initial=0.0)
    # Within this range 2**-exponent is itself a normal number; more is never needed at once.
    exponent = np.asarray(np.clip(np.frexp(largest)[1], -1000, 1000), dtype=np.int64)
    return np.asarray(stack * np.ldexp(1.0, -exponent)[..., None, None]), exponent


def norms_of(stack: Float[Array, "count n m"]) -> Float[Array, " count"]:
    """Spectral norms of unrelated matrices of any scale; 0 for zero matrices."""
    scaled, exponent = rescale(stack)
    width = stack.shape[-1]
    start = np.full((len(stack), width), 1.0 / np.sqrt(width))
    with np.errstate(over="ignore"):  # a norm beyond float64 is inf
        return np.asarray(np.ldexp(spectral_norms(scaled, start)[0], exponent))


def spectral_norms(
    stack: Float[Array, "count n m"], start: Float[Array, "count m"]
) -> tuple[Float[Array, " count"], Float[Array, "count m"]]:
    r"""Largest singular values of many matrices, each certified.

    Parameters
    ----------
    stack
        Entries of order one (see `rescale`).
    start
        Guesses of the right singular vectors, of unit length.

    Returns
    -------
    norms
        Relative error below 1e-13 where the power step proves it, else from all eigenvalues of
        P P^T, whose largest is as accurate as that of an SVD.
    right
        Unit vectors to start the next matrices of a chain from.

    Notes
    -----
    With :math:`v = P w`, :math:`x = P^T v/|v|^2` and :math:`s^2 = |v|^2 |x|^2` (a lower bound of
    :math:`\sigma_1^2`), put :math:`\rho = (\lVert P \rVert_F^2 - s^2)/s^2`. If
    :math:`\rho \le 1/2`, every other :math:`\sigma_i^2 \le \rho s^2`, and the part of
    :math:`\sigma_1^2/s^2` that is missing is at most
    :math:`\rho (1 + \rho) (|x|^2 - 1) |x|^2 / (1 - \rho |x|^2)^2`, since the residual bounds the
    weight of ``w`` outside the leading direction. Derivation: docs/theory.md, "Certified norms".
    """
    norms, right = np.empty(len(stack)), start.copy()
    frobenius = np.vecdot(flat := stack.reshape(len(stack), -1), flat)
    pending, some = np.arange(len(stack)), stack
    uncertain = np.ones(len(stack), dtype=bool)
    for _ in range(POWER_STEPS):
        norms[pending], right[pending], error = _power_step(
            some, right[pending], frobenius[pending]
        )
        uncertain[pending] = ~(error <= POWER_TOLERANCE)
        going_on = error > POWER_TOLERANCE  # nan: settled, but not isolated
        pending, some = pending[going_on], some[going_on]
        if len(pending) == 0:
            break
    rest = stack[uncertain]
    gram = rest @ rest.transpose(0, 2, 1)
    norms[uncertain] = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0))
    return norms, right


def _power_step(
    P: Float[Array, "count n m"], w: Float[Array, "count m"], frobenius: Float[Array, " count"]
) -> tuple[Float[Array, " count"], Float[Array, "count m"], Float[Array, " count"]]:
    """Norm, next right vector and proven relative error of the squared norm.

    The error is inf where nothing is proven, and nan where further steps would prove nothing: the
    vector has settled, and other singular values are too close.
    """
    v = np.matvec(P, w)
    v_squared = np.vecdot(v, v)
    x = np.vecmat(v, P) / _nonzero(v_squared)[:, None]
    x_squared = np.vecdot(x, x)
    s_squared = v_squared * x_squared
    rest = np.maximum(frobenius - s_squared, 0.0) / _nonzero(s_squared)
    room = np.maximum(1.0 - rest * x_squared, 0.1)
    isolated = (rest <= 0.5) & (room > 0.1) & (s_squared > 0.0)
    excess = np.maximum(x_squared - 1.0, 0.0)
    error = rest * (1.0 + rest) * excess * x_squared / room**2
    unproven = np.where(excess < SETTLED, np.nan, np.inf)
    following = np.where(x_squared[:, None] > 0.0, x / np.sqrt(_nonzero(x_squared))[:, None], w)
    return np.sqrt(s_squared), following, np.where(isolated, error, unproven)


def _nonzero(x: Float[Array, " count"]) -> Float[Array, " count"]:
    return np.where(x > 0.0, x, 1.0)


def singular_values(W: Float[Array, "n m"]) -> Float[Array, " k"]:
    """All singular values, largest first, scaled against overflow; float64, inf beyond it."""
    scaled, exponent = rescale(np.asarray(W, dtype=np.float64))
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.linalg.svd(scaled, compute_uv=False), exponent))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Context with one BLAS thread: the same bits on any number of cores.

    Small products gain nothing from threads, and lose much when several processes run.
    """
    import scipy.linalg  # noqa: F401  SciPy brings a BLAS of its own, which must be there to be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
