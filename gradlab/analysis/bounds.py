r"""The ladder of proven bounds on the long-term Jacobians, above and below the exact norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from gradlab.analysis.blocks import block_length, block_rungs, short_norms
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.lower_bounds import lower_rungs
from gradlab.analysis.majorants import log_norms_of_maxima, log_norms_of_products
from gradlab.analysis.one_step import one_step_profile
from gradlab.analysis.stretches import Stretches
from gradlab.arrays import Array
from gradlab.cells.base import Cell, Linearization, Majorant
from gradlab.errors import SettingError
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.trajectory import Trajectory

AUTO = "auto"
# Majorants that need a norm of every step.
OF_STEPS = ("lstm_data",)


def bound_ladder(
    cell: Cell,
    trajectory: Trajectory,
    *,
    profile: JacobianProfile | None = None,
    block: int | str | None = AUTO,
    one_step: JacobianProfile | None = None,
) -> BoundLadder:
    r"""Proven bounds on :math:`\lVert \partial h_t/\partial h_k \rVert`, rung by rung.

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
        Steps of a block; ``"auto"`` for the longest that stay well conditioned, see
        `block_length`. None leaves out all rungs that need a matrix of every step: ``lstm_data``,
        ``onestep``, ``blocks`` and the lower ones.
    one_step
        Norms of all steps' own Jacobians (``max_lag=1``) if they are measured already, with their
        smallest singular values.

    Returns
    -------
    ladder
        For every pair, as natural logarithms,

        .. math:: (\gamma_a\gamma_w)^l \ge (\max_j\lVert D_j\rVert \gamma_w)^l
            \ge \prod\lVert D_j\rVert\gamma_w \ge \prod\lVert D_j W\rVert
            \ge \prod_{\text{blocks}} \lVert J \cdots J \rVert
            \ge \lVert\partial h_t/\partial h_k\rVert = \lVert P \rVert
            \ge \rho(P) \ge |\det P|^{1/n} \ge \prod_j \sigma_{\min}(J_j)

        for vanilla and leaky cells; gated cells have rungs of their own in place of the first
        three. Blocks are counted from t downward; the last may be shorter.

    Raises
    ------
    SettingError
        If ``block`` is below 1 or another word.

    Notes
    -----
    Proof: |φ'| ≤ γ_a, ‖D_j W‖ ≤ ‖D_j‖ γ_w, and the norm is submultiplicative within and between
    blocks. Source: Pascanu, Mikolov and Bengio (2013), section 2.1, for the first rung;
    docs/theory.md, "The ladder" and "Bounds for gated cells", for the others. Cost: T · block
    further norms a sequence, and eigenvalues for the radius within a budget of work.
    """
    _check(block)
    if profile is None:
        profile = jacobian_profile(cell, trajectory, anchors="last", smallest=False)
    stretches, steps = Stretches(profile), cell.linearize(trajectory)
    skipped = OF_STEPS if block is None else ()
    rungs = _majorant_rungs(stretches, steps, skipped) | _factor_rungs(stretches, steps)
    lower: dict[str, Array] = {}
    if block is not None:
        wanted = block_length(cell, trajectory) if isinstance(block, str) else block
        block = min(wanted, trajectory.steps)
        one = _with_smallest(cell, trajectory, one_step)
        short = short_norms(cell, trajectory, stretches, one, block)
        rungs |= block_rungs(stretches, short)
        lower = lower_rungs(cell, trajectory, profile, one)
    gamma_w, gamma_a = cell.gamma_factors()
    return BoundLadder(
        sequence=profile.sequence,
        t=profile.t,
        k=profile.k,
        lag=profile.lag,
        rungs=rungs | {"exact": profile.log_norm} | lower,
        absent=dict(steps.absent_bounds),
        block=None if block is None else int(block),
        gamma_w=gamma_w,
        gamma_a=gamma_a,
    )


def _check(block: int | str | None) -> None:
    if isinstance(block, str):
        if block != AUTO:
            raise SettingError(f"block {block!r}: expected 'auto' or a number of steps")
    elif block is not None and block < 1:
        raise SettingError(f"block {block}: expected at least 1 step")


def _with_smallest(
    cell: Cell, trajectory: Trajectory, one_step: JacobianProfile | None
) -> JacobianProfile:
    """Norms of all steps' own Jacobians, with their smallest singular values."""
    return one_step or one_step_profile(cell, trajectory)


def _majorant_rungs(
    stretches: Stretches, steps: Linearization, skipped: Sequence[str]
) -> dict[str, Array]:
    """Rungs of gated cells, from bounds on the blocks of every step."""
    makers = steps.majorants.items()
    return {name: _of_majorant(stretches, make()) for name, make in makers if name not in skipped}


def _of_majorant(stretches: Stretches, majorant: Majorant) -> Float[Array, " pairs"]:
    norms = log_norms_of_maxima if majorant.constant else log_norms_of_products
    table = norms(majorant.matrices, stretches.ends)
    place = {t: index for index, t in enumerate(stretches.ends.tolist())}
    pairs = stretches.gather(lambda sequence, t, lags: table[place[t], :lags, sequence])
    return np.asarray(pairs + majorant.log_factor)


def _factor_rungs(stretches: Stretches, steps: Linearization) -> dict[str, Array]:
    """Rungs made of scalar factors a step."""
    rungs: dict[str, Array] = {}
    for name, values in steps.log_bound_factors.items():
        table = np.vstack([np.zeros(values.shape[1]), values]).T
        if name == "saturation":
            rungs["saturation_max"] = stretches.largest(table)
        rungs[name] = stretches.sums(table)
    return rungs
