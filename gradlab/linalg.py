"""Norms, radii and products that never leave the range of floating point."""

from __future__ import annotations

from typing import cast

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, require_finite

# Relative error that the power step may leave in a squared norm before the exact SVD is used.
POWER_TOLERANCE = 1e-13
POWER_STEPS = 3


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
    scaled, exponent = _unit_scaled(np.asarray(W, dtype=np.float64)[None])
    sigma = np.linalg.svd(scaled[0], compute_uv=False)[0]
    return float(np.ldexp(sigma, exponent[0]))


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


def _unit_scaled(
    stack: Float[Array, "count n m"],
) -> tuple[Float[Array, "count n m"], Int[Array, " count"]]:
    """Matrices divided by exact powers of two, so that the largest entry is in [1/2, 1)."""
    largest = np.abs(stack).max(axis=(-2, -1), initial=0.0)
    exponent = np.frexp(largest)[1]
    return np.ldexp(stack, -exponent[..., None, None]), exponent


def rescale(
    stack: Float[Array, "*count n m"], log_scale: Float[Array, "*count"]
) -> tuple[Float[Array, "*count n m"], Float[Array, "*count"]]:
    """Move powers of two from the matrices into their logarithmic scales.

    Returns
    -------
    stack, log_scale
        The same products ``stack * exp(log_scale)``; the division is exact, so no digit is lost.
    """
    flat = stack.reshape(-1, *stack.shape[-2:])
    scaled, exponent = _unit_scaled(flat)
    return (
        scaled.reshape(stack.shape),
        log_scale + exponent.reshape(log_scale.shape) * np.log(2.0),
    )


def spectral_norms(
    stack: Float[Array, "count n n"], start: Float[Array, "count n"]
) -> tuple[Float[Array, " count"], Float[Array, "count n"]]:
    r"""Largest singular values of many matrices, each certified.

    Parameters
    ----------
    stack
        Entries of order one (see `rescale`).
    start
        Guesses of the left singular vectors, of unit length.

    Returns
    -------
    norms
        Relative error below 1e-13 where the power step certifies it, else from a full SVD.
    left
        Unit vectors to start the next matrices of a chain from.

    Notes
    -----
    With :math:`v = P^T u`, :math:`x = P v/|v|^2` and :math:`s^2 = |v|^2 |x|^2` (a lower bound of
    :math:`\sigma_1^2`), put :math:`\rho = (\lVert P \rVert_F^2 - s^2)/s^2`. If
    :math:`\rho \le 1/2`, every other :math:`\sigma_i^2 \le \rho s^2`, and the missing part of
    :math:`\sigma_1^2/s^2` is at most
    :math:`\rho (1 + \rho) (|x|^2 - 1) |x|^2 / (1 - \rho |x|^2)^2`: the weight of ``u`` outside the
    leading direction is bounded by its residual. See docs/theory/spectral-norms.md.
    """
    norms = np.empty(len(stack))
    left = start.copy()
    frobenius = np.einsum("cij,cij->c", stack, stack)
    pending = np.arange(len(stack))
    for _ in range(POWER_STEPS):
        norms[pending], left[pending], error = _power_step(
            stack[pending], left[pending], frobenius[pending]
        )
        pending = pending[error > POWER_TOLERANCE]
        if len(pending) == 0:
            return norms, left
    u, sigma, _ = np.linalg.svd(stack[pending])
    norms[pending], left[pending] = sigma[:, 0], u[:, :, 0]
    return norms, left


def _power_step(
    P: Float[Array, "count n n"], u: Float[Array, "count n"], frobenius: Float[Array, " count"]
) -> tuple[Array, Array, Array]:
    """Norm, next left vector and proven relative error of the squared norm."""
    v = np.vecmat(u, P)
    v_squared = np.vecdot(v, v)
    safe = np.where(v_squared > 0.0, v_squared, 1.0)
    x = np.matvec(P, v) / safe[:, None]
    x_squared = np.vecdot(x, x)
    s_squared = v_squared * x_squared
    rest = np.maximum(frobenius - s_squared, 0.0) / np.where(s_squared > 0.0, s_squared, 1.0)
    excess = np.maximum(x_squared - 1.0, 0.0)
    room = np.maximum(1.0 - rest * x_squared, 1e-3)
    error = rest * (1.0 + rest) * excess * x_squared / room**2
    trusted = (rest <= 0.5) & (rest * x_squared < 0.9) & (s_squared > 0.0)
    length = np.sqrt(np.where(x_squared > 0.0, x_squared, 1.0))
    following = np.where(x_squared[:, None] > 0.0, x / length[:, None], u)
    return np.sqrt(s_squared), following, np.where(trusted, error, np.inf)


def singular_values(W: Float[Array, "n m"]) -> Float[Array, " k"]:
    """All singular values, largest first, scaled against overflow; float64."""
    scaled, exponent = _unit_scaled(np.asarray(W, dtype=np.float64)[None])
    return cast(Array, np.ldexp(np.linalg.svd(scaled[0], compute_uv=False), exponent[0]))
