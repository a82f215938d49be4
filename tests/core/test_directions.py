"""Whole singular spectra of long products: closed forms, identities, independent methods."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.directions import directions
from gradlab.analysis.graded import GradedProducts, log_lengths_of_orthogonalized
from gradlab.arrays import Array
from gradlab.records.directions import DirectionProfile


def linear(W: Any) -> gl.VanillaCell:
    matrix = np.asarray(W, dtype=float)
    return gl.VanillaCell(W_hh=matrix, W_xh=np.zeros((len(matrix), 1)), activation="identity")


def still(steps: int) -> Array:
    return np.zeros((steps, 1, 1))


def spectra(cell: gl.VanillaCell, steps: int, lags: list[int]) -> Array:
    return directions(cell, gl.rollout(cell, still(steps)), lags=lags).log_singular_values


def test_an_orthogonal_network_keeps_all_directions_alike() -> None:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(
        input_size=1, hidden_size=6, recurrent="orthogonal", gamma=0.95, activation="identity",
        rng=rng,
    )  # fmt: skip
    profile = directions(cell, gl.rollout(cell, still(50)), lags=[1, 50])
    assert profile.log_singular_values[1] == pytest.approx([-2.5646647193775] * 6, abs=1e-12)
    np.testing.assert_allclose(profile.participation_ratio, 6.0, rtol=1e-12)
    np.testing.assert_array_equal(profile.surviving, 6.0)


def test_singular_values_are_told_a_thousand_decades_below_the_largest() -> None:
    """diag(1, .5, 1e-3) to the thousandth power, in the way of none of the floats."""
    values = spectra(linear(np.diag([0.5, 1e-3, 1.0])), 1000, [1000])[0]
    expected = 1000 * np.log([1.0, 0.5, 1e-3])
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_a_jordan_block_has_its_spectrum() -> None:
    """[[a, 1], [0, a]]^l = [[a^l, l a^(l-1)], [0, a^l]]: σ₁σ₂ = a^2l and σ₁ is known."""
    lags = [1, 9, 35, 100]
    values = spectra(linear([[0.9, 1.0], [0.0, 0.9]]), 100, lags)
    a, b = 0.9 ** np.array(lags), np.array(lags) * 0.9 ** (np.array(lags) - 1)
    largest = np.log((b + np.sqrt(b**2 + 4 * a**2)) / 2)
    np.testing.assert_allclose(values[:, 0], largest, atol=1e-12)
    np.testing.assert_allclose(values[:, 1], 2 * np.array(lags) * np.log(0.9) - largest, atol=1e-12)


def test_exact_rank_losses_are_exact() -> None:
    shift = np.diag(np.ones(3), -1)
    values = spectra(linear(shift), 5, [1, 2, 3, 4, 5])
    expected = [[0.0] * (4 - lag) + [-np.inf] * lag for lag in (1, 2, 3, 4)]
    np.testing.assert_array_equal(values, [*expected, [-np.inf] * 4])
    profile = directions(linear(shift), gl.rollout(linear(shift), still(5)), lags=[1, 4])
    np.testing.assert_array_equal(profile.participation_ratio, [3.0, 0.0])
    np.testing.assert_array_equal(profile.surviving, [3.0, 0.0])
    np.testing.assert_array_equal(profile.followers, [3.0, 0.0])


def test_a_rank_lost_to_rounding_is_not_resolved() -> None:
    W = np.outer([1.0, 2.0, 2.0], [0.3, 0.1, 0.2])
    profile = directions(linear(W), gl.rollout(linear(W), still(50)), lags=[1, 50])
    values = profile.log_singular_values[1]
    assert math.exp(values[0]) == pytest.approx(0.0064278870247472, rel=1e-12)
    assert np.isnan(values[1:]).all()
    np.testing.assert_allclose(profile.participation_ratio, 1.0, atol=1e-12)
    # The unresolved are far below 1 % all the same.
    assert (profile.log_ceiling < profile.log_singular_values[:, 0] - math.log(1e9)).all()
    np.testing.assert_array_equal(profile.surviving, [1.0, 0.0])
    np.testing.assert_array_equal(profile.followers, [1.0, 1.0])


def compound(matrix: Array, order: int) -> Array:
    """Minors of the given order: the compound of a product is the product of the compounds."""
    places = list(itertools.combinations(range(len(matrix)), order))
    minors = [[np.linalg.det(matrix[np.ix_(rows, cols)]) for cols in places] for rows in places]
    return np.array(minors)


def log_norm_of_product(factors: list[Array]) -> float:
    product, log_scale = np.eye(len(factors[0])), 0.0
    for factor in factors:
        product = product @ factor
        scale = np.linalg.norm(product)
        product, log_scale = product / scale, log_scale + math.log(scale)
    return log_scale + math.log(np.linalg.norm(product, 2))


@pytest.mark.parametrize("gain", [0.5, 1.5, 6.0])
def test_whole_spectra_agree_with_norms_of_compound_products(gain: float) -> None:
    """‖∧^m P‖ = σ₁ ⋯ σ_m: an independent way to the small ones."""
    rng = np.random.default_rng(3)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=5, gain=gain, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((40, 1, 2)))
    values = directions(cell, run, lags=[40]).log_singular_values[0]
    factors = [step.matrix()[0] for step in cell.linearize(run)][::-1]
    sums = [log_norm_of_product([compound(J, m) for J in factors]) for m in range(1, 6)]
    np.testing.assert_allclose(np.cumsum(values), sums, atol=1e-8)
    assert values[0] - values[-1] > math.log(1e16)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["rnn", "leaky", "gru", "lstm"]),
    n=st.integers(1, 6),
    steps=st.integers(1, 25),
    gain=st.floats(0.1, 4.0),
)
def test_spectra_agree_with_the_determinant_and_both_ends(
    seed: int, kind: str, n: int, steps: int, gain: float
) -> None:
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"leak": 0.5} if kind == "leaky" else {}
    make: Any = gl.CELLS[kind]
    cell = make.initialize(input_size=2, hidden_size=n, gain=gain, rng=rng, **options)
    run = gl.rollout(cell, rng.standard_normal((steps, 2, 2)))
    found = directions(cell, run, lags=list(range(1, steps + 1)))
    profile = gl.jacobian_profile(cell, run, anchors="last")
    np.testing.assert_array_equal(found.lag, profile.lag)
    values = found.log_singular_values
    np.testing.assert_allclose(values[:, 0], profile.log_norm, atol=1e-9)
    assert (np.diff(values, axis=1)[~np.isnan(np.diff(values, axis=1))] <= 0.0).all()
    told = ~np.isnan(values).any(axis=1) & ~np.isnan(profile.log_sigma_min)
    np.testing.assert_allclose(values[told, -1], profile.log_sigma_min[told], atol=1e-5)
    log_dets = cell.linearize(run).log_abs_det()
    pairs = zip(found.sequence, found.t, found.lag, strict=True)
    sums = np.array([log_dets[t - lag : t, s].sum() for s, t, lag in pairs])
    np.testing.assert_allclose(values[told].sum(axis=1), sums[told], atol=1e-5, rtol=1e-9)


def test_jacobi_rotations_agree_with_an_accurate_svd() -> None:
    """LAPACK's preconditioned Jacobi method, on matrices whose rows span 200 decades."""
    from scipy.linalg.lapack import dgejsv

    rng = np.random.default_rng(4)
    for n in (1, 2, 5, 8):
        U = rng.standard_normal((n, n))
        U /= np.linalg.norm(U, axis=1)[:, None]
        s = rng.uniform(-230.0, 230.0, n)
        expected = np.sort(np.log(dgejsv(np.exp(s)[:, None] * U, joba=3, jobu=3, jobv=3)[0]))
        found = log_lengths_of_orthogonalized(U[None], s[None])[0]
        np.testing.assert_allclose(found, expected[::-1], atol=1e-11)


