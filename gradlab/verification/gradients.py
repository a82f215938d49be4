"""The gradient of one small network, term by term, and clipping by its norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.gradients import gradient_profile
from gradlab.arrays import Array
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.bptt import bptt
from gradlab.engine.clipping import clip_by_norm
from gradlab.engine.losses import Readout
from gradlab.verification.expectations import Expectation, Group, lcg

LOSS = 6.2549552486249
GRADIENT = (
    (0.18015059297214, 0.094401830408926, 0.24239002788997),
    (0.079754678008437, -0.21848136015188, 0.90914445663904),
    (-0.032839072560984, 0.18733759425918, -0.034575601066464),
)
TERMS = (0.43031494201852, 0.234860063519, 0.099444200424562, 0.041964508021997, 0.03776870808542)


def expectations() -> Sequence[Expectation]:
    """Loss, gradient, terms of the last step, and two clippings."""
    loss = Expectation(
        name="loss over 6 steps", compute=lambda: _instance_loss()[0], expected=LOSS, relative=1e-12
    )
    entries = [
        Expectation(
            name=f"dL/dW_hh[{row}, {column}]",
            compute=partial(_entry, row, column),
            expected=value,
            relative=1e-11,
        )
        for row, values in enumerate(GRADIENT)
        for column, value in enumerate(values)
    ]
    terms = [
        Expectation(
            name=f"norm of the term t = 6, k = {6 - lag}",
            compute=partial(_term, lag),
            expected=value,
            relative=1e-11,
        )
        for lag, value in enumerate(TERMS)
    ]
    first = Expectation(
        name="ln of the norm of the term k = 1, with h_0 = 0",
        compute=partial(_log_term, 5),
        expected=-math.inf,
    )
    return (loss, *entries, *terms, first, *_clippings())


def _clippings() -> list[Expectation]:
    cases = (((3.0, 4.0), 1.0, 0.6), ((3e-200, 4e-200), 1.0, 3e-200),
             ((1e200, 1e200), 1.0, math.sqrt(0.5)))  # fmt: skip
    return [
        Expectation(
            name=f"{vector} clipped to norm {eta:g}: first entry",
            compute=partial(_clipped, vector, eta),
            expected=value,
            relative=1e-15,
        )
        for vector, eta, value in cases
    ]


def _instance() -> tuple[VanillaCell, Readout, Array, Array]:
    cell = VanillaCell(W_hh=0.8 * lcg(31, 3, 3), W_xh=lcg(32, 3, 2), b_h=0.2 * lcg(33, 3))
    readout = Readout(W_hy=lcg(34, 3, 3), b_y=0.1 * lcg(35, 3))
    return cell, readout, lcg(36, 6, 2)[:, None], np.array([0, 2, 1, 1, 0, 2])[:, None]


def _instance_loss() -> tuple[float, Array]:
    loss, gradients = bptt(*_instance())
    return float(loss), gradients["W_hh"]


def _entry(row: int, column: int) -> float:
    return float(_instance_loss()[1][row, column])


def _log_term(lag: int) -> float:
    profile = gradient_profile(*_instance())
    return float(profile.log_term_norm[(profile.t == 6) & (profile.t - profile.k == lag)][0])


def _term(lag: int) -> float:
    return math.exp(_log_term(lag))


def _clipped(vector: Sequence[float], eta: float) -> float:
    clipped, _ = clip_by_norm({"g": np.array(vector)}, threshold=eta)
    return float(clipped["g"][0])


GRADIENTS = Group(title="gradients and clipping", expectations=expectations)
