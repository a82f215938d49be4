"""Published spectra of large random networks, at a size and length that two cores can do.

D. G. Clark's data for h -> tanh(W h) at N = 4096 over 4000 to 6000 steps
(github.com/davidclark1/rnn-lyapunov), beside a network of `N` units over `STEPS` steps. What a
finite network deviates by is allowed for: the bias of the leading exponent is predicted, the rest
was measured at N = 100, 200 and 400.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.meanfield import mean_field
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.verification.expectations import Expectation, Group

N, STEPS, TRANSIENT = 400, 800, 200
CLARK = "Clark, data of N = 4096 (github.com/davidclark1/rnn-lyapunov)"
THEORY = "theory at infinite N; the published mean at this gain contradicts its own mean ln phi'"


@dataclass(frozen=True, slots=True)
class Published:
    """Numbers of one gain."""

    gain: float
    lambda_1: float
    fraction: float
    dimension: float  # Kaplan-Yorke, over N
    mean: float
    mean_source: str = CLARK


SPECTRA = (
    Published(1.5, 0.06495, 0.08398, 0.16511, -0.71530),
    Published(3.0, 0.30958, 0.15259, 0.28717, -2.27390),
    Published(10.0, 0.85512, 0.09082, 0.16495, -12.16097, THEORY),
)
# Relative deviation of the dimension at this size: its middle, and how far single networks scatter,
# which near the onset of chaos is much.
DIMENSION = {1.5: (-0.15, 0.25), 3.0: (-6.0 / N, 10.0 / N), 10.0: (-6.0 / N, 14.0 / N)}
Measure = Callable[[LyapunovSpectrum], float]


def expectations() -> Sequence[Expectation]:
    """Four numbers a gain."""
    return [entry for published in SPECTRA for entry in _of(published)]


def _of(published: Published) -> list[Expectation]:
    g = published.gain
    theory = mean_field("tanh", gain=g)
    kappa = 3.0 * theory.kappa - 1.0
    band = max(2.0 / N, 0.025 if g < 2.0 else 0.0) + 3.0 * math.sqrt(kappa / (4.0 * N * STEPS))
    shift, scatter = DIMENSION[g]
    share = published.fraction
    # name, measure, expected, tolerance, source
    rows: list[tuple[str, Measure, float, float, str]] = [
        ("leading exponent", _leading, published.lambda_1 - kappa / (4.0 * N), band, CLARK),
        ("share above 0", _share, share, 1.0 / N + max(20.0 / N, 0.25 * (g < 2.0)) * share, CLARK),
        (
            "Kaplan-Yorke dimension over N",
            _dimension,
            published.dimension * (1.0 + shift),
            published.dimension * scatter,
            CLARK,
        ),
        ("mean exponent", _mean, published.mean, 0.1 if g < 2.0 else 0.05, published.mean_source),
    ]
    return [
        Expectation(
            name=f"tanh, Gaussian, g = {g}, N = {N}, T = {STEPS}: {name}",
            compute=partial(_measured, g, measure),
            expected=expected,
            absolute=tolerance,
            source=source,
        )
        for name, measure, expected, tolerance, source in rows
    ]


def _measured(gain: float, measure: Measure) -> float:
    return measure(_spectrum(gain))


@cache
def _spectrum(gain: float) -> LyapunovSpectrum:
    rng = np.random.default_rng(7)
    cell = VanillaCell.initialize(input_size=1, hidden_size=N, gain=gain, rng=rng)
    inputs = np.zeros((STEPS + TRANSIENT, 1, 1))
    trajectory = rollout(cell, inputs, initial_state=rng.normal(size=N))
    return lyapunov_spectrum(cell, trajectory, transient=TRANSIENT, rng=rng)


def _leading(spectrum: LyapunovSpectrum) -> float:
    return float(spectrum.exponents[0])


def _share(spectrum: LyapunovSpectrum) -> float:
    return float((spectrum.exponents > 0.0).mean())


def _dimension(spectrum: LyapunovSpectrum) -> float:
    return float(spectrum.kaplan_yorke) / N


def _mean(spectrum: LyapunovSpectrum) -> float:
    return float(spectrum.exponents.mean())


PUBLISHED = Group(title="published spectra", expectations=expectations)
