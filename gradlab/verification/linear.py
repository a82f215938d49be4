"""Linear and scalar networks, whose products are known in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.jacobians import jacobian_profile
from gradlab.arrays import Array
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.norms import spectral_norm, spectral_radius
from gradlab.records.trajectory import Trajectory
from gradlab.verification.expectations import Expectation, Group

JORDAN = ((0.9, 1.0), (0.0, 0.9))
RING = ((0.0, 4.0, 0.0), (0.0, 0.0, 0.1), (0.5, 0.0, 0.0))
FIXED_POINTS = {  # w: h*, multiplier
    1.1: (0.50294057494464, 0.82175585588179),
    1.5: (0.85855963664011, 0.3943130254986),
    2.0: (0.95750402407727, 0.16637208775167),
}
MARGINAL = {100: 0.013062255666521, 1000: 4.4842946475802e-4, 10_000: 1.4307663467725e-5}


def expectations() -> Sequence[Expectation]:
    """Powers of a matrix, and scalar tanh networks at rest."""
    return (*_powers(), *_spectra(), *_scalars())


def _powers() -> list[Expectation]:
    jordan = np.array(JORDAN)
    cases = [
        ("0.95 Q, Q orthogonal: ln |P| at lag 50", 0.95 * _reflection(), 50, -2.5646647193775),
        ("Q: ln |P| at lag 50", _reflection(), 50, 0.0),
        ("1.05 Q: ln |P| at lag 50", 1.05 * _reflection(), 50, 2.4395082084716),
        ("Jordan block: ln of the peak, at lag 9", jordan, 9, math.log(3.9125670783767)),
        ("Jordan block: ln |P| at lag 100", jordan, 100, math.log(0.0029515055762951)),
        ("rank one: ln |P| at lag 50", _rank_one(), 50, math.log(0.0064278870247472)),
        ("nilpotent shift of 6: ln |P| at lag 5", np.eye(6, k=1), 5, 0.0),
        ("nilpotent shift of 6: ln |P| at lag 6", np.eye(6, k=1), 6, -math.inf),
        ("zero matrix: ln |P| at lag 1", np.zeros((3, 3)), 1, -math.inf),
        ("ring (4, .1, .5): ln |P| at lag 30", np.array(RING), 30, math.log(1.024e-7)),
        ("0.5 I: ln |P| at lag 1075, below float64", 0.5 * np.eye(3), 1075, 1075 * math.log(0.5)),
    ]
    return [
        Expectation(name=name, compute=partial(_log_norm, W, lag), expected=value, absolute=1e-11)
        for name, W, lag, value in cases
    ]


def _spectra() -> list[Expectation]:
    shear = np.array([[0.5, 10.0], [0.0, 0.5]])
    cases = [
        ("[[.5, 10], [0, .5]]: sigma_max", partial(spectral_norm, shear), 10.0249378106),
        ("[[.5, 10], [0, .5]]: spectral radius", partial(spectral_radius, shear), 0.5),
        ("ring (4, .1, .5): spectral radius", partial(spectral_radius, np.array(RING)),
         0.58480354764257),
    ]  # fmt: skip
    return [
        Expectation(name=name, compute=compute, expected=value, relative=1e-10)
        for name, compute, value in cases
    ]


def _scalars() -> list[Expectation]:
    multipliers = [
        Expectation(
            name=f"scalar tanh, w = {w}, at its fixed point: |J|",
            compute=partial(_scalar, w, state, 1),
            expected=multiplier,
            relative=1e-11,
        )
        for w, (state, multiplier) in FIXED_POINTS.items()
    ]
    marginal = [
        Expectation(
            name=f"scalar tanh, w = 1, h_0 = 0.5: |P| at lag {lag}",
            compute=partial(_scalar, 1.0, 0.5, lag),
            expected=product,
            relative=1e-10,
        )
        for lag, product in MARGINAL.items()
    ]
    return [*multipliers, *marginal]


def _reflection() -> Array:
    v = np.array([1.0, 2.0, 3.0, -1.0, 2.0])
    return np.asarray(np.eye(5) - 2.0 * np.outer(v, v) / (v @ v))


def _rank_one() -> Array:
    return np.outer([1.0, 2.0, 2.0], [0.3, 0.1, 0.2])


def _log_norm(W: Array, lag: int) -> float:
    """Natural logarithm of the norm of a power."""
    cell = VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation="identity")
    return _last(cell, _at_rest(cell, lag, 0.0))


def _scalar(w: float, start: float, lag: int) -> float:
    cell = VanillaCell(W_hh=np.array([[w]]), W_xh=np.zeros((1, 1)))
    return math.exp(_last(cell, _at_rest(cell, lag, start)))


def _at_rest(cell: VanillaCell, steps: int, start: float) -> Trajectory:
    state = np.full(cell.state_size, start)
    return rollout(cell, np.zeros((steps, 1, 1)), initial_state=state)


def _last(cell: VanillaCell, trajectory: Trajectory) -> float:
    profile = jacobian_profile(cell, trajectory, anchors="last", smallest=False)
    return float(profile.log_norm[-1])


LINEAR = Group(title="linear and scalar networks", expectations=expectations)
