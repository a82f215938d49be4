"""Lyapunov spectra with known answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.lyapunov import kaplan_yorke, lyapunov_from_jacobians
from gradlab.arrays import Array
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.verification.expectations import Expectation, Group

STEPS = 4000
CAT = ((2.0, 1.0), (1.0, 1.0))
GINIBRE = (-0.18448756706479, -0.49134038650485, -1.1844875670648)
DEVIATION = (0.49, 0.6, 1.12)  # of one step, with a margin
DIMENSIONS = (
    ((0.5, 0.0, -0.2, -1.0), 3.3),
    ((-0.1, -0.2), 0.0),
    ((0.3, 0.1), 2.0),
    ((0.0, -1.0), 1.0),
    ((0.5, -1.0), 1.5),
    ((0.2, 0.1, -0.3, -0.3), 3.0),
)


def expectations() -> Sequence[Expectation]:
    """Maps, random matrices and dimensions."""
    return (*_maps(), *_ginibre(), *_dimensions())


def _maps() -> list[Expectation]:
    cat = [
        Expectation(
            name=f"cat map: exponent {index + 1}",
            compute=partial(_constant, CAT, index),
            expected=value,
            absolute=2.0 / STEPS,
        )
        for index, value in enumerate((0.96242365011921, -0.96242365011921))
    ]
    henon = [
        Expectation(
            name="Hénon map, a = 1.4, b = 0.3: sum of the exponents",
            compute=lambda: float(_henon().exponents.sum()),
            expected=math.log(0.3),
            absolute=1e-12,
        ),
        Expectation(
            name="Hénon map, a = 1.4, b = 0.3: leading exponent",
            compute=lambda: float(_henon().exponents[0]),
            expected=0.41922,
            absolute=3 * 0.38 / math.sqrt(STEPS),
            source="value in public code bases; three standard errors of the run",
        ),
    ]
    trap = Expectation(
        name="diag(1, 2, 3), one exponent: no blind start",
        compute=lambda: float(_run([np.diag([1.0, 2.0, 3.0])] * STEPS, 1).exponents[0]),
        expected=math.log(3.0),
        absolute=5.0 / STEPS,
    )
    return [*cat, *henon, trap]


def _ginibre() -> list[Expectation]:
    return [
        Expectation(
            name=f"products of Gaussian matrices, N = 3: exponent {index + 1}",
            compute=partial(_random, index),
            expected=value,
            absolute=4.0 * DEVIATION[index] / math.sqrt(STEPS),
            source="Newman (1986); Forrester (2013), arXiv 1206.2001; four standard errors",
        )
        for index, value in enumerate(GINIBRE)
    ]


def _dimensions() -> list[Expectation]:
    return [
        Expectation(
            name=f"Kaplan-Yorke dimension of {exponents}",
            compute=partial(kaplan_yorke, np.array(exponents), len(exponents)),
            expected=dimension,
            absolute=1e-12,
        )
        for exponents, dimension in DIMENSIONS
    ]


def _run(jacobians: Sequence[Array], k: int | None = None) -> LyapunovSpectrum:
    return lyapunov_from_jacobians(jacobians, k=k, rng=np.random.default_rng(0))


def _constant(matrix: Sequence[Sequence[float]], index: int) -> float:
    return float(_run([np.array(matrix)] * STEPS).exponents[index])


def _henon() -> LyapunovSpectrum:
    x, y, jacobians = 0.1, 0.1, []
    for _ in range(STEPS + 100):
        jacobians.append(np.array([[-2.8 * x, 1.0], [0.3, 0.0]]))
        x, y = 1.0 - 1.4 * x * x + y, 0.3 * x
    return _run(jacobians[100:])


def _random(index: int) -> float:
    draw = np.random.default_rng(1).normal(size=(STEPS, 3, 3)) / math.sqrt(3.0)
    return float(_run(list(draw)).exponents[index])


LYAPUNOV = Group(title="Lyapunov spectra", expectations=expectations)
