r"""What no certificate can beat: the growth of one constant choice of slopes.

A certificate at rate r bounds the powers of every Jacobian of the family, so that
:math:`r \ge \rho(C + \mathrm{diag}(e) H)`. For e = ±1 and a vanilla cell whose slopes
begin at 0 that is :math:`\gamma_a \rho(W[I, I])`, I the units at the upper end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.arrays import Array
from gradlab.records.certificates import CertificateFloor

# Cubes of the state size that the search may spend on eigenvalue solves.
WORK = 2.5e7
MOST_SOLVES = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Vertex:
    """One choice of slopes with what its leading eigenvalue says."""

    high: Bool[Array, " n"]
    radius: float  # less its error
    slope: Float[Array, " n"]  # d ρ / d e


def certificate_floor(family: JacobianFamily) -> CertificateFloor | None:
    r"""Largest spectral radius found at the ends of the slopes.

    Parameters
    ----------
    family
        The Jacobians.

    Returns
    -------
    floor
        A proven lower bound on every rate that a certificate of slopes can have, not the best one:
        singletons and pairs of a vanilla cell are all tried, then sets reached from the best of
        them, and from all units, along the derivative of the radius. None beyond about 290 units,
        where one solve takes too long.

    Notes
    -----
    The radius is lowered by its first-order error :math:`N \epsilon \lVert J \rVert / |y^H x|` with
    unit left and right vectors y and x. Source: Horn and Johnson, "Matrix Analysis", section 6.3,
    for the error and the derivative.
    """
    solves = min(int(WORK / len(family) ** 3), MOST_SOLVES)
    if solves < 1:
        return None
    starts = [np.ones(len(family), dtype=bool), *_small_sets(family)]
    best: _Vertex | None = None
    for start in starts:
        reached = _climb(family, start, max(solves // len(starts), 1))
        if best is None or reached.radius > best.radius:
            best = reached
    return None if best is None else _floor(family, best)


def _floor(family: JacobianFamily, vertex: _Vertex) -> CertificateFloor:
    with np.errstate(over="ignore", under="ignore"):
        own = float(np.ldexp(max(vertex.radius, 0.0), family.exponent))
    return CertificateFloor(
        rate=own if own >= np.finfo(np.float64).tiny else 0.0,  # where it underflows still a floor
        units=tuple(np.flatnonzero(vertex.high).tolist()),
    )


def _small_sets(family: JacobianFamily) -> list[Bool[Array, " n"]]:
    """The best single unit and the best pair, judged by themselves."""
    n = len(family)
    if n == 1 or not family.spread.any():
        return []
    _, J = family.ends
    own = np.diag(J)
    half_sum, half_gap = 0.5 * (own[:, None] + own), 0.5 * (own[:, None] - own)
    root = np.sqrt((half_gap**2 + J * J.T).astype(np.complex128))
    radius = np.maximum(np.abs(half_sum + root), np.abs(half_sum - root))
    np.fill_diagonal(radius, 0.0)
    pair = np.unravel_index(int(np.argmax(radius)), radius.shape)
    return [_only(n, [int(np.argmax(np.abs(own)))]), _only(n, [int(unit) for unit in pair])]


def _only(n: int, units: list[int]) -> Bool[Array, " n"]:
    chosen = np.zeros(n, dtype=bool)
    chosen[units] = True
    return chosen


def _climb(family: JacobianFamily, start: Bool[Array, " n"], solves: int) -> _Vertex:
    """Vertex reached by turning the units whose slope promises a larger radius."""
    best = _vertex(family, start)
    whole = True
    for _ in range(solves - 1):
        turned = np.where(best.high, -best.slope, best.slope)
        if not np.any(turned > 0.0):
            return best
        change = turned > 0.0 if whole else np.arange(len(family)) == int(np.argmax(turned))
        following = _vertex(family, best.high ^ change)
        if following.radius > best.radius:
            best, whole = following, True
        elif whole:
            whole = False
        else:
            return best
    return best


def _vertex(family: JacobianFamily, high: Bool[Array, " n"]) -> _Vertex:
    from scipy.linalg import eig

    J = family.vertex(high)
    values, left, right = (np.asarray(part) for part in eig(J, left=True, right=True))
    k = int(np.argmax(np.abs(values)))
    radius, y, x = float(np.abs(values[k])), left[:, k].conj(), right[:, k]
    overlap = complex(y @ x)
    error = len(J) * np.finfo(np.float64).eps * float(np.linalg.norm(J))
    if radius == 0.0 or abs(overlap) < np.sqrt(np.finfo(np.float64).eps) * 0.01:
        # A defective eigenvalue has no derivative, and an error of another order.
        return _Vertex(high=high, radius=0.0, slope=np.zeros(len(J)))
    phase = np.conj(values[k]) / radius
    slope = (phase * y * (family.spread @ x) / overlap).real
    return _Vertex(high=high, radius=radius - error / abs(overlap), slope=np.asarray(slope))
