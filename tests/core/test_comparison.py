"""Comparisons: curves with known rates, one set of end times, and what sets the runs apart."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis import end_times
from gradlab.cells.base import Cell
from gradlab.comparison import compare, compare_cells
from gradlab.records.comparison import Comparison
from gradlab.storage.comparisons import save_comparison

STEPS = 30


def scaled_rotation(gamma: float, n: int = 3, features: int = 2) -> gl.VanillaCell:
    """W = γ Q under the identity: the norm at lag l is γ^l, along any trajectory."""
    Q = np.linalg.qr(np.random.default_rng(7).standard_normal((n, n)))[0]
    return gl.VanillaCell(W_hh=gamma * Q, W_xh=np.ones((n, features)), activation="identity")


def forget_path(bias: float, n: int = 3, features: int = 2) -> gl.LSTMCell:
    """An LSTM without weights: ∂c_t/∂c_k = σ(bias)^l exactly."""
    return gl.LSTMCell(W_x=np.zeros((4 * n, features)), W_h=np.zeros((4 * n, n)), forget_bias=bias)


def inputs(steps: int = STEPS, features: int = 2, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((steps, 2, features))


@pytest.fixture(scope="module")
def three() -> Comparison:
    cells: dict[str, Cell] = {
        "slow": scaled_rotation(0.9),
        "fast": scaled_rotation(1.2),
        "lstm": forget_path(1.0),
    }
    return compare_cells(cells, inputs(), seed=5, description="made here", synthetic=True)


def test_rates_and_norms_of_scaled_rotations_are_those_of_their_factors(three: Comparison) -> None:
    slow, fast, _ = three.summary()["recurrences"]
    for entry, gamma, name in ((slow, 0.9, "vanishing"), (fast, 1.2, "exploding")):
        assert entry["regime"]["rate"] == pytest.approx(math.log(gamma), abs=1e-13)
        assert entry["regime"]["name"] == name
        assert entry["log_norm_at_common_lag"] == pytest.approx(STEPS * math.log(gamma), abs=1e-12)
        assert entry["gamma_w"] == pytest.approx(gamma, rel=1e-13)


def test_an_lstm_without_weights_decays_at_the_rate_of_its_forget_gate(three: Comparison) -> None:
    """Half-life ln 2 / -ln σ(1) = 2.2126777968 steps."""
    entry = three.summary()["recurrences"][2]
    assert math.log(2.0) / -entry["regime"]["rate"] == pytest.approx(2.2126777968, rel=1e-9)
    assert entry["gamma_w"] is None
    assert set(entry["gates"]) == {"i", "f", "g", "o", "stack"}


def test_table_holds_the_curves_of_every_label_in_order(three: Comparison) -> None:
    table = three.to_frame()
    assert list(table.columns) == [
        "label",
        "recurrence",
        "lag",
        "pairs",
        "log_norm_median",
        "log_norm_q05",
        "log_norm_q95",
        "log_bound_gamma",
        "log_bound_onestep",
        "log_bound_blocks",
    ]
    assert list(dict.fromkeys(table["label"])) == ["slow", "fast", "lstm"]
    fast = table[table["label"] == "fast"]
    np.testing.assert_array_equal(fast["lag"], np.arange(1, STEPS + 1))
    np.testing.assert_allclose(fast["log_norm_median"], fast["lag"] * math.log(1.2), rtol=1e-12)
    np.testing.assert_allclose(fast["log_bound_gamma"], fast["lag"] * math.log(1.2), rtol=1e-12)
    assert table[table["label"] == "lstm"]["log_bound_gamma"].isna().all()


def test_no_measured_norm_lies_above_its_own_bounds(three: Comparison) -> None:
    table = three.to_frame()
    for bound in ("log_bound_onestep", "log_bound_blocks"):
        assert (table["log_norm_median"] <= table[bound] + 1e-9).all()


def test_every_cell_is_measured_at_the_same_end_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself an LSTM of 40 units, whose state is twice as long, would get half as many."""
    monkeypatch.setattr(end_times, "AUTOMATIC_PAIRS", 60)
    sizes: dict[str, Any] = {"input_size": 2, "hidden_size": 40}
    cells: dict[str, Cell] = {
        "rnn": gl.VanillaCell.initialize(rng=np.random.default_rng(0), **sizes),
        "lstm": gl.LSTMCell.initialize(rng=np.random.default_rng(0), **sizes),
    }
    given = inputs(steps=12)[:, :1]
    alone = {name: gl.analyze(cell, given).only().jacobians for name, cell in cells.items()}
    assert [len(np.unique(alone[name].t)) for name in cells] == [10, 5]
    both = compare_cells(cells, given)
    for entry in both.recurrences:
        np.testing.assert_array_equal(entry.dynamics.jacobians.t, alone["lstm"].t)
    assert "end_times" not in both.differing
    assert (
        "end_times" in compare({name: gl.analyze(cells[name], given) for name in cells}).differing
    )


def test_comparing_cells_measures_each_as_an_analysis_alone_would() -> None:
    cells: dict[str, Cell] = {"a": scaled_rotation(0.7, n=4), "b": forget_path(2.0)}
    both = compare_cells(cells, inputs(), anchors=5)
    for entry in both.recurrences:
        alone = gl.analyze(cells[entry.label], inputs(), anchors=5).only()
        np.testing.assert_array_equal(
            entry.dynamics.jacobians.log_norm, alone.jacobians.log_norm, strict=True
        )


