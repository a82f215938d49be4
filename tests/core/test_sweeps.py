"""Sweeps: the same bits however they are run, and no point that stops the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gradlab as gl

SMALL: dict[str, Any] = {"hidden_size": 6, "length": 20, "batch": 3, "input_size": 2}


def small_sweep(**options: Any) -> pd.DataFrame:
    points = gl.grid(gamma=np.linspace(0.5, 1.5, 3), seed=range(2))
    return gl.sweep(points, **SMALL, **options).to_frame()


def test_the_grid_runs_its_last_axis_fastest() -> None:
    assert list(gl.grid(gamma=[0.5, 1.0], seed=range(2))) == [
        {"gamma": 0.5, "seed": 0},
        {"gamma": 0.5, "seed": 1},
        {"gamma": 1.0, "seed": 0},
        {"gamma": 1.0, "seed": 1},
    ]


def test_two_processes_give_the_bytes_of_one(tmp_path: Path) -> None:
    points = gl.grid(gamma=[0.7, 1.3], seed=range(3))
    for jobs in (1, 2):
        gl.save_sweep(gl.sweep(points, jobs=jobs, **SMALL), tmp_path / str(jobs))
    for name in ("sweep.csv", "sweep_profiles.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_any_executor_will_do() -> None:
    with ThreadPoolExecutor(1) as executor:
        pd.testing.assert_frame_equal(small_sweep(executor=executor), small_sweep())


def test_a_point_does_not_depend_on_its_neighbors() -> None:
    alone = gl.sweep([{"gamma": 1.0, "seed": 1}], **SMALL).to_frame()
    among = small_sweep().query("gamma == 1.0 and seed == 1").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, among, check_exact=True)


def test_targets_and_bound_rates_are_met() -> None:
    table = small_sweep()
    np.testing.assert_allclose(table["gamma_w"], table["gamma"], rtol=1e-13)
    np.testing.assert_allclose(table["bound_rate"], np.log(table["gamma"]), atol=1e-12)
    assert (table["rate"] <= table["bound_rate"] + 1e-9).all()
    assert (table["status"] == "ok").all()


def test_linear_orthogonal_networks_attain_the_bound() -> None:
    points = gl.grid(gamma=[0.8, 1.0, 1.25])
    result = gl.sweep(points, recurrent="orthogonal", activation="identity", **SMALL)
    table = result.to_frame()
    np.testing.assert_allclose(table["rate"], np.log(table["gamma"]), atol=1e-9)
    np.testing.assert_allclose(table["mean_field_rate"], np.log(table["gamma"]), atol=1e-9)
    assert table["regime"].tolist() == ["vanishing", "near-critical", "exploding"]


def test_mean_field_knows_the_gain_of_the_matrix_the_inputs_and_the_biases() -> None:
    """Every draw has a gain of its own, to about 1/N; inputs reach a unit at their own scale."""
    given: dict[str, Any] = {"hidden_size": 40, "length": 10, "batch": 1, "bias_std": 0.3}
    points = gl.grid(gain=[0.8, 2.0], input_std=[0.0, 0.7], activation=["tanh", "relu"])
    table = gl.sweep(points, **given).to_frame()
    for point, rate in zip(points, table["mean_field_rate"], strict=True):
        known = {"input_std": point["input_std"], "bias_std": 0.3}
        low, high = (
            gl.mean_field(point["activation"], gain=factor * point["gain"], **known).lambda_1
            for factor in (0.93, 1.07)
        )
        assert low < rate < high
    rates = table.query("gain == 2.0 and activation == 'tanh'")["mean_field_rate"].to_numpy()
    assert rates[1] < rates[0] - 0.03  # input silences chaos
    off_zero = gl.sweep(gl.grid(gain=[0.8]), bias=0.5, **given).to_frame()
    assert np.isnan(off_zero["mean_field_rate"][0])


def test_without_input_a_network_at_rest_is_not_predicted_to_be_chaotic() -> None:
    given: dict[str, Any] = {"hidden_size": 64, "length": 10, "synthetic": "zeros"}
    table = gl.sweep(gl.grid(gain=[0.8, 3.0], activation=["tanh", "relu"]), **given).to_frame()
    smooth = table.query("activation == 'tanh'")
    # The gain of the matrix is that of its entries to some per cent.
    np.testing.assert_allclose(smooth["mean_field_rate"], np.log(smooth["gain"]), atol=0.06)
    np.testing.assert_allclose(smooth["lyapunov_leading"], np.log(smooth["gain"]), atol=0.2)
    assert np.isnan(table.query("activation == 'relu'")["mean_field_rate"]).all()


def test_a_point_that_fails_is_a_row_and_the_sweep_goes_on() -> None:
    points = gl.grid(gamma=[0.5, 1e200])
    result = gl.sweep(points, activation="identity", **SMALL)
    table = result.to_frame()
    assert table["status"].tolist() == ["ok", "diverged"]
    assert np.isnan(table["rate"][1])
    assert "float64" in table["message"][1]
    assert result.failed == 1
    assert set(result.profiles_frame()["point"]) == {0}


def test_progress_counts_every_point_once() -> None:
    counts: list[tuple[int, int]] = []
    gl.sweep(gl.grid(seed=range(5)), on_done=lambda *told: counts.append(told), **SMALL)
    assert sum(finished for finished, _ in counts) == 5


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(gl.UnknownNameError, match="did you mean 'gamma'"):
        gl.sweep([{"gama": 1.0}])


def test_an_empty_or_ragged_grid_is_refused() -> None:
    with pytest.raises(gl.SettingError, match="no points"):
        gl.sweep([])
    with pytest.raises(gl.SettingError, match="different settings"):
        gl.sweep([{"gamma": 1.0}, {"seed": 1}])


def test_an_unexpected_fault_in_one_point_is_a_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: Any, **__: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("gradlab.sweeps.points.bound_ladder", fault)
    table = gl.sweep([{"seed": 0}], **SMALL).to_frame()
    assert table["status"].tolist() == ["failed"]
    assert table["message"].tolist() == ["RuntimeError: boom"]


def test_an_interruption_cancels_what_has_not_begun() -> None:
    started: list[int] = []

    def interrupt(count: int, failed: int) -> None:
        started.append(count)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        gl.sweep(gl.grid(seed=range(40)), executor=executor, on_done=interrupt, **SMALL)
    assert len(started) == 1
