"""Activations: derivatives against independent differences, suprema, kinks, no cancellation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradlab.cells.activations import ACTIVATIONS, activation, clipped
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.errors import SettingError, UnknownNameError

AWAY_FROM_KINKS = np.concatenate([np.linspace(-6.0, 6.0, 241) + 0.0123, [-1e-3, 1e-3]])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivative_equals_the_central_difference(name: str) -> None:
    phi, step = activation(name), 1e-6
    difference = (phi.function(AWAY_FROM_KINKS + step) - phi.function(AWAY_FROM_KINKS - step)) / (
        2.0 * step
    )
    # Rounding of the difference is about 1e-16 * |phi| / step.
    np.testing.assert_allclose(phi.derivative(AWAY_FROM_KINKS), difference, atol=2e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_supremum_of_the_derivative_is_attained_and_never_passed(name: str) -> None:
    phi = activation(name)
    z = np.concatenate([np.linspace(-20.0, 20.0, 400_001), [0.0, math.sqrt(2.0)]])
    largest = np.abs(phi.derivative(z)).max()
    assert largest <= phi.sup_derivative * (1.0 + 1e-12)
    assert largest >= phi.sup_derivative * (1.0 - 1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_infimum_of_the_derivative_is_approached_and_never_passed(name: str) -> None:
    phi = activation(name)
    # The slope of softsign has fallen to 1e-12 only at a million.
    z = np.concatenate([np.linspace(-20.0, 20.0, 400_001), [-math.sqrt(2.0), -1e6, 1e6]])
    smallest = phi.derivative(z).min()
    assert smallest >= phi.inf_derivative - 1e-12
    assert smallest <= phi.inf_derivative + 1e-9


def test_a_clipped_argument_brings_the_slope_down_to_zero() -> None:
    assert clipped("identity", 2.0).inf_derivative == 0.0
    assert clipped("gelu", 2.0).inf_derivative == activation("gelu").inf_derivative


@pytest.mark.parametrize(
    ("name", "supremum"),
    [
        ("tanh", 1.0), ("relu", 1.0), ("leaky_relu", 1.0), ("identity", 1.0), ("hard_tanh", 1.0),
        ("softplus", 1.0), ("softsign", 1.0), ("elu", 1.0), ("sigmoid", 0.25),
        ("erf", 1.1283791671), ("gelu", 1.1289041452), ("silu", 1.0998393201),
        ("selu", 1.7580993408), ("hard_sigmoid", 0.2), ("hard_sigmoid_6", 1.0 / 6.0),
    ],
)  # fmt: skip
def test_gamma_a_has_its_known_value(name: str, supremum: float) -> None:
    assert activation(name).sup_derivative == pytest.approx(supremum, rel=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_far_tails_are_finite_and_quiet(name: str) -> None:
    z = np.array([-1e4, -800.0, 800.0, 1e4])
    phi = activation(name)
    assert np.isfinite(phi.function(z)).all()
    assert np.isfinite(phi.derivative(z)).all()
    value, slope = phi.value_and_slope(z)
    np.testing.assert_allclose(value, phi.function(z), rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(slope, phi.derivative(z), rtol=1e-14, atol=1e-300)


def test_slope_of_tanh_does_not_cancel() -> None:
    assert activation("tanh").derivative(np.array([19.1]))[0] == pytest.approx(
        1.0280418219381e-16, rel=1e-12
    )
    assert 1.0 - np.tanh(19.1) ** 2 == 0.0  # what the cancelling form gives


def test_slope_of_sigmoid_is_even_to_the_last_bit() -> None:
    z = np.linspace(0.0, 700.0, 1001)
    slope = activation("sigmoid").derivative
    np.testing.assert_array_equal(slope(z), slope(-z))
    assert slope(np.array([700.0]))[0] == pytest.approx(math.exp(-700.0), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "z", "slope"),
    [
        ("relu", 0.0, 0.0), ("leaky_relu", 0.0, 0.01), ("hard_tanh", 1.0, 0.0), ("elu", 0.0, 1.0),
        ("hard_sigmoid", 2.5, 0.0), ("hard_sigmoid_6", -3.0, 0.0),
    ],
)  # fmt: skip
def test_kinks_follow_the_stated_convention(name: str, z: float, slope: float) -> None:
    assert activation(name).derivative(np.array([z]))[0] == slope


def test_an_unknown_activation_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'tanh'"):
        activation("thanh")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_value_and_slope_together_are_those_taken_apart(name: str) -> None:
    phi, z = activation(name), np.linspace(-50.0, 50.0, 1001)
    value, slope = phi.value_and_slope(z)
    np.testing.assert_allclose(value, phi.function(z), rtol=1e-14)
    np.testing.assert_allclose(slope, phi.derivative(z), rtol=1e-14)
    np.testing.assert_array_equal(z, np.linspace(-50.0, 50.0, 1001))


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "hard_sigmoid"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_written_in_place_vanish_where_the_exponential_overflows(
    name: str, dtype: str
) -> None:
    """exp(1000) is infinite in both types, exp(100) in one: a slope is never NaN for it."""
    phi = activation(name)
    z = np.array([-1000.0, -100.0, -30.0, -1.0, 0.0, 1.0, 30.0, 100.0, 1000.0], dtype=dtype)
    slope, scratch = np.empty_like(z), np.empty_like(z)
    with np.errstate(over="ignore"):
        phi.write_slope(z, slope, scratch)
    tiny, rtol = float(np.finfo(dtype).tiny), 1e-14 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(slope, phi.derivative(z.astype(float)), rtol=rtol, atol=2.0 * tiny)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "hard_sigmoid"])
def test_values_written_in_place_are_those_of_the_function(name: str) -> None:
    phi, z = activation(name), np.linspace(-30.0, 30.0, 60).reshape(2, 5, 6)[:, 1:4]
    out = np.empty_like(z)
    phi.writer(z, out)
    np.testing.assert_allclose(out, phi.function(z), rtol=1e-14)
    phi.writer(out, out)
    np.testing.assert_allclose(out, phi.function(phi.function(z)), rtol=1e-14)
    narrow = z.astype(np.float32)
    value, slope = phi.value_and_slope(narrow)
    assert value.dtype == slope.dtype == np.dtype("float32")
    np.testing.assert_allclose(slope, phi.derivative(narrow.astype(float)), rtol=1e-5, atol=1e-37)


def test_straight_sigmoids_of_the_frameworks_differ() -> None:
    """f = 0.7 at z = 1 in older Keras and ONNX, 2/3 in Keras 3 and PyTorch."""
    z = np.array([1.0, 2.4, 2.6])
    np.testing.assert_allclose(activation("hard_sigmoid").function(z), [0.7, 0.98, 1.0])
    np.testing.assert_allclose(activation("hard_sigmoid_6").function(z)[0], 2.0 / 3.0)
    np.testing.assert_array_equal(activation("hard_sigmoid").derivative(z), [0.2, 0.2, 0.0])


def test_a_straight_sigmoid_may_have_numbers_of_its_own() -> None:
    phi = activation("hard_sigmoid(0.25, 0.4)")
    np.testing.assert_allclose(phi.function(np.array([-2.0, 0.0, 1.0, 3.0])), [0.0, 0.4, 0.65, 1.0])
    assert activation(phi.name).kinks == pytest.approx((-1.6, 2.4))


MEMBERS = (
    "hard_sigmoid(0.3, 0.4)", "leaky_relu(0.2)", "leaky_relu(-1.5)", "elu(0.7)", "elu(-2.0)",
    "thresholded_relu(0.5)", "scaled_tanh(1.7159, 0.66)", "scaled_tanh(-0.5, 2.0)",
    "affine(-1.5, 0.25)",
)  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_families_have_the_slopes_and_limits_of_their_functions(name: str) -> None:
    phi, step = activation(name), 1e-6
    assert activation(phi.name).name == phi.name
    z = np.linspace(-6.0, 6.0, 4801) + 1.23e-4
    difference = (phi.function(z + step) - phi.function(z - step)) / (2.0 * step)
    np.testing.assert_allclose(phi.derivative(z), difference, atol=2e-9)
    # elu(-2.0) comes near its supremum only at the kink: 2 exp(-0.0025) on this grid.
    assert np.abs(phi.derivative(z)).max() == pytest.approx(phi.sup_derivative, rel=3e-3)
    smallest = phi.derivative(z).min()
    assert phi.inf_derivative - 1e-12 <= smallest <= phi.inf_derivative + 6e-3
    wide = phi.function(np.linspace(-60.0, 60.0, 24_001))
    for limit, reached in ((phi.low, wide.min()), (-phi.high, -wide.max())):
        # A limit is nearly reached on 60 units to either side, or there is none.
        assert reached >= limit
        assert reached < -8.0 if math.isinf(limit) else reached < limit + 0.01


@pytest.mark.parametrize(
    ("name", "z", "value", "slope"),
    [
        ("leaky_relu(0.2)", -3.0, -0.6, 0.2),
        ("leaky_relu(0.2)", 0.0, 0.0, 0.2),
        ("elu(0.5)", -1.0, 0.5 * (math.exp(-1.0) - 1.0), 0.5 * math.exp(-1.0)),
        ("elu(0.5)", 2.0, 2.0, 1.0),
        ("thresholded_relu(1.0)", 1.0, 0.0, 0.0),
        ("thresholded_relu(1.0)", 1.5, 1.5, 1.0),
        ("scaled_tanh(2.0, 0.5)", 1.0, 2.0 * math.tanh(0.5), 1.0 / math.cosh(0.5) ** 2),
        ("affine(2.0, 0.5)", -3.0, -5.5, 2.0),
    ],
)
def test_members_of_families_have_the_values_of_their_formulas(
    name: str, z: float, value: float, slope: float
) -> None:
    phi = activation(name)
    assert phi.function(np.array([z]))[0] == pytest.approx(value, rel=1e-14)
    assert phi.derivative(np.array([z]))[0] == pytest.approx(slope, rel=1e-14)


def test_a_member_with_the_default_number_is_the_plain_activation() -> None:
    z = np.linspace(-3.0, 3.0, 61)
    for member, plain in (
        ("leaky_relu(0.01)", "leaky_relu"),
        ("elu(1)", "elu"),
        ("scaled_tanh(1, 1)", "tanh"),
        ("affine(1, 0)", "identity"),
        ("thresholded_relu(0)", "relu"),
    ):
        ours, theirs = activation(member), activation(plain)
        np.testing.assert_allclose(ours.function(z), theirs.function(z), rtol=1e-15)
        np.testing.assert_allclose(ours.derivative(z), theirs.derivative(z), rtol=1e-15)


@pytest.mark.parametrize("name", ["leaky_relu(nan)", "elu(inf)", "affine(1, inf)",
                                  "scaled_tanh(nan, 1)", "thresholded_relu(inf)"])  # fmt: skip
def test_a_member_without_finite_numbers_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="expected finite numbers"):
        activation(name)


@pytest.mark.parametrize("name", ["hard_sigmoid(0.25)", "hard_sigmoid(a, b)", "tanh(1.0, 2.0)",
                                  "leaky_relu()", "elu(1, 2)", "affine(1)"])  # fmt: skip
def test_numbers_that_no_family_takes_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown activation"):
        activation(name)


@pytest.mark.parametrize("alpha", ["0.0", "-1.0", "inf", "nan"])
def test_a_straight_sigmoid_without_a_rise_is_refused(alpha: str) -> None:
    with pytest.raises(SettingError, match="alpha > 0"):
        activation(f"hard_sigmoid({alpha}, 0.5)")


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu"])
def test_clipping_the_argument_bounds_value_and_slope(name: str) -> None:
    phi, whole = clipped(name, 0.6), activation(name)
    z = np.array([-3.0, -0.6, 0.3, 0.6, 3.0])
    np.testing.assert_array_equal(phi.function(z), whole.function(np.clip(z, -0.6, 0.6)))
    assert phi.derivative(z)[[0, 1, 3, 4]].tolist() == [0.0] * 4
    assert phi.derivative(z)[2] == whole.derivative(z)[2]
    assert phi.bounded
    assert clipped(name, None) is whole


def test_a_clip_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="positive"):
        clipped("tanh", 0.0)


def test_a_clipped_vanilla_cell_clips_the_argument_and_stops_the_gradient_there() -> None:
    cell = VanillaCell(
        W_hh=np.diag([0.5, 2.0]), W_xh=np.array([[1.0], [1.0]]), activation="tanh", clip=0.6
    )
    run = rollout(cell, np.array([[[0.2]], [[0.3]]]), initial_state=np.array([0.1, 0.5]))
    z = 0.3 + 0.5 * math.tanh(0.25)
    np.testing.assert_allclose(run.states[2, 0], [math.tanh(z), math.tanh(0.6)], rtol=1e-15)
    J = cell.linearize(run)[1].matrix()[0]
    np.testing.assert_allclose(J, np.diag([0.5 / math.cosh(z) ** 2, 0.0]), rtol=1e-14)
    upstream = np.zeros((2, 1, 2))
    upstream[1, 0] = 1.0
    gradient = cell.backward(run, upstream).gradients["b_h"]
    expected = 1.0 / math.cosh(z) ** 2 * (1.0 + 0.5 / math.cosh(0.25) ** 2)
    np.testing.assert_allclose(gradient, [expected, 0.0], rtol=1e-14)
    with pytest.raises(SettingError, match=r"clip -1\.0: expected a positive"):
        VanillaCell(W_hh=cell.W_hh, W_xh=cell.W_xh, clip=-1.0)
