"""One certified norm by the proofs of `gradlab.linalg.certified_norms`, in machine code."""

from __future__ import annotations

import numpy as np

from gradlab.analysis.products.compiled.code import in_order, inlined
from gradlab.analysis.products.compiled.tridiagonal import (
    bisected,
    last_pivot,
    proven,
    top_value,
    top_vector,
)
from gradlab.analysis.products.compiled.vectors import (
    normalize,
    orthogonalize,
    rows_times,
    square,
    times,
    write,
)
from gradlab.arrays import Array
from gradlab.lanczos import CANCELED, ROUNDING, VANISHED
from gradlab.linalg import CHOLESKY, EXACT, LANCZOS, MIXED_IN, POWER, POWER_TOLERANCE

# Relative error of a norm that a proof lets pass; far below what is promised, as it costs nothing.
ACCEPTED = 4e-13
# The same for the test that ends the Lanczos steps.
TIGHT = 0.5 * POWER_TOLERANCE
# Squared residual of a Ritz vector, relative to the squared value, that will change it no more.
SETTLED = 1e-20
# Lanczos steps more than which a Cholesky factor is cheaper.
PATIENCE = 12


@inlined
def _power_step(P: Array, left: Array, frobenius: float, work: Array) -> tuple[float, float]:
    """Norm, or -1 where nothing is proven, and the share of what is not in it; writes left."""
    y, z = work[len(P) + 5], work[len(P) + 6]
    rows_times(P, left, y)
    times(P, y, z)
    y_square = square(y)
    z_square = square(z) / (y_square * y_square)
    size = y_square * z_square
    if not 0.0 < size < np.inf:
        return -1.0, np.inf
    normalize(z)
    write(z, left)
    rest, excess = max(frobenius - size, 0.0) / size, max(z_square - 1.0, 0.0)
    room = 1.0 - rest * z_square
    error = rest * (1.0 + rest) * excess * z_square
    if rest <= 0.5 and room > 0.1 and error <= POWER_TOLERANCE * room * room:
        return np.sqrt(size), rest
    return -1.0, rest


@inlined
def _lanczos_step(P: Array, V: Array, j: int, y: Array, w: Array) -> tuple[float, float]:
    """Diagonal entry of T, and the length of what is new in w = P Pᵀ v_j, which is written."""
    rows_times(P, V[j], y)
    times(P, y, w)
    before = np.sqrt(square(w))
    orthogonalize(w, V, j + 1)
    length = np.sqrt(square(w))
    if length < CANCELED * before:
        orthogonalize(w, V, j + 1)
        length = np.sqrt(square(w))
    return square(y), length


@inlined
def _krylov(P: Array, frobenius: float, work: Array) -> tuple[float, float, int]:
    """Write the basis and T; the largest Ritz value, what the basis leaves, and its size."""
    n = len(P)
    V, a, b, y, w = work[: n + 1], work[n + 1], work[n + 2], work[n + 5], work[n + 6]
    value, tail, rest = 0.0, 1.0, frobenius
    for j in range(n):
        a[j], b[j] = _lanczos_step(P, V, j, y, w)
        rest -= a[j]
        if j == 0:
            value = a[0]
        else:
            value, tail = top_value(a, b, j + 1, value, tail)
        if b[j] <= VANISHED * a[0]:  # an invariant subspace
            b[j] = 0.0
            return value, rest, j + 1
        if proven(a, b, j + 1, value, rest, TIGHT):
            return value, rest, j + 1
        if b[j] ** 2 * tail <= SETTLED * value * value:
            wanting = (rest - value) / a[j]
            if wanting > PATIENCE or 2 * (j + 1 + wanting) > n:
                return value, rest, j + 1
        for i in range(n):
            V[j + 1, i] = w[i] / b[j]
    return value, rest, n


@inlined
def _lanczos(P: Array, left: Array, frobenius: float, work: Array) -> tuple[float, int]:
    """Norm and path by Lanczos steps on P Pᵀ; the start is written over by the vector found."""
    n = len(P)
    V, a, b, s, y = work[: n + 1], work[n + 1], work[n + 2], work[n + 3], work[n + 5]
    write(left, V[0])
    value, rest, count = _krylov(P, frobenius, work)
    pivot, _, positive = last_pivot(a, b, count, value * (1.0 + ACCEPTED))
    if not (positive and pivot > 0.0):
        value = bisected(a, b, count, value, frobenius)
    top_vector(a, b, count, value, s, work[n + 4])
    left[:] = 0.0
    for i in range(count):
        for j in range(n):
            left[j] += s[i] * V[i, j]
    normalize(left)
    rows_times(P, left, y)
    norm, largest = np.sqrt(square(y)), np.sqrt(value)
    honest = np.abs(norm - largest) <= 0.25 * ACCEPTED * largest
    whole = rest >= -ROUNDING * frobenius and 2 * count <= n
    if honest and whole and proven(a, b, count, value, rest, 0.5 * ACCEPTED):
        return norm, LANCZOS
    return norm, EXACT


@in_order
def _dominates(P: Array, norm: float, G: Array) -> bool:
    """Whether norm (1 + 4e-13) is proven to be above all singular values of P: Cholesky."""
    np.dot(P, P.T, G)
    limit = (norm * (1.0 + ACCEPTED)) ** 2
    for i in range(len(G)):
        for j in range(i):
            part = 0.0
            for k in range(j):
                part += G[i, k] * G[j, k]
            G[i, j] = -(G[i, j] + part) / G[j, j]
        pivot = limit - G[i, i] - square(G[i, :i])
        if not pivot > 0.0:
            return False
        G[i, i] = np.sqrt(pivot)
    return True


@inlined
def certified_norm(
    P: Array, left: Array, frobenius: float, scattered: Array, work: Array, G: Array
) -> tuple[float, int]:
    """Largest singular value and the path that proved it; the left vector is written anew."""
    if frobenius == 0.0:
        return 0.0, POWER
    norm, rest = _power_step(P, left, frobenius, work)
    if norm > 0.0:
        return norm, POWER
    if rest > 0.5:  # a start without weight in the leading direction would stay on another one
        for j in range(len(P)):
            left[j] += MIXED_IN * scattered[j]
        normalize(left)
    norm, path = _lanczos(P, left, frobenius, work)
    if path == EXACT and _dominates(P, norm, G):
        path = CHOLESKY
    if path == EXACT:
        np.dot(P, P.T, G)
        norm = np.sqrt(max(np.linalg.eigvalsh(G)[-1], 0.0))
    return norm, path
