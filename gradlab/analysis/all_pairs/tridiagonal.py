"""Largest eigenvalues of many small symmetric tridiagonal matrices at once, and bounds on them.

Matrices of a few rows are too small for LAPACK calls: here a recurrence over the rows is done for
all of them together.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from gradlab.arrays import Array

MOST_STEPS = 20
# Step, relative to the value, after which the next one would change nothing.
CONVERGED = 1e-7


def largest_eigenvalue(
    diagonal: Float[Array, "rows *many"],
    beside: Float[Array, "rows-1 *many"],
    rows: int = 0,
    previous: Float[Array, "*many"] | None = None,
) -> Float[Array, "*many"]:
    """Newton's iteration on the characteristic polynomial, from above.

    Parameters
    ----------
    diagonal, beside
        Entries of positive semidefinite matrices, row by row.
    rows, previous
        The largest eigenvalues of the first rows, if they are known already.

    Returns
    -------
    value
        Never below the largest eigenvalue but for rounding, and equal to it where that is well
        apart from the others.

    Notes
    -----
    To the right of its largest zero a polynomial with real zeros is convex: the iteration decreases
    to that zero, and its convergence is quadratic.
    """
    if len(diagonal) == 1:
        return np.array(diagonal[0])
    if previous is None:
        rows, previous = 1, diagonal[0]
    # The first rows, the rest by its trace, and what couples them: a matrix of two rows.
    half = 0.5 * (previous - diagonal[rows:].sum(axis=0))
    value = previous - half + np.sqrt(half**2 + beside[rows - 1] ** 2)
    for _ in range(MOST_STEPS):
        step = _inverse_slope(diagonal, beside, value)
        step = np.where(step > 0.0, step, 0.0)  # nan and 0: at the zero, or stuck above it
        value -= step
        if (step <= CONVERGED * value).all():
            break
    return np.asarray(value)


def leading_vector(
    diagonal: Float[Array, "rows *many"],
    beside: Float[Array, "rows-1 *many"],
    value: Float[Array, "*many"],
) -> Float[Array, "rows *many"]:
    """Eigenvector of the largest eigenvalue, its first entry 1: the first rows have to lead.

    Zeros where there is none such.
    """
    vector = np.ones_like(diagonal)
    pivot = value - diagonal
    with np.errstate(all="ignore"):
        for i in range(len(diagonal) - 2, 0, -1):
            pivot[i] -= beside[i] ** 2 / pivot[i + 1]
        for i in range(1, len(diagonal)):
            vector[i] = vector[i - 1] * beside[i - 1] / pivot[i]
    return np.asarray(np.nan_to_num(vector, posinf=0.0, neginf=0.0))


def all_below(
    diagonal: Float[Array, "rows *many"],
    beside: Float[Array, "rows-1 *many"],
    limit: Float[Array, "*many"],
) -> Bool[Array, "*many"]:
    """Whether every eigenvalue is below a limit: the pivots of limit · I - T are positive."""
    pivot = limit - diagonal[-1]
    below = pivot > 0.0
    for i in range(len(diagonal) - 2, -1, -1):
        pivot = limit - diagonal[i] - beside[i] ** 2 / np.where(below, pivot, 1.0)
        below = below & (pivot > 0.0)
    return np.asarray(below)


def _inverse_slope(
    diagonal: Float[Array, "rows *many"],
    beside: Float[Array, "rows-1 *many"],
    value: Float[Array, "*many"],
) -> Float[Array, "*many"]:
    """The polynomial by its derivative, from the pivots of value · I - T."""
    with np.errstate(all="ignore"):
        pivot = value - diagonal[-1]
        slope = 1.0 / pivot  # of the pivot, relative to it
        total = slope.copy()
        for i in range(len(diagonal) - 2, -1, -1):
            carried = beside[i] ** 2 / pivot
            pivot = value - diagonal[i]
            pivot -= carried
            slope *= carried
            slope += 1.0
            slope /= pivot
            total += slope
        return np.asarray(1.0 / total)
