"""The checks that a certificate passes before it counts as found: wrong ones fail them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.certificates import collection
from gradlab.analysis.certificates.descent import Found
from gradlab.analysis.certificates.diagonal import schatten, search_scaling, verify_scaling
from gradlab.analysis.certificates.effort import Effort
from gradlab.analysis.certificates.family import JacobianFamily, jacobian_family
from gradlab.analysis.certificates.lmi import exact_rate, lmi, search_metric
from gradlab.analysis.certificates.lmi_objective import smooth_rate
from gradlab.analysis.certificates.lmi_verifier import lmi_matrix, verify_lmi, verify_metric
from gradlab.analysis.certificates.margin import certificate, condition
from gradlab.analysis.certificates.metric import Metric, first_metric, metric_of
from gradlab.analysis.certificates.norms import spectral_value
from gradlab.analysis.certificates.ordering import groups
from gradlab.analysis.certificates.perron import row_ratio, verify_perron
from gradlab.arrays import Array

ROTATING = np.array([[0.6, 0.9], [-0.9, -0.9]])
P = np.array([[1.0, 0.83], [0.83, 1.0]])
T = np.ones(2)


def family_of(W: Array, activation: str = "tanh", leak: float = 1.0) -> JacobianFamily:
    cell = gl.LeakyCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation=activation, leak=leak)
    family = jacobian_family(cell)
    assert family is not None
    return family


def random(seed: int, n: int) -> Array:
    return np.random.default_rng(seed).standard_normal((n, n))


def unscaled(W: Array) -> JacobianFamily:
    """The family of tanh units with weights as they are."""
    return JacobianFamily(center=0.5 * W, spread=0.5 * W)


def leading_minors(matrix: list[list[Fraction]]) -> list[Fraction]:
    """Leading principal minors, by elimination in rational arithmetic."""
    rows, minors, product = [list(row) for row in matrix], [], Fraction(1)
    for k in range(len(rows)):
        product *= rows[k][k]
        minors.append(product)
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            row[:] = [a - factor * b for a, b in zip(row, rows[k], strict=True)]
    return minors


def test_the_inequality_has_the_minors_of_the_exact_proof() -> None:
    """[[r² P, -WᵀT], [-TW, 2T - P]] for r = .95, by hand in rationals."""
    w = [[Fraction(6, 10), Fraction(9, 10)], [Fraction(-9, 10), Fraction(-9, 10)]]
    p, r = [[Fraction(1), Fraction(83, 100)], [Fraction(83, 100), Fraction(1)]], Fraction(95, 100)
    top = [[r * r * p[i][j] for j in range(2)] + [-w[j][i] for j in range(2)] for i in range(2)]
    bottom = [
        [-w[i][j] for j in range(2)] + [2 * (i == j) - p[i][j] for j in range(2)] for i in range(2)
    ]
    minors = [float(minor) for minor in leading_minors(top + bottom)]
    wanted = [0.9025, 0.253392894375, 0.006468894375, 8.34544400625e-5]
    assert minors == pytest.approx(wanted, rel=1e-12)
    matrix = lmi_matrix(unscaled(ROTATING), P, T, 0.95)
    computed = [np.linalg.det(matrix[:k, :k]) for k in range(1, 5)]
    np.testing.assert_allclose(computed, wanted, rtol=1e-10)


def test_the_exact_proof_passes_and_a_lower_rate_with_its_matrices_does_not() -> None:
    family = unscaled(ROTATING)
    assert verify_lmi(family, P, T, 0.95)
    assert not verify_lmi(family, P, T, 0.93)
    eigenvalues = np.linalg.eigvalsh(P)
    assert math.sqrt(eigenvalues[1] / eigenvalues[0]) == pytest.approx(3.2809611217375, rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param((np.eye(2), T), id="the metric of the plain norm"),
        pytest.param((np.array([[1.0, -0.83], [-0.83, 1.0]]), T), id="a sign"),
        pytest.param((np.array([[1.0, 1.1], [1.1, 1.0]]), T), id="an indefinite metric"),
        pytest.param((P, 0.4 * T), id="too small a multiplier"),
        pytest.param((P, np.array([1.0, -1.0])), id="a negative multiplier"),
        pytest.param((0.0 * P, T), id="nothing"),
        pytest.param((np.nan * P, T), id="no numbers"),
    ],
)
def test_a_corrupted_inequality_is_refused(wrong: tuple[Array, Array]) -> None:
    with np.errstate(invalid="ignore"):
        assert not verify_lmi(unscaled(ROTATING), *wrong, 0.95)


def test_an_inequality_with_equality_has_no_margin() -> None:
    """At the very rate that a metric attains the smallest eigenvalue is 0: no proof in floats."""
    metric = Metric(log_scale=np.zeros(2), Z=np.zeros((2, 2)))
    family = family_of(ROTATING)
    attained = exact_rate(family, metric)
    assert not verify_metric(family, metric.log_scale, metric.unscaled, attained)
    assert verify_metric(family, metric.log_scale, metric.unscaled, attained * (1.0 + 1e-8))
    # The same solution as (P, T): T is S²/2.
    assert verify_lmi(family, metric.matrix, np.full(2, 0.5), attained * (1.0 + 1e-8))


def test_slopes_of_both_signs_refute_the_proof_for_slopes_from_zero_on() -> None:
    """The pair (P, T) of tanh proves nothing for a φ whose slopes begin at -.13."""
    lowered = JacobianFamily(center=0.5 * (1.0 - 0.13) * ROTATING, spread=0.565 * ROTATING)
    assert verify_lmi(unscaled(ROTATING), P, T, 0.95)
    assert not verify_lmi(lowered, P, T, 0.95)


def test_a_scaling_proves_its_norm_and_nothing_below() -> None:
    family = family_of(random(0, 5))
    scaling = search_scaling(family, Effort())
    assert verify_scaling(family, scaling.point, scaling.value * (1.0 + 2e-10))
    assert not verify_scaling(family, scaling.point, scaling.value)
    assert not verify_scaling(family, -scaling.point, scaling.value * (1.0 + 2e-10))


def test_perron_vectors_prove_their_ratio_and_nothing_below() -> None:
    family = family_of(np.abs(random(1, 4)))
    v = np.zeros(4)
    value = max(row_ratio(family.majorant, v), row_ratio(family.majorant.T, v))
    assert verify_perron(family, v, v, value * (1.0 + 2e-10))
    assert not verify_perron(family, v, v, value)


def test_a_search_that_claims_too_much_is_reported_as_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def boast(family: JacobianFamily, effort: Effort) -> Found:
        return Found(point=np.zeros(len(family)), value=0.5 * spectral_value(family), stopped=False)

    monkeypatch.setattr(collection, "search_scaling", boast)
    found = gl.certificates(gl.VanillaCell(W_hh=ROTATING, W_xh=np.zeros((2, 1))))
    assert found["diagonal"].rate is None
    assert found["diagonal"].constant is None
    assert found["diagonal"].status == "failed its own check"
    assert found.strongest == "lmi"


def test_a_constant_beyond_floating_point_is_no_certificate() -> None:
    family = family_of(ROTATING)
    assert condition(np.array([0.0, 800.0])) == math.inf
    claimed = certificate(family, 0.9, math.inf)
    assert (claimed.rate, claimed.constant) == (None, None)
    assert claimed.status == "not found: the constant leaves the range of floating point"


def test_a_metric_out_of_reach_of_the_check_is_reported_as_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family = family_of(ROTATING)
    scaling = search_scaling(family, Effort())
    monkeypatch.setattr("gradlab.analysis.certificates.lmi.exact_rate", lambda *_: 0.9)
    certificate = lmi(family, scaling, Effort())
    assert (certificate.rate, certificate.status) == (None, "failed its own check")


def numerical_gradient(function: object, point: Array, directions: Array) -> Array:
    step = 1e-6
    assert callable(function)
    return np.array(
        [
            (function(point + step * d) - function(point - step * d)) / (2.0 * step)
            for d in directions
        ]
    )


@pytest.mark.parametrize("leak", [1.0, 0.4])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_gradient_of_the_smooth_rate_is_its_derivative(leak: float, activation: str) -> None:
    family = family_of(random(2, 4), activation, leak)
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((4, 4))
    point = np.concatenate([0.3 * rng.standard_normal(4), (0.3 * (Z + Z.T)).ravel()])
    turned = [rng.standard_normal((4, 4)) for _ in range(6)]
    directions = np.array(
        [np.concatenate([rng.standard_normal(4), (D + D.T).ravel()]) for D in turned]
    )
    _, gradient = smooth_rate(family, point, 16.0)
    measured = numerical_gradient(lambda p: smooth_rate(family, p, 16.0)[0], point, directions)
    np.testing.assert_allclose(directions @ gradient, measured, rtol=1e-6, atol=1e-9)


def test_gradient_of_the_schatten_norm_is_its_derivative() -> None:
    X = random(4, 5)

    def value(log_scale: Array) -> float:
        s = np.exp(log_scale)
        return math.log(schatten(s[:, None] * X / s, 8.0)[0])

    _, gradient = schatten(X, 8.0)
    np.testing.assert_allclose(
        gradient, numerical_gradient(value, np.zeros(5), np.eye(5)), rtol=1e-6, atol=1e-9
    )


def test_smooth_rate_tends_to_the_exact_one_from_above() -> None:
    family = family_of(random(5, 6))
    point = first_metric(family, np.linspace(-0.2, 0.2, 6))
    exact = math.log(exact_rate(family, metric_of(point)))
    smooth = [smooth_rate(family, point, order)[0] for order in (4.0, 64.0, 1e6)]
    assert smooth[0] > smooth[1] > exact
    assert smooth[2] == pytest.approx(exact, abs=1e-5)


def test_first_metric_has_the_rate_of_the_diagonal_certificate() -> None:
    family = family_of(random(6, 5), leak=1.0)
    log_scale = np.linspace(-0.5, 0.5, 5)
    value = exact_rate(family, metric_of(first_metric(family, log_scale)))
    assert value == pytest.approx(spectral_value(family.scaled(log_scale)), rel=1e-12)


def test_no_direct_search_of_the_inequality_finds_a_lower_rate() -> None:
    """An independent method: P by its Cholesky factor, T by logarithms, Nelder and Mead."""
    from scipy.optimize import minimize

    family = unscaled(ROTATING)

    def attained(x: Array) -> float:
        L = np.array([[1.0, 0.0], [x[0], np.exp(x[1])]])
        metric, multiplier = L @ L.T, np.exp(x[2:])
        slack = 2.0 * np.diag(multiplier) - metric
        if np.linalg.eigvalsh(slack)[0] <= 0.0:
            return 10.0
        TW = multiplier[:, None] * ROTATING
        inner = TW.T @ np.linalg.solve(slack, TW)
        return float(np.sqrt(np.linalg.eigvals(np.linalg.solve(metric, inner)).real.max()))

    starts = [np.array([0.8, -0.6, 0.0, 0.0]), np.array([0.5, 0.0, 0.3, 0.3])]
    best = min(
        minimize(attained, x, method="Nelder-Mead", tol=1e-9, options={"maxiter": 4000}).fun
        for x in starts
    )
    metric, _ = search_metric(family, search_scaling(family, Effort()), Effort())
    assert exact_rate(family, metric) == pytest.approx(best, rel=1e-3)
    assert exact_rate(family, metric) >= best * (1.0 - 1e-6)


def test_groups_are_ordered_by_who_drives_whom() -> None:
    """Units 0 and 1 drive each other and unit 2, which drives unit 3."""
    M = np.zeros((4, 4))
    M[0, 1] = M[1, 0] = M[2, 1] = M[3, 2] = M[3, 3] = 1.0
    order = groups(M)
    assert order.level.tolist() == [0, 0, 1, 2]
    assert sorted(units.tolist() for units in order.members) == [[0, 1], [2], [3]]
    assert bool(order.across[2, 1])
    assert not order.across[0, 1]
