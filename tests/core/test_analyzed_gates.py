"""analyze of gated cells: gates, their ends, half-lives and paths, in the result and on disk."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gradlab as gl

BIASES = {"i": -4.0, "f": 2.0, "g": 0.3, "o": 0.5}


def unmoved_lstm(n: int = 3) -> gl.LSTMCell:
    """No weight at all: every gate stays at the logistic of its bias."""
    return gl.LSTMCell(
        W_x=np.zeros((4 * n, 1)), W_h=np.zeros((4 * n, n)), b_x=np.repeat([*BIASES.values()], n)
    )


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@pytest.fixture
def dynamics() -> gl.GradientDynamics:
    return gl.analyze(unmoved_lstm(), np.zeros((8, 2, 1)), lengths=np.array([8, 5]))


def test_gates_that_nothing_moves_stay_at_their_bias(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    table = pd.read_csv(folder / "gates.csv")
    assert list(table.columns) == ["recurrence", "sequence", "t", "gate", "mean", "q05", "q95"]
    assert list(dict.fromkeys(table["gate"])) == [*BIASES]
    for gate, rows in table.groupby("gate"):
        value = math.tanh(0.3) if gate == "g" else logistic(BIASES[str(gate)])
        assert rows[["mean", "q05", "q95"]].to_numpy() == pytest.approx(value, rel=1e-14)
        places = list(zip(rows["sequence"], rows["t"], strict=True))
        assert places == [(0, t) for t in range(1, 9)] + [(1, t) for t in range(1, 6)]


def test_summary_has_ends_and_half_lives_by_gate(dynamics: gl.GradientDynamics) -> None:
    """σ(-4) = 0.018 lies within 3 % of the range of a logistic gate's lower end, 0.015 of 1."""
    gates = dynamics.summary()["recurrences"][0]["gates"]
    assert set(gates) == {*BIASES, "stack"}
    assert {name: gates[name]["low_share"] for name in BIASES} == dict.fromkeys(BIASES, 0.0)
    for key in ("half_life_min", "half_life_median", "half_life_max"):
        assert gates["f"][key] == pytest.approx(gl.half_life_of_forget_bias(2.0), rel=1e-12)
        assert key not in gates["i"]
    assert gates["stack"]["note"] == "not a bound for gated cells"
    wide = gl.analyze(unmoved_lstm(), np.zeros((8, 2, 1)), threshold=0.96)
    entry = wide.summary()["recurrences"][0]["gates"]["i"]
    assert (entry["low_share"], entry["high_share"]) == (1.0, 0.0)


def test_without_recurrent_weights_all_of_the_gradient_runs_through_the_cell_state(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    shares = dynamics.summary()["recurrences"][0]["state_shares"]
    assert shares == {
        "h": {"first_lag": 0.0, "last_lag": 0.0},
        "c": {"first_lag": 1.0, "last_lag": 1.0},
    }
    table = pd.read_csv(gl.save(dynamics, tmp_path / "run") / "paths.csv")
    assert list(table.columns) == ["recurrence", "quantity", "name", "lag", "value"]
    kinds = table.groupby(["quantity", "name"]).groups
    assert set(kinds) == {
        ("carry_log_norm", "f"), ("carry_log_median", "f"), ("share", "h"), ("share", "c"),
        ("log_norm", "measured"),
    }  # fmt: skip
    product = table[table["quantity"] == "carry_log_norm"]
    expected = product["lag"] * math.log(logistic(2.0))
    np.testing.assert_allclose(product["value"], expected, rtol=1e-12)


def test_measured_norm_beside_the_paths_is_that_of_the_lag_profile(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    paths, profile = (pd.read_csv(folder / f"{name}.csv") for name in ("paths", "lag_profile"))
    measured = paths[paths["quantity"] == "log_norm"]
    np.testing.assert_array_equal(measured["value"], profile["log_norm_median"])
    np.testing.assert_array_equal(measured["lag"], profile["lag"])


def test_records_of_gated_cells_are_read_back_to_the_last_bit(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    again = gl.load_run(gl.save(dynamics, tmp_path / "run"))
    assert again.summary() == dynamics.summary()
    ours, theirs = dynamics.only(), again.only()
    for table in ("paths", "gate_values"):
        first, second = (getattr(each, table)() for each in (ours, theirs))
        pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_no_table_of_a_replaced_run_stays_behind(tmp_path: Path) -> None:
    """All files of a gated run with a loss belong to gradlab, none to the user."""
    rng = np.random.default_rng(3)
    loss = gl.Readout(W_hy=rng.standard_normal((2, 3)))
    full = gl.analyze(
        unmoved_lstm(), np.zeros((8, 2, 1)), targets=np.zeros((8, 2), dtype=int), readout=loss
    )
    folder = gl.save(full, tmp_path / "run", pairs=True)
    cell = gl.VanillaCell.initialize(input_size=1, hidden_size=3, rng=rng)
    gl.save(gl.analyze(cell, np.zeros((8, 2, 1))), folder, force=True)
    plain = gl.save(gl.analyze(cell, np.zeros((8, 2, 1))), tmp_path / "plain")
    left = {path.name for path in folder.iterdir()}
    assert left == {path.name for path in plain.iterdir()}


def test_a_leaky_layer_has_a_path_but_no_gates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cell = gl.LeakyCell(W_hh=np.zeros((3, 3)), W_xh=rng.standard_normal((3, 2)), leak=0.25)
    dynamics = gl.analyze(cell, rng.standard_normal((6, 2, 2)))
    entry = dynamics.summary()["recurrences"][0]
    assert entry["gates"]["leak"]["half_life_median"] == pytest.approx(
        math.log(0.5) / math.log(0.75)
    )
    assert "low_share" not in entry["gates"]["leak"]
    folder = gl.save(dynamics, tmp_path / "run")
    assert not (folder / "gates.csv").exists()
    assert set(pd.read_csv(folder / "paths.csv")["name"]) == {"leak", "h", "measured"}


def test_a_vanilla_layer_has_neither_gates_nor_paths(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=3, rng=rng)
    folder = gl.save(gl.analyze(cell, rng.standard_normal((6, 2, 2))), tmp_path / "run")
    entry = json.loads((folder / "summary.json").read_text())["recurrences"][0]
    assert entry["gates"] == {}
    assert "state_shares" not in entry


def test_a_coupled_gate_has_its_half_life_though_it_has_no_weights_of_its_own() -> None:
    rng = np.random.default_rng(2)
    made = gl.LSTMCell.initialize(input_size=2, hidden_size=3, rng=rng)
    cell = gl.LSTMCell(W_x=made.W_x, W_h=made.W_h, b_x=made.b_x, coupled="forget")
    gates = gl.analyze(cell, rng.standard_normal((6, 2, 2))).summary()["recurrences"][0]["gates"]
    assert gates["f"]["sigma_max"] is None
    assert gates["f"]["half_life_median"] > 0.0
    assert gates["i"]["sigma_max"] > 0.0
