"""What gates do to the gradient: half-lives, shares, bounds without a single matrix, whole runs."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl

ROUNDING = 1e-10
CELLS: dict[str, Any] = {
    "lstm": gl.LSTMCell, "gru": gl.GRUCell, "mgu": gl.MinimalGatedCell,
}  # fmt: skip


def random_cell(kind: str, rng: np.random.Generator, n: int = 6, **options: Any) -> Any:
    return CELLS[kind].initialize(input_size=2, hidden_size=n, rng=rng, **options)


def single(bias: float) -> gl.LSTMCell:
    return gl.LSTMCell(
        W_x=np.zeros((4, 1)), W_h=np.zeros((4, 1)), b_x=np.array([0.0, bias, 0.0, 0.0])
    )


def test_half_life_is_told_and_the_bias_for_a_wished_one() -> None:
    """Case H10."""
    cell = single(1.0)
    run = gl.rollout(cell, np.zeros((20, 1, 1)))
    carry = gl.gate_dynamics(cell, run).carry["f"]
    assert math.exp(carry.log_norm[-1]) == pytest.approx(0.001901268944, rel=1e-9)
    assert carry.half_life.item() == pytest.approx(2.2126778, rel=1e-8)
    bias = gl.forget_bias_for_half_life(100.0)
    assert bias == pytest.approx(4.9682154, rel=1e-8)
    kept = single(bias).carry(gl.rollout(single(bias), np.zeros((1, 1, 1))))["f"]
    assert kept.item() == pytest.approx(0.9930924954, rel=1e-10)


@pytest.mark.parametrize(
    ("bias", "steps"),
    [(0.0, 1.0), (1.0, 2.2126777968), (2.0, 5.4609473107), (3.0, 14.2660004736),
     (5.0, 103.2183484868), (10.0, 15267.929234)],
)  # fmt: skip
def test_half_lives_have_their_reference_values(bias: float, steps: float) -> None:
    assert gl.half_life_of_forget_bias(bias) == pytest.approx(steps, rel=1e-10)
    cell = single(bias)
    run = gl.rollout(cell, np.zeros((3, 1, 1)))
    measured = gl.gate_dynamics(cell, run).carry["f"].half_life.item()
    assert measured == pytest.approx(steps, rel=1e-10)


@given(st.floats(1e-2, 1e12))
def test_bias_and_half_life_undo_each_other(steps: float) -> None:
    bias = gl.forget_bias_for_half_life(steps)
    assert gl.half_life_of_forget_bias(bias) == pytest.approx(steps, rel=1e-12)


@pytest.mark.parametrize("steps", [0.0, -1.0, math.inf, math.nan])
def test_half_life_that_no_gate_has_is_refused(steps: float) -> None:
    with pytest.raises(gl.SettingError, match="expected a positive number"):
        gl.forget_bias_for_half_life(steps)


def test_far_biases_leave_no_range() -> None:
    assert gl.half_life_of_forget_bias(1e4) == math.inf
    assert gl.half_life_of_forget_bias(-1e4) == pytest.approx(math.log(2.0) / 1e4)


def test_a_gate_that_is_exactly_one_has_an_infinite_half_life() -> None:
    cell = single(40.0)
    carry = gl.gate_dynamics(cell, gl.rollout(cell, np.zeros((5, 1, 1)))).carry["f"]
    assert carry.half_life.item() == math.inf
    assert carry.to_summary()["half_life_median"] == math.inf
    np.testing.assert_array_equal(carry.log_norm, np.zeros(5))


@pytest.mark.parametrize("kind", CELLS)
def test_direct_path_is_the_product_of_the_kept_shares(kind: str) -> None:
    rng = np.random.default_rng(1)
    cell = random_cell(kind, rng, forget_bias=1.0)
    run = gl.rollout(cell, rng.standard_normal((9, 1, 2)))
    (name, kept), = cell.carry(run).items()  # fmt: skip
    carry = gl.gate_dynamics(cell, run).carry[name]
    for lag in (1, 4, 9):
        product = np.log(kept[-lag:, 0].prod(axis=0))
        assert carry.log_norm[lag - 1] == pytest.approx(product.max(), abs=1e-12)
        assert carry.log_median[lag - 1] == pytest.approx(np.median(product), abs=1e-12)
    np.testing.assert_allclose(carry.mean_log, np.log(kept[:, 0]).mean(axis=0), atol=1e-14)


def test_shares_of_the_gradient_are_those_of_the_dense_products() -> None:
    rng = np.random.default_rng(2)
    cell = random_cell("lstm", rng, 4)
    lengths = np.array([8, 5])
    run = gl.rollout(cell, rng.standard_normal((8, 2, 2)), lengths=lengths)
    found = gl.gate_dynamics(cell, run)
    expected = {"h": np.zeros(8), "c": np.zeros(8)}
    for sequence, length in enumerate(lengths):
        steps = cell.linearize(run.select(np.array([sequence])))
        product = np.eye(8)[:4]
        for lag in range(1, length + 1):
            product = product @ steps[length - lag].matrix()[0]
            squares = (product**2).sum(axis=0)
            weight = 1.0 / np.sum(lengths >= lag)
            expected["h"][lag - 1] += weight * squares[:4].sum() / squares.sum()
            expected["c"][lag - 1] += weight * squares[4:].sum() / squares.sum()
    for part, share in expected.items():
        np.testing.assert_allclose(found.shares[part], share, atol=1e-12)
    np.testing.assert_allclose(found.shares["h"] + found.shares["c"], 1.0, atol=1e-12)


def test_without_recurrent_weights_all_of_the_gradient_runs_through_c() -> None:
    cell = single(1.0)
    shares = gl.gate_dynamics(cell, gl.rollout(cell, np.zeros((6, 1, 1)))).shares
    np.testing.assert_array_equal(shares["c"], np.ones(6))
    np.testing.assert_array_equal(shares["h"], np.zeros(6))


def test_share_of_nothing_is_undefined() -> None:
    cell = gl.VanillaCell(W_hh=np.eye(2, k=1), W_xh=np.zeros((2, 1)), activation="identity")
    found = gl.gate_dynamics(cell, gl.rollout(cell, np.zeros((3, 1, 1))))
    assert found.carry == {}
    np.testing.assert_array_equal(found.shares["h"], [1.0, np.nan, np.nan])


def test_an_lstm_may_explode_although_its_forget_path_decays() -> None:
    """Large recurrent weights: the gradient runs through the gates, not through the carousel."""
    rng = np.random.default_rng(3)
    cell = random_cell("lstm", rng, 32, recurrent="gaussian", gain=12.0)
    run = gl.rollout(cell, rng.standard_normal((100, 1, 2)))
    dynamics = gl.gate_dynamics(cell, run)
    profile = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    assert dynamics.carry["f"].log_norm[-1] < -30.0
    assert profile.log_norm[-1] > 30.0
    assert dynamics.shares["h"][-1] > 0.5
    assert gl.analyze(cell, run.inputs).only().regime.name == "exploding"


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(sorted(CELLS)),
    n=st.integers(1, 5),
    steps=st.integers(1, 11),
    gain=st.floats(0.01, 8.0),
    block=st.integers(1, 4),
)
def test_every_rung_of_a_gated_cell_bounds_the_next(
    seed: int, kind: str, n: int, steps: int, gain: float, block: int
) -> None:
    rng = np.random.default_rng(seed)
    cell = random_cell(kind, rng, n, recurrent="gaussian", gain=gain)
    run = gl.rollout(
        cell, rng.standard_normal((steps, 2, 2)), lengths=np.array([steps, (steps + 1) // 2])
    )
    profile = gl.jacobian_profile(cell, run, smallest=False)
    rungs = gl.bound_ladder(cell, run, profile=profile, block=block).rungs
    below = ["exact", "radius", "determinant", "sigma_min"]
    chains = [["onestep", "blocks", "exact"], ["lstm_gates", "lstm_data", "exact"]]
    pairs = [pair for chain in chains for pair in itertools.pairwise(chain)]
    pairs += [(name, "exact") for name in rungs if name not in below]
    pairs += [("exact", "radius"), ("exact", "determinant"), ("determinant", "sigma_min")]
    for upper, lower in ((a, b) for a, b in pairs if a in rungs and b in rungs):
        finite = np.isfinite(rungs[lower]) & ~np.isnan(rungs[upper])
        slack = ROUNDING * (1.0 + np.abs(rungs[lower][finite]))
        assert (rungs[upper][finite] >= rungs[lower][finite] - slack).all(), (upper, lower)


@pytest.mark.parametrize("kind", CELLS)
def test_gates_are_told_apart_at_both_ends(kind: str) -> None:
    rng = np.random.default_rng(4)
    cell = random_cell(kind, rng, 5, gain=6.0)
    run = gl.rollout(cell, rng.standard_normal((40, 2, 2)))
    for name, gate in gl.saturation(cell, run).gates.items():
        part = cell.nonlinearities(run)[name]
        low, high = part.activation.low, part.activation.high
        place = (2.0 * part.value - low - high) / (high - low)
        assert gate.low_share == pytest.approx(np.mean(place < -0.97))
        assert gate.high_share == pytest.approx(np.mean(place > 0.97))
        np.testing.assert_array_equal(part.value, part.activation.function(part.z))


@pytest.mark.parametrize("kind", [*CELLS, "leaky"])
def test_gated_network_is_analyzed_saved_and_read_back(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    cell: Any = (
        gl.LeakyCell.initialize(input_size=2, hidden_size=4, leak=0.3, rng=rng)
        if kind == "leaky"
        else random_cell(kind, rng, 4)
    )
    x, lengths = rng.standard_normal((30, 3, 2)), np.array([30, 12, 30])
    dynamics = gl.analyze(cell, x, lengths=lengths)
    folder = gl.save(dynamics, tmp_path / "run", pairs=True)
    entry = json.loads((folder / "summary.json").read_text())["recurrences"][0]
    table = pd.read_csv(folder / "lag_profile.csv")
    spectrum = pd.read_csv(folder / "spectrum.csv")
    assert entry["cell"] == kind
    assert (entry["gamma_w"] is None) == (kind != "leaky")
    assert set(spectrum["gate"]) <= set(entry["gates"])
    assert table["log_bound_gamma"].isna().all() == (kind != "leaky")
    assert (table["log_bound_onestep"] >= table["log_norm_median"] - ROUNDING).all()
    stack = spectrum[spectrum["gate"] == "stack"]
    assert stack["eigenvalue_re"].isna().all()
    assert gl.load_run(folder).summary() == dynamics.summary()
    steps = pd.read_csv(folder / "steps.csv")
    assert len(steps) == lengths.sum() * len(entry["saturation"]["gates"])


def test_record_of_the_gates_becomes_a_table_and_a_summary() -> None:
    rng = np.random.default_rng(6)
    cell = random_cell("lstm", rng, 3)
    found = gl.gate_dynamics(cell, gl.rollout(cell, rng.standard_normal((7, 2, 2))))
    table = found.to_frame()
    assert list(table.columns) == ["quantity", "name", "lag", "value"]
    assert len(table) == 4 * 7
    share = table[(table["quantity"] == "share") & (table["name"] == "c")]["value"]
    np.testing.assert_array_equal(share, found.shares["c"])
    summary = found.to_summary()
    lives = summary["carry"]["f"]
    assert lives["half_life_min"] <= lives["half_life_median"] <= lives["half_life_max"]
    assert summary["shares"]["c"]["last_lag"] == found.shares["c"][-1]
