"""The ladder of bounds of one small tanh network, and the identities around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.bounds import bound_ladder
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
    return (*rungs, *blocks)


def _instance() -> tuple[VanillaCell, Trajectory]:
    cell = VanillaCell(W_hh=0.9 * lcg(11, N, N), W_xh=0.5 * np.eye(N))
    inputs = np.stack([lcg(1000 + t, N) for t in range(STEPS)])[:, None, :]
    return cell, rollout(cell, inputs)


def _rung(name: str, block: int | None) -> float:
    cell, trajectory = _instance()
    ladder = bound_ladder(cell, trajectory, block=block or N)
    return float(ladder.rungs[name][ladder.lag == STEPS][0])


BOUNDS = Group(title="bounds", expectations=expectations)
