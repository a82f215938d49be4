"""How far powers of a matrix can rise before its eigenvalues have their say."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Complex, Float

from gradlab.arrays import Array, require_finite
from gradlab.linalg import rescale, spectral_norms
from gradlab.norms import spectral_radius

ON_THE_CIRCLE = 1e-12  # an eigenvalue this near 1 in modulus is taken to be 1
ANGLES, DISTANCES = 33, 24  # of the first grid
NEAREST, FARTHEST = 1e-6, 10.0  # distances from the unit circle
LEADING = 16  # eigenvalues whose angles are tried
CANDIDATES = 3
ROUNDS = 9  # of finer grids about the candidates, each half as wide
OFFSETS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
ITERATIONS = 4  # of inverse iteration
WORK = 1e9  # multiplications that the powers may take
MOST_LAGS = 1000


def kreiss_constant(W: Float[Array, "n n"]) -> float:
    r"""Kreiss constant of a matrix, as far as a search finds it: a lower value.

    :math:`K = \sup_{|z| > 1} (|z| - 1) \lVert (zI - W)^{-1} \rVert`. By Kreiss' theorem
    :math:`K \le \sup_l \lVert W^l \rVert \le e n K`: however small the spectral radius, a gradient
    pulled back through powers of W rises to K at least before it decays.

    Parameters
    ----------
    W
        Finite.

    Returns
    -------
    constant
        1 for a normal matrix that does not grow. inf where an eigenvalue lies outside of the unit
        circle, or the resolvent leaves float64.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.

    Notes
    -----
    Every value tried is a lower bound by itself: the norm of the resolvent on one vector, found by
    inverse iteration on the Schur form. A grid over half of the plane (W is real) is refined about
    its best points. Cost: one Schur form, and O(n²) for each of some thousand points. Source:
    Trefethen and Embree (2005), "Spectra and Pseudospectra", chapters 14 and 18.
    """
    from scipy.linalg import schur

    require_finite("W", W)
    T = np.asarray(schur(np.asarray(W, dtype=np.float64), output="complex")[0])
    eigenvalues = np.diag(T)[np.argsort(-np.abs(np.diag(T)))]
    radius = float(np.abs(eigenvalues[0]))
    if radius > 1.0 + ON_THE_CIRCLE:
        return math.inf
    points, spacing = _first_grid(radius, np.abs(np.angle(eigenvalues[:LEADING])))
    best = 1.0  # the limit at infinity
    for _ in range(ROUNDS + 1):
        values = _values(T, points)
        best = max(best, float(values.max()))
        chosen = _peaks(values, points, spacing)
        steps = np.array([(a, b) for a in OFFSETS for b in OFFSETS]) * spacing
        points, spacing = (points[chosen, None] + steps).reshape(-1, 2), 0.5 * spacing
    return best


def power_transient(W: Float[Array, "n n"]) -> tuple[float, int | None]:
    r"""Largest norm that a power of a matrix has, and the lag where.

    Parameters
    ----------
    W
        Finite.

    Returns
    -------
    log_height
        :math:`\ln \max_l \lVert W^l \rVert`, at least that of l = 0, which is 0. Exact: once a
        power has a norm of at most 1, no later one can be larger than all before it. inf where an
        eigenvalue lies outside of the unit circle; nan where neither is seen within some 10^9
        multiplications.
    lag
        First lag at which it stands; None where there is none.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.
    """
    if spectral_radius(W) > 1.0 + ON_THE_CIRCLE:
        return math.inf, None
    n = len(W)
    unit, exponent_of_W = rescale(np.asarray(W, dtype=np.float64))
    product, log_scale = np.eye(n), 0.0
    right = np.full((1, n), 1.0 / math.sqrt(n))
    height, peak = 0.0, 0
    for lag in range(1, int(min(MOST_LAGS, max(1.0, WORK / n**3))) + 1):
        product, exponent = rescale(product @ unit)
        log_scale += float(exponent + exponent_of_W) * math.log(2.0)
        norm, right = spectral_norms(product[None], right)
        log_norm = log_scale + _ln(float(norm[0]))
        if log_norm > height + 1e-12:
            height, peak = log_norm, lag
        if log_norm <= 1e-12:
            return height, peak
    return math.nan, None


def _first_grid(
    radius: float, angles: Float[Array, " leading"]
) -> tuple[Float[Array, "points 2"], Float[Array, " 2"]]:
    """Points (ln distance from the circle, angle), and the spacing of the grid."""
    nearest = max(NEAREST, 0.05 * (1.0 - radius))
    distance = np.linspace(math.log(nearest), math.log(FARTHEST), DISTANCES)
    angle = np.concatenate([np.linspace(0.0, np.pi, ANGLES), angles])
    points = np.stack(np.meshgrid(distance, angle, indexing="ij"), axis=-1).reshape(-1, 2)
    return points, np.array([distance[1] - distance[0], np.pi / (ANGLES - 1)])


def _peaks(
    values: Float[Array, " points"], points: Float[Array, "points 2"], spacing: Float[Array, " 2"]
) -> list[int]:
    """The best points, of which no two are neighbors."""
    chosen: list[int] = []
    for index in np.argsort(-values, kind="stable"):
        near = np.abs(points[chosen] - points[index]) <= 1.5 * spacing
        if not near.all(axis=1).any():
            chosen.append(int(index))
        if len(chosen) == CANDIDATES:
            break
    return chosen


def _values(T: Complex[Array, "n n"], points: Float[Array, "points 2"]) -> Float[Array, " points"]:
    """(|z| - 1) times the norm of the resolvent on one vector each."""
    distance = np.exp(points[:, 0])
    distance = (1.0 + distance) - 1.0  # as z has it, to rounding
    z = (1.0 + distance) * np.exp(1j * points[:, 1])
    v = np.full((len(z), len(T)), 1.0 / math.sqrt(len(T)), dtype=np.complex128)
    norm = np.zeros(len(z))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(ITERATIONS):
            v = _unit(_solve_adjoint(T, z, v))[0]
            v, norm = _unit(_solve(T, z, v))
        return np.where(np.isfinite(norm), distance * norm, np.inf)


def _solve(
    T: Complex[Array, "n n"], z: Complex[Array, " points"], b: Complex[Array, "points n"]
) -> Complex[Array, "points n"]:
    """Solution of (z - T) x = b for every z, by back substitution in the triangular T."""
    x = np.empty_like(b)
    for i in range(len(T) - 1, -1, -1):
        x[:, i] = (b[:, i] + x[:, i + 1 :] @ T[i, i + 1 :]) / (z - T[i, i])
    return x


def _solve_adjoint(
    T: Complex[Array, "n n"], z: Complex[Array, " points"], b: Complex[Array, "points n"]
) -> Complex[Array, "points n"]:
    """Solution of (z - T)* x = b for every z."""
    x, adjoint = np.empty_like(b), T.conj().T
    for i in range(len(T)):
        x[:, i] = (b[:, i] + x[:, :i] @ adjoint[i, :i]) / (z - T[i, i]).conj()
    return x


def _unit(
    x: Complex[Array, "points n"],
) -> tuple[Complex[Array, "points n"], Float[Array, " points"]]:
    """Vectors of length 1, and the lengths, without overflow of the squares."""
    largest = np.abs(x).max(axis=1, keepdims=True)
    scaled = x / largest
    length = np.linalg.norm(scaled, axis=1)
    return scaled / length[:, None], largest[:, 0] * length


def _ln(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf
