"""The numerical radius of a real matrix, by a search over the directions of its support lines."""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex, Float

from gradlab.arrays import Array

SMALL = 64  # units of a matrix that is searched on a fine grid
ANGLES = 64  # of that grid over the half circle
REFINED = 3  # peaks of the grid
COARSE = 8  # of the grid that a subspace of a larger matrix starts from
ROUNDS = 12  # of the subspace; three or four are the rule
SETTLED = 1e-12


def numerical_radius(W: Float[Array, "n n"], eigenvalues: Complex[Array, " n"]) -> float:
    r"""Largest modulus in the numerical range of a matrix: a value that is attained.

    :math:`\max_\theta \lambda_{\max}\big(\tfrac12(e^{i\theta} W + e^{-i\theta} W^T)\big)`, which
    lies between ρ and σ_max, and is at least σ_max/2. The half circle of angles is enough, since W
    is real.

    Parameters
    ----------
    W
        Finite, with entries of order one.
    eigenvalues
        Of W, those of largest modulus first.

    Returns
    -------
    radius
        Up to 64 units the best neighborhoods of a fine grid are refined. A larger matrix is
        restricted to the leading eigenvectors at eight angles and those of its own eigenvalues, and
        at further ones until its eigenvalue at the best angle of the restriction is no larger: some
        fifteen eigenvalue solves. No radius beyond
        :math:`1/\cos(\pi/16) = 1.02` times the value is possible, as the support lines of the
        eight angles enclose the numerical range. Sources: Horn and Johnson, "Topics in Matrix
        Analysis", section 1.5; Kressner, Lu and Vandereycken (2018), "Subspace acceleration for the
        Crawford number and related eigenvalue optimization problems", SIAM J. Matrix Anal. Appl.
        39.
    """
    if len(W) <= SMALL:
        return _on_a_grid(W, eigenvalues)[0]
    return _in_a_subspace(W, eigenvalues)


def _on_a_grid(W: Float[Array, "n n"], eigenvalues: Complex[Array, " n"]) -> tuple[float, float]:
    """Radius, and the angle where it is found."""
    from scipy.optimize import minimize_scalar

    angles = np.linspace(0.0, np.pi, ANGLES + 1)
    heights = np.array([_support(W, theta) for theta in angles])
    first = int(np.argmax(heights))
    best, where = float(heights[first]), float(angles[first])
    for theta in [*_peaks(angles, heights), *_directions(eigenvalues)]:
        found = minimize_scalar(
            lambda angle: -_support(W, angle),
            bounds=(theta - angles[1], theta + angles[1]),
            method="bounded",
            options={"xatol": 1e-9},
        )
        if -found.fun > best:
            best, where = float(-found.fun), float(found.x)
    # Rounding of the search may leave a normal matrix a little below its spectral radius.
    return max(best, float(np.abs(eigenvalues[0]))), where


def _peaks(angles: Float[Array, " grid"], heights: Float[Array, " grid"]) -> Float[Array, " some"]:
    """Angles of the highest local maxima on the grid."""
    padded = np.concatenate([[-np.inf], heights, [-np.inf]])
    peak = np.flatnonzero((heights >= padded[:-2]) & (heights >= padded[2:]))
    return angles[peak[np.argsort(-heights[peak])[:REFINED]]]


def _directions(eigenvalues: Complex[Array, " n"]) -> Float[Array, " some"]:
    """Angles at which the support line of a normal matrix touches a leading eigenvalue."""
    return np.unique(np.abs(np.angle(eigenvalues[: 2 * REFINED])))[:REFINED]


def _in_a_subspace(W: Float[Array, "n n"], eigenvalues: Complex[Array, " n"]) -> float:
    angles = [*np.linspace(0.0, np.pi, COARSE + 1), *_directions(eigenvalues)]
    found = [_leading(W, theta) for theta in angles]
    best = max(float(np.abs(eigenvalues[0])), *(height for height, _ in found))
    vectors = [vector for _, vector in found]
    for _ in range(ROUNDS):
        basis = np.linalg.qr(np.column_stack(vectors))[0]
        restricted = basis.T @ W @ basis
        inner, theta = _on_a_grid(restricted, by_modulus(np.linalg.eigvals(restricted)))
        height, vector = _leading(W, theta)
        settled = height <= max(inner, best) * (1.0 + SETTLED)
        best = max(best, inner, height)
        if settled:
            break
        vectors.append(vector)
    return best


def by_modulus(eigenvalues: Array) -> Complex[Array, " n"]:
    """Eigenvalues in one fixed order, the largest modulus first."""
    values = np.asarray(eigenvalues, dtype=np.complex128)
    return values[np.lexsort((-values.imag, -values.real, -np.abs(values)))]


def _leading(W: Float[Array, "n n"], theta: float) -> tuple[float, Float[Array, "n 2"]]:
    """Height of a support line, and the two parts of its vector: W is real, so both are used."""
    from scipy.linalg import eigh

    top = len(W) - 1
    values, vectors = eigh(_rotated(W, theta), subset_by_index=[top, top])
    return float(values[0]), np.column_stack([vectors[:, 0].real, vectors[:, 0].imag])


def _support(W: Float[Array, "n n"], theta: float) -> float:
    from scipy.linalg import eigvalsh

    top = len(W) - 1
    return float(eigvalsh(_rotated(W, theta), subset_by_index=[top, top])[0])


def _rotated(W: Float[Array, "n n"], theta: float) -> Array:
    """The Hermitian part of e^(i theta) W."""
    rotated = np.exp(1j * theta) * W
    return np.asarray(0.5 * (rotated + rotated.conj().T))
