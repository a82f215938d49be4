"""End times that are chosen by counting, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.end_times import AUTOMATIC_PAIRS, automatic_anchors, pair_count

lengths_of = st.lists(st.integers(1, 60), min_size=1, max_size=5).map(np.array)


@settings(deadline=None)
@given(
    lengths=lengths_of,
    max_lag=st.none() | st.integers(1, 70),
    n=st.integers(1, 300),
    max_pairs=st.integers(1, 5000),
)
def test_chosen_end_times_keep_to_the_limit_or_are_the_last_alone(
    lengths: np.ndarray, max_lag: int | None, n: int, max_pairs: int
) -> None:
    chosen = automatic_anchors(lengths, n, max_lag, max_pairs)
    allowed = max_pairs * min(1.0, (64 / n) ** 3)
    # Evenly spaced times include the last one: half a stretch more than the mean for each sequence.
    room = float(lengths.sum()) + len(lengths)
    assert chosen == 1 or pair_count(lengths, chosen, max_lag) <= allowed + room


@settings(deadline=None)
@given(lengths=lengths_of, max_lag=st.none() | st.integers(1, 70))
def test_more_is_allowed_with_a_larger_limit_and_less_in_larger_states(
    lengths: np.ndarray, max_lag: int | None
) -> None:
    def pairs(n: int, max_pairs: int) -> int:
        return pair_count(lengths, automatic_anchors(lengths, n, max_lag, max_pairs), max_lag)

    counts = [pairs(64, limit) for limit in (1, 100, 1000, 10**6)]
    assert counts == sorted(counts)
    assert counts[-1] == pair_count(lengths, "all", max_lag)
    assert pairs(64, 500) == pairs(2, 500) >= pairs(128, 500)


@pytest.mark.parametrize("anchors", ["all", "last", 1, 3, [2, 5]])
@pytest.mark.parametrize("max_lag", [None, 1, 4])
def test_pairs_are_counted_as_they_are_measured(
    anchors: str | int | list[int], max_lag: int | None
) -> None:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    lengths = np.array([7, 4, 7, 1])
    run = gl.rollout(cell, rng.standard_normal((7, 4, 2)), lengths=lengths)
    profile = gl.jacobian_profile(cell, run, anchors=anchors, max_lag=max_lag, smallest=False)
    assert pair_count(lengths, anchors, max_lag) == len(profile.lag)


def test_a_limit_is_told_with_what_it_leaves_out() -> None:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    inputs = rng.standard_normal((20, 2, 2))
    whole = gl.analyze(cell, inputs)
    assert not any("end times" in said for said in whole.assumptions)
    assert len(np.unique(whole.only().jacobians.t)) == 20
    (said,) = gl.analyze(cell, inputs, max_pairs=100).assumptions
    assert said == (
        "rnn is measured at 5 evenly spaced end times of 20: anchors all would measure every one, "
        "and a larger max_pairs more of them"
    )
    (alone,) = gl.analyze(cell, inputs, max_pairs=1).assumptions
    assert "the last step alone of 20" in alone
    assert gl.analyze(cell, inputs, anchors=5).assumptions == ()


def test_the_limit_is_at_least_one() -> None:
    assert AUTOMATIC_PAIRS == 20_000
    with pytest.raises(gl.SettingError, match="max_pairs 0"):
        automatic_anchors(np.array([3]), 4, None, 0)
