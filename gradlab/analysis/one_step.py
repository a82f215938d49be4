"""Norms of single steps' Jacobians, all at once where they differ by the scale of their rows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.products.scaled import RESOLUTION, RowScaled, UnitRowInverse, unit_rows
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.lanczos import FIRST_CHECK
from gradlab.linalg import gram_norms, log
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.trajectory import Trajectory

# Matrices whose eigenvalues are taken at a time: few enough to stay in the cache.
STACK_BYTES = 1 << 20


def one_step_profile(cell: Cell, trajectory: Trajectory) -> JacobianProfile:
    r"""Norms of :math:`\partial h_t/\partial h_{t-1}` for every step of every sequence.

    Parameters
    ----------
    cell
        Any cell.
    trajectory
        Where the Jacobians are taken.

    Returns
    -------
    profile
        What `jacobian_profile` gives for the lag 1, with the smallest singular values, to 1e-10.

    Notes
    -----
    Where J_t = D_t W, as in a vanilla cell, with rows of unit length in B and W = diag(r) B,
    :math:`\lVert J_t \rVert^2` is the largest eigenvalue of :math:`R_t B B^T R_t` with
    :math:`R_t = D_t\,\mathrm{diag}(r)`, so that one Gram matrix serves all steps; and the smallest
    singular value is the inverse of :math:`\lVert B^{-1} R_t^{-1} \rVert`, which one inverse
    serves. Rows are scaled in logarithms: a saturated unit hides nothing of the others.
    """
    steps = cell.linearize(trajectory)
    if not isinstance(steps[0], RowScaled):
        return jacobian_profile(cell, trajectory, max_lag=1)
    W = steps[0].row_scaled[0]
    factors = np.stack(
        [step.row_scaled[1] for step in steps if isinstance(step, RowScaled)], axis=1
    )
    time = np.arange(1, trajectory.steps + 1)
    valid = time <= trajectory.lengths[:, None]
    sequence, place = np.nonzero(valid)
    B, log_lengths, _ = unit_rows(W[None])
    present = B[0].any(axis=1)
    log_rows = np.where(present, log_lengths, -np.inf) + log(np.abs(factors[valid]))
    log_norm, log_frobenius = _log_norms(B[0], log_rows)
    smallest = np.minimum(_log_smallest(UnitRowInverse.of(W[None]), log_rows), log_norm)
    return JacobianProfile(
        sequence=sequence,
        t=place + 1,
        k=place,
        lag=np.ones_like(place),
        log_norm=log_norm,
        log_frobenius=log_frobenius,
        log_sigma_min=smallest,
    )


def _log_norms(
    B: Float[Array, "n n"], log_rows: Float[Array, "pairs n"]
) -> tuple[Float[Array, " pairs"], Float[Array, " pairs"]]:
    """Spectral and Frobenius norm of every diag(exp(log_rows)) B, whose rows have unit length."""
    largest = log_rows.max(axis=1)
    log_norm, log_frobenius = np.full((2, len(log_rows)), -np.inf)
    some = largest > -np.inf
    weights = np.exp(log_rows[some] - largest[some, None])
    log_norm[some] = log(_weighted_norms(B @ B.T, weights)) + largest[some]
    log_frobenius[some] = 0.5 * log(np.vecdot(weights, weights)) + largest[some]
    # Rounding may leave the larger of two equal numbers a little below the smaller.
    return log_norm, np.maximum(log_norm, log_frobenius)


def _log_smallest(
    rows: UnitRowInverse, log_rows: Float[Array, "pairs n"]
) -> Float[Array, " pairs"]:
    """Smallest singular values; -inf where a row or column is zero, nan where not resolved."""
    shortest = log_rows.min(axis=1)
    lost: Bool[Array, " pairs"] = rows.lost[0] | (shortest == -np.inf)
    if rows.error[0] > RESOLUTION:
        return np.where(lost, -np.inf, np.nan)
    found = np.full(len(log_rows), -np.inf)
    kept = log_rows[~lost]
    inverse = rows.inverse[0]
    norms = _weighted_norms(inverse.T @ inverse, np.exp(shortest[~lost][:, None] - kept))
    found[~lost] = shortest[~lost] - log(norms)
    return found


def _weighted_norms(
    gram: Float[Array, "n n"], weights: Float[Array, "count n"]
) -> Float[Array, " count"]:
    """Norm of every P diag(w) with P^T P = G, each search started where the last one ended."""
    values, expected = np.empty(len(weights)), FIRST_CHECK
    start = np.full((1, len(gram)), 1.0 / np.sqrt(len(gram)))
    at_once = max(1, STACK_BYTES // gram.nbytes)
    for first in range(0, len(weights), at_once):
        w = weights[first : first + at_once]
        scaled = w[:, :, None] * gram * w[:, None, :]
        found = gram_norms(scaled, np.repeat(start, len(w), axis=0), expected=expected)
        values[first : first + at_once] = found.norms
        start, expected = found.right[-1:], found.steps
    return values
