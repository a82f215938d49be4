"""Clipping: handed cases, extreme sizes, properties, non-finite entries, and the audit."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.arrays import Array
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.bptt import bptt
from gradlab.engine.clipping import (
    ClipLog,
    clip_audit,
    clip_by_norm,
    clip_by_norm_with_epsilon,
    clip_each_tensor,
    cosine,
    global_norm,
)
from gradlab.engine.losses import Readout
from gradlab.errors import NonFiniteError, SettingError, ShapeError, UnknownNameError

TWO = {"g1": np.array([3.0, 4.0]), "g2": np.array([0.3, 0.4])}
NORMS = [0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 8.0, 40.0]


def one(*entries: float, dtype: str = "float64") -> dict[str, Array]:
    return {"g": np.array(entries, dtype=dtype)}


def test_three_four_becomes_three_and_four_fifths() -> None:
    clipped, norm = clip_by_norm(one(3.0, 4.0), threshold=1.0)
    assert norm == 5.0
    assert clipped["g"].tolist() == [0.6, 0.8]


def test_case_h17_norm_beyond_the_squares_of_float32() -> None:
    """Case H17: squared in float32, 1e20 is infinite, and the clipped gradient would be zero."""
    gradients = {"W_hh": np.full(100, 1e20, dtype=np.float32)}
    clipped, norm = clip_by_norm(gradients, threshold=1.0)
    assert norm == pytest.approx(1e21, rel=1e-7)
    assert clipped["W_hh"].dtype == np.float32
    np.testing.assert_array_equal(clipped["W_hh"], np.full(100, 0.1, dtype=np.float32))
    assert global_norm(clipped) == pytest.approx(1.0, rel=1e-6)


def test_case_h17_infinite_entry_is_refused_by_name_and_index() -> None:
    """Case H17: the gradient is left as it was."""
    W_hh = np.full((10, 10), 1e20, dtype=np.float32)
    W_hh[4, 7] = np.inf
    before = W_hh.copy()
    gradients: dict[str, Array] = {"b_h": np.zeros(3), "W_hh": W_hh}
    with pytest.raises(NonFiniteError, match=r"gradient of W_hh .*\(4, 7\) = inf"):
        clip_by_norm(gradients, threshold=1.0)
    np.testing.assert_array_equal(W_hh, before)


def test_case_h18_one_norm_over_all_tensors_keeps_the_direction() -> None:
    """Case H18: the norms do not add up to 5.5, and clipping each tensor turns the gradient."""
    clipped, norm = clip_by_norm(TWO, threshold=1.0)
    assert norm == pytest.approx(5.02493781056, rel=1e-11)
    np.testing.assert_allclose(clipped["g1"], [0.59702231, 0.79602975], atol=5e-9)
    np.testing.assert_allclose(clipped["g2"], [0.059702231, 0.079602975], atol=5e-10)
    assert cosine(TWO, clipped) == pytest.approx(1.0, abs=1e-15)
    each, norms = clip_each_tensor(TWO, threshold=1.0)
    assert each["g1"].tolist() == [0.6, 0.8]
    assert each["g2"] is TWO["g2"]
    assert norms == {"g1": 5.0, "g2": 0.5}
    assert global_norm(each) == pytest.approx(1.118034, rel=1e-6)
    assert cosine(TWO, each) == pytest.approx(0.93448773, abs=5e-9)


def test_case_h19_thresholds_are_judged_by_the_users_own_norms() -> None:
    """Case H19: quantiles with their method, shares strictly above, and no magic number."""
    audit = clip_audit(NORMS, threshold=1.0, candidates=(1.0, 5.0, 10.0))
    assert audit.quantile(0.5) == pytest.approx(1.05, rel=1e-15)
    assert audit.quantile(0.9) == pytest.approx(11.2, rel=1e-14)
    assert audit.mean == pytest.approx(5.57, rel=1e-14)
    summary = audit.summary()
    assert summary["share_above"] == {"1": 0.5, "5": 0.2, "10": 0.1}
    assert summary["quantile_method"] == "linear"
    assert summary["clipped_share"] == 0.5
    assert audit.after.tolist() == [0.5, 0.7, 0.8, 0.9] + [1.0] * 6
    for q in (0.0, 0.05, 0.37, 0.95, 1.0):
        assert audit.quantile(q) == pytest.approx(np.quantile(NORMS, q, method="linear"))


def test_case_h20_no_epsilon_unless_it_is_asked_for() -> None:
    """Case H20: the exact factors are 0.002 and 0.5."""
    clipped, _ = clip_by_norm(one(3.0, 4.0), threshold=0.01)
    np.testing.assert_allclose(clipped["g"] / [3.0, 4.0], 0.002, rtol=1e-15)
    clipped, _ = clip_by_norm(one(0.012, 0.016), threshold=0.01)
    np.testing.assert_allclose(clipped["g"] / [0.012, 0.016], 0.5, rtol=1e-15)
    other, _ = clip_by_norm_with_epsilon(one(3.0, 4.0), threshold=0.01)
    np.testing.assert_allclose(other["g"] / [3.0, 4.0], 0.0019999996, rtol=1e-13)
    other, _ = clip_by_norm_with_epsilon(one(0.012, 0.016), threshold=0.01)
    np.testing.assert_allclose(other["g"] / [0.012, 0.016], 0.49997500125, rtol=1e-11)
    gradient = one(0.006, 0.008)
    same, norm = clip_by_norm(gradient, threshold=global_norm(gradient))
    assert norm == pytest.approx(0.01)
    assert same["g"] is gradient["g"]


def test_epsilon_makes_clipping_twice_another_thing_than_once() -> None:
    once, _ = clip_by_norm_with_epsilon(one(3.0, 4.0), threshold=1.0)
    assert global_norm(once) == pytest.approx(0.99999980000004, rel=1e-14)
    twice, _ = clip_by_norm_with_epsilon(once, threshold=1.0)
    assert global_norm(twice) == pytest.approx(0.9999990000008, rel=1e-12)


@pytest.mark.parametrize(
    ("entries", "norm"),
    [
        ((1e200, 1e200), 1.4142135623731e200),
        ((3e-200, 4e-200), 5e-200),
        ((5e-324, 0.0), 5e-324),
        ((1.7e308, 1.7e308), math.inf),
        ((0.0, 0.0), 0.0),
    ],
)
def test_norms_are_right_at_any_size(entries: tuple[float, ...], norm: float) -> None:
    assert global_norm(one(*entries)) == pytest.approx(norm, rel=1e-13)
    assert clip_by_norm(one(*entries), threshold=1e300)[1] == pytest.approx(norm, rel=1e-13)


def test_gradient_with_a_norm_beyond_float64_is_still_clipped_exactly() -> None:
    clipped, norm = clip_by_norm(one(1.2e308, -1.6e308, 1.2e290), threshold=0.5)
    assert norm == math.inf
    np.testing.assert_allclose(clipped["g"], [0.3, -0.4, 3e-19], rtol=1e-15)
    other, norm = clip_by_norm_with_epsilon(one(1.2e308, -1.6e308), threshold=0.5)
    assert norm == math.inf
    np.testing.assert_allclose(other["g"], [0.3, -0.4], rtol=1e-15)


def test_gradients_below_the_normal_numbers_are_clipped_too() -> None:
    clipped, norm = clip_by_norm(one(3e-310, 4e-310), threshold=1e-310)
    assert norm == pytest.approx(5e-310, rel=1e-12)
    np.testing.assert_allclose(clipped["g"], [0.6e-310, 0.8e-310], rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(-320, 300),
    threshold=st.floats(1e-3, 1e3),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_clipping_bounds_the_norm_keeps_the_direction_and_is_idempotent(
    seed: int, size: int, threshold: float, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    power = size if dtype == "float64" else size // 10
    gradients = {
        name: (rng.standard_normal(shape) * 10.0**power).astype(dtype)
        for name, shape in (("a", (3, 2)), ("b", (4,)))
    }
    clipped, norm = clip_by_norm(gradients, threshold)
    rounding = 4.0 * float(np.finfo(dtype).eps)
    after = global_norm(clipped)
    assert after <= threshold * (1.0 + rounding)
    if norm <= threshold:
        assert all(clipped[name] is array for name, array in gradients.items())
        return
    assert after == pytest.approx(threshold, rel=rounding)
    assert cosine(gradients, clipped) == pytest.approx(1.0, abs=1e-13 + rounding)
    again, _ = clip_by_norm(clipped, threshold)
    for name, array in clipped.items():
        np.testing.assert_allclose(again[name], array, rtol=rounding)


def test_non_finite_entries_follow_a_policy_that_is_named_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gradients = {"a": np.array([3.0, np.nan]), "b": np.array([4.0, -np.inf])}
    with caplog.at_level(logging.WARNING, logger="gradlab"):
        skipped, norm = clip_by_norm(gradients, 1.0, nonfinite="skip")
        assert math.isnan(norm)
        assert all(not array.any() for array in skipped.values())
        zeroed, norm = clip_by_norm(gradients, 1.0, nonfinite="zero")
    assert norm == 5.0
    assert zeroed["a"].tolist() == [0.6, 0.0]
    assert zeroed["b"].tolist() == [0.8, 0.0]
    assert [record.getMessage().rpartition(" ")[2] for record in caplog.records] == ["skip", "zero"]
    assert "a, b" in caplog.text
    each, norms = clip_each_tensor(gradients, 1.0, nonfinite="zero")
    assert norms == {"a": 3.0, "b": 4.0}
    assert each["a"].tolist() == [1.0, 0.0]
    each, norms = clip_each_tensor(gradients, 1.0, nonfinite="skip")
    assert not each["a"].any()
    assert math.isnan(norms["b"])
    assert math.isnan(clip_by_norm_with_epsilon(gradients, 1.0, nonfinite="skip")[1])
    with pytest.raises(NonFiniteError, match=r"gradient of a .*\(1,\) = nan"):
        clip_each_tensor(gradients, 1.0)


def test_bad_settings_are_refused() -> None:
    for threshold in (0.0, -1.0, math.nan):
        with pytest.raises(SettingError, match="above 0"):
            clip_by_norm(one(1.0), threshold)
    with pytest.raises(UnknownNameError, match="'zero'"):
        clip_by_norm(one(1.0), 1.0, nonfinite="zeros")
    with pytest.raises(ShapeError, match="the same tensors"):
        cosine(TWO, one(1.0))


def test_clipping_takes_what_bptt_gives() -> None:
    """The norm is that of the weights' gradient alone: not of the inputs or the initial state."""
    rng = np.random.default_rng(0)
    cell = VanillaCell.initialize(input_size=2, hidden_size=3, gain=3.0, rng=rng)
    readout = Readout(W_hy=rng.standard_normal((2, 3)))
    inputs, targets = rng.standard_normal((5, 2, 2)), np.zeros((5, 2), dtype=int)
    _, gradients = bptt(cell, readout, inputs, targets)
    clipped, norm = clip_by_norm(gradients, threshold=0.1)
    flat = np.concatenate([array.ravel() for array in gradients.values()])
    assert norm == pytest.approx(np.linalg.norm(flat), rel=1e-14)
    assert list(clipped) == ["W_hh", "W_xh", "b_h", "W_hy", "b_y"]
    assert global_norm(clipped) == pytest.approx(0.1, rel=1e-14)


