"""analyze with targets: the gradient of every recurrence, in the result and in the run folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.storage import runs as storage

GRADIENT = [
    "recurrence", "lag", "log_term_norm_median", "log_term_bound_median", "share",
    "cumulative_share",
]  # fmt: skip
PAIRS = ["recurrence", "sequence", "t", "k", "lag", "log_term_norm", "log_term_bound"]


def scalar_run(w: float, steps: int) -> gl.GradientDynamics:
    """h_t = w h_{t-1} + (1 - w) stays at exactly 1; the loss (h_T)² has the derivative 2."""
    cell = gl.VanillaCell(W_hh=np.array([[w]]), W_xh=np.ones((1, 1)), activation="identity")
    return gl.analyze(
        cell,
        np.full((steps, 1, 1), 1.0 - w),
        initial_state=np.ones(1),
        targets=np.zeros((1, 1)),
        readout=gl.Readout(W_hy=np.ones((1, 1)), loss="squared_error"),
        at="last",
    )


def random_network(rng: np.random.Generator, **layers: tuple[int, str, int]) -> gl.Network:
    """Vanilla layers of three units by (layer, direction, features), in one stack."""
    return gl.Network(
        [
            gl.Recurrence(
                name=name, layer=layer, direction=direction, stack="s",
                cell=gl.VanillaCell.initialize(input_size=size, hidden_size=3, bias=0.2, rng=rng),
            )
            for name, (layer, direction, size) in layers.items()
        ]
    )  # fmt: skip


def random_loss(rng: np.random.Generator, hidden: int, *shape: int) -> dict[str, Any]:
    readout = gl.Readout(W_hy=rng.standard_normal((2, hidden)))
    return {"readout": readout, "targets": rng.integers(0, 2, shape)}


def test_a_geometric_gradient_is_held_by_the_lags_that_its_series_says() -> None:
    """Terms are 2 w^lag: with w = 0.9 a share s is reached at the first lag with 0.9^(l+1) ≤ 1 - s.

    0.9^7 = 0.478, 0.9^22 = 0.098, 0.9^44 = 0.0097, of a sum that 400 steps leave whole.
    """
    entry = scalar_run(0.9, 400).summary()["recurrences"][0]["gradient"]
    assert (entry["lag_50"], entry["lag_90"], entry["lag_99"]) == (6, 21, 43)
    assert entry["cancellation_ratio"] == pytest.approx(1.0, rel=1e-12)
    assert entry["total_norm"] == pytest.approx(20.0, rel=1e-12)
    assert entry["log_total_norm"] == pytest.approx(math.log(20.0), rel=1e-12)


def test_a_gradient_beyond_every_float_stays_strict_json_with_its_logarithm() -> None:
    """The terms 2 · 2^lag add up to 2^2001, beyond float64."""
    entry = scalar_run(2.0, 1100).summary()["recurrences"][0]["gradient"]
    assert entry["total_norm"] == "inf"
    assert entry["log_total_norm"] == pytest.approx(1101 * math.log(2.0), rel=1e-12)


def test_without_targets_there_is_no_gradient_and_no_file_of_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    dynamics = gl.analyze(cell, rng.standard_normal((5, 2, 2)))
    assert dynamics.only().gradient is None
    folder = gl.save(dynamics, tmp_path / "run", pairs=True)
    assert json.loads((folder / "summary.json").read_text())["recurrences"][0]["gradient"] is None
    for name in ("gradient.csv", "gradient_pairs.csv", "gates.csv", "paths.csv"):
        assert not (folder / name).exists()
    assert "objective" not in json.loads((folder / "manifest.json").read_text())["settings"]


def test_a_single_cell_has_the_profile_that_is_taken_alone() -> None:
    rng = np.random.default_rng(1)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=4, rng=rng)
    inputs, lengths = rng.standard_normal((7, 3, 2)), np.array([7, 3, 5])
    loss = random_loss(rng, 4, 7, 3)
    mask = rng.random((7, 3)) < 0.5
    found = gl.analyze(cell, inputs, lengths=lengths, mask=mask, **loss).only().gradient
    alone = gl.gradient_profile(cell, loss["readout"], inputs, loss["targets"], lengths=lengths,
                                mask=mask)  # fmt: skip
    assert found is not None
    pd.testing.assert_frame_equal(found.to_frame(), alone.to_frame(), check_exact=True)
    np.testing.assert_array_equal(found.total, alone.total)


@pytest.mark.parametrize("at", [None, "last"])
def test_every_layer_and_direction_adds_up_to_its_gradient(at: str | None) -> None:
    rng = np.random.default_rng(2)
    network = random_network(
        rng, a=(0, "forward", 2), b=(0, "backward", 2), c=(1, "forward", 6), d=(1, "backward", 6)
    )
    inputs, lengths = rng.standard_normal((7, 2, 2)), np.array([7, 5])
    loss = random_loss(rng, 6, 7, 2)
    dynamics = gl.analyze(network, inputs, lengths=lengths, at=at, **loss)
    _, gradients = gl.bptt(
        network, loss["readout"], inputs, loss["targets"], lengths=lengths, at=at
    )
    for name, entry in dynamics.recurrences.items():
        assert entry.gradient is not None
        np.testing.assert_allclose(
            entry.gradient.total, gradients[f"{name}.W_hh"], rtol=0.0, atol=1e-13
        )


def test_the_last_output_of_a_backward_layer_is_its_first_step_and_that_is_said() -> None:
    rng = np.random.default_rng(3)
    network = random_network(rng, a=(0, "forward", 2), b=(0, "backward", 2))
    inputs = rng.standard_normal((6, 2, 2))
    dynamics = gl.analyze(network, inputs, at="last", **random_loss(rng, 6, 2))
    gradient = dynamics["b"].gradient
    assert gradient is not None
    assert set(gradient.t) == {1}
    assert any("b's outputs is its first one" in said for said in dynamics.assumptions)


def test_the_loss_reads_the_stack_that_fits_and_the_other_is_named() -> None:
    rng = np.random.default_rng(4)
    cells = {size: gl.VanillaCell.initialize(input_size=2, hidden_size=size, rng=rng)
             for size in (3, 5)}  # fmt: skip
    network = gl.Network(
        [
            gl.Recurrence(name=f"r{size}", cell=cell, stack=f"r{size}")
            for size, cell in cells.items()
        ]
    )
    inputs = rng.standard_normal((6, 2, 2))
    dynamics = gl.analyze(network, inputs, **random_loss(rng, 5, 6, 2))
    assert dynamics["r3"].gradient is None
    assert dynamics["r5"].gradient is not None
    assert "the loss does not read r3: no gradient is taken apart there" in dynamics.assumptions
    with pytest.raises(gl.ShapeError, match=r"r3 gives 3, r5 gives 5"):
        gl.analyze(network, inputs, **random_loss(rng, 4, 6, 2))


def test_a_readout_that_fits_two_stacks_is_refused() -> None:
    rng = np.random.default_rng(5)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    network = gl.Network([gl.Recurrence(name=name, cell=cell, stack=name) for name in ("a", "b")])
    with pytest.raises(gl.SettingError, match="fits the stacks 'a', 'b'"):
        gl.analyze(network, rng.standard_normal((4, 1, 2)), **random_loss(rng, 3, 4, 1))


@pytest.mark.parametrize(
    ("missing", "words"), [("readout", "targets without a readout"), ("targets", "without targets")]
)
def test_a_loss_needs_targets_and_a_readout(missing: str, words: str) -> None:
    rng = np.random.default_rng(6)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    loss = random_loss(rng, 3, 4, 1)
    del loss[missing]
    with pytest.raises(gl.SettingError, match=words):
        gl.analyze(cell, rng.standard_normal((4, 1, 2)), **loss)


def test_one_sequence_may_leave_the_batch_axis_of_its_targets_out() -> None:
    rng = np.random.default_rng(7)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    inputs, loss = rng.standard_normal((4, 1, 2)), random_loss(rng, 3, 4)
    flat = gl.analyze(cell, inputs, **loss).only().gradient
    loss["targets"] = loss["targets"][:, None]
    whole = gl.analyze(cell, inputs, **loss).only().gradient
    assert flat is not None
    assert whole is not None
    np.testing.assert_array_equal(flat.total, whole.total)


def test_targets_of_the_last_steps_alone_ask_for_the_choice_of_the_last_step() -> None:
    rng = np.random.default_rng(8)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    with pytest.raises(gl.ShapeError, match="goes with at = last"):
        gl.analyze(cell, rng.standard_normal((4, 3, 2)), **random_loss(rng, 3, 3))


@pytest.fixture
def dynamics() -> gl.GradientDynamics:
    rng = np.random.default_rng(9)
    network = random_network(rng, a=(0, "forward", 2), b=(1, "forward", 3))
    inputs, lengths = rng.standard_normal((6, 3, 2)), np.array([6, 4, 5])
    return gl.analyze(network, inputs, lengths=lengths, **random_loss(rng, 3, 6, 3))


def test_columns_follow_the_contract(dynamics: gl.GradientDynamics, tmp_path: Path) -> None:
    folder = gl.save(dynamics, tmp_path / "run", pairs=True)
    table = pd.read_csv(folder / "gradient.csv")
    assert list(table.columns) == GRADIENT
    assert list(dict.fromkeys(table["recurrence"])) == ["a", "b"]
    for _, rows in table.groupby("recurrence"):
        assert rows["lag"].tolist() == list(range(6))
        assert rows["share"].sum() == pytest.approx(1.0, rel=1e-12)
    assert list(pd.read_csv(folder / "gradient_pairs.csv").columns) == PAIRS


def test_records_are_read_back_to_the_last_bit(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    again = gl.load_run(gl.save(dynamics, tmp_path / "run"))
    assert again.summary() == dynamics.summary()
    ours, theirs = (each["a"].gradient for each in (dynamics, again))
    assert ours is not None
    assert theirs is not None
    pd.testing.assert_frame_equal(ours.to_frame(), theirs.to_frame(), check_exact=True)
    np.testing.assert_array_equal(ours.total, theirs.total)


def test_a_large_table_of_terms_holds_whole_sequences_from_the_first_on(
    dynamics: gl.GradientDynamics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences of 6, 4 and 5 steps have 21, 10 and 15 terms."""
    for limit, sequences in ((46, {0, 1, 2}), (45, {0, 1}), (31, {0, 1}), (30, {0}), (1, {0})):
        monkeypatch.setattr(storage, "PAIRS_ROWS", limit)
        folder = gl.save(dynamics, tmp_path / str(limit), pairs=True)
        table = pd.read_csv(folder / "gradient_pairs.csv")
        assert set(table["sequence"]) == sequences
        assert (table.groupby(["recurrence", "sequence"]).size() >= 10).all()


