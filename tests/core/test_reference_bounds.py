"""Right values of the ladder of bounds, and of the identities around it, for one tanh network.

The network is driven by a congruential generator, so that any language can rebuild it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

N, STEPS = 5, 12
EXACT = -3.8902342268676


def lcg(seed: int, *shape: int) -> Array:
    """x <- (1103515245 x + 12345) mod 2^31 from x = seed; x / 2^30 - 1, row-major."""
    x, values = seed, []
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)


@dataclass(frozen=True)
class Instance:
    """W = .9 lcg(11, 5, 5), z_t = W h + .5 lcg(1000 + t, 5) for t = 0..11, h_0 = 0."""

    cell: gl.VanillaCell
    trajectory: gl.Trajectory


@pytest.fixture(scope="module")
def instance() -> Instance:
    cell = gl.VanillaCell(W_hh=0.9 * lcg(11, N, N), W_xh=0.5 * np.eye(N))
    inputs = np.stack([lcg(1000 + t, N) for t in range(STEPS)])[:, None, :]
    return Instance(cell, gl.rollout(cell, inputs))


def longest(values: Array, lag: Array) -> float:
    """The value of the pair (12, 0)."""
    return float(values[lag == STEPS][0])


@pytest.mark.parametrize(
    ("rung", "log_bound"),
    [
        ("gamma", 7.7163585361091),
        ("saturation_max", 7.7124742085278),
        ("saturation", 6.9683069140721),
        ("onestep", 4.2508117607301),
        ("exact", EXACT),
        ("radius", -5.2934435861329),
        ("determinant", -8.532788171098),
        ("sigma_min", -25.547945193414),
    ],
)
def test_ladder_has_the_right_rungs(instance: Instance, rung: str, log_bound: float) -> None:
    ladder = gl.bound_ladder(instance.cell, instance.trajectory)
    tolerance = 1e-10 if rung in ("radius", "determinant", "sigma_min") else 1e-11
    assert longest(ladder.rungs[rung], ladder.lag) == pytest.approx(log_bound, abs=tolerance)


@pytest.mark.parametrize(
    ("block", "log_bound"),
    [
        (1, 4.2508117607301),
        (2, 1.2187075165751),
        (3, -1.3942755657398),
        (6, -2.7396654269442),
        (12, EXACT),
        (40, EXACT),
    ],
)
def test_longer_blocks_are_tighter(instance: Instance, block: int, log_bound: float) -> None:
    ladder = gl.bound_ladder(instance.cell, instance.trajectory, block=block)
    assert longest(ladder.rungs["blocks"], ladder.lag) == pytest.approx(log_bound, abs=1e-11)


def test_slack_is_the_distance_between_the_rungs(instance: Instance) -> None:
    slack = gl.bound_ladder(instance.cell, instance.trajectory).slack()
    assert slack["saturation"] == pytest.approx(7.7163585361091 - 6.9683069140721, abs=1e-10)
    assert slack["onestep"] == pytest.approx(6.9683069140721 - 4.2508117607301, abs=1e-10)
    assert slack["alignment"] == pytest.approx(4.2508117607301 - EXACT, abs=1e-10)


def test_verdict_is_that_of_the_product_and_not_of_the_bound(instance: Instance) -> None:
    """The textbook bound says times 2240, the truth is a forty-ninth."""
    profile = gl.jacobian_profile(instance.cell, instance.trajectory, anchors="last")
    assert math.exp(longest(profile.log_norm, profile.lag)) == pytest.approx(1 / 49, rel=0.01)
    ladder = gl.bound_ladder(instance.cell, instance.trajectory)
    assert math.exp(longest(ladder.rungs["gamma"], ladder.lag)) == pytest.approx(2240, rel=0.01)
    verdict = gl.regime(profile, ladder)
    assert verdict.rate < 0.0
    # Twelve lags may be too few to exclude the near-critical, never to see an explosion.
    assert verdict.name in ("vanishing", "undecided")


def test_norms_of_the_product(instance: Instance) -> None:
    profile = gl.jacobian_profile(instance.cell, instance.trajectory, anchors="last")
    log_frobenius = longest(profile.log_frobenius, profile.lag)
    assert longest(profile.log_norm, profile.lag) == pytest.approx(EXACT, abs=1e-10)
    assert log_frobenius == pytest.approx(-3.8815183881023, abs=1e-10)
    assert log_frobenius - 0.5 * math.log(N) == pytest.approx(-4.6862373443193, abs=1e-10)


def test_log_determinant_is_the_sum_over_the_steps(instance: Instance) -> None:
    """l ln|det W| + the sum of ln phi': no product is needed."""
    steps = instance.cell.linearize(instance.trajectory)
    log_det = sum(float(step.log_abs_det()[0]) for step in steps)
    assert log_det == pytest.approx(-42.66394085549, abs=1e-10)
    assert log_det / N == pytest.approx(-8.532788171098, abs=1e-10)


def test_product_of_smallest_singular_values(instance: Instance) -> None:
    one_step = gl.jacobian_profile(instance.cell, instance.trajectory, anchors="all", max_lag=1)
    assert len(one_step.lag) == STEPS
    assert one_step.log_sigma_min.sum() == pytest.approx(-25.547945193414, abs=1e-10)


def test_radius_of_the_product(instance: Instance) -> None:
    product = np.eye(N)
    for step in instance.cell.linearize(instance.trajectory):
        product = step.matrix()[0] @ product
    assert math.log(gl.spectral_radius(product)) == pytest.approx(-5.2934435861329, abs=1e-10)
    assert math.log(gl.spectral_norm(product)) == pytest.approx(EXACT, abs=1e-10)


def exact(matrix: Array) -> Array:
    """The same numbers as fractions."""
    return np.array([[Fraction(float(x)) for x in row] for row in matrix], dtype=object)


def exact_inverse(matrix: Array) -> Array:
    """Gauss-Jordan elimination in rational arithmetic."""
    n = len(matrix)
    table = np.concatenate([matrix, exact(np.eye(n))], axis=1)
    for i in range(n):
        table[i] = table[i] / table[i, i]
        for j in set(range(n)) - {i}:
            table[j] = table[j] - table[j, i] * table[i]
    return table[:, n:]


def test_smallest_singular_value_is_that_of_rational_arithmetic(instance: Instance) -> None:
    """And prod sigma_min <= sigma_min(P) <= |det P|^(1/N)."""
    profile = gl.jacobian_profile(instance.cell, instance.trajectory, anchors="last")
    log_sigma_min = longest(profile.log_sigma_min, profile.lag)
    assert -25.547945193414 <= log_sigma_min <= -8.532788171098
    product = exact(np.eye(N))
    for step in instance.cell.linearize(instance.trajectory):
        product = exact(step.matrix()[0]) @ product
    inverse = exact_inverse(product).astype(float)
    assert log_sigma_min == pytest.approx(-math.log(np.linalg.norm(inverse, 2)), abs=1e-10)
