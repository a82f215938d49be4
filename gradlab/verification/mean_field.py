"""Mean-field theory: variance, growth and leading exponent of wide random networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from gradlab.analysis.meanfield import mean_field
from gradlab.verification.expectations import Expectation, Group

TANH = (  # g, sigma, q, chi, lambda_1
    (0.5, 0.0, 0.0, 0.25, -0.6931472),
    (0.9, 0.0, 0.0, 0.81, -0.1053605),
    (1.1, 0.0, 0.11274989, 1.01018936, 0.0050689),
    (1.5, 0.0, 0.79335404, 1.13932322, 0.0652172),
    (2.0, 0.0, 2.12147357, 1.36267334, 0.1547242),
    (3.0, 0.0, 6.30539148, 1.85985519, 0.3102493),
    (5.0, 0.0, 20.69936684, 2.90042095, 0.5324279),
    (10.0, 0.0, 91.70513120, 5.54485449, 0.8564352),
    (0.9, 0.5, 0.46116807, 0.49209219, -0.3545446),
    (1.5, 0.5, 1.21820833, 0.96709680, -0.0167283),
    (3.0, 0.5, 6.61189862, 1.81826011, 0.2989400),
    (1.0, 1.0, 1.46385089, 0.39887901, -0.4595486),
    (2.0, 1.0, 3.44806909, 1.09631010, 0.0459750),
    (10.0, 1.0, 92.75164795, 5.51359334, 0.8536083),
)
OTHERS = (  # activation, g, sigma, lambda_1
    ("hard_tanh", 1.5, 0.0, 0.17167),
    ("hard_tanh", 2.0, 0.5, 0.27293),
    ("sigmoid", 3.0, 0.0, -0.61924),
    ("sigmoid", 10.0, 1.0, -0.01293),
    ("relu", 1.1, 0.5, -0.25126),
    ("identity", 0.9, 0.5, -0.10536),
)
SPECTRUM = (  # ensemble, g, sigma, fraction, h/N, D/N, mean, lambda(.1), lambda(.25), lambda(.5)
    ("gaussian", 2.0, 0.0, 0.133426, 0.0106831, 0.257552, -1.14902, 0.04190, -0.16670, -0.68929),
    ("gaussian", 3.0, 0.5, 0.145060, 0.0229870, 0.273548, -2.36360, 0.10479, -0.30013, -1.48777),
    ("orthogonal", 2.0, 0.0, 0.224453, 0.0187133, 0.416295, -0.64902, 0.09458, -0.02286, -0.34272),
    ("orthogonal", 5.0, 0.0, 0.148965, 0.0443338, 0.270168, -4.40677, 0.21844, -0.63656, -3.17912),
)
PRINTED = ("fraction_positive", "entropy_rate", "kaplan_yorke", "mean_exponent")


def expectations() -> Sequence[Expectation]:
    """Tables of the theory."""
    return (*_tanh(), *_others(), *_spectra(), *_critical())


def _tanh() -> list[Expectation]:
    return [
        Expectation(
            name=f"mean field, tanh, g = {g}, sigma = {sigma}: {name}",
            compute=partial(_value, "tanh", g, sigma, name),
            expected=value,
            absolute=1e-7 * max(1.0, abs(value)),
        )
        for g, sigma, *values in TANH
        for name, value in zip(("q", "chi", "lambda_1"), values, strict=True)
    ]


def _others() -> list[Expectation]:
    return [
        Expectation(
            name=f"mean field, {activation}, g = {g}, sigma = {sigma}: lambda_1",
            compute=partial(_value, activation, g, sigma, "lambda_1"),
            expected=value,
            absolute=1e-5,
        )
        for activation, g, sigma, value in OTHERS
    ]


def _spectra() -> list[Expectation]:
    found = []
    for ensemble, g, sigma, *values in SPECTRUM:
        where = f"spectrum in theory, {ensemble}, g = {g}, sigma = {sigma}"
        named = zip(PRINTED, values[:4], strict=True)
        found += [
            Expectation(
                name=f"{where}: {name}",
                compute=partial(_value, "tanh", g, sigma, name, ensemble),
                expected=value,
                absolute=1e-5,
            )
            for name, value in named
        ]
        found += [
            Expectation(
                name=f"{where}: exponent of the share {p}",
                compute=partial(_exponent, g, sigma, ensemble, p),
                expected=value,
                absolute=1e-5,
            )
            for p, value in zip((0.1, 0.25, 0.5), values[4:], strict=True)
        ]
    return found


def _critical() -> list[Expectation]:
    cases = (("relu", 0.0, math.sqrt(2.0)), ("sigmoid", 0.0, 10.149263710),
             ("tanh", 0.1, 1.1934007), ("tanh", 0.5, 1.5496739), ("tanh", 1.0, 1.8555891),
             ("hard_tanh", 0.5, 1.2131478))  # fmt: skip
    return [
        Expectation(
            name=f"critical gain, {activation}, sigma = {sigma}",
            compute=partial(_value, activation, 1.0, sigma, "critical_gain"),
            expected=value,
            relative=1e-7,
        )
        for activation, sigma, value in cases
    ]


def _value(activation: str, g: float, sigma: float, name: str, ensemble: str = "gaussian") -> float:
    theory = mean_field(activation, gain=g, input_std=sigma, ensemble=ensemble)
    return float(getattr(theory, name))


def _exponent(g: float, sigma: float, ensemble: str, p: float) -> float:
    theory = mean_field("tanh", gain=g, input_std=sigma, ensemble=ensemble)
    return float(theory.spectrum(p))


MEAN_FIELD = Group(title="mean-field theory", expectations=expectations)
