"""The whole Lyapunov spectrum of mean-field theory: tables, closed forms, and a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.errors import SettingError
from gradlab.records.slopes import SlopeLaw

# ensemble, gain, input std: fraction positive, entropy rate, Kaplan-Yorke dimension and mean
# exponent, all per unit, then the exponents at the rank fractions .1, .25 and .5.
TANH = [
    ("gaussian", 1.5, 0.0, ".084319 .0027952 .165808 -.71435 -.01288 -.15048 -.46617"),
    ("gaussian", 2.0, 0.0, ".133426 .0106831 .257552 -1.14902 .04190 -.16670 -.68929"),
    ("gaussian", 3.0, 0.0, ".152892 .0251964 .287719 -2.27281 .12082 -.27157 -1.41603"),
    ("gaussian", 5.0, 0.0, ".134075 .0390821 .246481 -4.90677 .16576 -.78040 -3.52569"),
    ("gaussian", 10.0, 0.0, ".091165 .0441697 .165340 -12.16097 -.12397 -3.12104 -9.59037"),
    ("gaussian", 2.0, 0.5, ".099695 .0061635 .194009 -1.31227 -.00040 -.22634 -.80387"),
    ("gaussian", 3.0, 0.5, ".145060 .0229870 .273548 -2.36360 .10479 -.30013 -1.48777"),
    ("orthogonal", 1.5, 0.0, ".230732 .0079767 .434208 -.21435 .03980 -.00664 -.11960"),
    ("orthogonal", 2.0, 0.0, ".224453 .0187133 .416295 -.64902 .09458 -.02286 -.34272"),
    ("orthogonal", 3.0, 0.0, ".194757 .0331380 .356630 -1.77281 .17350 -.12773 -1.06946"),
    ("orthogonal", 5.0, 0.0, ".148965 .0443338 .270168 -4.40677 .21844 -.63656 -3.17912"),
    ("orthogonal", 3.0, 0.5, ".184167 .0300862 .338318 -1.86360 .15747 -.15629 -1.14120"),
]

MEAN_EXPONENTS = [  # tanh, Gaussian: gain, input std, value
    (0.5, 0.0, -1.19315), (0.9, 0.0, -0.60536), (1.0, 0.0, -0.5), (1.1, 0.0, -0.51186),
    (0.5, 0.5, -1.45907), (0.9, 0.5, -0.99594), (1.0, 0.5, -0.94400), (1.1, 0.5, -0.91336),
    (1.5, 0.5, -0.97178), (5.0, 0.5, -4.95435), (10.0, 0.5, -12.18266), (0.5, 1.0, -2.00376),
    (0.9, 1.0, -1.56492), (1.5, 1.0, -1.47764), (3.0, 1.0, -2.61896), (10.0, 1.0, -12.24753),
    (1.0, 1.0, -1.51294), (1.1, 1.0, -1.47790), (2.0, 1.0, -1.71265), (5.0, 1.0, -5.09474),
]  # fmt: skip

# The published network of 4096 units: gain, then lambda_1, fraction, entropy, dimension, and the
# means of the exponents, of the squared slopes and of the squared pre-activations.
PUBLISHED = [
    (1.5, ".06495 .08398 .0027729 .16511 -.71530 .50596 .79529"),
    (2.0, ".15425 .13257 .0106076 .25659 -1.15055 .34033 2.12530"),
    (3.0, ".30958 .15259 .0251060 .28717 -2.27390 .20654 6.31045"),
    (5.0, ".53118 .13379 .0389117 .24594 -4.90942 .11595 20.72002"),
    # Its mean contradicts its own mean ln phi', and is left out.
    (10.0, ".85512 .09082 .0439873 .16495 nan .05548 91.73556"),
]

ENSEMBLES = ("gaussian", "orthogonal")


@pytest.mark.parametrize(("ensemble", "gain", "sigma", "values"), TANH)
def test_tanh_table(ensemble: str, gain: float, sigma: float, values: str) -> None:
    prediction = gl.mean_field("tanh", gain=gain, input_std=sigma, ensemble=ensemble)
    fraction, entropy, dimension, mean, *exponents = map(float, values.split())
    # The table's trapezoidal rule is good to a few units of its last digit.
    assert prediction.fraction_positive == pytest.approx(fraction, abs=1e-6)
    assert prediction.entropy_rate == pytest.approx(entropy, abs=2e-7)
    assert prediction.kaplan_yorke == pytest.approx(dimension, abs=6e-6)
    assert prediction.mean_exponent == pytest.approx(mean, abs=6e-6)
    computed = prediction.spectrum(np.array([0.1, 0.25, 0.5]))
    np.testing.assert_allclose(computed, exponents, atol=2e-5)


@pytest.mark.parametrize(("gain", "sigma", "mean"), MEAN_EXPONENTS)
def test_mean_exponents(gain: float, sigma: float, mean: float) -> None:
    gaussian, orthogonal = (
        gl.mean_field("tanh", gain=gain, input_std=sigma, ensemble=ensemble)
        for ensemble in ENSEMBLES
    )
    assert gaussian.mean_exponent == pytest.approx(mean, abs=6e-6)
    assert orthogonal.mean_exponent == pytest.approx(gaussian.mean_exponent + 0.5, abs=1e-14)


@pytest.mark.parametrize(("gain", "values"), PUBLISHED)
def test_published_network_of_4096_units(gain: float, values: str) -> None:
    prediction = gl.mean_field("tanh", gain=gain)
    leading, fraction, entropy, dimension, mean, slopes, variance = map(float, values.split())
    finite = prediction.lambda_1 + prediction.bias(4096)
    assert finite == pytest.approx(leading, abs=3e-4 if gain < 10.0 else 9e-4)
    assert prediction.fraction_positive == pytest.approx(fraction, rel=0.008)
    assert prediction.entropy_rate == pytest.approx(entropy, rel=0.01)
    assert prediction.kaplan_yorke == pytest.approx(dimension, rel=0.008)
    assert math.isnan(mean) or prediction.mean_exponent == pytest.approx(mean, abs=3e-3)
    assert prediction.chi / gain**2 == pytest.approx(slopes, rel=1.5e-3)
    assert prediction.q == pytest.approx(variance, rel=3e-3)


LOG_SLOPES = {"tanh": lambda z: -2.0 * np.log(np.cosh(z)), "erf": lambda z: -(z**2)}


@pytest.mark.parametrize(("activation", "gain"), [("tanh", 3.0), ("tanh", 30.0), ("erf", 8.0)])
def test_exponents_solve_their_equation_by_an_independent_quadrature(
    activation: str, gain: float
) -> None:
    """The trapezoidal rule on a fine grid, exact to rounding for smooth integrands."""
    scale = 2.0 / math.sqrt(math.pi) if activation == "erf" else 1.0
    prediction = gl.mean_field(activation, gain=gain)
    z = np.linspace(-10.0, 10.0, 400_001)
    density = np.exp(-0.5 * z**2) * (z[1] - z[0]) / math.sqrt(2.0 * math.pi)
    logs = math.log(scale) + LOG_SLOPES[activation](math.sqrt(prediction.q) * z)
    for p in (0.001, 0.1, 0.5, 0.9):
        log_u = 2.0 * math.log(gain) + math.log(p) - 2.0 * float(prediction.spectrum(p))
        share = density @ (0.5 * (1.0 + np.tanh(0.5 * (log_u + 2.0 * logs))))
        assert share == pytest.approx(p, abs=1e-9)


@given(p=st.floats(1e-6, 1.0 - 1e-6), gain=st.floats(0.1, 10.0))
def test_constant_slopes_give_the_triangular_law(p: float, gain: float) -> None:
    """Newman's law, ln g + ln(1 - p)/2; all exponents of an orthogonal W are ln g."""
    gaussian = gl.mean_field("identity", gain=gain)
    orthogonal = gl.mean_field("identity", gain=gain, ensemble="orthogonal")
    expected = math.log(gain) + 0.5 * math.log1p(-p)
    assert gaussian.spectrum(p) == pytest.approx(expected, abs=1e-9)
    assert orthogonal.spectrum(p) == pytest.approx(math.log(gain), abs=1e-9)


