"""One chain of products of small Jacobians with all its norms, in machine code.

What `gradlab.analysis.products.scaled.ScaledProducts` does for many chains at once: below about a
hundred units the NumPy calls cost more than the arithmetic.
"""

from __future__ import annotations

import math

import numpy as np

from gradlab.analysis.products.compiled.code import compiled, in_order, inlined
from gradlab.analysis.products.compiled.norms import certified_norm
from gradlab.analysis.products.compiled.vectors import square, write
from gradlab.analysis.products.scaled import HIGH, LEAST_SHIFT, LOG_2, LOW, NEAR, SHORTEST
from gradlab.arrays import Array


@inlined
def _times_step(P: Array, factors: Array, matrix: Array, scaled: Array, Q: Array) -> None:
    """Write Q = P diag(factors) M."""
    for i in range(len(P)):
        for j in range(len(P)):
            scaled[i, j] = P[i, j] * factors[j]
    np.dot(scaled, matrix, Q)


@inlined
def _lengths(P: Array, empty: Array) -> tuple[float, bool, bool]:
    """Squared Frobenius norm, whether all rows are near one, and whether all have their digits."""
    total, near, digits = 0.0, True, True
    for i in range(len(P)):
        length = square(P[i])
        total += length
        near &= empty[i] or LOW < length < HIGH
        digits &= empty[i] or SHORTEST < length < np.inf
    return total, near, digits


@in_order
def _over_power(row: Array, exponent: int, target: Array) -> None:
    """Multiply a row by 2**exponent, exactly, and write it to the target."""
    first = max(-1000, min(1000, exponent))
    one, two = math.ldexp(1.0, first), math.ldexp(1.0, exponent - first)
    for j in range(len(row)):
        target[j] = row[j] * one * two


@in_order
def _rescale(P: Array, exponent: Array, empty: Array) -> bool:
    """Bring rows near one by powers of two: one for all where they are near each other.

    Whether they are.
    """
    n = len(P)
    absolute = np.empty(n, dtype=np.int64)
    common, some, level = 0, False, True
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, np.abs(P[i, j]))
        empty[i] = not largest > 0.0
        if not empty[i]:
            absolute[i] = exponent[i] + math.frexp(largest)[1]
            common = max(common, absolute[i]) if some else absolute[i]
            some = True
    for i in range(n):
        level &= empty[i] or absolute[i] >= common - NEAR
    for i in range(n):
        target = common if level or empty[i] else absolute[i]
        if not empty[i]:
            _over_power(P[i], exponent[i] - target, P[i])
        exponent[i] = target
    return level


@in_order
def _assembled(P: Array, exponent: Array, empty: Array, target: Array) -> int:
    """Write the rows with one common power of two, which is returned."""
    scale, some = 0, False
    for i in range(len(P)):
        if not empty[i]:
            scale = max(scale, exponent[i]) if some else exponent[i]
            some = True
    for i in range(len(P)):
        shift = 0 if empty[i] else max(exponent[i] - scale, LEAST_SHIFT)
        _over_power(P[i], shift, target[i])
    return scale


@compiled
def follow(
    P: Array,
    exponent: Array,
    left: Array,
    matrices: Array,
    factors: Array,
    log_norms: Array,
    log_frobenius: Array,
    path: Array,
) -> None:
    """Multiply a product by steps diag(factors) M, one after the other, with all norms.

    Parameters
    ----------
    P, exponent, left
        The product: its rows divided by powers of two, and a unit vector, the guess of its leading
        left one. All are written over.
    matrices, factors
        A matrix for each step or one for all, and its row factors.
    log_norms, log_frobenius, path
        Written: one number a step, and the index of what proved it.
    """
    n = len(P)
    Q, scaled, whole = np.empty_like(P), np.empty_like(P), P
    work, empty = np.empty((n + 7, n)), np.zeros(n, dtype=np.bool_)
    scattered = np.sin(np.arange(1.0, n + 1.0) ** 2)
    scattered /= np.sqrt(square(scattered))
    level = _rescale(P, exponent, empty)
    for step in range(len(factors)):
        matrix = matrices[min(step, len(matrices) - 1)]
        _times_step(P, factors[step], matrix, scaled, Q)
        total, near, digits = _lengths(Q, empty)
        if not near:
            if not digits:
                level = _rescale(P, exponent, empty)
                _times_step(P, factors[step], matrix, scaled, Q)
            level = _rescale(Q, exponent, empty)
            total, _, _ = _lengths(Q, empty)
        P, Q = Q, P
        scale, whole = exponent[0], P
        if not level:
            scale, whole = _assembled(P, exponent, empty, scaled), scaled
            total, _, _ = _lengths(whole, empty)
        norm, path[step] = certified_norm(whole, left, total, scattered, work, Q)
        log_norms[step] = np.log(norm) + scale * LOG_2
        log_frobenius[step] = 0.5 * np.log(total) + scale * LOG_2
    if len(factors) % 2:
        for i in range(n):
            write(P[i], Q[i])
