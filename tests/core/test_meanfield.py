"""Mean-field theory: the tables, closed forms, exact identities and a simulated network."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erf, erfc

from gradlab.analysis.meanfield import critical_gain, gaussian_mean, mean_field
from gradlab.cells.activations import ACTIVATIONS
from gradlab.cells.elementwise import Activation
from gradlab.errors import SettingError, UnknownNameError

# The theory's erf(√π x/2) has slope 1 at 0; erf(x) is the same function of √π/2 times the argument.
ERF_SCALE = math.sqrt(math.pi) / 2.0

GAINS = (0.5, 0.9, 1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0)

# input standard deviation -> one row a gain: q, chi, lambda_1, N * bias
TANH = {
    0.0: [
        (0.00000000, 0.25000000, -0.6931472, -0.500),
        (0.00000000, 0.81000000, -0.1053605, -0.500),
        (0.00000000, 1.00000000, -0.0000000, -0.500),
        (0.11274989, 1.01018936, 0.0050689, -0.536),
        (0.79335404, 1.13932322, 0.0652172, -0.854),
        (2.12147357, 1.36267334, 0.1547242, -1.317),
        (6.30539148, 1.85985519, 0.3102493, -2.273),
        (20.69936684, 2.90042095, 0.5324279, -4.202),
        (91.70513120, 5.54485449, 0.8564352, -9.034),
    ],
    0.5: [
        (0.29922859, 0.17158135, -0.8813489, -0.627),
        (0.46116807, 0.49209219, -0.3545446, -0.706),
        (0.53464866, 0.57988389, -0.2724637, -0.740),
        (0.62680804, 0.66563030, -0.2035104, -0.782),
        (1.21820833, 0.96709680, -0.0167283, -1.020),
        (2.47971046, 1.27222955, 0.1203855, -1.420),
        (6.61189862, 1.81826011, 0.2989400, -2.329),
        (20.97684821, 2.88146480, 0.5291494, -4.231),
        (91.96683758, 5.53698706, 0.8557253, -9.047),
    ],
    1.0: [
        (1.10304145, 0.11176553, -1.0956760, -0.977),
        (1.36544377, 0.33246325, -0.5506130, -1.073),
        (1.46385089, 0.39887901, -0.4595486, -1.107),
        (1.57772308, 0.46784027, -0.3798142, -1.146),
        (2.20930304, 0.75303008, -0.1418250, -1.343),
        (3.44806909, 1.09631010, 0.0459750, -1.672),
        (7.50876604, 1.71092016, 0.2685157, -2.487),
        (21.80592126, 2.82696682, 0.5196022, -4.317),
        (92.75164795, 5.51359334, 0.8536083, -9.087),
    ],
}

# activation, input standard deviation, lambda_1 for every gain
EXPONENTS = [
    ("erf", 0.0, "-.69315 -.10536 .00000 .00537 .07137 .16752 .32982 .55670 .88359"),
    ("erf", 0.5, "-.86001 -.33484 -.25376 -.18592 -.00201 .13630 .31918 .55353 .88290"),
    ("erf", 1.0, "-1.06838 -.52538 -.43494 -.35585 -.12007 .06664 .29033 .54427 .88081"),
    ("hard_tanh", 0.0, "-.69315 -.10536 .00000 .04095 .17167 .29657 .47922 .71789 1.05157"),
    ("hard_tanh", 0.5, "-.73310 -.20896 -.12973 -.06332 .12357 .27293 .47009 .71495 1.05089"),
    ("hard_tanh", 1.0, "-.90697 -.36982 -.28093 -.20328 .02882 .21569 .44484 .70635 1.04887"),
    ("sigmoid", 0.0, "-2.09471 -1.53886 -1.4437 -1.35933 -1.09885 -.88135 -.61924 -.34493 -.00715"),
    ("sigmoid", 0.5, "-2.14654 -1.58533 -1.48857 -1.40255 -1.1352 -.90961 -.63564 -.35124 -.00861"),
    ("sigmoid", 1.0, "-2.25407 -1.68479 -1.58552 -1.49683 -1.21785 -.97725 -.67839 -.36916"
     " -.01293"),
    ("relu", 0.5, "-1.03972 -.45193 -.34657 -.25126 .05889 .34657 .75204 1.26286 1.95601"),
    ("identity", 0.5, "-.69315 -.10536 .00000 .09531 .40547 .69315 1.09861 1.60944 2.30259"),
]  # fmt: skip


def mean_square(phi: Activation, q: float) -> float:
    return gaussian_mean(lambda x: phi.function(x) ** 2, q, phi.kinks)


def scale_of(activation: str) -> float:
    return ERF_SCALE if activation == "erf" else 1.0


@pytest.mark.parametrize("sigma", TANH)
@pytest.mark.parametrize("row", range(len(GAINS)), ids=[f"g={gain}" for gain in GAINS])
def test_tanh_table(sigma: float, row: int) -> None:
    q, chi, lambda_1, bias = TANH[sigma][row]
    prediction = mean_field("tanh", gain=GAINS[row], input_std=sigma)
    # Half a unit of the last printed digit on top of the tolerance.
    assert prediction.q == pytest.approx(q, rel=1e-7, abs=6e-9)
    assert prediction.chi == pytest.approx(chi, rel=1e-7, abs=6e-9)
    assert prediction.lambda_1 == pytest.approx(lambda_1, abs=1e-7)
    assert prediction.bias(1) == pytest.approx(bias, abs=6e-4)


@pytest.mark.parametrize(("activation", "sigma", "values"), EXPONENTS)
def test_exponents_of_the_other_activations(activation: str, sigma: float, values: str) -> None:
    scale = scale_of(activation)
    computed = [
        mean_field(activation, gain=gain * scale, input_std=sigma * scale).lambda_1
        for gain in GAINS
    ]
    np.testing.assert_allclose(computed, [float(value) for value in values.split()], atol=1e-5)


@pytest.mark.parametrize("gain", [*GAINS, 40.0])
@pytest.mark.parametrize("sigma", [0.0, 0.03, 0.5, 1.0, 20.0])
def test_erf_solves_the_closed_form(gain: float, sigma: float) -> None:
    """E erf² = (2/π) asin(2q/(1+2q)) and E erf'^k = (2/√π)^k (1+2kq)^(-1/2)."""
    prediction = mean_field("erf", gain=gain, input_std=sigma)
    q = prediction.q
    square = 2.0 / math.pi * math.asin(2.0 * q / (1.0 + 2.0 * q))
    assert q == pytest.approx(gain**2 * square + sigma**2, rel=1e-10)
    slope_2, slope_4 = (
        (4.0 / math.pi) ** (k / 2) / math.sqrt(1.0 + 2.0 * k * q) for k in (2, 4)
    )  # fmt: skip
    assert prediction.chi == pytest.approx(gain**2 * slope_2, rel=1e-12)
    assert prediction.kappa == pytest.approx(slope_4 / slope_2**2, rel=1e-12)