def test_columns_and_rows_of_zeros_lose_ranks_exactly() -> None:
    for J in (np.diag([1.0, 0.0, 2.0]) @ np.ones((3, 3)), np.ones((3, 3)) @ np.diag([1.0, 0, 2.0])):
        products = GradedProducts(1, 3)
        products.extend((J + np.diag([0.5, 0.0, 0.25]))[None])
        values = products.log_singular_values()[0][0]
        expected = np.linalg.svd(J + np.diag([0.5, 0.0, 0.25]), compute_uv=False)
        np.testing.assert_allclose(values[:2], np.log(expected[:2]), atol=1e-13)
        assert np.isneginf(values[2])


def test_directions_survive_one_by_one() -> None:
    """diag(1, .9, .5): 1 % is left of .9^l up to lag 43, of .5^l up to lag 6."""
    cell = linear(np.diag([1.0, 0.9, 0.5]))
    profile = directions(cell, gl.rollout(cell, still(60)), lags=[1, 6, 7, 43, 44, 60])
    np.testing.assert_array_equal(profile.surviving, [3, 3, 2, 2, 1, 1])
    s = np.exp(profile.log_singular_values[2] * 2)
    assert profile.participation_ratio[2] == pytest.approx(s.sum() ** 2 / (s**2).sum(), rel=1e-12)


