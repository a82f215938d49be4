r"""The certificate inf ‖S J S⁻¹‖₂ over positive diagonal S."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.descent import Found, descend
from gradlab.analysis.certificates.effort import Effort
from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.margin import certificate, condition, proves, rounded_up
from gradlab.analysis.certificates.norms import spectral_value
from gradlab.analysis.certificates.ordering import groups, separated
from gradlab.arrays import Array
from gradlab.records.certificates import UNVERIFIED, Certificate

# Entries below this have squares that float64 cannot hold; they change no rate that others set.
NEGLIGIBLE = 1e-140


def diagonal(family: JacobianFamily, scaling: Found) -> Certificate:
    r"""Smallest spectral norm of the family after a diagonal change of coordinates.

    :math:`\lVert S J S^{-1} \rVert \le r` for every slope gives
    :math:`\lVert P_{t,k} \rVert \le \mathrm{cond}(S)\, r^l`, since S commutes with diagonal slopes.

    Parameters
    ----------
    family
        The Jacobians.
    scaling
        What `search_scaling` found.

    Notes
    -----
    For a vanilla cell this is diagonal Schur stability of γ_a W. Source: Buehner and Young (2006),
    "A tighter bound for the echo state property", IEEE Transactions on Neural Networks 17;
    docs/theory.md, "Certificates".
    """
    rate = rounded_up(scaling.value)
    if not verify_scaling(family, scaling.point, rate):
        return Certificate(rate=None, constant=None, status=UNVERIFIED)
    return certificate(family, rate, condition(scaling.point), stopped=scaling.stopped)


def verify_scaling(family: JacobianFamily, log_scale: Float[Array, " n"], rate: float) -> bool:
    """Whether ‖S J S⁻¹‖ ≤ rate for every slope, with the margin, for the scaled family's rate."""
    return proves(spectral_value(family.scaled(log_scale)), rate)


def search_scaling(family: JacobianFamily, effort: Effort) -> Found:
    r"""Logarithms of a diagonal S that makes :math:`\lVert S J S^{-1} \rVert_2` small.

    Convex in log S for a vanilla cell (Sezginer and Overton 1990). Units that do not all drive each
    other are searched group by group; what leads from one group to another is then scaled away.

    Returns
    -------
    found
        Never worse than S = I.
    """
    order = groups(family.majorant)
    log_scale = np.zeros(len(family))
    base, stopped = 0.0, False
    for units in order.members:
        found = _search_group(family.block(units), effort)
        log_scale[units] = found.point
        base, stopped = max(base, found.value), stopped or found.stopped
    log_scale += separated(order, family.scaled(log_scale).majorant, base)
    value, plain = spectral_value(family.scaled(log_scale)), spectral_value(family)
    if plain <= value:
        return Found(point=np.zeros(len(family)), value=plain, stopped=stopped)
    return Found(point=log_scale, value=value, stopped=stopped)


def _search_group(family: JacobianFamily, effort: Effort) -> Found:
    zero = np.zeros(len(family))
    if len(family) == 1 or float(family.majorant.max()) < NEGLIGIBLE:
        return Found(point=zero, value=spectral_value(family), stopped=False)
    return descend(
        lambda x, order: _smooth(family, x, order),
        lambda x: spectral_value(family.scaled(x)),
        zero,
        effort=effort,
        n=len(family),
    )


def _smooth(
    family: JacobianFamily, log_scale: Float[Array, " n"], order: float
) -> tuple[float, Float[Array, " n"]]:
    """Logarithm of the sum of the two matrices' Schatten norms, and its gradient."""
    scaled = family.scaled(log_scale)
    parts = [
        schatten(X, order) for X in (scaled.center, scaled.spread) if np.abs(X).max() > NEGLIGIBLE
    ]
    if not parts:  # nothing that float64 can square
        return np.inf, np.zeros_like(log_scale)
    total = sum(value for value, _ in parts)
    gradient = sum(value * slope for value, slope in parts) / total
    return float(np.log(total)), np.asarray(gradient)


def schatten(X: Float[Array, "n n"], order: float) -> tuple[float, Float[Array, " n"]]:
    r"""Schatten norm of S X S⁻¹ at S = I, and the gradient of its logarithm in log S.

    :math:`\partial \ln \sigma_k / \partial \ln s_i = u_{ik}^2 - v_{ik}^2`, weighted with
    :math:`\sigma_k^p / \sum \sigma^p`; singular pairs from the eigenvalues of X Xᵀ, whose rounding
    touches those only that have no weight.
    """
    squares, U = np.linalg.eigh(X @ X.T)
    top = float(squares[-1])
    ratio = np.maximum(squares / top, 0.0)
    weight = ratio ** (0.5 * order)
    total = float(weight.sum())
    # V = Xᵀ U / σ, so that the weight of v² is that of (Xᵀ u)² over σ².
    right = (X.T @ U) ** 2 @ (ratio ** (0.5 * order - 1.0) / top)
    gradient = (U**2 @ weight - right) / total
    return float(np.sqrt(top) * total ** (1.0 / order)), np.asarray(gradient)
