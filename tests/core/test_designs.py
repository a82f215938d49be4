"""Designs: settings that give a wished horizon, in theory and in simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.gates import forget_bias_for_half_life
from gradlab.designs import BURN_IN, SEQUENCES
from gradlab.records.design import Design

LOG_1PCT = math.log(0.01)


@pytest.mark.parametrize("lag", [1, 2, 3, 5, 10, 50])
@pytest.mark.parametrize("gain", [0.5, 1.0, 2.0])
def test_norm_of_linear_factors_is_that_of_powers(lag: int, gain: float) -> None:
    """The Fuss-Catalan edge, and g^l for an orthogonal matrix."""
    gaussian = gl.mean_field("identity", gain=gain)
    assert gaussian.log_norm(lag) == pytest.approx(gaussian.log_power_norm(lag), abs=1e-9)
    orthogonal = gl.mean_field("identity", gain=gain, ensemble="orthogonal")
    assert orthogonal.log_norm(lag) == pytest.approx(lag * math.log(gain), abs=1e-9)


@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_norm_of_one_relu_factor_is_the_edge_of_marchenko_and_pastur(gain: float) -> None:
    """Half of the rows are 0: the largest singular value of an (N/2, N) matrix, g (1 + √½)."""
    prediction = gl.mean_field("relu", gain=gain, input_std=0.1)
    assert prediction.log_norm(1) == pytest.approx(
        math.log(gain * (1.0 + math.sqrt(0.5))), abs=1e-9
    )


def test_long_products_grow_like_lambda_1_with_a_root_before_it() -> None:
    """ln ‖P‖ -> l lambda_1 + ln(e (1 + kappa l))/2."""
    prediction = gl.mean_field("tanh", gain=2.0, input_std=0.3)
    lag = 10_000
    expected = lag * prediction.lambda_1 + 0.5 * math.log(math.e * (1.0 + prediction.kappa * lag))
    assert prediction.log_norm(lag) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("ensemble", ["gaussian", "orthogonal"])
def test_drawn_products_have_the_predicted_norm(ensemble: str) -> None:
    """N = 256, up to 10 steps: within 4 % and 3 % a step."""
    n, gain, sigma = 256, 1.3, 0.5
    rng = np.random.default_rng(2)
    W = gain * rng.standard_normal((n, n)) / math.sqrt(n)
    if ensemble == "orthogonal":
        W = gain * np.linalg.qr(W)[0]
    prediction = gl.mean_field("tanh", gain=gain, input_std=sigma, ensemble=ensemble)
    h, product = np.zeros(n), np.eye(n)
    for t in range(60):
        z = W @ h + sigma * rng.standard_normal(n)
        h = np.tanh(z)
        if t < 50:
            continue
        product = np.cosh(z)[:, None] ** -2.0 * (W @ product)
        lag = t - 49
        if lag in (1, 3, 10):
            drawn = math.log(gl.spectral_norm(product))
            expected = prediction.log_norm(lag, n)
            assert drawn == pytest.approx(expected, abs=0.04 + 0.03 * lag)


def test_small_networks_fall_faster_and_end_in_one_direction() -> None:
    prediction = gl.mean_field("tanh", gain=1.2, input_std=0.5)
    assert prediction.log_norm(0, 64) == 0.0
    assert prediction.log_norm(100, 64) < prediction.log_norm(100, 1000) < prediction.log_norm(100)
    rate = prediction.log_norm(5001, 64) - prediction.log_norm(5000, 64)
    assert rate == pytest.approx(prediction.lambda_1 + prediction.bias(64), abs=1e-9)
    assert gl.mean_field("tanh", gain=0.0).log_norm(3) == -math.inf


@pytest.mark.parametrize("ensemble", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "identity"])
def test_many_lags_at_once_agree_with_one_by_one(activation: str, ensemble: str) -> None:
    prediction = gl.mean_field(activation, gain=1.2, input_std=0.5, ensemble=ensemble)
    lags = np.arange(1, 2001)
    chosen = np.array([1, 2, 3, 7, 20, 64, 200, 1000, 2000])
    singly = [prediction.log_norm(int(lag), 64) for lag in chosen]
    together = prediction.log_norms(lags, 64)
    np.testing.assert_allclose(together[chosen - 1], singly, atol=1e-4)
    nothing = gl.mean_field(activation, gain=0.0).log_norms(lags, 64)
    assert nothing.tolist() == [-math.inf] * len(lags)


def carousel_bias(horizon: int) -> float:
    """Bias with which a gate's powers fall to 1 % at the horizon."""
    return forget_bias_for_half_life(horizon * math.log(2.0) / math.log(100.0))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_without_recurrence_and_input_the_bias_is_that_of_the_carousel(cell: str) -> None:
    """Powers of f = σ(b); an LSTM at c = 0 with o = 1/2 has the factor √(1 + 1/4) more."""
    bias = carousel_bias(100)
    theory = gl.gated_field(cell, forget_bias=bias, gain=0.0)
    follows = 0.5 * math.log(1.25) if cell == "lstm" else 0.0
    assert theory.log_norm(100, 64) == pytest.approx(LOG_1PCT + follows, rel=1e-12)
    found = gl.design(100, cell=cell, gain=0.0, input_std=0.0, hidden_size=4, networks=1)
    assert found.rate == pytest.approx((LOG_1PCT - follows) / 100, rel=1e-9)
    if cell == "gru":
        assert found.value == pytest.approx(bias, abs=1e-9)
    assert found.measured[0] in (100, 101)  # at lag 100 the norm is 1 % to rounding