def test_audit_tells_how_far_clipping_turned_the_sum_of_all_steps() -> None:
    """(3, 0) is cut to (1, 0), (0, 1) is kept: the sum turns from atan(1/3) to 45 degrees."""
    log = ClipLog(threshold=1.0)
    for gradient in (one(3.0, 0.0), one(0.0, 1.0)):
        log.add(gradient, *clip_by_norm(gradient, 1.0))
    audit = log.audit()
    assert audit.before.tolist() == [3.0, 1.0]
    assert audit.after.tolist() == [1.0, 1.0]
    assert audit.clipped_share == 0.5
    assert audit.cosine_with_unclipped_sum == pytest.approx(4.0 / math.sqrt(20.0), rel=1e-14)
    table = audit.to_frame()
    assert list(table.columns) == ["step", "norm_before", "norm_after", "clipped"]
    assert table["clipped"].tolist() == [True, False]


def test_audit_of_steps_beyond_float64_and_without_a_gradient() -> None:
    log = ClipLog(threshold=1.0)
    steps = (one(1.7e308, 1.7e308), one(np.nan, 1.0), one(1.7e308, 1.7e308))
    for gradient in steps:
        log.add(gradient, *clip_by_norm(gradient, 1.0, nonfinite="skip"))
    audit = log.audit()
    assert audit.first_nonfinite == 2
    assert audit.clipped_share == 1.0
    assert audit.quantile(0.5) == math.inf
    assert audit.cosine_with_unclipped_sum == pytest.approx(1.0, rel=1e-14)
    assert audit.summary()["nonfinite_steps"] == 1
    empty = ClipLog(threshold=1.0).audit()
    assert math.isnan(empty.cosine_with_unclipped_sum)
    assert math.isnan(empty.mean)
    assert math.isnan(empty.quantile(0.5))
