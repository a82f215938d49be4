"""Finite networks in mean-field theory: bias, band, and the largest singular values."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradlab as gl

SIGMA_MAX = {  # of Gaussian W at g = 1: mean and standard deviation of one draw
    64: (1.94401, 0.0512),
    128: (1.96591, 0.0320),
    256: (1.97910, 0.0200),
    512: (1.98711, 0.0126),
    1000: (1.99188, 0.0080),
}
POWERS = {1: 2.0, 2: 2.5980762, 3: 3.0792014, 5: 3.8639255, 10: 5.3414574, 50: 11.71627}


@pytest.mark.parametrize("n", SIGMA_MAX)
def test_expected_largest_singular_value(n: int) -> None:
    mean, spread = SIGMA_MAX[n]
    computed = gl.mean_field("tanh", gain=1.0).sigma_max(n)
    assert computed == pytest.approx((mean, spread), abs=6e-5)
    scaled = gl.mean_field("tanh", gain=3.0).sigma_max(n)
    assert scaled == pytest.approx((3.0 * computed[0], 3.0 * computed[1]), rel=1e-14)


@pytest.mark.parametrize(("n", "tolerance"), [(16, 0.25), (64, 0.12)])
def test_drawn_matrices_have_the_expected_largest_singular_value(n: int, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    drawn = np.linalg.svd(rng.standard_normal((400, n, n)) / math.sqrt(n), compute_uv=False)[:, 0]
    mean, spread = gl.mean_field("tanh", gain=1.0).sigma_max(n)
    # The formula's own error is of the order of N^(-2/3) of the spread.
    assert drawn.mean() == pytest.approx(
        mean, abs=4.0 * spread / 20.0 + 0.3 * spread / n ** (2 / 3)
    )
    assert drawn.std() == pytest.approx(spread, rel=tolerance)


def test_a_single_unit_has_a_half_normal_norm() -> None:
    mean, spread = gl.mean_field("tanh", gain=2.0).sigma_max(1)
    assert mean == pytest.approx(2.0 * 0.7978845608, rel=1e-9)
    assert spread == pytest.approx(2.0 * 0.6028102749, rel=1e-9)


def test_an_orthogonal_matrix_has_the_gain_for_a_norm() -> None:
    prediction = gl.mean_field("tanh", gain=1.3, ensemble="orthogonal")
    assert prediction.sigma_max(50) == (1.3, 0.0)
    assert prediction.log_power_norm(7) == pytest.approx(7.0 * math.log(1.3), rel=1e-15)


@pytest.mark.parametrize("lag", POWERS)
def test_norms_of_powers(lag: int) -> None:
    unit, scaled = (gl.mean_field("tanh", gain=gain) for gain in (1.0, 0.7))
    assert math.exp(unit.log_power_norm(lag)) == pytest.approx(POWERS[lag], rel=1e-7)
    expected = unit.log_power_norm(lag) + lag * math.log(0.7)
    assert scaled.log_power_norm(lag) == pytest.approx(expected, rel=1e-14)


def test_the_zeroth_power_has_norm_1() -> None:
    assert gl.mean_field("tanh", gain=0.0).log_power_norm(0) == 0.0
    assert gl.mean_field("tanh", gain=0.0).log_power_norm(1) == -math.inf


def test_drawn_powers_are_near_the_limit() -> None:
    """The fifth power at N = 256: -12 % to +5 %."""
    rng = np.random.default_rng(3)
    W = rng.standard_normal((256, 256)) / 16.0
    drawn = math.log(gl.spectral_norm(np.linalg.matrix_power(W, 5)))
    limit = gl.mean_field("identity", gain=1.0).log_power_norm(5)
    assert math.log(0.88) < drawn - limit < math.log(1.05)


def test_band_widens_by_the_rest_term_and_three_deviations() -> None:
    prediction = gl.mean_field("tanh", gain=3.0, input_std=0.5)
    low, high = prediction.band(250, 1000)
    assert 0.5 * (low + high) == pytest.approx(prediction.lambda_1 - 2.329 / 250, abs=1e-5)
    assert 0.5 * (high - low) == pytest.approx(2 / 250 + 3 * math.sqrt(2.329 / 250_000), abs=1e-6)


def test_orthogonal_weights_of_linear_units_have_no_corrections() -> None:
    prediction = gl.mean_field("identity", gain=1.1, ensemble="orthogonal")
    assert prediction.band(32, 100) == pytest.approx(
        (math.log(1.1) - 2 / 32, math.log(1.1) + 2 / 32), abs=1e-15
    )
    norms = prediction.log_norms(np.array([1, 40, 1000]), 32)
    np.testing.assert_allclose(norms, np.array([1, 40, 1000]) * math.log(1.1), atol=1e-12)


@pytest.mark.parametrize("ensemble", ["gaussian", "orthogonal"])
def test_bias_is_that_of_single_steps(ensemble: str) -> None:
    n, draws = 40, 100_000
    rng = np.random.default_rng(0)
    y = rng.standard_normal((draws, n)) / math.sqrt(n)
    if ensemble == "orthogonal":
        y /= np.linalg.norm(y, axis=1, keepdims=True)
    slopes = (rng.random((draws, n)) < 0.5).astype(np.float64)  # those of relu
    mean = 0.5 * np.log(np.vecdot(slopes * y, slopes * y)).mean()
    prediction = gl.mean_field("relu", gain=1.0, input_std=1.0, ensemble=ensemble)
    assert mean - prediction.lambda_1 == pytest.approx(prediction.bias(n), abs=2.0 / n**2)


# Mean of the leading exponent less the limit's, over three or four seeds of 250 units and two
# trajectories of 800 steps: activation, ensemble, gain, input std, deviation.
SIMULATED = [
    ("tanh", "gaussian", 2.0, 0.0, -0.0077),
    ("tanh", "gaussian", 3.0, 0.0, -0.0097),
    ("tanh", "gaussian", 5.0, 0.0, -0.0210),
    ("tanh", "gaussian", 10.0, 0.0, -0.0365),
    ("tanh", "gaussian", 0.9, 0.5, 0.0032),
    ("tanh", "gaussian", 1.5, 0.5, -0.0020),
    ("tanh", "gaussian", 3.0, 0.5, -0.0088),
    ("tanh", "gaussian", 1.0, 1.0, -0.0025),
    ("tanh", "gaussian", 5.0, 1.0, -0.0207),
    ("tanh", "orthogonal", 2.0, 0.0, -0.0040),
    ("tanh", "orthogonal", 3.0, 0.5, -0.0066),
    ("tanh", "orthogonal", 5.0, 0.0, -0.0142),
    ("hard_tanh", "gaussian", 2.0, 0.0, -0.0056),
    ("hard_tanh", "gaussian", 5.0, 0.5, -0.0181),
    ("relu", "gaussian", 1.0, 0.5, -0.0120),
]


@pytest.mark.parametrize(("activation", "ensemble", "gain", "sigma", "deviation"), SIMULATED)
def test_simulated_leading_exponents_lie_in_the_band(
    activation: str, ensemble: str, gain: float, sigma: float, deviation: float
) -> None:
    prediction = gl.mean_field(activation, gain=gain, input_std=sigma, ensemble=ensemble)
    low, high = prediction.band(250, 800)
    assert low <= prediction.lambda_1 + deviation <= high
    assert high - low < 0.06


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu"])
def test_critical_gain_is_where_the_exponent_changes_sign(activation: str) -> None:
    prediction = gl.mean_field(activation, gain=0.7, input_std=0.3, bias_std=0.4)
    critical = prediction.critical_gain
    assert critical == gl.critical_gain(activation, input_std=0.5)
    for factor in (0.999, 1.001):
        near = gl.mean_field(activation, gain=factor * critical, input_std=0.5)
        assert math.copysign(1.0, near.lambda_1) == math.copysign(1.0, factor - 1.0)


def test_a_constant_activation_has_no_critical_gain() -> None:
    prediction = gl.mean_field("affine(0.0, 0.5)", gain=2.0)
    assert (prediction.q, prediction.lambda_1) == (1.0, -math.inf)
    assert prediction.spectrum(0.5) == -math.inf
    assert math.isnan(prediction.critical_gain)


FAMILIES = (
    "leaky_relu(0.3)", "leaky_relu(-0.5)", "leaky_relu(2.0)", "elu(0.5)", "elu(-1.0)", "elu(0.0)",
    "thresholded_relu(0.5)", "thresholded_relu(-1.0)", "scaled_tanh(1.7159, 0.6667)",
    "scaled_tanh(-1.0, 2.0)", "scaled_tanh(0.0, 2.0)", "affine(0.5, 1.0)", "affine(-2.0, 0.0)",
    "affine(0.0, 0.0)", "hard_sigmoid(0.25, 3.0)",
)  # fmt: skip


@pytest.mark.parametrize("sigma", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("gain", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("activation", FAMILIES)
def test_every_member_of_a_family_has_a_theory_in_order(
    activation: str, gain: float, sigma: float
) -> None:
    for ensemble in ("gaussian", "orthogonal"):
        prediction = gl.mean_field(activation, gain=gain, input_std=sigma, ensemble=ensemble)
        curve = prediction.spectrum(np.linspace(0.0, 1.0, 9))
        assert np.all(np.diff(curve[np.isfinite(curve)]) <= 1e-7)
        assert 0.0 <= prediction.fraction_positive <= prediction.kaplan_yorke <= 1.0
        assert prediction.lambda_1 <= prediction.bound_rate + 1e-9
        assert not np.isnan(prediction.log_norms(np.array([1, 5, 50]), 64)).any()


def test_flat_around_zero_means_no_critical_gain_without_input() -> None:
    """A state off zero by less than the threshold dies at once, whatever the gain."""
    prediction = gl.mean_field("thresholded_relu(0.5)", gain=10.0)
    assert (prediction.q, prediction.lambda_1) == (0.0, -math.inf)
    assert math.isnan(prediction.critical_gain)
    assert gl.critical_gain("thresholded_relu(0.5)", input_std=0.5) > 1.0
