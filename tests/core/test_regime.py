"""Verdicts come from the measured rate, and name what they contradict."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.records.ladder import BoundLadder
from gradlab.records.regime import Regime


def profile_of(curves: Array) -> gl.JacobianProfile:
    """Profile with one curve of log norms a sequence."""
    batch, lags = curves.shape
    sequence = np.repeat(np.arange(batch), lags)
    lag = np.tile(np.arange(1, lags + 1), batch)
    flat = curves.ravel()
    return gl.JacobianProfile(
        sequence=sequence, t=np.full(len(lag), lags), k=lags - lag, lag=lag,
        log_norm=flat, log_frobenius=flat, log_sigma_min=flat,
    )  # fmt: skip


def ladder_of(profile: gl.JacobianProfile, gamma_w: float) -> BoundLadder:
    return BoundLadder(
        sequence=profile.sequence, t=profile.t, k=profile.k, lag=profile.lag,
        rungs={"gamma": profile.lag * np.log(gamma_w), "exact": profile.log_norm},
        block=1, gamma_w=gamma_w, gamma_a=1.0,
    )  # fmt: skip


def verdict(curves: Array, gamma_w: float = 0.5) -> Regime:
    profile = profile_of(np.atleast_2d(curves))
    return gl.regime(profile, ladder_of(profile, gamma_w))


LAGS = np.arange(1.0, 101.0)


@pytest.mark.parametrize(
    ("rate", "name"),
    [(-0.1, "vanishing"), (0.1, "exploding"), (0.0, "near-critical"), (-0.02, "near-critical")],
)
def test_straight_lines_are_judged_by_their_slope(rate: float, name: str) -> None:
    result = verdict(rate * LAGS)
    assert result.name == name
    assert result.rate == pytest.approx(rate, abs=1e-12)
    assert result.tolerance == pytest.approx(np.log(10.0) / 100.0)
    assert result.rate_low == pytest.approx(rate, abs=1e-9)
    assert result.rate_high == pytest.approx(rate, abs=1e-9)


def test_sequences_that_disagree_leave_it_undecided() -> None:
    rates = np.array([-0.2, 0.25, -0.15, 0.2, -0.1, 0.15, -0.3, 0.1])
    result = verdict(rates[:, None] * LAGS)
    assert result.name == "undecided"
    assert result.rate_low < -result.tolerance < result.tolerance < result.rate_high


def test_interval_over_eight_sequences_is_the_t_interval_of_their_slopes() -> None:
    rates = -0.3 + 0.01 * np.arange(8)
    result = verdict(rates[:, None] * LAGS)
    half = 2.3646242510103 * np.std(rates, ddof=1) / np.sqrt(8.0)  # t quantile, 7 degrees, 97.5 %
    assert result.rate_high - result.rate == pytest.approx(half, rel=1e-9)
    assert result.rate_se == pytest.approx(np.std(rates, ddof=1) / np.sqrt(8.0), rel=1e-9)


def test_a_transient_is_reported_and_left_out_of_the_rate() -> None:
    curve = np.where(LAGS <= 20, 0.5 * LAGS, 10.0 - 0.3 * (LAGS - 20))
    result = verdict(curve, gamma_w=2.0)
    assert result.name == "vanishing"
    assert result.rate == pytest.approx(-0.3, abs=1e-12)
    assert (result.transient_height, result.transient_lag) == (10.0, 20)


def test_an_exact_zero_vanishes_whatever_came_before() -> None:
    curve = np.where(LAGS < 6, 0.0, -np.inf)
    result = verdict(curve)
    assert (result.name, result.rate) == ("vanishing", -np.inf)
    assert "exactly 0 from lag 6 on, in float64" in result.rule


def test_one_lag_is_not_enough_for_a_verdict() -> None:
    assert verdict(np.array([-3.0])).name == "undecided"


def test_an_outlier_does_not_move_the_rate() -> None:
    curve = -0.1 * LAGS
    curve[-1] = 40.0
    assert verdict(curve).rate == pytest.approx(-0.1, abs=1e-9)


def test_the_false_friend_is_named_with_the_measurement() -> None:
    assert verdict(-0.105 * LAGS, gamma_w=1.8).contradicts == (
        "σ_max = 1.8 would suggest explosion; measured −0.105 per step"
    )
    assert verdict(-0.105 * LAGS, gamma_w=0.9).contradicts is None
    assert verdict(0.105 * LAGS, gamma_w=1.8).contradicts is None


@pytest.mark.parametrize("seed", range(5))
def test_the_fixed_point_beyond_the_norm_of_one_vanishes(seed: int) -> None:
    """N = 1, W = 1.5, b = 3: the slope at the fixed point is 0.00074."""
    rng = np.random.default_rng(seed)
    start = 0.999753027953 + 1e-9 * rng.standard_normal()
    cell = gl.VanillaCell(W_hh=np.array([[1.5]]), W_xh=np.ones((1, 1)), b_h=np.array([3.0]))
    dynamics = gl.analyze(cell, np.zeros((10, 1, 1)), initial_state=np.array([start]))
    result = dynamics.only().regime
    assert result.name == "vanishing"
    assert result.rate == pytest.approx(np.log(0.0007408246488), abs=1e-4)
    assert result.contradicts is not None
    assert "1.5" in result.contradicts


@pytest.mark.parametrize(
    ("scenario", "name"),
    [("vanishing", "vanishing"), ("exploding", "exploding"), ("saturated", "vanishing")],
)
def test_scenarios_keep_their_promise_for_other_seeds(scenario: str, name: str) -> None:
    for seed in (0, 7):
        made = gl.scenario(scenario, seed=seed)
        dynamics = gl.analyze(made.cell, made.sequences.inputs, anchors="last")
        entry = dynamics.only()
        assert entry.regime.name == name
        if scenario == "saturated":
            assert entry.spectrum.gamma_w == pytest.approx(3.0, abs=1e-12)
            assert entry.regime.contradicts is not None


def test_the_rate_is_the_theil_sen_slope_of_an_independent_implementation() -> None:
    from scipy.stats import theilslopes

    rng = np.random.default_rng(0)
    curve = -0.05 * LAGS + rng.standard_normal(100)
    result = verdict(curve)
    start = result.first_lag - 1
    expected = theilslopes(curve[start:], LAGS[start:])
    assert result.rate == pytest.approx(float(expected[0]), rel=1e-12)
    assert result.intercept == pytest.approx(float(expected[1]), rel=1e-12)


def test_sequences_that_lost_their_gradient_do_not_speak_for_the_others() -> None:
    """Half of the sequences explode, the other half is exactly 0."""
    dead = np.full(100, -np.inf)
    result = verdict(np.stack([0.2 * LAGS] * 4 + [dead] * 4))
    assert result.name == "undecided"
    assert result.rate == pytest.approx(0.2, abs=1e-12)
    assert "50% of the sequences lose their gradient" in result.rule


def test_the_level_tells_where_a_flat_gradient_stays() -> None:
    result = verdict(np.full(100, -20.0))
    assert (result.name, result.level) == ("near-critical", -20.0)
    assert "stays near 10^-8.7" in result.rule


def test_copies_of_a_sequence_add_no_certainty() -> None:
    curve = -0.1 * LAGS + np.random.default_rng(0).standard_normal(100)
    alone, copies = verdict(curve), verdict(np.stack([curve] * 8))
    assert copies.rate_high - copies.rate_low == pytest.approx(alone.rate_high - alone.rate_low)


def test_lags_that_few_sequences_reach_are_not_fitted() -> None:
    """Nine sequences that all decay, the longer the slower: their mixed median would rise."""
    rates, lengths = -np.geomspace(0.7, 0.02, 9), np.linspace(20, 100, 9).astype(int)
    sequence = np.repeat(np.arange(9), lengths)
    lag = np.concatenate([np.arange(1, length + 1) for length in lengths])
    norms = rates[sequence] * lag
    profile = gl.JacobianProfile(
        sequence=sequence, t=lag, k=lag - lag, lag=lag,
        log_norm=norms, log_frobenius=norms, log_sigma_min=norms,
    )  # fmt: skip
    result = gl.regime(profile, ladder_of(profile, 0.5))
    assert result.last_lag == 20
    assert result.rate == pytest.approx(float(np.median(rates)), abs=1e-9)


def test_nothing_is_predicted_where_there_is_no_trend() -> None:
    rng = np.random.default_rng(1)
    cell = gl.VanillaCell.initialize(
        input_size=1, hidden_size=4, recurrent="orthogonal", activation="identity", rng=rng
    )
    horizon = gl.analyze(cell, np.zeros((50, 2, 1))).only().horizon
    assert set(horizon.predicted.values()) == {None}
