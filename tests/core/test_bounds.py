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
from gradlab.records.ladder import LOWER, RUNGS

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
    assert tuple(ladder.rungs) == (*RUNGS, *LOWER)
    below_exact = [("exact", rung) for rung in LOWER] + [("determinant", "sigma_min")]
    for upper, lower in [*itertools.pairwise(RUNGS), *below_exact]:
        above, below = ladder.rungs[upper], ladder.rungs[lower]
        told = np.isfinite(below) & ~np.isnan(above)  # -inf bounds nothing, nan is not resolved
        slack = ROUNDING * (1.0 + np.abs(below[told]))
        assert (above[told] >= below[told] - slack).all(), (upper, lower)


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
    for rung in (*RUNGS, *LOWER):
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
    with pytest.raises(SettingError, match="block 'long': expected 'auto'"):
        bound_ladder(cell, rollout(cell, np.ones((3, 1, 1))), block="long")


def test_the_frame_names_rungs_and_kinds() -> None:
    cell = VanillaCell(W_hh=np.eye(2), W_xh=np.ones((2, 1)))
    frame = bound_ladder(cell, rollout(cell, np.ones((4, 1, 1)))).to_frame()
    assert list(frame.columns) == ["rung", "kind", "lag", "log_bound"]
    assert list(frame["rung"].unique()) == [*RUNGS, *LOWER]
    assert frame["lag"].max() == 4
    kinds = frame.groupby("rung")["kind"].unique().map(list).to_dict()
    assert kinds == {rung: ["upper"] for rung in RUNGS} | {"exact": ["exact"]} | {
        rung: ["lower"] for rung in LOWER
    }


def test_without_blocks_only_rungs_of_scalar_factors_remain() -> None:
    rng = np.random.default_rng(4)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, gain=2.0, rng=rng)
    run = rollout(cell, rng.standard_normal((9, 2, 2)))
    few, all_rungs = bound_ladder(cell, run, block=None), bound_ladder(cell, run)
    assert list(few.rungs) == ["gamma", "saturation_max", "saturation", "exact"]
    for name, values in few.rungs.items():
        np.testing.assert_array_equal(values, all_rungs.rungs[name])


def test_blocks_are_as_long_as_they_stay_well_conditioned() -> None:
    """diag(1, q): the condition of l steps is q^-l, and 1e14 is the limit."""
    for q, steps in [(1.0, 32), (0.5, 32), (0.1, 8), (1e-3, 4), (1e-8, 1)]:
        cell = VanillaCell(W_hh=np.diag([1.0, q]), W_xh=np.zeros((2, 1)), activation="identity")
        assert bound_ladder(cell, rollout(cell, np.zeros((40, 1, 1)))).block == steps


def test_blocks_of_singular_steps_have_a_length_of_their_own() -> None:
    cell = VanillaCell(W_hh=np.diag([1.0, 0.0]), W_xh=np.zeros((2, 1)), activation="identity")
    assert bound_ladder(cell, rollout(cell, np.zeros((40, 1, 1)))).block == 8
    assert bound_ladder(cell, rollout(cell, np.zeros((5, 1, 1)))).block == 5
    assert bound_ladder(cell, rollout(cell, np.zeros((40, 1, 1))), block=3).block == 3


def test_an_exact_rank_loss_leaves_no_lower_bound() -> None:
    """A dead unit: the determinant and the smallest singular value are 0, the norm is not."""
    cell = VanillaCell(W_hh=np.diag([0.9, 0.0]), W_xh=np.zeros((2, 1)), activation="identity")
    rungs = bound_ladder(cell, rollout(cell, np.zeros((6, 1, 1)))).rungs
    assert np.isneginf(rungs["determinant"]).all()
    assert np.isneginf(rungs["sigma_min"]).all()
    np.testing.assert_allclose(rungs["radius"], rungs["exact"], atol=1e-14)


def test_what_float64_does_not_resolve_is_no_lower_bound() -> None:
    """Rank one but for rounding: its computed determinant is noise."""
    u, v = np.array([1.0, 2.0, 2.0]), np.array([0.3, 0.1, 0.2])
    cell = VanillaCell(W_hh=np.outer(u, v), W_xh=np.zeros((3, 1)), activation="identity")
    rungs = bound_ladder(cell, rollout(cell, np.zeros((4, 1, 1)))).rungs
    assert not np.isfinite(rungs["sigma_min"]).any()
    assert not np.isfinite(rungs["determinant"]).any()
    np.testing.assert_allclose(rungs["radius"], np.arange(1, 5) * np.log(0.9), atol=1e-12)


def test_nilpotent_weights_have_a_radius_of_zero() -> None:
    shift = np.diag(np.ones(5), -1)
    cell = VanillaCell(W_hh=shift, W_xh=np.zeros((6, 1)), activation="identity")
    rungs = bound_ladder(cell, rollout(cell, np.zeros((8, 1, 1)))).rungs
    assert np.isneginf(rungs["radius"]).all()
    np.testing.assert_array_equal(rungs["exact"], [0.0] * 5 + [-np.inf] * 3)


def test_radii_of_many_pairs_are_measured_at_evenly_spaced_lags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradlab.analysis.lower_bounds.RADIUS_WORK", 25 * 3**3 * 2 * 4)
    rng = np.random.default_rng(6)
    cell = VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    run = rollout(cell, rng.standard_normal((12, 2, 2)), lengths=np.array([12, 7]))
    ladder = bound_ladder(cell, run, profile=jacobian_profile(cell, run))
    told = ~np.isnan(ladder.rungs["radius"])
    found = list(zip(ladder.sequence[told], ladder.t[told], ladder.lag[told], strict=True))
    assert found == [(0, 12, 3), (0, 12, 6), (0, 12, 9), (0, 12, 12), (1, 7, 3), (1, 7, 6)]
    for sequence, t, lag in found:
        J = [step.matrix()[sequence] for step in cell.linearize(run)[t - lag : t]]
        P = np.linalg.multi_dot([*J[::-1], np.eye(3)])
        place = (ladder.sequence == sequence) & (ladder.t == t) & (ladder.lag == lag)
        expected = np.log(np.abs(np.linalg.eigvals(P)).max())
        assert ladder.rungs["radius"][place][0] == pytest.approx(expected, abs=1e-10)
