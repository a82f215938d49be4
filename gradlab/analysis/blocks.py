"""How many steps a block of the bound ladder spans, and its norms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.stretches import Stretches
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.trajectory import Trajectory

# Condition of a block above which its norm would lose digits to cancellation.
LOG_CONDITION = float(np.log(1e14))
LONGEST = 32
# Steps of a block where single steps are singular already, so that no condition decides.
SINGULAR = 8
# Sequences and end times at which the condition is looked at.
SAMPLES = 4


def block_length(cell: Cell, trajectory: Trajectory) -> int:
    r"""Steps of the longest blocks that stay well conditioned.

    Returns
    -------
    steps
        The largest power of two, at most 32, up to which the products of a sample of stretches
        have condition numbers :math:`\sigma_1/\sigma_n` below 1e14. Longer blocks are tighter and
        cheaper; where a single step is singular, as with dead units, 8.
    """
    sample = trajectory.select(np.arange(min(SAMPLES, trajectory.batch)))
    reach = min(LONGEST, trajectory.steps)
    profile = jacobian_profile(cell, sample, max_lag=reach, anchors=SAMPLES)
    with np.errstate(invalid="ignore"):
        condition = profile.log_norm - profile.log_sigma_min
    good = condition <= LOG_CONDITION  # nan: unresolved, so beyond it
    if not good[profile.lag == 1].all():
        return min(SINGULAR, reach)
    bad = profile.lag[~good]
    longest = int(bad.min()) - 1 if len(bad) else reach
    return 1 << (longest.bit_length() - 1)


def short_norms(
    cell: Cell,
    trajectory: Trajectory,
    stretches: Stretches,
    one_step: JacobianProfile,
    block: int,
) -> Float[Array, "batch times lags"]:
    """ln‖P_{t,t-l}‖ for l = 0..block where a block of a stretch ends; 0 elsewhere.

    Those of one step are in the place of every t.
    """
    table = np.zeros((trajectory.batch, trajectory.steps + 1, block + 1))
    measured = [one_step]
    if block > 1:
        reach = {(t, t - lags) for _, t, lags in stretches.each}
        ends = np.unique(np.concatenate([np.arange(t, k, -block) for t, k in reach])).tolist()
        short = jacobian_profile(cell, trajectory, max_lag=block, anchors=ends, smallest=False)
        measured.insert(0, short)
    for own in measured:
        table[own.sequence, own.t, own.lag] = own.log_norm
    return table


def block_rungs(
    stretches: Stretches, short: Float[Array, "batch times lags"]
) -> dict[str, Float[Array, " pairs"]]:
    """Rungs made of the norms of short products. Blocks are counted from t downward."""
    block = short.shape[2] - 1

    def blocks(sequence: int, t: int, lags: int) -> Array:
        lag, own = np.arange(1, lags + 1), short[sequence]
        ends = t - block * np.arange(lags // block)
        whole = np.concatenate([[0.0], np.cumsum(own[ends, block])])
        count, rest = np.divmod(lag, block)
        return np.asarray(whole[count] + own[t - block * count, rest])

    return {"onestep": stretches.sums(short[:, :, 1]), "blocks": stretches.gather(blocks)}