@pytest.mark.parametrize("gain", [*GAINS[3:], 40.0])
@pytest.mark.parametrize("sigma", [0.0, 0.03, 0.5, 1.0, 20.0])
def test_hard_tanh_solves_the_closed_form(gain: float, sigma: float) -> None:
    prediction = mean_field("hard_tanh", gain=gain, input_std=sigma)
    q, edge = prediction.q, 1.0 / math.sqrt(2.0 * prediction.q)
    inside, outside = float(erf(edge)), float(erfc(edge))
    square = q * (inside - math.sqrt(2.0 / (math.pi * q)) * math.exp(-0.5 / q)) + outside
    assert q == pytest.approx(gain**2 * square + sigma**2, rel=1e-10)
    assert prediction.chi == pytest.approx(gain**2 * inside, rel=1e-12)
    assert prediction.kappa == pytest.approx(1.0 / inside, rel=1e-12)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0])
def test_sigmoid_is_tanh_of_a_quarter_of_the_gain_with_its_mean_as_noise(
    gain: float, sigma: float
) -> None:
    sigmoid = mean_field("sigmoid", gain=gain, input_std=sigma)
    noise = math.sqrt(gain**2 / 16.0 + sigma**2 / 4.0)
    tanh = mean_field("tanh", gain=gain / 4.0, input_std=noise)
    assert sigmoid.chi == pytest.approx(tanh.chi, rel=1e-10)
    assert sigmoid.lambda_1 == pytest.approx(tanh.lambda_1, abs=1e-10)
    assert sigmoid.q == pytest.approx(4.0 * tanh.q, rel=1e-10)


@pytest.mark.parametrize(("activation", "share"), [("relu", 0.5), ("identity", 1.0)])
def test_homogeneous_states_have_closed_forms_and_diverge(activation: str, share: float) -> None:
    for gain in (0.5, 0.9):
        prediction = mean_field(activation, gain=gain, input_std=0.5)
        assert prediction.q == pytest.approx(0.25 / (1.0 - share * gain**2), rel=1e-14)
        assert prediction.chi == pytest.approx(share * gain**2, rel=1e-14)
    for sigma in (0.0, 0.5):
        prediction = mean_field(activation, gain=2.0, input_std=sigma)
        assert prediction.q == math.inf
        assert prediction.chi == pytest.approx(4.0 * share, rel=1e-14)