def test_targets_and_readout_enter_the_hashes_and_the_settings() -> None:
    rng = np.random.default_rng(10)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    inputs, loss = rng.standard_normal((4, 1, 2)), random_loss(rng, 3, 4, 1)
    other: dict[str, Array] = {"targets": 1 - loss["targets"]}
    plain, first, second = (
        gl.analyze(cell, inputs, **how).provenance for how in ({}, loss, loss | other)
    )
    assert len({run.sha256_inputs for run in (plain, first, second)}) == 3
    assert first.sha256_weights == second.sha256_weights != plain.sha256_weights
    assert first.settings["objective"]["loss"] == "cross_entropy"


def test_a_loss_that_is_met_exactly_has_no_shares_and_no_lags(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    network = random_network(rng, a=(0, "forward", 2), b=(1, "forward", 3))
    inputs = rng.standard_normal((4, 2, 2))
    readout = gl.Readout(W_hy=np.zeros((1, 3)), loss="squared_error")
    dynamics = gl.analyze(network, inputs, targets=np.zeros((4, 2, 1)), readout=readout)
    for entry in dynamics.summary()["recurrences"]:
        assert entry["gradient"]["lag_50"] is None
        assert entry["gradient"]["cancellation_ratio"] is None
        assert entry["gradient"]["log_total_norm"] == "-inf"
    folder = gl.save(dynamics, tmp_path / "run", pairs=True)
    assert pd.read_csv(folder / "gradient.csv")["share"].isna().all()
