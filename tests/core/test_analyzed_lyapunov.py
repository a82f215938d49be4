"""analyze of the Lyapunov spectrum: what is measured by default, in the result and on disk."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gradlab as gl


def scaled_rotation(n: int, scale: float) -> gl.VanillaCell:
    Q = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    return gl.VanillaCell(W_hh=scale * Q, W_xh=np.ones((n, 1)), activation="identity")


def measured(dynamics: gl.GradientDynamics) -> gl.LyapunovSpectrum:
    spectrum = dynamics.only().lyapunov
    assert spectrum is not None
    return spectrum


@pytest.fixture
def dynamics() -> gl.GradientDynamics:
    inputs = np.random.default_rng(0).standard_normal((30, 2, 1))
    return gl.analyze(scaled_rotation(5, 0.9), inputs, lengths=np.array([30, 20]))


def test_saved_exponents_are_those_of_the_network(
    dynamics: gl.GradientDynamics, tmp_path: Path
) -> None:
    folder = gl.save(dynamics, tmp_path / "run")
    table = pd.read_csv(folder / "lyapunov.csv")
    assert list(table.columns) == ["recurrence", "index", "exponent", "standard_error"]
    assert table["index"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(table["exponent"], math.log(0.9), atol=1e-14)
    text = (folder / "summary.json").read_text(encoding="utf-8")
    entry = json.loads(text, parse_constant=pytest.fail)["recurrences"][0]["lyapunov"]
    assert entry["leading"] == pytest.approx(math.log(0.9), abs=1e-14)
    assert entry["kaplan_yorke"] == 0.0
    assert 0.0 <= entry["sum_rule_residual"] < 1e-12
    assert (entry["count"], entry["state_size"]) == (5, 5)
    assert (entry["transient"], entry["steps"]) == (2, 28 + 18)
    assert entry["dynamics"] == "driven by inputs"


def test_loaded_run_holds_the_whole_record(dynamics: gl.GradientDynamics, tmp_path: Path) -> None:
    loaded = measured(gl.load_run(gl.save(dynamics, tmp_path / "run")))
    for name in ("exponents", "standard_errors", "history_steps", "history", "by_sequence"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(measured(dynamics), name))
    assert loaded.to_summary() == measured(dynamics).to_summary()


def test_settings_choose_the_exponents_and_the_transient() -> None:
    inputs = np.zeros((30, 1, 1))
    cell = scaled_rotation(5, 0.9)
    few = measured(gl.analyze(cell, inputs, exponents=2, transient=7))
    assert (len(few.exponents), few.transient, few.steps) == (2, 7, 23)
    assert few.dynamics == "autonomous"
    assert len(measured(gl.analyze(cell, inputs, exponents=50)).exponents) == 5
    none = gl.analyze(cell, inputs, exponents=0)
    assert none.only().lyapunov is None
    assert none.summary()["recurrences"][0]["lyapunov"] is None


def test_run_without_exponents_has_no_table_of_them(tmp_path: Path) -> None:
    dynamics = gl.analyze(scaled_rotation(3, 0.9), np.zeros((10, 1, 1)), exponents=0)
    assert not (gl.save(dynamics, tmp_path / "run") / "lyapunov.csv").exists()


def test_large_states_have_their_first_exponents_measured() -> None:
    cell = scaled_rotation(257, 0.9)
    dynamics = gl.analyze(cell, np.zeros((2, 1, 1)), anchors="last")
    assert len(measured(dynamics).exponents) == 16
    entry = dynamics.summary()["recurrences"][0]["lyapunov"]
    assert (entry["sum_rule_residual"], entry["state_size"]) == (None, 257)


def test_single_step_is_measured_too() -> None:
    spectrum = measured(gl.analyze(scaled_rotation(3, 0.9), np.zeros((1, 1, 1))))
    assert (spectrum.steps, spectrum.transient) == (1, 0)
    assert np.isnan(spectrum.standard_errors).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exponents": -1}, "exponents -1: expected 0"),
        ({"transient": 30}, "transient 30: expected fewer steps"),
        ({"transient": -2}, "transient -2: expected 0 or more"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(gl.SettingError, match=message):
        gl.analyze(scaled_rotation(2, 0.9), np.zeros((30, 1, 1)), **settings)  # type: ignore[arg-type]


def test_leading_exponent_of_a_sweeps_point_is_that_of_its_network() -> None:
    points = gl.grid(gamma=[0.5, 1.25])
    table = gl.sweep(
        points, hidden_size=6, length=40, recurrent="orthogonal", activation="identity"
    ).to_frame()
    np.testing.assert_allclose(table["lyapunov_leading"], np.log([0.5, 1.25]), atol=1e-13)