def test_a_count_that_hangs_on_the_unresolved_is_not_told() -> None:
    """The second direction may be above or below 1 % of its first length: it is not known."""
    profile = DirectionProfile(
        sequence=np.zeros(2, dtype=np.int64),
        t=np.full(2, 9),
        lag=np.array([1, 2]),
        log_singular_values=np.array([[50.0, np.nan], [0.0, np.nan]]),
        log_ceiling=np.array([0.0, -20.0]),
    )
    np.testing.assert_array_equal(profile.surviving, [np.nan, 1.0])
    np.testing.assert_array_equal(profile.followers, [1.0, 1.0])


def test_tables_have_medians_by_lag() -> None:
    rng = np.random.default_rng(5)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((12, 3, 2)), lengths=np.array([12, 6, 12]))
    profile = directions(cell, run)
    table = profile.by_lag()
    assert list(table.columns) == [
        "lag", "sequences", "participation_ratio", "surviving", "within_1pct",
        "log_sigma_max", "log_sigma_min", "log_condition",
    ]  # fmt: skip
    assert table["lag"].iloc[0] == 1
    assert table["lag"].iloc[-1] == 12
    assert table["sequences"].tolist() == [3 if lag <= 6 else 2 for lag in table["lag"]]
    long = profile.to_frame()
    assert list(long.columns) == ["lag", "index", "log_singular_value"]
    first = long[long["index"] == 0]["log_singular_value"].to_numpy()
    np.testing.assert_array_equal(first, table["log_sigma_max"])
    assert profile.to_summary()["lag"] == 12


def test_large_states_are_measured_at_fewer_places() -> None:
    rng = np.random.default_rng(6)
    cell = gl.VanillaCell.initialize(input_size=1, hidden_size=160, rng=rng)
    profile = directions(cell, gl.rollout(cell, rng.standard_normal((2, 9, 1))), max_lag=2)
    assert set(profile.sequence.tolist()) == {0}
    assert set(profile.lag.tolist()) == {1, 2}


def test_very_long_sequences_are_measured_up_to_a_longest_lag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradlab.analysis.directions.LONGEST", 5)
    cell = linear(np.diag([1.0, 0.5]))
    run = gl.rollout(cell, still(9))
    assert directions(cell, run).lag.max() == 5
    assert directions(cell, run, max_lag=7).lag.max() == 7
    assert directions(cell, run, lags=[9]).lag.tolist() == [9]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lags": [0, 3]}, r"lags \[0, 3\]: expected 1 or more"),
        ({"lags": []}, "expected at least one"),
        ({"lags": [9]}, "longest, 4 steps"),
        ({"sequences": 0}, "sequences 0"),
        ({"max_lag": 0}, "max_lag 0"),
    ],
)
def test_impossible_places_are_refused(options: dict[str, Any], words: str) -> None:
    cell = linear(np.eye(2))
    with pytest.raises(gl.SettingError, match=words):
        directions(cell, gl.rollout(cell, still(4)), **options)


def test_the_spectrum_of_a_long_product_of_dense_steps_is_resolved() -> None:
    """Its largest is the norm, its smallest that of the inverse, and all add up to ln|det|."""
    cell = gl.LSTMCell.initialize(
        input_size=1, hidden_size=32, gain=3.0, rng=np.random.default_rng(0)
    )
    run = gl.rollout(cell, np.random.default_rng(1).standard_normal((100, 1, 1)))
    values = directions(cell, run, lags=[100]).log_singular_values[0]
    volume = sum(float(step.log_abs_det()[0]) for step in cell.linearize(run))
    ends = gl.jacobian_profile(cell, run, anchors="last")
    assert values[0] == pytest.approx(ends.log_norm[-1], abs=1e-10)
    assert values[-1] == pytest.approx(ends.log_sigma_min[-1], abs=1e-6)
    assert values.sum() == pytest.approx(volume, abs=1e-8)


def test_where_not_even_the_largest_is_resolved_nothing_is_counted() -> None:
    profile = DirectionProfile(
        sequence=np.array([0]), t=np.array([9]), lag=np.array([9]),
        log_singular_values=np.full((1, 4), np.nan), log_ceiling=np.array([3.0]),
    )  # fmt: skip
    for counted in (profile.participation_ratio, profile.surviving, profile.followers):
        np.testing.assert_array_equal(counted, [np.nan])