def test_linear_network_has_closed_forms_for_all_sums() -> None:
    """g² (1 - p) = 1 at p = 3/4 for g = 2, where the integral of the exponents is ln 2 - 3/8."""
    linear = gl.mean_field("identity", gain=2.0)
    assert linear.fraction_positive == pytest.approx(0.75, abs=1e-13)
    assert linear.entropy_rate == pytest.approx(math.log(2.0) - 0.375, abs=1e-13)
    assert (linear.kaplan_yorke, linear.mean_exponent) == (1.0, math.log(2.0) - 0.5)
    rotation = gl.mean_field("identity", gain=2.0, ensemble="orthogonal")
    assert (rotation.fraction_positive, rotation.kaplan_yorke) == (1.0, 1.0)
    assert rotation.entropy_rate == pytest.approx(math.log(2.0), abs=1e-14)
    assert rotation.spectrum(1.0) == pytest.approx(math.log(2.0), abs=1e-14)


@pytest.mark.parametrize("gain", [1.0, 2.0, 3.0])
def test_relu_has_a_closed_form_and_half_of_its_exponents_are_minus_infinity(gain: float) -> None:
    """p = u/(2 + 2u): e^{2 lambda} = g² (1/2 - p), over 1 - p for an orthogonal W."""
    p = np.array([0.0, 0.01, 0.2, 0.4999, 0.5, 0.7, 1.0])
    alive = np.maximum(0.5 - p, 0.0)
    for ensemble, rest in (("gaussian", 1.0), ("orthogonal", np.maximum(1.0 - p, 0.1))):
        prediction = gl.mean_field("relu", gain=gain, input_std=0.3, ensemble=ensemble)
        with np.errstate(divide="ignore"):
            expected = math.log(gain) + 0.5 * np.log(alive / rest)
        np.testing.assert_allclose(prediction.spectrum(p), expected, atol=1e-11)
        assert prediction.mean_exponent == -math.inf
        assert prediction.kaplan_yorke <= 0.5


