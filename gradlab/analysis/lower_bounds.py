r"""Proven lower bounds on the norm of the long-term Jacobians.

.. math:: \prod_j \sigma_{\min}(J_j) \le |\det P|^{1/N} \le \rho(P) \le \lVert P \rVert
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.products.scaled import ScaledProducts
from gradlab.analysis.stretches import Stretches
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.linalg import log
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.trajectory import Trajectory

# Work that eigenvalues of products may take: about two seconds. A solve takes some 25 n^3.
RADIUS_WORK = 4e9
SOLVE_WORK = 25


def lower_rungs(
    cell: Cell, trajectory: Trajectory, profile: JacobianProfile, one_step: JacobianProfile
) -> dict[str, Float[Array, " pairs"]]:
    """Lower bounds for every pair of a profile, tightest first.

    Parameters
    ----------
    cell, trajectory
        Where the Jacobians are taken.
    profile
        Pairs to bound.
    one_step
        Smallest singular values of all steps' own Jacobians.

    Returns
    -------
    rungs
        ``radius`` at the last end times alone, ``determinant`` and ``sigma_min``; nan where not
        measured or not resolved.
    """
    smallest = np.zeros((trajectory.batch, trajectory.steps + 1))
    smallest[one_step.sequence, one_step.t] = one_step.log_sigma_min
    stretches = Stretches(profile)
    return {
        "radius": log_radii(cell, trajectory, profile),
        "determinant": stretches.sums(log_dets(cell, trajectory, smallest)),
        "sigma_min": stretches.sums(smallest),
    }


def log_dets(
    cell: Cell, trajectory: Trajectory, smallest: Float[Array, "batch times"]
) -> Float[Array, "batch times"]:
    r"""ln of :math:`|\det J_t|^{1/n}` of every step, in the place of its time t; nats.

    Where float64 does not resolve the smallest singular value of a step it does not resolve its
    determinant either: nan.
    """
    table = np.zeros_like(smallest)
    table[:, 1:] = cell.linearize(trajectory).log_abs_det().T / cell.state_size
    return np.where(np.isnan(smallest), np.nan, table)


def log_radii(
    cell: Cell, trajectory: Trajectory, profile: JacobianProfile
) -> Float[Array, " pairs"]:
    r"""ln ρ(P_{t,k}) of the pairs of every sequence's last end time; nats, nan where not measured.

    Notes
    -----
    An eigenvalue solve costs far more than a norm. Where those of all lags would take longer than
    `RADIUS_WORK`, evenly spaced ones are measured, always with the longest. A computed radius is
    that of a matrix within rounding of P, and so never passes the norm by more.
    """
    latest = np.zeros(trajectory.batch, dtype=np.int64)
    np.maximum.at(latest, profile.sequence, profile.t)
    values = np.full(len(profile.lag), np.nan)
    places = np.flatnonzero(profile.t == latest[profile.sequence])
    chosen = places[np.isin(profile.lag[places], _measured_lags(profile.lag[places], cell))]
    for t in np.unique(profile.t[chosen]):
        own = chosen[profile.t[chosen] == t]
        sequences, row = np.unique(profile.sequence[own], return_inverse=True)
        table = _radii(cell, trajectory.select(sequences), int(t), np.unique(profile.lag[own]))
        values[own] = table[row, profile.lag[own]]
    return values


def _measured_lags(lags: Int[Array, " pairs"], cell: Cell) -> Int[Array, " some"]:
    present, counts = np.unique(lags, return_counts=True)
    allowed = RADIUS_WORK / (SOLVE_WORK * cell.state_size**3 * counts.max())
    count = int(np.clip(allowed, 1, len(present)))
    return present[-(-np.arange(1, count + 1) * len(present) // count) - 1]


def _radii(
    cell: Cell, trajectory: Trajectory, t: int, lags: Int[Array, " lags"]
) -> Float[Array, "batch reach"]:
    """Table of ln ρ(P_{t,t-l}) by sequence and lag l, with a column for lag 0."""
    steps = cell.linearize(trajectory)
    products = ScaledProducts(trajectory.batch, cell.state_size)
    products.renew(np.zeros(0, dtype=bool), begin=True)
    wanted = set(lags.tolist())
    table = np.full((trajectory.batch, int(lags[-1]) + 1), np.nan)
    for lag in range(1, table.shape[1]):
        products.extend(steps[t - lag])
        if lag in wanted:
            whole, log_scale = products.assembled()
            radius = np.abs(np.linalg.eigvals(whole[:, 0])).max(axis=1)
            table[:, lag] = log(radius) + log_scale[:, 0]
    return table
