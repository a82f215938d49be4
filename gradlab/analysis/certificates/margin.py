"""How a computed number becomes a proven one."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.arrays import Array
from gradlab.records.certificates import NOT_FOUND, PROVEN, STOPPED, Certificate

# Relative room between what a check computes and what it lets pass: a thousand times and more the
# rounding of a dense solve in float64.
MARGIN = 1e-10
# Rounding of an entry of a scaled family that lies below all normal numbers, at most.
LOST = 2.0**-1070


def rounded_up(value: float) -> float:
    """The rate that a computed norm proves."""
    return value * (1.0 + 2.0 * MARGIN)


def proves(value: float, rate: float) -> bool:
    """Whether a computed norm is below a rate, with the margin."""
    return value <= rate * (1.0 - MARGIN)


def condition(log_scale: Float[Array, " n"]) -> float:
    """Condition number of the diagonal matrix exp log_scale, rounded up; inf beyond float64."""
    with np.errstate(over="ignore"):
        return float(np.exp(np.ptp(log_scale))) * (1.0 + 1e-12)


def certificate(
    family: JacobianFamily, rate: float, constant: float, *, stopped: bool = False
) -> Certificate:
    """What a check of the scaled family proves; nothing where the constant is no number.

    Entries far below the largest are rounded to multiples of the smallest float: in the norm of the
    certificate that changes no Jacobian by more than N K times it.
    """
    if not math.isfinite(constant):
        reason = "the constant leaves the range of floating point"
        return Certificate(rate=None, constant=None, status=f"{NOT_FOUND}: {reason}")
    lost = len(family) * LOST * constant if family.majorant.any() else 0.0
    return Certificate(
        rate=family.rate(rate + lost), constant=constant, status=STOPPED if stopped else PROVEN
    )