@pytest.mark.parametrize(("bias", "half_life"), [(1.0, 2.2127), (3.0, 14.2660), (5.0, 103.2183)])
def test_carry_has_the_half_lives_of_the_tables(bias: float, half_life: float) -> None:
    theory = gl.gated_field("lstm", forget_bias=bias, gain=0.0)
    assert -math.log(2.0) / theory.rate == pytest.approx(half_life, rel=1e-4)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bias", [-500.0, -30.0, 30.0, 500.0])
@pytest.mark.parametrize("gain", [0.0, 5.0])
def test_gates_that_are_shut_or_open_for_good_have_a_theory(
    cell: str, bias: float, gain: float
) -> None:
    theory = gl.gated_field(cell, forget_bias=bias, gain=gain, input_std=1.0)
    assert 0.0 <= theory.carry <= 1.0
    assert 0.0 <= theory.feedback < gain + 1e-12
    assert math.isfinite(theory.q)
    if bias == 500.0:
        assert theory.carry == 1.0
        assert theory.feedback < 1e-6  # a state that fills up does not feed back


def test_a_state_that_never_forgets_has_the_variance_of_a_long_sum() -> None:
    """c of an LSTM at g = 0: E i² E φ²/(1 - E f²), here with 1 - f² of 2e-13."""
    theory = gl.gated_field("lstm", forget_bias=30.0, gain=0.0, input_std=1.0)
    half = gl.gated_field("lstm", forget_bias=30.0 + math.log(4.0), gain=0.0, input_std=1.0)
    # Four times the variance: half the mean slope of φ at c, and of the reading.
    assert half.reading == pytest.approx(0.5 * theory.reading, rel=1e-6)


def test_feedback_lengthens_the_memory_and_the_spread_shortens_it() -> None:
    plain, fed = (
        gl.gated_field("lstm", forget_bias=2.0, gain=g, input_std=0.5) for g in (0.0, 0.5)
    )
    assert plain.feedback == 0.0
    assert fed.rate > plain.rate
    quiet = gl.gated_field("lstm", forget_bias=2.0, gain=0.0)
    assert quiet.carry == pytest.approx(1.0 / (1.0 + math.exp(-2.0)), rel=1e-12)
    assert plain.carry < quiet.carry
    assert quiet.spread == pytest.approx(0.0, abs=1e-12)


def test_pre_activations_of_a_simulated_lstm_have_the_predicted_variance() -> None:
    n, gain, sigma, bias = 300, 0.8, 0.6, 1.0
    rng = np.random.default_rng(4)
    cell = gl.LSTMCell.initialize(
        input_size=300, hidden_size=n, rng=rng, gain=gain, recurrent="gaussian", forget_bias=bias
    )
    run = gl.rollout(cell, sigma * rng.standard_normal((120, 1, 300)))
    z = run.z[40:, 0].reshape(-1, 4, n)
    theory = gl.gated_field("lstm", forget_bias=bias, gain=gain, input_std=sigma)
    assert np.mean(z[:, 0] ** 2) == pytest.approx(theory.q, rel=0.05)
    log_forget = -np.logaddexp(0.0, -z[:, 1])
    assert log_forget.mean() == pytest.approx(math.log(theory.carry), rel=0.05)


