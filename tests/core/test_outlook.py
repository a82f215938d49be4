"""What another setting would do to the rate: closed forms, and the file that keeps them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.records.outlook import Change

N, T = 6, 80


def orthogonal(n: int = N) -> Any:
    return np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]


def linear(W: Any, activation: str = "identity") -> gl.VanillaCell:
    return gl.VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 2)), activation=activation)


def outlook_of(cell: Any, steps: int = T, features: int = 2) -> Any:
    state = np.zeros((3, cell.state_size))
    run = gl.rollout(cell, np.zeros((steps, 3, features)), initial_state=state)
    return gl.outlook(cell, run)


def rates(found: Any, setting: str) -> list[tuple[float, float]]:
    return [(each.amount, each.rate) for each in found.changes if each.setting == setting]


@pytest.mark.parametrize("gain", [0.4, 0.9, 1.25, 3.0])
def test_a_scaled_orthogonal_matrix_is_brought_to_one_by_the_inverse_factor(gain: float) -> None:
    """σ_max(c Q)^l = c^l: the rate is ln c, and the factor 1/c makes it 0."""
    found = outlook_of(linear(gain * orthogonal()))
    assert found.rate == pytest.approx(math.log(gain), abs=1e-12)
    ((factor, rate),) = rates(found, "gain")
    width = 0.5 * math.log(2.0) / 2**6  # of the last interval of the bisection
    assert math.log(factor * gain) == pytest.approx(0.0, abs=width)
    assert rate == pytest.approx(math.log(factor * gain), abs=1e-12)
    ((unit, kept),) = rates(found, "orthogonal")
    assert unit == 1.0
    assert kept == pytest.approx(0.0, abs=1e-12)


def test_no_factor_keeps_the_gradient_of_a_nilpotent_matrix() -> None:
    found = outlook_of(linear(np.triu(np.ones((N, N)), 1)))
    assert found.rate == -math.inf
    assert rates(found, "gain") == []


def test_a_bounded_layer_driven_into_saturation_has_no_such_factor_and_says_nothing() -> None:
    """Units at φ(5 + h): a larger W saturates them more, and a smaller one shrinks the product."""
    cell = gl.VanillaCell(W_hh=np.eye(N), W_xh=np.zeros((N, 2)), b_h=np.full(N, 5.0))
    found = outlook_of(cell)
    assert found.rate < -5.0
    assert rates(found, "gain") == []


@pytest.mark.parametrize("sense", ["lstm", "keep", "overwrite", "mgu"])
def test_the_bias_of_a_gate_without_recurrent_weights_sets_the_rate(sense: str) -> None:
    """The state decays by σ(b): raised by s, by σ(b + s)."""
    b, n = 0.5, 3
    if sense == "lstm":
        cell: Any = gl.LSTMCell(W_x=np.zeros((4 * n, 2)), W_h=np.zeros((4 * n, n)), forget_bias=b)
    elif sense == "mgu":
        bias = np.repeat([-b, 0.0], n)
        cell = gl.MinimalGatedCell(W_x=np.zeros((2 * n, 2)), W_h=np.zeros((2 * n, n)), b_x=bias)
    else:
        bias = np.repeat([0.0, b if sense == "keep" else -b, 0.0], n)
        W_x, W_h = np.zeros((3 * n, 2)), np.zeros((3 * n, n))
        cell = gl.GRUCell(W_x=W_x, W_h=W_h, b_x=bias, update=sense)
    found = outlook_of(cell)
    expected = [(s, -math.log1p(math.exp(-(b + s)))) for s in (1.0, 3.0)]
    assert found.rate == pytest.approx(-math.log1p(math.exp(-b)), abs=1e-12)
    np.testing.assert_allclose(rates(found, "forget_bias"), expected, atol=1e-12)


def test_half_the_leak_is_half_the_loss_of_an_unconnected_layer() -> None:
    """h' = (1 - a) h without weights."""
    cell = gl.LeakyCell(W_hh=np.zeros((N, N)), W_xh=np.zeros((N, 2)), leak=0.4)
    found = outlook_of(cell)
    assert found.rate == pytest.approx(math.log(0.6), abs=1e-12)
    assert [each.setting for each in found.changes] == ["leak"]
    np.testing.assert_allclose(rates(found, "leak"), [(0.2, math.log(0.8))], atol=1e-12)


def test_theory_adds_the_gain_it_calls_critical() -> None:
    """tanh without input: the critical gain is 1, so the factor is 1/g; N units lose order 1/N."""
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=64, gain=0.8, rng=rng)
    inputs = np.zeros((T, 2, 2))
    theory = gl.mean_field("tanh", gain=0.8)
    found = gl.outlook(cell, gl.rollout(cell, inputs), theory=theory)
    (predicted,) = [each for each in found.changes if each.basis == "predicted"]
    assert predicted.amount == pytest.approx(1.25, rel=1e-12)
    assert predicted.rate == pytest.approx(-2.0 / (4.0 * 64), rel=1e-3)  # kappa is 1 at q = 0
    measured = next(each for each in found.changes if each.basis == "measured")
    assert measured.amount == pytest.approx(1.25, rel=0.15)  # one draw of 64 units


def test_states_that_leave_the_range_of_floats_count_as_explosion() -> None:
    """Linear growth by 100 a step over 200 steps passes 1e308; less weight mends it."""
    calm = linear(0.5 * np.eye(N))
    inputs = np.ones((200, 1, 2))
    wild = gl.VanillaCell(W_hh=100.0 * np.eye(N), W_xh=np.ones((N, 2)), activation="identity")
    found = gl.outlook(wild, gl.rollout(calm, inputs))
    assert found.rate == math.inf
    assert rates(found, "gain") == []  # no factor down to 1/8 reaches 1/100
    np.testing.assert_allclose(rates(found, "orthogonal"), [(1.0, 0.0)], atol=1e-12)


def test_only_the_first_sequences_and_steps_are_run_again() -> None:
    found = outlook_of(linear(0.9 * orthogonal()), steps=250)
    assert (found.sequences, found.steps) == (2, 200)


def test_an_outlook_is_saved_with_the_run_and_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=8, gain=0.9, rng=rng)
    dynamics = gl.analyze(cell, rng.normal(size=(30, 2, 2)))
    folder = gl.save(dynamics, tmp_path / "run")
    entry = json.loads((folder / "summary.json").read_text())["recurrences"][0]["outlook"]
    kept = gl.load_run(folder).only().outlook
    assert kept is not None
    assert entry == gl.strict_json(kept.to_summary())
    assert [each["setting"] for each in entry["changes"]] == ["gain", "orthogonal"]
    assert list(kept.to_frame().columns) == ["setting", "amount", "rate", "basis"]


@pytest.mark.parametrize(
    ("rate", "lag"),
    [(math.log(0.1), 3), (math.log(0.5), 7), (0.0, None), (0.2, None), (-math.inf, 1)],
)
def test_a_rate_alone_has_a_lag_from_which_less_than_a_hundredth_is_left(
    rate: float, lag: int | None
) -> None:
    """0.1^2 is not yet below 1 %, 0.1^3 is."""
    assert Change(setting="gain", amount=1.0, rate=rate, basis="measured").lag_1pct == lag
