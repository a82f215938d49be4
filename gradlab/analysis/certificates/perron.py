r"""The certificate ρ(M) of the entrywise majorant M ≥ |J|, for a vanilla cell ρ(γ_a |W|)."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.margin import certificate, condition, proves, rounded_up
from gradlab.analysis.certificates.ordering import groups, separated
from gradlab.arrays import Array
from gradlab.records.certificates import UNVERIFIED, Certificate

POWER_STEPS = (
    100  # before all eigenvalues are solved for, and after, for the vector's small entries
)
SETTLED = 1e-9  # relative difference of the ratios (M v)_i / v_i: they enclose ρ(M)
TINY = 1e-300


def perron(family: JacobianFamily) -> Certificate:
    r"""Infimum over positive diagonal S of the 1- and ∞-norms of S J S⁻¹, for every slope.

    With positive v and u such that :math:`M v \le r v` and :math:`u^T M \le r u^T`, Schur's test
    gives :math:`\lVert M^l \rVert_2 \le K r^l` with :math:`K^2 = \max(u/v)/\min(u/v)`, and the
    row sums alone :math:`K = \sqrt{N} \max v/\min v`; the smaller K is taken. Where M is reducible
    the infimum may not be attained, and K grows as r nears it. Source: Horn and Johnson, "Matrix
    Analysis", section 8.1; docs/theory.md, "Certificates".
    """
    M = family.majorant
    log_v, log_u = _log_vector(M), _log_vector(M.T)
    value = max(row_ratio(M, log_v), row_ratio(M.T, log_u))
    rate = rounded_up(value)
    if not verify_perron(family, log_v, log_u, rate):
        return Certificate(rate=None, constant=None, status=UNVERIFIED)
    by_rows = math.sqrt(len(M)) * condition(log_v)
    return certificate(family, rate, min(by_rows, condition(0.5 * (log_u - log_v))))


def verify_perron(
    family: JacobianFamily, log_v: Float[Array, " n"], log_u: Float[Array, " n"], rate: float
) -> bool:
    """Whether M v ≤ r v and Mᵀ u ≤ r u hold with the margin, for the scaled family's rate."""
    M = family.majorant
    return proves(row_ratio(M, log_v), rate) and proves(row_ratio(M.T, log_u), rate)


def row_ratio(M: Float[Array, "n n"], log_v: Float[Array, " n"]) -> float:
    """Largest (M v)_i / v_i."""
    exponent = np.minimum(log_v[None, :] - log_v[:, None], 700.0)
    return float((M * np.exp(exponent)).sum(axis=1).max())


def _log_vector(M: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Logarithm of a positive v with M v ≤ r v and r close to ρ(M)."""
    order = groups(M)
    log_v, base = np.zeros(len(M)), float(np.diag(M).max())
    for units in order.members:
        if len(units) > 1:
            block = M[np.ix_(units, units)]
            log_v[units] = _perron_vector(block)
            base = max(base, row_ratio(block, log_v[units]))
    inner = M * np.exp(np.minimum(log_v[None, :] - log_v[:, None], 700.0))
    # Row sums are taken of v⁻¹ M v: v is the inverse of the scale.
    return log_v - separated(order, inner, base)


def _perron_vector(M: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Logarithm of the positive eigenvector of an irreducible matrix."""
    v, settled = _power_steps(M, np.ones(len(M)), float(M.sum(axis=1).max()))
    if not settled:
        values, vectors = np.linalg.eig(M)
        leading = int(np.argmax(values.real))
        start = np.abs(vectors[:, leading].real) + TINY
        v, _ = _power_steps(M, start, float(values[leading].real))
    return np.log(v)


def _power_steps(
    M: Float[Array, "n n"], v: Float[Array, " n"], shift: float
) -> tuple[Float[Array, " n"], bool]:
    """Positive vector after some steps with M + shift, and whether its ratios are all equal."""
    for _ in range(POWER_STEPS):
        product = M @ v
        ratio = product / v
        if np.ptp(ratio) <= SETTLED * ratio.max():
            return v, True
        v = product + 0.1 * shift * v
        v = np.maximum(v / v.max(), TINY)
    return v, False
