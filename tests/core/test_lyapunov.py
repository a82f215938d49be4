"""Lyapunov spectra whose values are known: closed forms, identities, published maps and laws."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import polygamma, psi

import gradlab as gl
from gradlab.analysis.lyapunov import entropy_rate, kaplan_yorke
from gradlab.analysis.tangent_frames import TangentFrame
from gradlab.arrays import Array

LN_2 = math.log(2.0)
A, B = 1.4, 0.3  # of the Hénon map


def constant(W: Array | list[list[float]], steps: int) -> Array:
    matrix = np.array(W, dtype=float)
    return np.broadcast_to(matrix, (steps, *matrix.shape))


def by_reflections(jacobians: Array, Q: Array) -> Array:
    """The textbook loop: one QR a step."""
    total = np.zeros(Q.shape[1])
    for J in jacobians:
        Q, R = np.linalg.qr(J @ Q)
        total += np.log(np.abs(np.diag(R)))
    return total / len(jacobians)


def random_orthogonal(n: int, seed: int) -> Array:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def henon(steps: int) -> Iterator[Array]:
    x, y = 0.1, 0.1
    for step in range(steps + 1000):
        if step >= 1000:
            yield np.array([[-2.0 * A * x, 1.0], [B, 0.0]])
        x, y = 1.0 - A * x * x + y, B * x


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, {0: -0.63518142273074}),
        (2, {0: -0.28860783245077, 1: -0.98175501301071}),
        (3, {0: -0.18448756706479, 1: -0.49134038650485, 2: -1.1844875670648}),
        (10, {0: -0.05166012200115, 1: -0.11028349303729, 4: -0.34332678866782,
              9: -1.7864739692278}),
    ],
)  # fmt: skip
def test_gaussian_matrices_follow_newmans_law(n: int, expected: dict[int, float]) -> None:
    """Newman 1986: the mean over T steps is unbiased, of known variance, for each exponent."""
    steps, gain = 4000, 1.7
    rng = np.random.default_rng(n)
    jacobians = gain / math.sqrt(n) * rng.standard_normal((steps, n, n))
    spectrum = gl.lyapunov_from_jacobians(jacobians, rng=rng)
    i = np.arange(1, n + 1)
    law = 0.5 * (math.log(2.0 / n) + psi((n - i + 1) / 2.0))
    for index, value in expected.items():
        assert law[index] == pytest.approx(value, abs=1e-12)
    deviation = np.sqrt(polygamma(1, (n - i + 1) / 2.0) / (4.0 * steps))
    assert np.all(np.abs(spectrum.exponents - math.log(gain) - law) < 4.0 * deviation)
    # Scatter of 40 batches: the error of a standard error is about a ninth of it.
    np.testing.assert_allclose(spectrum.standard_errors, deviation, rtol=0.5)


def test_mean_exponent_of_gaussian_matrices_tends_to_minus_a_half() -> None:
    """A run of 10 units, fresh matrices: the mean over exponents is the mean of ln|det| over N."""
    for n, value in ((10, -0.56478133132874), (100, -0.51219304086738)):
        i = np.arange(1, n + 1)
        assert np.mean(0.5 * (math.log(2.0 / n) + psi((n - i + 1) / 2.0))) == pytest.approx(value)
    steps, rng = 2000, np.random.default_rng(12)
    spectrum = gl.lyapunov_from_jacobians(rng.standard_normal((steps, 10, 10)) / math.sqrt(10.0))
    deviation = math.sqrt(polygamma(1, np.arange(1, 11) / 2.0).sum() / (4.0 * steps)) / 10.0
    assert abs(spectrum.exponents.mean() + 0.56478133132874) < 4.0 * deviation


def test_complex_gaussian_matrices_follow_their_own_law() -> None:
    """Each exponent counts twice where a complex matrix is written as a real one."""
    steps, rng = 2000, np.random.default_rng(7)
    real, imaginary = rng.standard_normal((2, steps, 2, 2)) / 2.0
    jacobians = np.block([[real, -imaginary], [imaginary, real]])
    spectrum = gl.lyapunov_from_jacobians(jacobians, initial_frame=np.eye(4)[:, [0, 2, 1, 3]])
    np.testing.assert_allclose(spectrum.exponents[::2], spectrum.exponents[1::2], atol=1e-12)
    law = np.array([-0.13518142273074, -0.63518142273074])
    deviation = np.sqrt(polygamma(1, [2.0, 1.0]) / (4.0 * steps))
    assert np.all(np.abs(spectrum.exponents[::2] - law) < 4.0 * deviation)


@pytest.mark.parametrize("gain", [1e-200, 1e-3, 0.95, 1.0, 1.05, 1e3, 1e200])
def test_every_exponent_of_a_scaled_rotation_is_the_log_of_its_scale(gain: float) -> None:
    cell = gl.VanillaCell(
        W_hh=gain * random_orthogonal(6, 0), W_xh=np.zeros((6, 1)), activation="identity"
    )
    spectrum = gl.lyapunov_spectrum(cell, gl.rollout(cell, np.zeros((100, 2, 1))))
    np.testing.assert_allclose(spectrum.exponents, math.log(gain), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(spectrum.standard_errors, 0.0, atol=1e-10)
    assert spectrum.sum_rule_residual < 1e-9
    assert spectrum.dynamics == "autonomous"


def test_triangular_matrices_have_the_means_of_their_diagonals() -> None:
    steps, rng = 4000, np.random.default_rng(1)
    jacobians = np.triu(rng.uniform(-0.5, 0.5, (steps, 3, 3)), 1)
    diagonal = np.array([1.5, 0.8, 0.3]) * rng.uniform(0.9, 1.1, (steps, 3))
    jacobians[:, [0, 1, 2], [0, 1, 2]] = diagonal
    spectrum = gl.lyapunov_from_jacobians(jacobians)
    expected = np.log(diagonal).mean(axis=0)
    np.testing.assert_allclose(spectrum.exponents, expected, atol=10.0 / steps)
    assert spectrum.exponents.sum() == pytest.approx(expected.sum(), abs=1e-12)


def test_alternating_matrices_have_the_exponents_of_their_product() -> None:
    pair = np.array([[[2.0, 1.0], [0.0, 0.5]], [[0.25, 1.0], [0.0, 4.0]]])
    spectrum = gl.lyapunov_from_jacobians(np.tile(pair, (2000, 1, 1)))
    np.testing.assert_allclose(spectrum.exponents, [0.5 * LN_2, -0.5 * LN_2], atol=1e-3)


def test_constant_matrix_has_the_logs_of_its_eigenvalues_moduli() -> None:
    """A complex pair shares one value."""
    W = np.array([[0.6, 0.9, 0.1], [-0.9, 0.6, 0.2], [0.3, 0.0, -0.4]])
    moduli = np.sort(np.log(np.abs(np.linalg.eigvals(W))))[::-1]
    assert moduli[0] == pytest.approx(moduli[1])
    spectrum = gl.lyapunov_from_jacobians(constant(W, 4000))
    np.testing.assert_allclose(spectrum.exponents, moduli, atol=2e-3)


def test_frame_that_is_an_eigenvector_stays_where_it_is() -> None:
    """The default frame is random for that reason."""
    jacobians = constant(np.diag([1.0, 2.0, 3.0]), 1000)
    stuck = gl.lyapunov_from_jacobians(jacobians, initial_frame=np.eye(3)[:, :1])
    assert stuck.exponents == pytest.approx([0.0], abs=1e-15)
    turned = gl.lyapunov_from_jacobians(jacobians, k=1, transient=100)
    assert turned.exponents == pytest.approx([math.log(3.0)], abs=1e-12)


def test_cat_map_keeps_its_area() -> None:
    spectrum = gl.lyapunov_from_jacobians(constant([[2.0, 1.0], [1.0, 1.0]], 4000))
    np.testing.assert_allclose(spectrum.exponents, [0.96242365011921, -0.96242365011921], atol=1e-3)
    assert abs(spectrum.exponents.sum()) < 1e-14
    assert spectrum.kaplan_yorke == pytest.approx(2.0)


def test_logistic_map_fulfills_its_identity_at_every_length() -> None:
    """λ_T = ln 2 + ln[x_T (1 - x_T) / (x_0 (1 - x_0))] / 2T at r = 4."""
    x = [0.3]
    for _ in range(300):
        x.append(4.0 * x[-1] * (1.0 - x[-1]))
    slopes = 4.0 - 8.0 * np.array(x[:-1])
    spectrum = gl.lyapunov_from_jacobians(slopes[:, None, None])
    ends = x[-1] * (1.0 - x[-1]) / (x[0] * (1.0 - x[0]))
    assert spectrum.exponents[0] == pytest.approx(LN_2 + math.log(ends) / 600.0, abs=1e-11)


def test_henon_map_has_its_published_exponents() -> None:
    steps = 4000
    spectrum = gl.lyapunov_from_jacobians(henon(steps), transient=0)
    first, second = spectrum.exponents
    assert abs(first - 0.41922) < 3.0 * 0.38 / math.sqrt(steps)
    assert first + second == pytest.approx(-1.2039728043259, abs=1e-12)
    assert spectrum.kaplan_yorke == pytest.approx(1.0 + first / -second, abs=1e-12)
    assert spectrum.kaplan_yorke == pytest.approx(1.25827, abs=0.02)
    assert abs(second + 1.62319) < 3.0 * 0.38 / math.sqrt(steps)
    assert spectrum.entropy_rate == first
    assert spectrum.steps == steps


def test_henon_fixed_point_has_the_exponents_of_its_multipliers() -> None:
    jacobian = [[-2.0 * A * 0.63135447708950, 1.0], [B, 0.0]]
    spectrum = gl.lyapunov_from_jacobians(constant(jacobian, 4000), transient=50)
    np.testing.assert_allclose(spectrum.exponents, [0.65427061442106, -1.858243418747], atol=1e-11)


def test_kaplan_yorke_map_has_their_dimension() -> None:
    """x is iterated in integers: doubling a float loses it, bit by bit."""
    modulus, state, jacobians = (1 << 61) - 1, 123456789, []
    for _ in range(2000):
        x = state / modulus
        jacobians.append([[2.0, 0.0], [-4.0 * math.pi * math.sin(4.0 * math.pi * x), 0.2]])
        state = 2 * state % modulus
    spectrum = gl.lyapunov_from_jacobians(np.array(jacobians), transient=100)
    np.testing.assert_allclose(spectrum.exponents, [LN_2, math.log(0.2)], atol=5e-3)
    assert spectrum.exponents.sum() == pytest.approx(LN_2 + math.log(0.2), abs=1e-12)
    assert spectrum.kaplan_yorke == pytest.approx(1.4306765580734, abs=2e-3)


@pytest.mark.parametrize(
    ("exponents", "dimension"),
    [
        ([0.5, 0.0, -0.2, -1.0], 3.3),
        ([-0.1, -0.2], 0.0),
        ([0.3, 0.1], 2.0),
        ([0.0, -1.0], 1.0),
        ([0.5, -1.0], 1.5),
        ([0.4, -math.inf], 1.0),
        ([0.2, 0.1, -0.3, -0.3], 3.0),
        ([-math.inf, -math.inf], 0.0),
        ([-1.0, 0.5], 1.5),  # in any order
    ],
)
def test_kaplan_yorke_dimension_of_a_whole_spectrum(
    exponents: list[float], dimension: float
) -> None:
    found = kaplan_yorke(np.array(exponents), len(exponents))
    assert found == pytest.approx(dimension, abs=1e-12)


def test_what_lies_beyond_the_exponents_measured_is_not_made_up() -> None:
    assert math.isnan(kaplan_yorke(np.array([0.3, 0.1]), 3))
    assert kaplan_yorke(np.array([0.3, -0.6]), 3) == pytest.approx(1.5)
    assert math.isnan(entropy_rate(np.array([0.3, 0.1]), 3))
    assert entropy_rate(np.array([0.3, -0.1]), 3) == 0.3
    assert entropy_rate(np.array([0.3, 0.1]), 2) == pytest.approx(0.4)


def test_first_exponents_are_those_of_the_whole_spectrum() -> None:
    """Case H22: a frame of k columns, equal to the first k of the full set."""
    H = np.eye(3) - 2.0 / 3.0 * np.ones((3, 3))
    jacobians = constant(H @ np.diag([0.9, 0.7, 0.5]) @ H, 2000)
    two = gl.lyapunov_from_jacobians(jacobians, k=2, transient=200)
    np.testing.assert_allclose(two.exponents, [-0.1053605157, -0.3566749439], atol=1e-9)
    three = gl.lyapunov_from_jacobians(jacobians, k=3, transient=200)
    np.testing.assert_allclose(three.exponents[:2], two.exponents, atol=1e-12)
    assert three.exponents.sum() == pytest.approx(-1.15518264, abs=1e-8)
    assert math.isnan(two.sum_rule_residual)


def test_warm_up_takes_the_transient_out_of_the_average() -> None:
    """Case H21: without it ten steps of a vanishing network seem to grow."""
    jacobians = constant(np.array([[0.9, 5.0], [0.0, 0.5]]), 110)
    column = np.array([[0.0], [1.0]])
    naive = gl.lyapunov_from_jacobians(jacobians[:10], initial_frame=column)
    assert naive.exponents[0] > 0.1
    warm = gl.lyapunov_from_jacobians(jacobians, initial_frame=column, transient=100)
    assert warm.exponents[0] == pytest.approx(-0.1053605157, abs=1e-10)
    assert (warm.transient, warm.steps) == (100, 10)


@given(
    n=st.integers(1, 12),
    share=st.floats(0.0, 1.0),
    steps=st.integers(1, 60),
    log_gain=st.floats(-2.0, 2.0),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=30, deadline=None)
def test_factoring_seldom_agrees_with_factoring_at_every_step(
    n: int, share: float, steps: int, log_gain: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    k = max(1, round(share * n))
    jacobians = math.exp(log_gain) / math.sqrt(n) * rng.standard_normal((steps, n, n))
    Q = np.linalg.qr(rng.standard_normal((n, k)))[0]
    spectrum = gl.lyapunov_from_jacobians(jacobians, initial_frame=Q)
    np.testing.assert_allclose(spectrum.exponents, by_reflections(jacobians, Q), atol=1e-10)
    np.testing.assert_allclose(spectrum.history[-1], spectrum.exponents, rtol=1e-14, atol=1e-15)
    if k == n:
        log_det = np.linalg.slogdet(jacobians)[1].mean()
        assert spectrum.exponents.sum() == pytest.approx(log_det, abs=1e-9 * n)
        assert spectrum.sum_rule_residual < 1e-9 * n


def test_steps_may_lay_their_columns_out_as_they_like() -> None:
    """The factors overwrite the columns in place, which must not miss them."""
    jacobians = np.random.default_rng(4).standard_normal((20, 6, 6))
    Q = random_orthogonal(6, 3)
    tangent = TangentFrame(Q.copy())
    growth = tangent.push(
        [lambda V, J=J: np.asfortranarray((J @ V)[0])[None] for J in jacobians]  # type: ignore[misc]
    )
    growth = growth + tangent.orthonormalize()
    np.testing.assert_allclose(growth / 20, by_reflections(jacobians, Q), atol=1e-11)


def test_blocks_end_at_any_place() -> None:
    """A run of T steps is measured alike whatever came after it."""
    rng = np.random.default_rng(5)
    jacobians = rng.standard_normal((80, 8, 8))
    Q = random_orthogonal(8, 1)
    for steps in (1, 2, 3, 7, 31, 32, 33, 80):
        spectrum = gl.lyapunov_from_jacobians(iter(jacobians[:steps]), initial_frame=Q)
        expected = by_reflections(jacobians[:steps], Q)
        np.testing.assert_allclose(spectrum.exponents, expected, atol=1e-12)
        assert spectrum.history_steps[-1] == steps


def test_history_tells_how_the_estimate_came_about() -> None:
    rng = np.random.default_rng(3)
    jacobians = rng.standard_normal((100, 4, 4)) / 2.0
    Q = random_orthogonal(4, 2)
    spectrum = gl.lyapunov_from_jacobians(jacobians, initial_frame=Q)
    assert spectrum.history_steps.tolist() == list(range(10, 101, 10))
    for steps, row in zip(spectrum.history_steps, spectrum.history, strict=True):
        # Before the last factorization, by reflections, a frame is orthonormal to a hundredth.
        np.testing.assert_allclose(row, by_reflections(jacobians[:steps], Q), atol=1e-2 / steps)
    table = spectrum.history_frame()
    assert list(table) == ["steps", "index", "exponent"]
    assert len(table) == 40


def test_long_histories_keep_few_records() -> None:
    spectrum = gl.lyapunov_from_jacobians(constant([[2.0]], 5000))
    assert len(spectrum.history) <= 40
    streamed = gl.lyapunov_from_jacobians(iter(constant([[2.0]], 5000)))
    assert len(streamed.history) <= 41
    assert streamed.history_steps[-1] == spectrum.history_steps[-1] == 5000


def test_measurement_stops_at_the_wished_standard_error() -> None:
    rng = np.random.default_rng(8)
    jacobians = rng.standard_normal((4000, 2, 2)) / math.sqrt(2.0)
    stopped = gl.lyapunov_from_jacobians(jacobians, stop_error=0.02)
    assert stopped.status == "standard error reached"
    assert stopped.steps < 3000
    assert np.all(stopped.standard_errors <= 0.02)
    missed = gl.lyapunov_from_jacobians(jacobians, stop_error=1e-4)
    assert missed.status == "standard error not reached"
    assert missed.steps == 4000
    assert gl.lyapunov_from_jacobians(jacobians[:1]).status == "all steps"
    assert np.isnan(gl.lyapunov_from_jacobians(jacobians[:1]).standard_errors).all()


def test_table_and_summary_hold_the_spectrum() -> None:
    spectrum = gl.lyapunov_from_jacobians(constant(np.diag([3.0, 1.0]), 100), transient=60)
    table = spectrum.to_frame()
    assert list(table) == ["index", "exponent", "standard_error"]
    np.testing.assert_array_equal(table["exponent"], spectrum.exponents)
    summary = spectrum.to_summary()
    assert summary["leading"] == pytest.approx(math.log(3.0), abs=1e-12)
    assert summary["kaplan_yorke"] in (1.0, 2.0)
    assert (summary["count"], summary["state_size"], summary["transient"]) == (2, 2, 60)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "k 0: expected 1 to 3"),
        ({"k": 4}, "k 4: expected 1 to 3"),
        ({"transient": -1}, "transient -1: expected 0 or more"),
        ({"transient": 5}, "transient 5: expected fewer"),
        ({"stop_error": 0.0}, "stop_error 0.0: expected a positive number"),
        ({"initial_frame": np.ones((3, 2))}, "column 1 depends on the others"),
        ({"initial_frame": np.eye(2)}, r"shape \(2, 2\): expected \(3, 2\)"),
        ({"initial_frame": np.eye(3), "k": 2}, r"shape \(3, 3\): expected \(3, 2\)"),
        ({"initial_frame": np.full((3, 1), np.nan)}, "initial_frame holds 3 non-finite"),
    ],
)
def test_settings_out_of_range_are_refused(changed: dict[str, object], message: str) -> None:
    jacobians = constant(np.diag([1.0, 2.0, 3.0]), 5)
    with pytest.raises(gl.GradlabError, match=message):
        gl.lyapunov_from_jacobians(jacobians, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("jacobians", "message"),
    [
        ([], "no Jacobians"),
        ([np.eye(2), np.eye(3)], r"Jacobian 1 has shape \(3, 3\): expected \(2, 2\)"),
        ([np.ones((2, 3))], r"Jacobian 0 has shape \(2, 3\): expected \(n, n\)"),
        ([np.float64(1.0)], r"Jacobian 0 has shape \(\): expected \(n, n\)"),
        ([np.eye(2), np.diag([1.0, np.inf])], "Jacobian 1 holds 1 non-finite entry"),
        ([1j * np.eye(2)], "Jacobian 0 is complex"),
    ],
)
def test_jacobians_that_are_none_are_refused(jacobians: list[Array], message: str) -> None:
    with pytest.raises(gl.GradlabError, match=message):
        gl.lyapunov_from_jacobians(iter(jacobians))
