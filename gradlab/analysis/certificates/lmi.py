r"""The certificate of the linear matrix inequality with a full P and a diagonal T.

For the metric of two matrices S and E = exp Z (see `metric`), with C̃ = S C S⁻¹, the inequality at
rate r says :math:`r^2 > \lambda_{\max}((I + E^{-1})(\tilde H^T \tilde H + \tilde C^T E \tilde C))`.
The best rate of a metric has a closed form, no bisection is needed, and S and Z are searched
without constraints. E = I is the diagonal certificate.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.descent import Found, descend
from gradlab.analysis.certificates.diagonal import NEGLIGIBLE
from gradlab.analysis.certificates.effort import Effort
from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.lmi_objective import smooth_rate
from gradlab.analysis.certificates.lmi_verifier import verify_metric
from gradlab.analysis.certificates.margin import certificate
from gradlab.analysis.certificates.metric import Metric, first_metric, metric_of
from gradlab.analysis.certificates.ordering import groups, separated
from gradlab.arrays import Array
from gradlab.norms import spectral_norm
from gradlab.records.certificates import UNVERIFIED, Certificate

# Relative room above the searched rate, smallest first, until the inequality holds with its margin.
ROOM = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def lmi(family: JacobianFamily, scaling: Found, effort: Effort) -> Certificate:
    r"""Smallest rate found for which the inequality has a solution, and is verified.

    Parameters
    ----------
    family
        The Jacobians.
    scaling
        The diagonal certificate's, where the search starts; never worse than that.
    effort
        Limit of the search.

    Returns
    -------
    certificate
        :math:`\lVert P_{t,k} \rVert \le \sqrt{\mathrm{cond} P}\, r^l`.

    Notes
    -----
    Incremental circle criterion with the multiplier T of slopes in a sector. Derivation:
    docs/theory.md, "Certificates". Cost: two eigenvalue solves of order N and a dozen products a
    step.
    """
    metric, stopped = search_metric(family, scaling, effort)
    value = exact_rate(family, metric)
    for room in ROOM:
        rate = value * (1.0 + room)
        if verify_metric(family, metric.log_scale, metric.unscaled, rate):
            return certificate(family, rate, metric.constant, stopped=stopped)
    return Certificate(rate=None, constant=None, status=UNVERIFIED)


def exact_rate(family: JacobianFamily, metric: Metric) -> float:
    """Smallest rate at which a metric solves the inequality, for the scaled family."""
    scaled = family.scaled(metric.log_scale)
    spread = spectral_norm(scaled.spread @ metric.root)
    if spread == 0.0 and not scaled.center.any():
        return 0.0
    stacked = np.concatenate(
        [scaled.spread @ metric.root, metric.weighted(scaled.center) @ metric.root]
    )
    return spectral_norm(stacked)


def search_metric(family: JacobianFamily, scaling: Found, effort: Effort) -> tuple[Metric, bool]:
    """S and Z of a small rate, and whether the search was stopped; group by group of the units."""
    order = groups(family.majorant)
    n = len(family)
    log_scale, Z = np.zeros(n), np.zeros((n, n))
    base, stopped = 0.0, False
    for units in order.members:
        block = family.block(units)
        found = _search_group(block, scaling.point[units], effort)
        own = metric_of(found.point)
        log_scale[units], Z[np.ix_(units, units)] = own.log_scale, own.Z
        base, stopped = max(base, found.value), stopped or found.stopped
    inner = family.scaled(log_scale).majorant * Metric(log_scale=log_scale, Z=Z).stretch
    return Metric(log_scale=log_scale + separated(order, inner, base), Z=Z), stopped


def _search_group(family: JacobianFamily, log_scale: Float[Array, " n"], effort: Effort) -> Found:
    start = first_metric(family, log_scale - log_scale.mean())
    value = exact_rate(family, metric_of(start))
    if len(family) == 1 or float(family.majorant.max()) < NEGLIGIBLE:
        return Found(point=start, value=value, stopped=False)
    return descend(
        lambda point, order: smooth_rate(family, point, 2.0 * order),
        lambda point: exact_rate(family, metric_of(point)),
        start,
        effort=effort,
        n=len(family),
    )
