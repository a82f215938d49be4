"""The ladder of bounds of one small tanh network, and the identities around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.records.trajectory import Trajectory
from gradlab.verification.expectations import Expectation, Group, lcg

N, STEPS = 5, 12
RUNGS = {
    "gamma": 7.7163585361091,
    "saturation_max": 7.7124742085278,
    "saturation": 6.9683069140721,
    "onestep": 4.2508117607301,
    "exact": -3.8902342268676,
    "radius": -5.2934435861329,
    "determinant": -8.532788171098,
    "sigma_min": -25.547945193414,
}
BLOCKS = {2: 1.2187075165751, 3: -1.3942755657398, 6: -2.7396654269442}


def expectations() -> Sequence[Expectation]:
    """Natural logarithms at lag 12."""
    rungs = [
        Expectation(
            name=f"ladder, rung {rung}: ln of the bound at lag 12",
            compute=partial(_rung, rung, None),
            expected=value,
            absolute=1e-10,
        )
        for rung, value in RUNGS.items()
    ]
    blocks = [
        Expectation(
            name=f"ladder, blocks of {block}: ln of the bound at lag 12",
            compute=partial(_rung, "blocks", block),
            expected=value,
            absolute=1e-11,
        )
        for block, value in BLOCKS.items()
    ]
    return (*rungs, *blocks, *_norms())


def _norms() -> list[Expectation]:
    """What lies about the norm of the product, and what needs no product."""
    cases = (
        ("ln |P|_F", _log_frobenius, -3.8815183881023),
        ("ln |P|_F less half of ln 5, below ln |P|", _mean_square, -4.6862373443193),
        ("ln |det P|, from the steps alone", _log_det, -42.66394085549),
    )
    return [
        Expectation(
            name=f"product of 12 steps: {name}", compute=compute, expected=value, absolute=1e-10
        )
        for name, compute, value in cases
    ]


def _instance() -> tuple[VanillaCell, Trajectory]:
    cell = VanillaCell(W_hh=0.9 * lcg(11, N, N), W_xh=0.5 * np.eye(N))
    inputs = np.stack([lcg(1000 + t, N) for t in range(STEPS)])[:, None, :]
    return cell, rollout(cell, inputs)


def _rung(name: str, block: int | None) -> float:
    cell, trajectory = _instance()
    ladder = bound_ladder(cell, trajectory, block=block or N)
    return float(ladder.rungs[name][ladder.lag == STEPS][0])


def _log_frobenius() -> float:
    profile = jacobian_profile(*_instance(), anchors="last")
    return float(profile.log_frobenius[profile.lag == STEPS][0])


def _mean_square() -> float:
    return _log_frobenius() - 0.5 * math.log(N)


def _log_det() -> float:
    cell, trajectory = _instance()
    return float(sum(step.log_abs_det()[0] for step in cell.linearize(trajectory)))


BOUNDS = Group(title="bounds", expectations=expectations)