@pytest.mark.parametrize("ensemble", ENSEMBLES)
@pytest.mark.parametrize("gain", [1.5, 3.0])
def test_hard_tanh_has_exponents_for_the_share_of_units_that_are_not_saturated(
    gain: float, ensemble: str
) -> None:
    """Slopes of 0 and 1 with share r: e^{2 lambda} = g² (r - p)."""
    prediction = gl.mean_field("hard_tanh", gain=gain, ensemble=ensemble)
    share = math.erf(1.0 / math.sqrt(2.0 * prediction.q))
    p = share * np.array([1e-9, 0.1, 0.5, 0.99])
    rest = 1.0 - p if ensemble == "orthogonal" else 1.0
    expected = 0.5 * np.log(gain**2 * (share - p) / rest)
    np.testing.assert_allclose(prediction.spectrum(p), expected, atol=1e-11)
    assert prediction.spectrum(share + 1e-9) == -math.inf


@pytest.mark.parametrize("ensemble", ENSEMBLES)
@pytest.mark.parametrize("activation", ["tanh", "erf", "sigmoid", "softsign", "hard_tanh"])
def test_sums_are_integrals_of_the_spectrum(activation: str, ensemble: str) -> None:
    """The closed forms against a quadrature of the curve itself."""
    critical = gl.critical_gain(activation, input_std=0.5)
    prediction = gl.mean_field(activation, gain=1.5 * critical, input_std=0.5, ensemble=ensemble)
    fraction, dimension = prediction.fraction_positive, prediction.kaplan_yorke
    assert 0.0 < fraction < dimension < prediction.slopes.rank
    x, weight = np.polynomial.legendre.leggauss(60)
    nodes, weight = 0.5 * (x + 1.0), 0.5 * weight
    positive = fraction * weight @ prediction.spectrum(fraction * nodes)
    assert prediction.entropy_rate == pytest.approx(positive, rel=1e-6)
    assert prediction.spectrum(fraction) == pytest.approx(0.0, abs=1e-11)
    assert dimension * weight @ prediction.spectrum(dimension * nodes) == pytest.approx(
        0.0, abs=1e-6
    )