def test_marginal_linear_network_keeps_any_variance() -> None:
    prediction = mean_field("identity", gain=1.0)
    assert math.isnan(prediction.q)
    assert (prediction.chi, prediction.lambda_1, prediction.kappa) == (1.0, 0.0, 1.0)
    assert mean_field("identity", gain=1.0, input_std=0.1).q == math.inf


@pytest.mark.parametrize("activation", ["tanh", "hard_tanh", "softsign"])
def test_state_dies_out_up_to_the_critical_gain(activation: str) -> None:
    """At the critical gain of hard_tanh, variances up to about 0.03 all but stay as they are."""
    for gain in (0.9, 1.0):
        assert mean_field(activation, gain=gain).q == 0.0


def test_linear_network_has_the_finite_size_corrections_of_ginibre() -> None:
    """kappa = 1: a bias of -1/(2 N), a standard deviation of 1/sqrt(2 N T)."""
    prediction = mean_field("identity", gain=1.0)
    assert prediction.bias(50) == pytest.approx(-0.01, rel=1e-15)
    assert prediction.deviation(50, 100) == pytest.approx(0.01, rel=1e-15)


def test_bias_and_input_add_their_variances() -> None:
    split = mean_field("tanh", gain=2.0, input_std=0.3, bias_std=0.4)
    joint = mean_field("tanh", gain=2.0, input_std=0.5)
    assert split.q == pytest.approx(joint.q, rel=1e-14)
    assert split.lambda_1 == pytest.approx(joint.lambda_1, abs=1e-14)


def test_ensembles_differ_in_the_bound_alone() -> None:
    gaussian = mean_field("tanh", gain=3.0)
    orthogonal = mean_field("tanh", gain=3.0, ensemble="orthogonal")
    assert gaussian.lambda_1 == orthogonal.lambda_1
    assert gaussian.bound_rate == pytest.approx(math.log(6.0), rel=1e-15)
    assert orthogonal.bound_rate == pytest.approx(math.log(3.0), rel=1e-15)
    assert mean_field("sigmoid", gain=3.0).bound_rate == pytest.approx(math.log(1.5), rel=1e-15)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gain", [0.1, 0.9, 1.3, 3.0])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_exponent_never_exceeds_the_bound(activation: str, gain: float, sigma: float) -> None:
    prediction = mean_field(activation, gain=gain, input_std=sigma, ensemble="orthogonal")
    assert prediction.lambda_1 <= prediction.bound_rate + 1e-12
    assert prediction.kappa >= 1.0 - 1e-12
    assert prediction.q >= sigma**2


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_stationary_variance_is_the_limit_of_the_iteration(sigma: float) -> None:
    """An independent way to the fixed point, from a state slightly off zero."""
    for name, phi in ACTIVATIONS.items():
        expected = mean_field(name, gain=0.8, input_std=sigma).q
        q = 1e-6 + sigma**2
        for _ in range(200):
            q = 0.64 * mean_square(phi, q) + sigma**2
        assert q == pytest.approx(expected, rel=1e-9, abs=1e-15), name


def test_gaussian_means_are_exact_over_thirty_orders_of_variance() -> None:
    for variance in 10.0 ** np.arange(-15, 16):
        assert gaussian_mean(np.ones_like, variance) == pytest.approx(1.0, rel=1e-14)
        assert gaussian_mean(np.square, variance) == pytest.approx(variance, rel=1e-13)
        absolute = math.sqrt(2.0 * variance / math.pi)
        assert gaussian_mean(np.abs, variance) == pytest.approx(absolute, rel=1e-13)


def test_onset_of_chaos_is_quadratic_in_the_gain() -> None:
    """lambda_1 -> (2/3)(g-1)^2 as g -> 1 from above."""
    exponent = mean_field("tanh", gain=1.001).lambda_1
    assert exponent / 0.001**2 == pytest.approx(0.66445, rel=1e-4)


def test_growth_at_large_gain_is_proportional_to_it() -> None:
    """chi/g -> (4/3)/sqrt(2 pi)."""
    limit = 4.0 / 3.0 / math.sqrt(2.0 * math.pi)
    assert mean_field("tanh", gain=1e5).chi / 1e5 == pytest.approx(limit, rel=1e-5)


