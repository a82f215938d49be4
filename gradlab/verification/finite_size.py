"""Leading exponents of finite networks, beside mean-field theory with its 1/N shift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.meanfield import mean_field
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.verification.expectations import Expectation, Group

N, STEPS, TRANSIENT = 250, 1000, 200
CASES = (  # activation, ensemble, g, sigma: fresh input, or chaos of its own
    ("tanh", "gaussian", 1.5, 0.5),
    ("tanh", "gaussian", 3.0, 0.5),
    ("tanh", "gaussian", 5.0, 0.0),
    ("tanh", "orthogonal", 3.0, 0.5),
    ("hard_tanh", "gaussian", 5.0, 0.5),
)
SOURCE = "mean-field theory; within 2/N and three deviations of a run"


def expectations() -> Sequence[Expectation]:
    """One exponent a network."""
    return [_case(*case) for case in CASES]


def _case(activation: str, ensemble: str, g: float, sigma: float) -> Expectation:
    theory = mean_field(activation, gain=g, input_std=sigma, ensemble=ensemble)
    share = (3.0 * theory.kappa - 1.0) / (4.0 * N)
    where = f"{activation}, {ensemble}, g = {g}, sigma = {sigma}, N = {N}, T = {STEPS}"
    return Expectation(
        name=f"{where}: leading exponent",
        compute=partial(_leading, activation, ensemble, g, sigma),
        expected=theory.lambda_1 - share,
        absolute=2.0 / N + 3.0 * math.sqrt(share / STEPS),
        source=SOURCE,
    )


def _leading(activation: str, ensemble: str, g: float, sigma: float) -> float:
    rng = np.random.default_rng(11)
    random = VanillaCell.initialize(
        input_size=N, hidden_size=N, recurrent=ensemble, gain=g, activation=activation, rng=rng
    )
    cell = VanillaCell(W_hh=random.W_hh, W_xh=np.eye(N), activation=activation)
    inputs = sigma * rng.normal(size=(STEPS + TRANSIENT, 1, N))
    trajectory = rollout(cell, inputs, initial_state=rng.normal(size=N))
    spectrum = lyapunov_spectrum(cell, trajectory, k=1, transient=TRANSIENT, rng=rng)
    return float(spectrum.exponents[0])


FINITE_SIZE = Group(title="finite networks", expectations=expectations)
