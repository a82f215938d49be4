"""Leaky units: the matrix (1 - a) I + a diag(φ') W everywhere, in the bounds too."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.cells.activations import ACTIVATIONS
from tests.core.differences import (
    assert_gradients_are_differences,
    assert_steps_are_differences,
    assert_terms_add_up_to_the_gradient,
    unchecked,
)

MODELS = Path(__file__).parents[1] / "fixtures" / "models"
ROUNDING = 1e-10


def random_leaky(
    rng: np.random.Generator, n: int, leak: float, activation: str = "tanh", gain: float = 1.0
) -> gl.LeakyCell:
    return gl.LeakyCell(
        W_hh=gain * rng.standard_normal((n, n)),
        W_xh=rng.standard_normal((n, 2)),
        b_h=rng.standard_normal(n),
        activation=activation,
        leak=leak,
    )


@pytest.mark.parametrize(("W", "factor"), [(1.5, 1.15), (-1.5, 0.25)])
def test_the_leak_decides_together_with_the_weight(W: float, factor: float) -> None:
    """Case H41: ρ(W) = 1.5 in both, one grows and the other decays."""
    cell = gl.LeakyCell(
        W_hh=np.array([[W]]), W_xh=np.zeros((1, 1)), activation="identity", leak=0.3
    )
    dynamics = gl.analyze(cell, np.zeros((40, 1, 1)), initial_state=np.ones(1)).only()
    assert dynamics.regime.rate == pytest.approx(math.log(factor), rel=1e-12)
    assert dynamics.spectrum.spectral_radius == pytest.approx(factor, rel=1e-12)
    assert dynamics.spectrum.gates["W_hh"].spectral_radius == pytest.approx(1.5, rel=1e-12)
    # The slope of the identity is 1 everywhere: the bound knows the sign of W, and is attained.
    gamma = dynamics.last_ladder.rungs["gamma"]
    np.testing.assert_allclose(gamma, np.arange(1, 41) * math.log(factor), rtol=1e-12)


@pytest.mark.parametrize("leak", [0.1, 0.7, 1.0])
def test_jacobians_and_gradients_are_differences(leak: float) -> None:
    rng = np.random.default_rng(1)
    cell = random_leaky(rng, 3, leak, gain=0.5)
    x, state = rng.standard_normal((4, 2, 2)), rng.standard_normal((2, 3))
    run = gl.rollout(cell, x, initial_state=state)
    assert_steps_are_differences(cell, run)
    assert_terms_add_up_to_the_gradient(cell, run, "W_hh")
    assert_gradients_are_differences(cell, x, state)


def test_a_leak_of_one_is_the_vanilla_cell() -> None:
    rng = np.random.default_rng(2)
    leaky = random_leaky(rng, 4, 1.0)
    weights: Any = leaky.parameters
    vanilla = gl.VanillaCell(**weights)
    x = rng.standard_normal((6, 2, 2))
    runs = gl.rollout(leaky, x), gl.rollout(vanilla, x)
    np.testing.assert_array_equal(runs[0].states, runs[1].states)
    ladders = gl.bound_ladder(leaky, runs[0]), gl.bound_ladder(vanilla, runs[1])
    for rung, values in ladders[0].rungs.items():
        np.testing.assert_allclose(values, ladders[1].rungs[rung], atol=1e-12)


def test_haiku_relu_layer_agrees_with_its_oracle() -> None:
    stored, oracle = (
        np.load(MODELS / f"haiku_vanillarnn{suffix}.npz") for suffix in ("", ".oracle")
    )
    inputs, recurrent = "vanilla_rnn/linear", "vanilla_rnn/linear_1"
    cell = gl.LeakyCell(
        W_hh=stored[f"{recurrent}/w"].T,
        W_xh=stored[f"{inputs}/w"].T,
        b_h=stored[f"{inputs}/b"].astype(float) + stored[f"{recurrent}/b"],
        activation="relu",
        leak=1.0,
    )
    run = gl.rollout(
        cell, oracle["x"][:, None].astype(float), initial_state=oracle["s"][0].astype(float)
    )
    np.testing.assert_allclose(run.states[:, 0], oracle["s"], atol=1e-12)
    J = np.stack([step.matrix()[0] for step in cell.linearize(run)])
    np.testing.assert_allclose(J, oracle["J"], atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    steps=st.integers(1, 10),
    leak=st.floats(1e-3, 1.0),
    gain=st.floats(1e-3, 3.0),
    activation=st.sampled_from(sorted(set(ACTIVATIONS) - {"identity", "relu", "leaky_relu"})),
)
def test_every_rung_bounds_the_next_at_every_pair(
    seed: int, n: int, steps: int, leak: float, gain: float, activation: str
) -> None:
    rng = np.random.default_rng(seed)
    cell = random_leaky(rng, n, leak, activation, gain)
    run = gl.rollout(cell, rng.standard_normal((steps, 2, 2)))
    profile = gl.jacobian_profile(cell, run, smallest=False)
    rungs = gl.bound_ladder(cell, run, profile=profile, block=3).rungs
    order = ("gamma", "saturation_max", "saturation", "onestep", "blocks", "exact")
    assert set(rungs) == {*order, "radius", "determinant", "sigma_min"}
    for upper, lower in itertools.pairwise(order):
        finite = np.isfinite(rungs[lower])
        slack = ROUNDING * (1.0 + np.abs(rungs[lower][finite]))
        assert (rungs[upper][finite] >= rungs[lower][finite] - slack).all(), (upper, lower)


def test_the_bound_is_met_where_nothing_saturates() -> None:
    """W = γ I and φ the identity: every rung is the truth."""
    cell = gl.LeakyCell(
        W_hh=2.0 * np.eye(3), W_xh=np.zeros((3, 1)), activation="identity", leak=0.25
    )
    run = gl.rollout(cell, np.zeros((12, 1, 1)))
    for values in gl.bound_ladder(cell, run).rungs.values():
        np.testing.assert_allclose(values, np.arange(1, 13) * math.log(1.25), atol=1e-13)


@pytest.mark.parametrize("leak", [0.0, -0.1, 1.5, math.nan])
def test_a_leak_outside_its_range_is_refused(leak: float) -> None:
    with pytest.raises(gl.SettingError, match=r"leak .*: expected a share in \(0, 1\]"):
        gl.LeakyCell(W_hh=np.eye(2), W_xh=np.ones((2, 1)), leak=leak)


def test_weights_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(gl.ShapeError, match=r"W_xh has shape \(3, 1\): expected \(2, any\)"):
        unchecked(gl.LeakyCell, W_hh=np.eye(2), W_xh=np.ones((3, 1)))


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_leak_is_bounded_more_tightly_than_by_the_triangle_inequality(activation: str) -> None:
    """-I is turned by the leak: (1 - a) + a γ_a γ_w forgets its sign."""
    phi, W = gl.activation(activation), -np.eye(3)
    cell = gl.LeakyCell(W_hh=W, W_xh=np.ones((3, 1)), activation=activation, leak=0.5)
    rng = np.random.default_rng(5)
    rungs = gl.bound_ladder(cell, gl.rollout(cell, rng.standard_normal((1, 1, 1)))).rungs
    loose = math.log(0.5 + 0.5 * phi.sup_derivative)
    # |1 - a - a φ'| is convex in φ', and its extremes are those of the slope.
    tight = max(abs(0.5 - 0.5 * slope) for slope in (phi.inf_derivative, phi.sup_derivative))
    middle = 0.5 * (phi.inf_derivative + phi.sup_derivative)
    width = phi.sup_derivative - phi.inf_derivative
    assert rungs["gamma"][0] < loose - 0.01
    if tight > 0.0:
        assert rungs["gamma"][0] >= math.log(tight) - 1e-12
    assert rungs["gamma"][0] == pytest.approx(
        math.log(abs(0.5 - 0.5 * middle) + 0.25 * width) if width else -math.inf, rel=1e-12
    )
