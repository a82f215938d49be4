"""Long-term Jacobians: oracles of autograd, closed forms, and products by other means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.end_times import end_times
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.arrays import Array
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.errors import SettingError
from gradlab.linalg import sign_fixed_qr
from gradlab.records.trajectory import Trajectory

MODELS = Path(__file__).parents[1] / "fixtures" / "models"
BUILT_TO_ORDER = ("vanish", "orthogonal", "explode", "nonnormal", "saturated", "chaotic")


def linear_cell(W: Array) -> VanillaCell:
    return VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation="identity")


def at_rest(cell: VanillaCell, steps: int, batch: int = 1) -> Trajectory:
    return rollout(cell, np.zeros((steps, batch, cell.input_size)))


def built_to_order(name: str) -> tuple[VanillaCell, Trajectory, dict[str, Array]]:
    """A framework's network along the framework's own states."""
    weights = np.load(MODELS / f"dyn_{name}.npz")
    oracle = dict(np.load(MODELS / f"dyn_{name}.oracle.npz"))
    cell = VanillaCell(
        W_hh=weights["weight_hh_l0"],
        W_xh=weights["weight_ih_l0"],
        b_h=weights["bias_ih_l0"].astype(np.float64) + weights["bias_hh_l0"],
    )
    own = rollout(cell, oracle["x"][:, None], initial_state=oracle["h0"][0])
    return cell, own, oracle


@pytest.mark.parametrize("name", BUILT_TO_ORDER)
def test_norms_agree_with_autograd_through_the_whole_run(name: str) -> None:
    cell, run, oracle = built_to_order(name)
    profile = jacobian_profile(cell, run, anchors="last", smallest=False)
    expected = np.log(oracle["norm2_dsT_dsk_l0"][-2::-1])
    # A chaotic run forgets its last digits at e^0.19 a step: 1e-16 grows to 1e-11 in 60 steps,
    # and the norm feels that a hundredfold.
    tolerance = 1e-8 if name == "chaotic" else 1e-10
    np.testing.assert_allclose(profile.log_norm, expected, rtol=0.0, atol=tolerance)
    frobenius = np.log(oracle["fro_dsT_dsk_l0"][-2::-1])
    np.testing.assert_allclose(profile.log_frobenius, frobenius, rtol=0.0, atol=tolerance)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    steps=st.integers(1, 7),
    gain=st.floats(0.2, 4.0),
)
def test_every_pair_equals_the_product_formed_by_hand(
    seed: int, n: int, steps: int, gain: float
) -> None:
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(input_size=2, hidden_size=n, gain=gain, rng=rng)
    run = rollout(cell, rng.standard_normal((steps, 2, 2)))
    profile = jacobian_profile(cell, run)
    J = np.stack([step.matrix() for step in cell.linearize(run)])
    for sequence, t, k, log_norm in zip(
        profile.sequence, profile.t, profile.k, profile.log_norm, strict=True
    ):
        product = np.eye(n)
        for j in range(k, t):
            product = J[j, sequence] @ product
        expected = np.log(np.linalg.norm(product, ord=2))
        assert log_norm == pytest.approx(expected, abs=1e-10)


def test_all_pairs_are_there_once_and_in_order() -> None:
    cell = VanillaCell.initialize(input_size=1, hidden_size=3, rng=np.random.default_rng(0))
    run = rollout(cell, np.ones((5, 2, 1)), lengths=np.array([5, 3]))
    frame = jacobian_profile(cell, run).to_frame()
    expected = [
        (sequence, t, t - lag, lag)
        for sequence, length in ((0, 5), (1, 3))
        for t in range(1, length + 1)
        for lag in range(1, t + 1)
    ]
    assert list(frame[["sequence", "t", "k", "lag"]].itertuples(index=False, name=None)) == expected


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1000), short=st.integers(1, 6))
def test_padding_enters_no_number(seed: int, short: int) -> None:
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, bias=0.7, rng=rng)
    inputs = rng.standard_normal((6, 2, 2))
    lengths = np.array([6, short])
    spoiled = inputs.copy()
    spoiled[short:, 1] = np.nan
    alone = jacobian_profile(cell, rollout(cell, inputs[:short, 1:]))
    for padded in (inputs, spoiled):
        both = jacobian_profile(cell, rollout(cell, padded, lengths=lengths))
        own = both.sequence == 1
        np.testing.assert_allclose(both.log_norm[own], alone.log_norm, atol=1e-12)
        assert own.sum() == len(alone.lag)


@pytest.mark.parametrize("gain", [1e-3, 0.9, 1.0, 1.1, 1e3])
def test_scaled_orthogonal_weights_grow_at_exactly_log_gain(gain: float) -> None:
    """All singular values of (c Q)^l are c^l, far outside the range of float64."""
    Q = sign_fixed_qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    cell = linear_cell(gain * Q)
    profile = jacobian_profile(cell, at_rest(cell, 3000), anchors="last")
    expected = profile.lag * np.log(gain)
    np.testing.assert_allclose(profile.log_norm, expected, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(profile.log_sigma_min, expected, rtol=1e-11, atol=1e-9)


def test_halving_is_exact_at_lag_one_hundred_thousand() -> None:
    cell = linear_cell(np.array([[0.5]]))
    run = at_rest(cell, 100_000)
    profile = jacobian_profile(cell, run, anchors="last", smallest=False)
    assert profile.log_norm[-1] / np.log(2.0) == -100_000.0


def test_a_shift_register_forgets_everything_at_once() -> None:
    cell = linear_cell(np.eye(6, k=-1))
    profile = jacobian_profile(cell, at_rest(cell, 9), anchors="last")
    assert profile.log_norm.tolist() == [0.0] * 5 + [-np.inf] * 4
    assert (profile.log_sigma_min == -np.inf).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 40))
def test_smallest_singular_value_of_two_units_follows_from_the_determinant(
    seed: int, steps: int
) -> None:
    """For N = 2, σ_min = |det P| / σ_max, and the determinant is known without a product."""
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(input_size=1, hidden_size=2, gain=1.5, rng=rng)
    run = rollout(cell, rng.standard_normal((steps, 1, 1)))
    profile = jacobian_profile(cell, run, anchors="last")
    log_det = np.array([step.log_abs_det()[0] for step in cell.linearize(run)])
    expected = np.cumsum(log_det[::-1]) - profile.log_norm
    resolved = ~np.isnan(profile.log_sigma_min)
    np.testing.assert_allclose(profile.log_sigma_min[resolved], expected[resolved], atol=1e-6)
    if np.linalg.cond(cell.W_hh) < 1e4:
        assert resolved.all()


def test_a_rank_loss_that_float64_cannot_tell_from_noise_is_unresolved() -> None:
    cell = linear_cell(np.outer([1.0, 2.0, 2.0], [0.3, 0.1, 0.2]))
    profile = jacobian_profile(cell, at_rest(cell, 5), anchors="last")
    assert np.isnan(profile.log_sigma_min).all()
    assert profile.by_lag()["log_sigma_min_median"].isna().all()


def test_a_unit_with_slope_zero_makes_the_smallest_singular_value_zero() -> None:
    cell = VanillaCell(
        W_hh=np.eye(2), W_xh=np.zeros((2, 1)), b_h=np.array([-5.0, 1.0]), activation="relu"
    )
    profile = jacobian_profile(cell, at_rest(cell, 4), anchors="last")
    assert (profile.log_sigma_min == -np.inf).all()
    assert (profile.log_norm == 0.0).all()


def test_quantiles_are_minus_infinity_next_to_minus_infinity() -> None:
    profile = gl_profile_of([0.0, -np.inf, 2.0, 4.0])
    table = profile.by_lag()
    assert table["log_norm_min"][0] == -np.inf
    assert table["log_norm_q05"][0] == -np.inf
    assert table["log_norm_median"][0] == 1.0
    assert table["log_norm_mean"][0] == -np.inf
    assert table["log_norm_max"][0] == 4.0


def gl_profile_of(log_norms: list[float]) -> gl.JacobianProfile:
    count = len(log_norms)
    ones, values = np.ones(count, dtype=np.int64), np.array(log_norms)
    return gl.JacobianProfile(
        sequence=np.arange(count), t=ones, k=ones - 1, lag=ones,
        log_norm=values, log_frobenius=values, log_sigma_min=values,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("anchors", "expected"),
    [("all", [1, 2, 3, 4, 5]), ("last", [5]), (2, [3, 5]), (9, [1, 2, 3, 4, 5]), ([2, 4], [2, 4])],
)
def test_end_times_take_the_stated_forms(
    anchors: str | int | list[int], expected: list[int]
) -> None:
    assert end_times(5, anchors).tolist() == expected


@pytest.mark.parametrize("anchors", ["first", 0, [], [0, 2]])
def test_other_end_times_are_refused(anchors: str | int | list[int]) -> None:
    with pytest.raises(SettingError, match="anchors"):
        end_times(5, anchors)


def test_results_do_not_depend_on_how_products_are_stacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    cell = VanillaCell.initialize(input_size=2, hidden_size=5, gain=1.3, rng=rng)
    run = rollout(cell, rng.standard_normal((12, 3, 2)))
    whole = jacobian_profile(cell, run)
    monkeypatch.setattr("gradlab.analysis.jacobians.STACK_BYTES", 8)
    single = jacobian_profile(cell, run)
    np.testing.assert_array_equal(whole.lag, single.lag)
    np.testing.assert_allclose(whole.log_norm, single.log_norm, rtol=0.0, atol=1e-12)


def test_a_path_that_falls_far_behind_is_there_when_it_leads_again() -> None:
    """Two units apart: one is flat for 400 steps, the other for 200 earlier ones."""
    slope, steps = 0.01, 600
    inputs = np.ones((steps, 1, 2))
    inputs[:400, 0, 0] = -1.0
    inputs[400:, 0, 1] = -1.0
    cell = VanillaCell(
        W_hh=np.eye(2), W_xh=1e3 * np.eye(2), b_h=np.zeros(2), activation="leaky_relu"
    )
    profile = jacobian_profile(cell, rollout(cell, inputs), anchors="last")
    flat = np.array([(rollout(cell, inputs).z[:, 0, unit] < 0.0).sum() for unit in (0, 1)])
    expected = np.log(slope) * flat
    assert profile.log_norm[-1] == pytest.approx(expected.max(), rel=1e-12)
    assert profile.log_sigma_min[-1] == pytest.approx(expected.min(), rel=1e-9)
    assert abs(expected[0] - expected[1]) > 800.0  # further apart than float64 reaches


def test_entries_of_opposite_size_cancel_in_a_product() -> None:
    cell = linear_cell(np.array([[0.0, 1e200], [1e-200, 0.0]]))
    profile = jacobian_profile(cell, at_rest(cell, 4), anchors="last")
    np.testing.assert_allclose(profile.log_norm[1::2], 0.0, atol=1e-9)
    np.testing.assert_allclose(profile.log_norm[::2], 200.0 * np.log(10.0), rtol=1e-12)
    resolved = ~np.isnan(profile.log_sigma_min)
    assert (profile.log_sigma_min[resolved] <= profile.log_norm[resolved]).all()


@pytest.mark.parametrize("length", [1, 7, 100, 203])
def test_evenly_spaced_end_times_stay_within_the_sequence(length: int) -> None:
    for anchors in range(1, 2 * length):
        times = end_times(length, anchors)
        assert times[-1] == length
        assert times[0] >= 1
        assert len(times) == min(anchors, length) == len(np.unique(times))
