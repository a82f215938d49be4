"""The gradient term by term: reference values, closed forms far out of range, sums and bounds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.gradients import gradient_profile, gradient_profiles
from gradlab.arrays import Array
from gradlab.cells.leaky import LeakyCell
from gradlab.cells.stack import Network, Recurrence
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.bptt import bptt
from gradlab.engine.losses import Readout
from gradlab.engine.rollout import rollout
from gradlab.engine.scaled_sums import ScaledSum, log_norms
from gradlab.records.gradients import GradientProfile

MODELS = Path(__file__).parents[1] / "fixtures" / "models"


def lcg(seed: int, *shape: int) -> Array:
    """Entries in (-1, 1) of the linear congruential generator that the reference values name."""
    x, values = seed, []
    for _ in range(int(np.prod(shape))):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)


def reference_instance() -> tuple[VanillaCell, Readout, Array, Array]:
    cell = VanillaCell(W_hh=0.8 * lcg(31, 3, 3), W_xh=lcg(32, 3, 2), b_h=0.2 * lcg(33, 3))
    readout = Readout(W_hy=lcg(34, 3, 3), b_y=0.1 * lcg(35, 3))
    return cell, readout, lcg(36, 6, 2)[:, None], np.array([0, 2, 1, 1, 0, 2])[:, None]


def scalar_profile(w: float, steps: int) -> GradientProfile:
    """h_t = w h_{t-1} + (1 - w) stays at exactly 1; the loss (h_T)² has the derivative 2."""
    cell = VanillaCell(
        W_hh=np.array([[w]]), W_xh=np.ones((1, 1)), b_h=np.zeros(1), activation="identity"
    )
    inputs = np.full((steps, 1, 1), 1.0 - w)
    readout = Readout(W_hy=np.ones((1, 1)), loss="squared_error")
    return gradient_profile(
        cell, readout, inputs, np.zeros((steps, 1, 1)), initial_state=np.ones(1), at="last"
    )


def test_reference_instance_has_the_printed_terms_and_sum() -> None:
    profile = gradient_profile(*reference_instance())
    last = np.exp(profile.log_term_norm[profile.t == 6])
    expected = [
        0.43031494201852, 0.234860063519, 0.099444200424562, 0.041964508021997, 0.03776870808542
    ]  # fmt: skip
    np.testing.assert_allclose(last[:5], expected, rtol=1e-11)
    first_use = profile.log_term_norm[profile.k == 1]
    assert (first_use == -np.inf).all()  # h_0 = 0
    _, gradients = bptt(*reference_instance())
    np.testing.assert_allclose(profile.total, gradients["W_hh"], rtol=0.0, atol=1e-14)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    gain=st.floats(0.1, 3.0),
    activation=st.sampled_from(["tanh", "relu", "erf", "selu", "sigmoid"]),
    loss=st.sampled_from(["cross_entropy", "squared_error"]),
)
def test_terms_add_up_to_the_gradient_and_stay_below_their_bounds(
    seed: int, gain: float, activation: str, loss: str
) -> None:
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(
        input_size=2, hidden_size=5, gain=gain, activation=activation, bias_std=0.3, rng=rng
    )
    readout = Readout(W_hy=rng.standard_normal((3, 5)), loss=loss, average="batch")
    inputs, lengths = rng.standard_normal((8, 3, 2)), np.array([8, 5, 1])
    classes, reals = rng.integers(0, 3, (8, 3)), rng.standard_normal((8, 3, 3))
    targets = classes if loss == "cross_entropy" else reals
    start = rng.standard_normal((3, 5))
    profile = gradient_profile(cell, readout, inputs, targets, initial_state=start, lengths=lengths)
    _, gradients = bptt(cell, readout, inputs, targets, initial_state=start, lengths=lengths)
    scale = np.exp(profile.log_sum_of_norms)
    np.testing.assert_allclose(profile.total, gradients["W_hh"], rtol=0.0, atol=1e-12 * scale)
    finite = np.isfinite(profile.log_term_norm)
    gaps = profile.log_term_bound[finite] - profile.log_term_norm[finite]
    assert gaps.min() >= -1e-12
    assert 0.0 <= profile.cancellation_ratio <= 1.0 + 1e-12
    assert profile.log_total_norm == pytest.approx(
        math.log(np.linalg.norm(gradients["W_hh"])), abs=1e-6
    )


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_term_is_the_gradient_through_one_use_of_the_weights(seed: int) -> None:
    """Oracle: products of dense Jacobians, one pair at a time."""
    rng = np.random.default_rng(seed)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, gain=1.3, bias_std=0.3, rng=rng)
    readout = Readout(W_hy=rng.standard_normal((3, 4)), loss="squared_error")
    inputs, targets = rng.standard_normal((6, 2, 2)), rng.standard_normal((6, 2, 3))
    profile = gradient_profile(cell, readout, inputs, targets)
    run = rollout(cell, inputs)
    J = [step.matrix() for step in cell.linearize(run)]
    slopes = cell.phi.derivative(run.z)
    rows = zip(profile.sequence, profile.t, profile.k, profile.log_term_norm, strict=True)
    for b, t, k, log_norm in rows:
        e = 2.0 * readout.W_hy.T @ (readout.outputs(run.states[t, b]) - targets[t - 1, b])
        for j in range(t, k, -1):
            e = J[j - 1][b].T @ e
        term = np.outer(slopes[k - 1, b] * e, run.states[k - 1, b])
        expected = math.log(norm) if (norm := np.linalg.norm(term)) else -math.inf
        assert log_norm == pytest.approx(expected, abs=1e-12)


def test_every_pair_of_a_chosen_step_is_listed_once_and_in_order() -> None:
    rng = np.random.default_rng(1)
    cell = VanillaCell.initialize(input_size=1, hidden_size=3, rng=rng)
    readout = Readout(W_hy=rng.standard_normal((2, 3)))
    mask = np.array([[False, True], [True, False], [True, True], [False, True]])
    table = gradient_profile(
        cell, readout, rng.standard_normal((4, 2, 1)), np.zeros((4, 2), dtype=int),
        mask=mask, lengths=np.array([4, 3]),
    ).to_frame()  # fmt: skip
    expected = [
        (sequence, t, t - lag, lag)
        for sequence, ends in ((0, (2, 3)), (1, (1, 3)))
        for t in ends
        for lag in range(t)
    ]
    assert list(table[["sequence", "t", "k", "lag"]].itertuples(index=False, name=None)) == expected
    names = ["sequence", "t", "k", "lag", "log_term_norm", "log_term_bound"]
    assert list(table.columns) == names


def test_sequences_of_a_batch_have_the_terms_they_have_alone() -> None:
    rng = np.random.default_rng(2)
    cell = VanillaCell.initialize(input_size=2, hidden_size=4, bias=0.4, rng=rng)
    readout = Readout(W_hy=rng.standard_normal((3, 4)))
    inputs, targets = rng.standard_normal((9, 3, 2)), rng.integers(0, 3, (9, 3))
    lengths = np.array([9, 4, 7])
    inputs[4:, 1] = np.nan
    both = gradient_profile(cell, readout, inputs, targets, lengths=lengths, at="last")
    total = np.zeros((4, 4))
    for index, length in enumerate(lengths):
        one = [index]
        alone = gradient_profile(
            cell, readout, inputs[:length, one], targets[:length, one], at="last"
        )
        own = both.sequence == index
        np.testing.assert_allclose(both.log_term_norm[own], alone.log_term_norm, atol=1e-12)
        np.testing.assert_array_equal(both.lag[own], alone.lag)
        total += alone.total
    np.testing.assert_allclose(both.total, total, atol=1e-13)


@pytest.mark.parametrize("w", [0.5, 2.0])
def test_terms_far_out_of_range_follow_the_closed_form(w: float) -> None:
    """|term| = 2 w^lag: 2^3000 and its inverse are both far out of the range of float64."""
    profile = scalar_profile(w, 3000)
    expected = math.log(2.0) + profile.lag * math.log(w)
    np.testing.assert_allclose(profile.log_term_norm, expected, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(profile.log_term_bound, expected, rtol=1e-13, atol=1e-12)
    if w < 1.0:
        assert profile.total[0, 0] == 4.0
        assert profile.lag_holding(0.6) == 1
        assert profile.lag_holding(0.9) == 3
        assert profile.lag_holding(0.99) == 6
    else:
        assert np.isinf(profile.total[0, 0])
        assert profile.log_total_norm == pytest.approx(3001.0 * math.log(2.0), rel=1e-15)
        assert profile.lag_holding(0.6) == 2999
    assert profile.cancellation_ratio == pytest.approx(1.0, rel=1e-12)


def test_terms_of_alternating_sign_cancel_as_their_geometric_sums_say() -> None:
    profile = scalar_profile(-0.5, 60)
    assert profile.total[0, 0] == pytest.approx(2.0 / 1.5, rel=1e-14)
    assert profile.cancellation_ratio == pytest.approx((1.0 / 1.5) / 2.0, rel=1e-13)


def test_shares_by_lag_add_up_to_one_and_are_ratios_of_sums_of_norms() -> None:
    profile = gradient_profile(*reference_instance())
    table = profile.by_lag()
    assert list(table.columns) == [
        "lag", "log_term_norm_median", "log_term_bound_median", "share", "cumulative_share"
    ]  # fmt: skip
    norms = np.exp(profile.log_term_norm)
    for lag, share in zip(table["lag"], table["share"], strict=True):
        assert share == pytest.approx(norms[profile.lag == lag].sum() / norms.sum(), rel=1e-13)
    assert table["cumulative_share"].iloc[-1] == pytest.approx(1.0, rel=1e-14)
    assert profile.to_summary()["lag_90"] == 2


def test_a_loss_that_is_met_exactly_has_zero_terms_and_undefined_shares() -> None:
    cell = VanillaCell(W_hh=np.eye(2), W_xh=np.ones((2, 1)), activation="identity")
    readout = Readout(W_hy=np.eye(2), loss="squared_error")
    profile = gradient_profile(cell, readout, np.zeros((3, 1, 1)), np.zeros((3, 1, 2)))
    assert len(profile.lag) == 6
    assert (profile.log_term_norm == -np.inf).all()
    assert np.isnan(profile.share).all()
    assert math.isnan(profile.cancellation_ratio)
    assert profile.lag_holding(0.5) is None
    assert profile.total.shape == (2, 2)
    assert not profile.total.any()


def test_terms_of_every_layer_and_direction_add_up_to_its_gradient() -> None:
    rng = np.random.default_rng(4)
    shapes = [("a", 0, "forward", 2), ("b", 0, "backward", 2), ("c", 1, "forward", 6)]
    network = Network(
        [
            Recurrence(
                name=name, layer=layer, direction=direction, stack="s",
                cell=VanillaCell.initialize(input_size=size, hidden_size=3, bias=0.2, rng=rng),
            )
            for name, layer, direction, size in shapes
        ]
    )  # fmt: skip
    readout = Readout(W_hy=rng.standard_normal((2, 3)))
    inputs, targets = rng.standard_normal((7, 2, 2)), rng.integers(0, 2, (7, 2))
    lengths = np.array([7, 5])
    profiles = gradient_profiles(network, readout, inputs, targets, lengths=lengths)
    _, gradients = bptt(network, readout, inputs, targets, lengths=lengths)
    assert list(profiles) == ["a", "b", "c"]
    for name, profile in profiles.items():
        np.testing.assert_allclose(profile.total, gradients[f"{name}.W_hh"], atol=1e-13)


@pytest.mark.parametrize("leak", [0.05, 0.5, 1.0])
def test_bound_of_a_leaky_cell_knows_that_the_leak_carries_the_gradient(leak: float) -> None:
    """With small weights (γ_a γ_w)^lag alone would lie far below what the leak keeps."""
    rng = np.random.default_rng(6)
    cell = LeakyCell(
        W_hh=0.1 * rng.standard_normal((4, 4)), W_xh=rng.standard_normal((4, 2)),
        b_h=np.zeros(4), activation="tanh", leak=leak,
    )  # fmt: skip
    readout = Readout(W_hy=rng.standard_normal((2, 4)))
    inputs, targets = rng.standard_normal((12, 2, 2)), rng.integers(0, 2, (12, 2))
    profile = gradient_profile(cell, readout, inputs, targets)
    _, gradients = bptt(cell, readout, inputs, targets)
    np.testing.assert_allclose(profile.total, gradients["W_hh"], atol=1e-13)
    finite = np.isfinite(profile.log_term_norm)
    gaps = profile.log_term_bound[finite] - profile.log_term_norm[finite]
    assert gaps.min() >= -1e-12


@pytest.mark.parametrize("name", ["lstm_1l", "gru_1l", "lstm_proj_2l", "gru_bi_1l"])
def test_terms_of_gated_cells_add_up_to_the_gradient_and_have_no_bound(name: str) -> None:
    network = gl.load(MODELS / f"{name}.pt")
    rng = np.random.default_rng(5)
    first, last = network.recurrences[0], network.recurrences[-1]
    directions = sum(entry.layer == last.layer for entry in network.recurrences)
    readout = Readout(W_hy=rng.standard_normal((3, directions * last.cell.hidden_size)))
    inputs = rng.standard_normal((9, 2, first.cell.input_size))
    targets, lengths = rng.integers(0, 3, (9, 2)), np.array([9, 6])
    profiles = gradient_profiles(network, readout, inputs, targets, lengths=lengths)
    _, gradients = bptt(network, readout, inputs, targets, lengths=lengths)
    for each, profile in profiles.items():
        scale = np.exp(profile.log_sum_of_norms)
        np.testing.assert_allclose(
            profile.total, gradients[f"{each}.W_h"], rtol=0.0, atol=1e-12 * scale
        )
        assert np.isnan(profile.log_term_bound).all()
        assert np.isnan(profile.by_lag()["log_term_bound_median"]).all()


def test_scaled_sums_hold_what_float64_cannot() -> None:
    total = ScaledSum()
    total.add(np.array([1.0, 0.0]), 5000)
    total.add(np.array([0.0, 1.0]), 5000)
    assert total.log_norm == pytest.approx(5000.5 * math.log(2.0), rel=1e-15)
    total.add(np.array([-1.0, 0.0]), 5000)
    total.add(np.array([0.0, -1.0]), 5000)
    assert total.log_norm == -math.inf
    total.add(np.array([3e-200, 4e-200]), 0)
    np.testing.assert_array_equal(total.value, [3e-200, 4e-200])
    total.add(np.array([1.0, 1.0]), -3000)
    np.testing.assert_array_equal(total.value, [3e-200, 4e-200])


def test_log_norms_square_nothing_out_of_range() -> None:
    x = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0], [5e-324, 0.0]])
    expected = [math.log(5e200), math.log(5e-200), -math.inf, math.log(5e-324)]
    np.testing.assert_allclose(log_norms(x, 1), expected, rtol=1e-14)
