"""The largest eigenvalue of the small matrix T of a Lanczos run, in machine code.

T is symmetric, with the diagonal a and b beside it; b's last entry couples it to what is outside.
"""

from __future__ import annotations

import numpy as np

from gradlab.analysis.products.compiled.code import inlined
from gradlab.analysis.products.compiled.vectors import normalize
from gradlab.arrays import Array

NEWTON_STEPS, BISECTIONS = 8, 60


@inlined
def last_pivot(a: Array, b: Array, count: int, shift: float) -> tuple[float, float, bool]:
    """Last pivot of shift I - T, its derivative, and whether those before it are positive."""
    pivot, slope, positive = shift - a[0], 1.0, True
    for i in range(1, count):
        positive &= pivot > 0.0
        ratio = b[i - 1] / pivot
        pivot, slope = shift - a[i] - b[i - 1] * ratio, 1.0 + ratio * ratio * slope
    return pivot, slope, positive


@inlined
def top_value(a: Array, b: Array, count: int, below: float, tail: float) -> tuple[float, float]:
    """Largest eigenvalue of T, and the last entry of its vector squared, from those of one less.

    Newton steps on the last pivot, which is concave and grows beyond its last pole; they come from
    below and start at a Ritz value, that of the old vector and the new one.
    """
    gap, coupled = below - a[count - 1], b[count - 2] ** 2 * tail
    root = np.sqrt(gap * gap + 4.0 * coupled)
    if coupled == 0.0 or root == 0.0:
        return max(below, a[count - 1]), 0.0 if gap >= 0.0 else 1.0
    step = 2.0 * coupled / (gap + root) if gap > 0.0 else 0.5 * (root - gap)
    value, last = below + step, step * step / (step * step + coupled)
    for _ in range(NEWTON_STEPS):
        pivot, slope, positive = last_pivot(a, b, count, value)
        if not positive:
            break
        last = 1.0 / slope
        if not pivot < -2e-16 * slope * value:
            break
        value -= pivot / slope
    return value, last


@inlined
def bisected(a: Array, b: Array, count: int, low: float, high: float) -> float:
    """Largest eigenvalue of T between two numbers."""
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        pivot, _, positive = last_pivot(a, b, count, middle)
        if positive and pivot > 0.0:
            high = middle
        else:
            low = middle
    return high


@inlined
def proven(a: Array, b: Array, count: int, value: float, rest: float, relative: float) -> bool:
    """Whether value (1 + relative)² is above all eigenvalues of P Pᵀ: the Schur complement."""
    limit = value * (1.0 + relative) ** 2
    outside = limit - rest
    pivot, _, positive = last_pivot(a, b, count, limit)
    return positive and pivot > 0.0 and outside > 0.0 and b[count - 1] ** 2 <= pivot * outside


@inlined
def top_vector(a: Array, b: Array, count: int, value: float, s: Array, forward: Array) -> None:
    """Unit eigenvector of T, from the pivots of both ends that meet where it is largest."""
    forward[0] = value - a[0]
    for i in range(1, count):
        forward[i] = value - a[i] - b[i - 1] ** 2 / forward[i - 1]
    backward, least, place = value - a[count - 1], np.abs(forward[count - 1]), count - 1
    s[count - 1] = backward
    for i in range(count - 2, -1, -1):
        backward = value - a[i] - b[i] ** 2 / backward
        s[i] = backward
        if np.abs(backward + forward[i] - (value - a[i])) < least:
            least, place = np.abs(backward + forward[i] - (value - a[i])), i
    for i in range(place + 1, count):
        s[i] = b[i - 1] / s[i] * (1.0 if i == place + 1 else s[i - 1])
    s[place] = 1.0
    for i in range(place - 1, -1, -1):
        s[i] = b[i] / forward[i] * s[i + 1]
    normalize(s[:count])
