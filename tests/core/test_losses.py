"""Readout and losses: closed forms, derivatives by differences, the choice of steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.arrays import Array
from gradlab.engine.losses import LossTerms, Readout, chosen_steps, loss_terms
from gradlab.errors import NonFiniteError, SettingError, ShapeError, UnknownNameError


def all_steps(hidden: Array) -> Array:
    return np.ones(hidden.shape[:2], dtype=bool)


def logits_as_states(logits: list[float], target: int) -> LossTerms:
    """One step of one sequence whose readout hands the states through."""
    readout = Readout(W_hy=np.eye(len(logits)))
    hidden = np.array(logits)[None, None]
    return loss_terms(readout, hidden, np.array([[target]]), all_steps(hidden))


def test_equal_logits_cost_the_logarithm_of_the_number_of_classes() -> None:
    terms = logits_as_states([0.3] * 5, 2)
    assert terms.value == pytest.approx(math.log(5.0), rel=1e-15)
    np.testing.assert_allclose(terms.upstream[0, 0], [0.2, 0.2, -0.8, 0.2, 0.2], rtol=1e-15)


@pytest.mark.parametrize("size", [50.0, 700.0, 1e4, 1e300])
def test_large_logits_neither_overflow_nor_lose_the_small_loss(size: float) -> None:
    """-ln p = ln(1 + exp(-size)), whose digits 1 - p in floating point does not have."""
    right = logits_as_states([size, 0.0], 0)
    assert right.value == pytest.approx(math.exp(-size), rel=1e-12)
    np.testing.assert_allclose(right.upstream[0, 0], [-math.exp(-size), math.exp(-size)])
    wrong = logits_as_states([size, 0.0], 1)
    assert wrong.value == pytest.approx(size, rel=1e-15)
    np.testing.assert_allclose(wrong.upstream[0, 0], [1.0, -1.0])


def test_squared_error_is_the_plain_sum_without_a_half() -> None:
    readout = Readout(W_hy=np.array([[2.0, 0.0], [0.0, 1.0]]), loss="squared_error")
    hidden = np.array([[[1.0, 5.0]], [[0.5, 1.0]]])
    targets = np.array([[[1.0, 1.0]], [[1.0, -2.0]]])
    terms = loss_terms(readout, hidden, targets, all_steps(hidden))
    assert terms.value == 1.0 + 16.0 + 0.0 + 9.0
    np.testing.assert_array_equal(terms.upstream[:, 0], [[4.0, 8.0], [0.0, 6.0]])


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(["cross_entropy", "squared_error"]),
    average=st.sampled_from(["none", "batch", "steps"]),
)
def test_derivatives_agree_with_central_differences(seed: int, loss: str, average: str) -> None:
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((4, 3)), rng.standard_normal(4)
    hidden = rng.standard_normal((5, 2, 3))
    classes, reals = rng.integers(0, 4, (5, 2)), rng.standard_normal((5, 2, 4))
    targets = classes if loss == "cross_entropy" else reals
    chosen = rng.random((5, 2)) < 0.7
    chosen[0, 0] = True

    def value(W: Array, b: Array, hidden: Array) -> float:
        readout = Readout(W_hy=W, b_y=b, loss=loss, average=average)
        return loss_terms(readout, hidden, targets, chosen).value

    readout = Readout(W_hy=W, b_y=b, loss=loss, average=average)
    terms = loss_terms(readout, hidden, targets, chosen)
    step = 6e-6
    # A central difference of this step is off by about step² times the third derivative.
    for place in [(0, 1), (3, 2)]:
        shift = np.zeros_like(W)
        shift[place] = step
        slope = (value(W + shift, b, hidden) - value(W - shift, b, hidden)) / (2.0 * step)
        assert terms.gradients["W_hy"][place] == pytest.approx(slope, abs=1e-8, rel=1e-8)
    shift = np.array([0.0, step, 0.0, 0.0])
    slope = (value(W, b + shift, hidden) - value(W, b - shift, hidden)) / (2.0 * step)
    assert terms.gradients["b_y"][1] == pytest.approx(slope, abs=1e-8, rel=1e-8)
    for where in [(0, 0, 2), (3, 1, 0)]:
        shift = np.zeros_like(hidden)
        shift[where] = step
        slope = (value(W, b, hidden + shift) - value(W, b, hidden - shift)) / (2.0 * step)
        assert terms.upstream[where] == pytest.approx(slope, abs=1e-8, rel=1e-8)


def test_upstream_of_cross_entropy_is_at_most_root_two_times_the_norm_of_the_readout() -> None:
    rng = np.random.default_rng(0)
    readout = Readout(W_hy=3.0 * rng.standard_normal((6, 4)))
    hidden = 5.0 * rng.standard_normal((50, 8, 4))
    targets = rng.integers(0, 6, (50, 8))
    norms = np.linalg.norm(loss_terms(readout, hidden, targets, all_steps(hidden)).upstream, axis=2)
    bound = math.sqrt(2.0) * np.linalg.norm(readout.W_hy, ord=2)
    assert norms.max() <= bound
    assert norms.max() > 0.3 * bound


def test_average_divides_by_sequences_or_by_chosen_steps() -> None:
    hidden = np.random.default_rng(1).standard_normal((4, 3, 2))
    targets = np.zeros((4, 3), dtype=int)
    chosen = all_steps(hidden)
    chosen[2:, 0] = False
    total = loss_terms(Readout(W_hy=np.eye(2)), hidden, targets, chosen)
    for average, divisor in (("batch", 3.0), ("steps", 10.0)):
        mean = loss_terms(Readout(W_hy=np.eye(2), average=average), hidden, targets, chosen)
        assert mean.value == pytest.approx(total.value / divisor, rel=1e-14)
        np.testing.assert_allclose(mean.upstream, total.upstream / divisor, rtol=1e-14)
        np.testing.assert_allclose(
            mean.gradients["W_hy"], total.gradients["W_hy"] / divisor, rtol=1e-13
        )


def test_chosen_steps_are_valid_ones_the_last_or_those_of_the_mask() -> None:
    lengths = np.array([3, 1])
    assert chosen_steps(lengths, 3).T.tolist() == [[True] * 3, [True, False, False]]
    last = chosen_steps(lengths, 3, at="last")
    assert last.T.tolist() == [[False, False, True], [True, False, False]]
    mask = np.array([[False, False], [True, True], [True, False]])
    masked = chosen_steps(lengths, 3, mask=mask)
    assert masked.T.tolist() == [[False, True, True], [False, False, False]]


def test_targets_of_single_steps_need_no_time_axis() -> None:
    rng = np.random.default_rng(2)
    hidden = rng.standard_normal((3, 2, 4))
    chosen = chosen_steps(np.array([3, 2]), 3, at="last")
    classes = np.array([1, 3])
    everywhere = np.full((3, 2), -100)
    everywhere[2, 0], everywhere[1, 1] = classes
    readout = Readout(W_hy=np.eye(4))
    short = loss_terms(readout, hidden, classes, chosen)
    assert short.value == loss_terms(readout, hidden, everywhere, chosen).value
    reals = rng.standard_normal((2, 4))
    squared = Readout(W_hy=np.eye(4), loss="squared_error")
    expected = np.sum((hidden[[2, 1], [0, 1]] - reals) ** 2)
    assert loss_terms(squared, hidden, reals, chosen).value == pytest.approx(expected, rel=1e-14)


def test_targets_at_other_steps_are_never_read() -> None:
    hidden = np.ones((2, 1, 2))
    targets = np.full((2, 1, 2), np.nan)
    targets[0] = 1.0
    chosen = np.array([[True], [False]])
    readout = Readout(W_hy=np.eye(2), loss="squared_error")
    assert loss_terms(readout, hidden, targets, chosen).value == 0.0


def test_what_does_not_fit_is_refused_with_what_was_found_and_expected() -> None:
    hidden = np.ones((3, 2, 4))
    chosen = all_steps(hidden)
    readout = Readout(W_hy=np.eye(4))
    with pytest.raises(ShapeError, match=r"float64: expected integers of shape \(3, 2\)"):
        loss_terms(readout, hidden, np.zeros((3, 2)), chosen)
    with pytest.raises(SettingError, match="class 4: expected 0 to 3"):
        loss_terms(readout, hidden, np.full((3, 2), 4), chosen)
    with pytest.raises(SettingError, match="class -1"):
        loss_terms(readout, hidden, np.full((3, 2), -1), chosen)
    with pytest.raises(ShapeError, match=r"expected \(5, 4\)"):
        loss_terms(Readout(W_hy=np.ones((5, 3))), hidden, np.zeros((3, 2), dtype=int), chosen)
    squared = Readout(W_hy=np.eye(4), loss="squared_error")
    with pytest.raises(ShapeError, match=r"reals of shape \(3, 2, 4\)"):
        loss_terms(squared, hidden, np.zeros((3, 2)), chosen)
    with pytest.raises(NonFiniteError, match="targets"):
        loss_terms(squared, hidden, np.full((3, 2, 4), np.nan), chosen)


def test_bad_readouts_and_choices_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'cross_entropy'"):
        Readout(W_hy=np.eye(2), loss="crossentropy")
    with pytest.raises(UnknownNameError, match="average"):
        Readout(W_hy=np.eye(2), average="mean")
    with pytest.raises(NonFiniteError, match="W_hy"):
        Readout(W_hy=np.array([[np.inf]]))
    lengths = np.array([2, 2])
    with pytest.raises(SettingError, match="one of them"):
        chosen_steps(lengths, 2, at="last", mask=np.ones((2, 2), dtype=bool))
    with pytest.raises(SettingError, match="no valid step"):
        chosen_steps(lengths, 3, mask=np.array([[False] * 2, [False] * 2, [True] * 2]))
    with pytest.raises(UnknownNameError, match="choice of steps"):
        chosen_steps(lengths, 2, at="first")


def test_single_precision_readouts_stay_so() -> None:
    readout = Readout(W_hy=np.eye(2), dtype="float32")
    hidden = np.ones((2, 1, 2), dtype=np.float32)
    terms = loss_terms(readout, hidden, np.zeros((2, 1), dtype=int), all_steps(hidden))
    assert terms.upstream.dtype == terms.gradients["W_hy"].dtype == np.float32
    assert terms.value == pytest.approx(2.0 * math.log(2.0), rel=1e-7)