@given(
    gain=st.floats(0.05, 30.0),
    sigma=st.sampled_from([0.0, 0.1, 1.0, 4.0]),
    activation=st.sampled_from(["tanh", "erf", "sigmoid", "softsign", "hard_tanh", "leaky_relu"]),
    ensemble=st.sampled_from(ENSEMBLES),
)
@settings(deadline=None, max_examples=60)
def test_spectrum_falls_from_lambda_1(
    gain: float, sigma: float, activation: str, ensemble: str
) -> None:
    prediction = gl.mean_field(activation, gain=gain, input_std=sigma, ensemble=ensemble)
    curve = prediction.spectrum(np.linspace(0.0, 1.0, 33))
    assert curve[0] == prediction.lambda_1
    assert np.all(np.diff(curve[np.isfinite(curve)]) <= 1e-9)
    assert prediction.spectrum(1e-12) == pytest.approx(prediction.lambda_1, abs=1e-6)
    assert 0.0 <= prediction.fraction_positive <= prediction.kaplan_yorke <= 1.0
    assert prediction.entropy_rate <= max(prediction.lambda_1, 0.0) * prediction.fraction_positive


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_simulated_spectrum_lies_on_the_curve(ensemble: str) -> None:
    """N = 100, driven: every tenth exponent, by QR at every step with rows sorted by slope."""
    n, steps, gain, sigma = 100, 300, 2.0, 0.5
    rng = np.random.default_rng(5)
    W = gain * rng.standard_normal((n, n)) / math.sqrt(n)
    if ensemble == "orthogonal":
        W = gain * np.linalg.qr(W)[0]
    h, Q, total = np.zeros(n), np.linalg.qr(rng.standard_normal((n, n)))[0], np.zeros(n)
    for t in range(50 + steps):
        z = W @ h + sigma * rng.standard_normal(n)
        h, slope = np.tanh(z), np.cosh(z) ** -2.0
        order = np.argsort(-slope)
        Q, R = np.linalg.qr((slope[:, None] * (W @ Q))[order])
        Q = Q[np.argsort(order)]
        total += np.log(np.abs(np.diag(R))) if t >= 50 else 0.0
    prediction = gl.mean_field("tanh", gain=gain, input_std=sigma, ensemble=ensemble)
    ranks = np.arange(4, 95, 10)
    predicted = prediction.spectrum((ranks + 0.5) / n)
    # The flattest tenth of the units scatters most.
    np.testing.assert_allclose((total / steps)[ranks], predicted, atol=0.03, rtol=0.03)
    assert total.mean() / steps == pytest.approx(prediction.mean_exponent, abs=0.03)


def test_exponents_of_saturated_units_are_finite_where_their_slopes_underflow() -> None:
    """erf'(z) is 0 in float64 from |z| = 27 on, which a fifth of the units pass."""
    prediction = gl.mean_field("erf", gain=20.0, input_std=1.0)
    assert prediction.slopes.rank == 1.0
    mean_log_slope = math.log(2.0 / math.sqrt(math.pi)) - prediction.q
    assert prediction.mean_exponent == pytest.approx(math.log(20.0) + mean_log_slope - 0.5)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "erf"])
def test_logarithms_of_slopes_agree_with_the_slopes(activation: str) -> None:
    phi = gl.activation(activation)
    z = np.linspace(-15.0, 15.0, 301)
    assert phi.log_slope is not None
    np.testing.assert_allclose(np.exp(phi.log_slope(z)), phi.derivative(z), rtol=1e-12)


def test_a_share_is_found_to_rounding_however_far_apart_the_slopes_are() -> None:
    """Slopes of 1 and 1e-100: the share passes 1/2 between two steep rises."""
    law = SlopeLaw.of(np.array([0.0, -460.0, 0.0]), np.array([1.0, 2.0, 1.0]))
    assert (law.log_square.tolist(), law.weight.tolist()) == ([-460.0, 0.0], [0.5, 0.5])
    share = np.array([1e-15, 0.3, 0.5 - 1e-9, 0.5 + 1e-9, 0.9, 1.0 - 1e-12])
    np.testing.assert_allclose(law.share(law.solve(share)), share, rtol=1e-13)


def test_a_network_without_recurrence_has_no_finite_exponent() -> None:
    prediction = gl.mean_field("tanh", gain=0.0, input_std=0.5)
    assert prediction.spectrum(np.array([0.0, 0.5, 1.0])).tolist() == [-math.inf] * 3
    assert (prediction.fraction_positive, prediction.kaplan_yorke) == (0.0, 0.0)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_shares_outside_the_unit_interval_are_refused(p: float) -> None:
    with pytest.raises(SettingError, match=r"expected shares in \[0, 1\]"):
        gl.mean_field("tanh", gain=1.5).spectrum(p)
