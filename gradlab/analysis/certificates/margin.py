"""How a computed number becomes a proven one."""

from __future__ import annotations

# Relative room between what a check computes and what it lets pass: a thousand times and more the
# rounding of a dense solve in float64.
MARGIN = 1e-10


def rounded_up(value: float) -> float:
    """The rate that a computed norm proves."""
    return value * (1.0 + 2.0 * MARGIN)


def proves(value: float, rate: float) -> bool:
    """Whether a computed norm is below a rate, with the margin."""
    return value <= rate * (1.0 - MARGIN)
