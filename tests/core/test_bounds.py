"""The ladder is a theorem: every rung bounds the next, at every pair, for every network."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.cells.activations import ACTIVATIONS
from gradlab.cells.initializers import RECURRENT
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.errors import SettingError
from gradlab.records.ladder import RUNGS

ROUNDING = 1e-10


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    steps=st.integers(1, 12),
    # Subnormal entries of J would round by as much as they are.
    gain=st.just(0.0) | st.floats(1e-250, 5.0),
    block=st.integers(1, 5),
    activation=st.sampled_from(sorted(set(ACTIVATIONS) - {"identity"})),
    recurrent=st.sampled_from(sorted(RECURRENT)),
)
def test_every_rung_bounds_the_next_at_every_pair(
    seed: int, n: int, steps: int, gain: float, block: int, activation: str, recurrent: str
) -> None:
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(
        input_size=2, hidden_size=n, gain=gain, activation=activation, recurrent=recurrent, rng=rng
    )
    run = rollout(
        cell, rng.standard_normal((steps, 2, 2)), lengths=np.array([steps, (steps + 1) // 2])
    )
    profile = jacobian_profile(cell, run, smallest=False)
    ladder = bound_ladder(cell, run, profile=profile, block=block)
    assert tuple(ladder.rungs)[-1] == "exact"
    for upper, lower in itertools.pairwise(RUNGS):
        above, below = ladder.rungs[upper], ladder.rungs[lower]
        zero = np.isneginf(below)
        slack = ROUNDING * (1.0 + np.abs(below[~zero]))
        assert (above[~zero] >= below[~zero] - slack).all(), (upper, lower)


def test_blocks_of_one_step_are_the_product_of_one_step_norms() -> None:
    rng = np.random.default_rng(1)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, gain=2.0, rng=rng)
    run = rollout(cell, rng.standard_normal((9, 1, 2)))
    ladder = bound_ladder(cell, run, block=1)
    np.testing.assert_allclose(ladder.rungs["blocks"], ladder.rungs["onestep"], atol=1e-12)


def test_a_block_as_long_as_the_sequence_is_exact() -> None:
    rng = np.random.default_rng(2)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, gain=2.0, rng=rng)
    run = rollout(cell, rng.standard_normal((9, 1, 2)))
    ladder = bound_ladder(cell, run, block=50)
    np.testing.assert_allclose(ladder.rungs["blocks"], ladder.rungs["exact"], atol=1e-12)


def test_the_bound_is_attained_by_a_scaled_orthogonal_linear_network() -> None:
    rng = np.random.default_rng(3)
    cell = VanillaCell.initialize(
        input_size=1, hidden_size=5, recurrent="orthogonal", gamma=0.9, activation="identity",
        rng=rng,
    )  # fmt: skip
    ladder = bound_ladder(cell, rollout(cell, np.zeros((20, 1, 1))))
    for rung in RUNGS:
        np.testing.assert_allclose(ladder.rungs[rung], ladder.lag * np.log(0.9), atol=1e-12)
    assert all(abs(gap) < 1e-11 for gap in ladder.slack().values())


def test_slack_is_attributed_to_saturation_alone_where_nothing_else_is_lost() -> None:
    """One unit: D is the only loss between the textbook bound and the truth."""
    cell = VanillaCell(W_hh=np.array([[1.5]]), W_xh=np.ones((1, 1)), b_h=np.array([3.0]))
    run = rollout(cell, np.zeros((10, 1, 1)), initial_state=np.array([0.9997530279]))
    slack = bound_ladder(cell, run).slack()
    assert slack["saturation"] == pytest.approx(10 * (np.log(1.5) - np.log(0.0007408246488)), 1e-6)
    assert slack["onestep"] == pytest.approx(0.0, abs=1e-10)
    assert slack["alignment"] == pytest.approx(0.0, abs=1e-10)


def test_slope_suprema_above_one_enter_the_textbook_bound() -> None:
    cell = VanillaCell(W_hh=0.5 * np.eye(2), W_xh=np.zeros((2, 1)), activation="selu")
    ladder = bound_ladder(cell, rollout(cell, np.ones((3, 1, 1))))
    assert ladder.rungs["gamma"][-1] == pytest.approx(3 * np.log(0.5 * 1.7580993408), rel=1e-9)
    assert ladder.gamma_w == 0.5
    assert ladder.gamma_a == pytest.approx(1.7580993408, rel=1e-9)


def test_a_block_of_no_steps_is_refused() -> None:
    cell = VanillaCell(W_hh=np.eye(1), W_xh=np.ones((1, 1)))
    with pytest.raises(SettingError, match="block 0"):
        bound_ladder(cell, rollout(cell, np.ones((3, 1, 1))), block=0)


def test_the_frame_names_rungs_and_kinds() -> None:
    cell = VanillaCell(W_hh=np.eye(2), W_xh=np.ones((2, 1)))
    frame = bound_ladder(cell, rollout(cell, np.ones((4, 1, 1)))).to_frame()
    assert list(frame.columns) == ["rung", "kind", "lag", "log_bound"]
    assert list(frame["rung"].unique()) == list(RUNGS)
    assert frame["lag"].max() == 4
    assert set(frame.loc[frame["rung"] == "exact", "kind"]) == {"exact"}


def test_without_blocks_only_rungs_of_scalar_factors_remain() -> None:
    rng = np.random.default_rng(4)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, gain=2.0, rng=rng)
    run = rollout(cell, rng.standard_normal((9, 2, 2)))
    few, all_rungs = bound_ladder(cell, run, block=None), bound_ladder(cell, run)
    assert list(few.rungs) == ["gamma", "saturation_max", "saturation", "exact"]
    for name, values in few.rungs.items():
        np.testing.assert_array_equal(values, all_rungs.rungs[name])