CRITICAL = [
    ("tanh", [1.0, 1.1934007, 1.5496739, 1.8555891]),
    ("erf", [1.0, 1.1765658, 1.5058474, 1.7953239]),
    ("hard_tanh", [1.0, 1.0257004, 1.2131478, 1.4396905]),
]


@pytest.mark.parametrize(("activation", "gains"), CRITICAL)
def test_critical_gains_with_input(activation: str, gains: list[float]) -> None:
    scale = scale_of(activation)
    for sigma, expected in zip((0.0, 0.1, 0.5, 1.0), gains, strict=True):
        computed = critical_gain(activation, input_std=sigma * scale) / scale
        assert computed == pytest.approx(expected, rel=1e-7)


def test_critical_gains_without_input() -> None:
    assert critical_gain("tanh") == pytest.approx(1.0, rel=1e-12)
    assert critical_gain("identity") == pytest.approx(1.0, rel=1e-12)
    assert critical_gain("relu") == pytest.approx(math.sqrt(2.0), rel=1e-12)
    assert critical_gain("sigmoid") == pytest.approx(10.149263710, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.43144379, 1.2790454, 3.8833824, 12.369896])
def test_input_that_silences_chaos(sigma: float) -> None:
    gain = {0.43144379: 1.5, 1.2790454: 2.0, 3.8833824: 3.0, 12.369896: 5.0}[sigma]
    assert critical_gain("tanh", input_std=sigma) == pytest.approx(gain, rel=1e-7)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_chi_passes_one_at_the_critical_gain(activation: str) -> None:
    for sigma in (0.0, 0.7):
        gain = critical_gain(activation, input_std=sigma)
        below = mean_field(activation, gain=gain * (1.0 - 1e-5), input_std=sigma)
        above = mean_field(activation, gain=gain * (1.0 + 1e-5), input_std=sigma)
        assert below.chi < 1.0 < above.chi
        if ACTIVATIONS[activation].bounded:
            assert above.chi == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_simulated_network_meets_the_prediction(orthogonal: bool) -> None:
    """Fresh input, N = 300, T = 400: |error| <= 2/N + 3 sqrt((3 kappa - 1)/(4 N T))."""
    n, steps, gain, sigma = 300, 400, 3.0, 0.5
    rng = np.random.default_rng(1)
    W = gain * rng.standard_normal((n, n)) / math.sqrt(n)
    if orthogonal:
        W = gain * np.linalg.qr(W)[0]
    h, v, squares, log_growth = np.zeros(n), rng.standard_normal(n), [], []
    for t in range(100 + steps):
        z = W @ h + sigma * rng.standard_normal(n)
        h, v = np.tanh(z), np.cosh(z) ** -2.0 * (W @ v)
        growth = float(np.linalg.norm(v))
        v /= growth
        if t >= 100:
            squares.append(np.mean(z**2))
            log_growth.append(math.log(growth))
    prediction = mean_field("tanh", gain=gain, input_std=sigma)
    tolerance = 2.0 / n + 3.0 * prediction.deviation(n, steps)
    assert np.mean(log_growth) == pytest.approx(
        prediction.lambda_1 + prediction.bias(n), abs=tolerance
    )
    # 1/N bias of the variance, and a relative sampling error of about sqrt(2/(N T)) twice.
    assert np.mean(squares) == pytest.approx(prediction.q, rel=0.03)


def test_no_recurrence_is_an_ordinary_gain() -> None:
    prediction = mean_field("tanh", gain=0.0, input_std=0.5)
    assert (prediction.q, prediction.chi) == (0.25, 0.0)
    assert prediction.lambda_1 == -math.inf


def test_unknown_names_and_impossible_numbers_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tanh'"):
        mean_field("thanh", gain=1.0)
    with pytest.raises(UnknownNameError, match="unknown ensemble 'gauss'"):
        mean_field("tanh", gain=1.0, ensemble="gauss")
    for gain, sigma in ((-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1)):
        with pytest.raises(SettingError, match="expected a finite number >= 0"):
            mean_field("tanh", gain=gain, input_std=sigma)
    with pytest.raises(SettingError, match="bias_std is inf"):
        critical_gain("tanh", bias_std=math.inf)


def test_table_lists_the_predictions() -> None:
    prediction = mean_field("tanh", gain=2.0)
    table = prediction.to_frame().set_index("quantity")["value"]
    assert table["lambda_1"] == prediction.lambda_1
    assert list(table.index)[:5] == ["q", "chi", "lambda_1", "kappa", "bound_rate"]
    assert table["kaplan_yorke"] == prediction.kaplan_yorke