def test_only_settings_that_differ_are_called_different(three: Comparison) -> None:
    assert three.same_inputs
    assert set(three.differing) == {"cell", "activation", "state_size"}
    document = three.summary()
    assert document["recurrences"][2]["differing"]["state_size"] == 6
    hashes = {entry["sha256_weights"] for entry in document["recurrences"]}
    assert len(hashes) == 3


def test_runs_over_other_sequences_say_so_and_share_the_shorter_lag() -> None:
    long = gl.analyze(scaled_rotation(0.9), inputs(), seed=1)
    short = gl.analyze(scaled_rotation(0.9), inputs(steps=12), seed=2, threshold=0.9)
    both = compare({"long": long, "short": short})
    assert not both.same_inputs
    assert both.common_lag == 12
    assert {"seed", "threshold", "longest_lag", "sequences.steps"} <= set(both.differing)
    for entry in both.summary()["recurrences"]:
        assert entry["log_norm_at_common_lag"] == pytest.approx(12 * math.log(0.9), abs=1e-12)
    weights = {entry["sha256_weights"] for entry in both.summary()["recurrences"]}
    assert len(weights) == 1


def test_recurrences_of_one_network_are_told_apart_by_their_names() -> None:
    layers = [
        gl.Recurrence(name=f"l{index}", cell=scaled_rotation(gamma, n=2), layer=index, stack="s")
        for index, gamma in enumerate((0.9, 0.8))
    ]
    run = gl.analyze(gl.Network(layers), inputs())
    both = compare({"deep": run})
    assert [entry.label for entry in both.recurrences] == ["deep/l0", "deep/l1"]
    assert both.recurrences[1].recurrence == "l1"


def test_fewer_than_two_recurrences_are_refused() -> None:
    run = gl.analyze(scaled_rotation(0.9), inputs())
    with pytest.raises(gl.SettingError, match="only alone to compare: expected at least 2"):
        compare({"alone": run})
    with pytest.raises(gl.SettingError, match="nothing to compare"):
        compare_cells({}, inputs())


def test_labels_that_coincide_are_refused() -> None:
    layers = [gl.Recurrence(name=name, cell=scaled_rotation(0.9, n=2)) for name in ("b", "c")]
    deep = gl.analyze(gl.Network([layers[0]]), inputs())
    wide = gl.analyze(
        gl.Network([gl.Recurrence(name=e.name, cell=e.cell, stack=e.name) for e in layers]),
        inputs(),
    )
    with pytest.raises(gl.SettingError, match="labeled 'a/b'"):
        compare({"a/b": deep, "a": wide})


def test_inputs_that_do_not_fit_a_cell_are_refused() -> None:
    with pytest.raises(gl.GradlabError, match="features"):
        compare_cells({"a": scaled_rotation(0.9), "b": scaled_rotation(0.9, features=3)}, inputs())


def test_progress_is_told_cell_by_cell() -> None:
    done: list[int] = []
    cells = {"a": scaled_rotation(0.9), "b": scaled_rotation(0.8)}
    compare_cells(cells, inputs(), on_done=done.append)
    assert done == [1, 1]


def test_document_is_strict_json_even_for_exact_zeros() -> None:
    """A nilpotent W of order 2: the norm is exactly 0 from lag 2 on."""
    nilpotent = gl.VanillaCell(
        W_hh=np.array([[0.0, 1.0], [0.0, 0.0]]), W_xh=np.ones((2, 2)), activation="identity"
    )
    document = compare_cells({"zero": nilpotent, "one": scaled_rotation(1.0)}, inputs()).summary()
    text = json.dumps(document, allow_nan=False)
    zero = json.loads(text)["recurrences"][0]
    assert zero["log_norm_at_common_lag"] == "-inf"
    assert zero["regime"]["rate"] == "-inf"


def test_saved_runs_compare_as_the_runs_themselves(tmp_path: Path) -> None:
    runs = {
        "a": gl.analyze(scaled_rotation(0.9), inputs()),
        "b": gl.analyze(forget_path(1.0), inputs()),
    }
    loaded = {}
    for label, run in runs.items():
        loaded[label] = gl.load_run(gl.save(run, tmp_path / label))
    again, before = compare(loaded), compare(runs)
    assert again.summary() == before.summary()
    assert again.to_frame().equals(before.to_frame())


def test_folder_is_complete_and_equal_comparisons_give_equal_bytes(
    tmp_path: Path, three: Comparison
) -> None:
    for name in ("one", "two"):
        save_comparison(three, tmp_path / name, argv=["gradlab", "compare"])
    for file in ("compare.csv", "compare.json"):
        assert len({(tmp_path / name / file).read_bytes() for name in ("one", "two")}) == 1
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "comparison"
    assert manifest["labels"] == ["slow", "fast", "lstm"]
    with pytest.raises(gl.OutputError, match="exists"):
        save_comparison(three, tmp_path / "one")
    save_comparison(three, tmp_path / "one", force=True)


@pytest.mark.parametrize("kind", gl.CELLS)
def test_every_kind_is_spelled_as_its_cell_spells_itself(kind: str) -> None:
    extra = {"leak": 0.5} if kind == "leaky" else {}
    cell = gl.CELLS[kind].initialize(
        input_size=2, hidden_size=3, rng=np.random.default_rng(0), **extra
    )
    assert cell.kind == kind
