r"""Certificates from plain norms: the rate is the largest norm in the family of Jacobians."""

from __future__ import annotations

import math

from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.margin import certificate, rounded_up
from gradlab.linalg import singular_values
from gradlab.records.certificates import Certificate


def sigma_max(family: JacobianFamily) -> Certificate:
    r"""The textbook certificate :math:`\gamma_a \sigma_{\max}(W)`, for leaky cells a sharper form.

    :math:`\lVert C + \mathrm{diag}(e) H \rVert \le \lVert C \rVert + \lVert H \rVert`, which never
    exceeds :math:`(1 - a) + a \gamma_a \gamma_w`. Source: Pascanu, Mikolov and Bengio (2013),
    section 2.1; docs/theory.md, "Certificates".
    """
    return _from_norm(family, spectral_value(family), 1.0)


def norm_1(family: JacobianFamily) -> Certificate:
    r"""Largest column sum that slopes can make; exact, and ‖·‖₂ is at most √N times it."""
    value = float(family.majorant.sum(axis=0).max())
    return _from_norm(family, value, math.sqrt(len(family)))


def norm_inf(family: JacobianFamily) -> Certificate:
    r"""Largest row sum that slopes can make; exact, and ‖·‖₂ is at most √N times it.

    A row depends on one slope alone and convexly, so that it is largest at an end.
    """
    value = max(float(abs(end).sum(axis=1).max()) for end in family.ends)
    return _from_norm(family, value, math.sqrt(len(family)))


def spectral_value(family: JacobianFamily) -> float:
    """‖C‖ + ‖H‖, less the factor 2^x."""
    return sum(float(singular_values(part)[0]) for part in (family.center, family.spread))


def _from_norm(family: JacobianFamily, value: float, constant: float) -> Certificate:
    return certificate(family, rounded_up(value), constant)
