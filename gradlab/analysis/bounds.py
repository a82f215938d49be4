r"""The ladder of bounds on the long-term Jacobians, from :math:`\gamma_w^l` to the exact norm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from gradlab.analysis.jacobians import jacobian_profile
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.errors import SettingError
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.trajectory import Trajectory

Table = Float[Array, "sequences times lags"]


def bound_ladder(
    cell: Cell,
    trajectory: Trajectory,
    *,
    profile: JacobianProfile | None = None,
    block: int | None = 8,
    one_step: JacobianProfile | None = None,
) -> BoundLadder:
    r"""Proven upper bounds on :math:`\lVert \partial h_t/\partial h_k \rVert`, rung by rung.

    Parameters
    ----------
    cell
        Any cell.
    trajectory
        Where the Jacobians are taken.
    profile
        Pairs to bound, with their measured norms; each sequence's last end time with all its lags
        if None.
    block
        Steps of a block; None leaves out the rungs that need further norms, ``onestep`` and
        ``blocks``.
    one_step
        Norms of all steps' own Jacobians (``max_lag=1``) if they are measured already.

    Returns
    -------
    ladder
        For every pair

        .. math:: (\gamma_a\gamma_w)^l \ge (\max_j\lVert D_j\rVert \gamma_w)^l
            \ge \prod\lVert D_j\rVert\gamma_w \ge \prod\lVert D_j W\rVert
            \ge \prod_{\text{blocks}} \lVert J \cdots J \rVert
            \ge \lVert\partial h_t/\partial h_k\rVert

        as natural logarithms. Blocks are counted from t downward; the last may be shorter.

    Raises
    ------
    SettingError
        If ``block`` is below 1.

    Notes
    -----
    Proof: |φ'| ≤ γ_a, ‖D_j W‖ ≤ ‖D_j‖ γ_w, and the norm is submultiplicative within and between
    blocks. Source: Pascanu, Mikolov and Bengio (2013), section 2.1, for the first rung;
    docs/theory.md, "The ladder", for the others. Cost: T · block further norms a sequence.
    """
    if block is not None and block < 1:
        raise SettingError(f"block {block}: expected at least 1 step")
    if profile is None:
        profile = jacobian_profile(cell, trajectory, anchors="last", smallest=False)
    factors = cell.linearize(trajectory).log_bound_factors
    reach = None if block is None else min(block, trajectory.steps)
    short = None
    if reach is not None:
        short = _short_lags(cell, trajectory, profile, reach)
        one = one_step or jacobian_profile(cell, trajectory, max_lag=1, smallest=False)
        short[one.sequence, one.t, one.lag] = one.log_norm
    columns: dict[str, list[Array]] = {}
    for start, stop in _runs(profile):
        sequence, t = int(profile.sequence[start]), int(profile.t[start])
        own = {name: values[:t, sequence] for name, values in factors.items()}
        rungs = _factor_rungs(own, stop - start)
        if short is not None:
            rungs |= _step_rungs(short[sequence], t, stop - start)
        for name, values in rungs.items():
            columns.setdefault(name, []).append(values)
    rungs = {name: np.concatenate(values) for name, values in columns.items()}
    gamma_w, gamma_a = cell.gamma_factors()
    return BoundLadder(
        sequence=profile.sequence,
        t=profile.t,
        k=profile.k,
        lag=profile.lag,
        rungs=rungs | {"exact": profile.log_norm},
        block=block,
        gamma_w=gamma_w,
        gamma_a=gamma_a,
    )


def _short_lags(cell: Cell, trajectory: Trajectory, profile: JacobianProfile, block: int) -> Table:
    """ln‖P_{t,t-l}‖ for lags 0..block at the ends of the profile's blocks; 0 elsewhere."""
    table = np.zeros((trajectory.batch, trajectory.steps + 1, block + 1))
    runs = [(profile.t[stop - 1], profile.k[stop - 1]) for _, stop in _runs(profile)]
    ends = np.unique(np.concatenate([np.arange(t, k, -block) for t, k in set(runs)]))
    short = jacobian_profile(cell, trajectory, max_lag=block, anchors=ends.tolist(), smallest=False)
    table[short.sequence, short.t, short.lag] = short.log_norm
    return table


def _runs(profile: JacobianProfile) -> list[tuple[int, int]]:
    """Slices of the profile with equal sequence and end time, whose lags are 1, 2, 3, ..."""
    first = np.flatnonzero(profile.lag == 1)
    return list(zip(first.tolist(), [*first[1:].tolist(), len(profile.lag)], strict=True))


def _factor_rungs(factors: Mapping[str, Array], lags: int) -> dict[str, Array]:
    """Rungs made of scalar factors a step, for lags 1..lags from the factors' end."""
    rungs: dict[str, Array] = {}
    for name, values in factors.items():
        back = values[::-1][:lags]
        if name == "saturation":
            rungs["saturation_max"] = np.maximum.accumulate(back) * np.arange(1, lags + 1)
        rungs[name] = np.cumsum(back)
    return rungs


def _step_rungs(
    short: Float[Array, "times short"], t: int, lags: int
) -> dict[str, Float[Array, " lags"]]:
    """Rungs made of the norms of short products, for end time t and lags 1..lags."""
    block = short.shape[1] - 1
    lag = np.arange(1, lags + 1)
    whole = np.concatenate([[0.0], np.cumsum(short[t - block * np.arange(lags // block), block])])
    count, rest = np.divmod(lag, block)
    return {
        "onestep": np.cumsum(short[t - lag + 1, 1]),
        "blocks": whole[count] + short[t - block * count, rest],
    }
