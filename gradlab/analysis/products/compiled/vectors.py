"""Products and lengths of small vectors, in machine code."""

from __future__ import annotations

import numpy as np

from gradlab.analysis.products.compiled.code import in_order, inlined
from gradlab.arrays import Array


@inlined
def rows_times(A: Array, u: Array, y: Array) -> None:
    """Write y = uᵀ A."""
    n, m = A.shape
    whole = n - n % 4
    y[:] = 0.0
    for i in range(0, whole, 4):
        a, b, c, d = u[i], u[i + 1], u[i + 2], u[i + 3]
        for j in range(m):
            y[j] += a * A[i, j] + b * A[i + 1, j] + c * A[i + 2, j] + d * A[i + 3, j]
    for i in range(whole, n):
        for j in range(m):
            y[j] += u[i] * A[i, j]


@inlined
def times(A: Array, y: Array, z: Array) -> None:
    """Write z = A y."""
    n, m = A.shape
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = b = c = d = 0.0
        for j in range(m):
            a += A[i, j] * y[j]
            b += A[i + 1, j] * y[j]
            c += A[i + 2, j] * y[j]
            d += A[i + 3, j] * y[j]
        z[i], z[i + 1], z[i + 2], z[i + 3] = a, b, c, d
    for i in range(whole, n):
        a = 0.0
        for j in range(m):
            a += A[i, j] * y[j]
        z[i] = a


@inlined
def square(x: Array) -> float:
    """Squared length."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


@in_order
def write(x: Array, target: Array) -> None:
    """Copy numbers: NumPy's own assignment would take seconds to compile."""
    for i in range(len(x)):
        target[i] = x[i]


@inlined
def normalize(x: Array) -> None:
    """Bring x to unit length."""
    length = np.sqrt(square(x))
    for i in range(len(x)):
        x[i] /= length


@inlined
def orthogonalize(x: Array, basis: Array, count: int) -> None:
    """Take the parts along the first rows of a basis out of x."""
    for i in range(count):
        part = 0.0
        for j in range(len(x)):
            part += basis[i, j] * x[j]
        for j in range(len(x)):
            x[j] -= part * basis[i, j]