@pytest.mark.parametrize(
    ("cell", "horizon", "settings"),
    [
        ("rnn", 40, {}),
        ("rnn", 40, {"recurrent": "orthogonal", "activation": "erf"}),
        ("rnn", 20, {"activation": "relu", "hidden_size": 96}),
        ("rnn", 30, {"gain": 1.5}),
        ("lstm", 30, {"hidden_size": 32}),
        ("gru", 40, {"hidden_size": 32}),
    ],
)
def test_theory_and_simulation_agree(cell: str, horizon: int, settings: dict[str, Any]) -> None:
    found = gl.design(horizon, cell=cell, networks=3, **settings)
    assert found.agrees
    assert found.horizon == horizon
    expected = {"lstm": "forget_bias", "gru": "forget_bias"}
    assert found.solved == expected.get(cell, "input_std" if "gain" in settings else "gain")


def test_measured_horizon_is_that_of_an_analysis() -> None:
    found = gl.design(15, hidden_size=24, networks=1, seed=7)
    weights, inputs = (np.random.default_rng([7, stream]) for stream in range(2))
    cell = gl.VanillaCell.initialize(input_size=8, hidden_size=24, gain=found.value, rng=weights)
    x = 0.5 * inputs.standard_normal((found.max_lag + BURN_IN, SEQUENCES, 8))
    run = gl.analyze(cell, x, anchors="last", max_lag=found.max_lag, exponents=0)
    assert found.measured == (run.only().horizon.lag_1pct,)


def test_equal_designs_are_equal_and_seeds_count() -> None:
    one, again, other = (gl.design(12, hidden_size=20, networks=4, seed=s) for s in (0, 0, 4))
    assert one.to_summary() == again.to_summary()
    assert other.value == one.value
    assert other.measured != one.measured
    assert one.to_frame()["seed"].tolist() == [0, 1, 2, 3]


def designed(*measured: int | None) -> Design:
    return Design(
        cell="rnn", solved="gain", value=1.0, settings={}, horizon=100, rate=-0.05,
        measured=measured, max_lag=150, tolerance=1.25, seed=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "median", "agrees"),
    [
        ((100,), 100, True),
        ((80,), 80, True),
        ((79,), 79, False),
        ((125, 90, 200), 125, True),
        ((126, 90, None), 126, False),
        ((None, 100, None), None, False),
        ((90, 110), 110, True),
    ],
)
def test_the_median_decides_and_unseen_horizons_are_long(
    measured: tuple[int | None, ...], median: int | None, agrees: bool
) -> None:
    found = designed(*measured)
    assert found.measured_horizon == median
    assert found.agrees is agrees
    assert found.to_summary()["agrees"] is agrees


def test_horizons_that_no_setting_gives_are_refused_in_one_line() -> None:
    refused: list[dict[str, Any]] = [
        {"solve": "input_std", "gain": 0.5},  # falls to 1 % earlier even without input
        {"solve": "input_std", "gain": 1.0, "activation": "relu"},  # the scale changes nothing
        {"cell": "lstm", "gain": 8.0, "horizon": 2},  # feeds back at any forget bias
    ]
    for settings in refused:
        with pytest.raises(gl.UnreachableTargetError, match="in theory: try another") as caught:
            gl.design(**({"horizon": 40} | settings))
        assert "\n" not in str(caught.value)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(gl.UnknownNameError, match="unknown cell to design 'mgu'"):
        gl.design(10, cell="mgu")
    with pytest.raises(gl.UnknownNameError, match="setting to find for lstm 'gain'"):
        gl.design(10, cell="lstm", solve="gain")
    with pytest.raises(gl.UnknownNameError, match="ensemble with a theory 'sparse'"):
        gl.design(10, recurrent="sparse")
    with pytest.raises(gl.SettingError, match="gain is given and to be found"):
        gl.design(10, solve="gain", gain=1.0)
    with pytest.raises(gl.SettingError, match="give the gain that it goes with"):
        gl.design(10, solve="input_std")
    with pytest.raises(gl.SettingError, match="horizon 0: expected 1 to"):
        gl.design(0)
    with pytest.raises(gl.SettingError, match="networks 0"):
        gl.design(10, networks=0)
    with pytest.raises(gl.SettingError, match="expected a bounded one"):
        gl.design(10, cell="gru", activation="relu")
    with pytest.raises(gl.SettingError, match=r"forget_bias is 600\.0: expected -500 to 500"):
        gl.gated_field("gru", forget_bias=600.0)
    with pytest.raises(gl.SettingError, match="gain is nan"):
        gl.gated_field("gru", forget_bias=1.0, gain=math.nan)
