"""Pages and figures of runs that were really measured and saved, the odd ones included."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gradlab as gl
from gradlab_reports import write_report, write_sweep_figures
from gradlab_reports.catalog import RUN_KINDS

SaveRun = Callable[..., Path]


@pytest.fixture
def save_run(tmp_path: Path) -> SaveRun:
    def save(network: gl.Network | gl.VanillaCell, *, steps: int = 12, features: int = 3) -> Path:
        inputs = np.random.default_rng(0).standard_normal((steps, 2, features))
        dynamics = gl.analyze(network, inputs, description="gaussian", synthetic=True)
        return gl.save(dynamics, tmp_path / "run", pairs=True)

    return save


def words_of(page: Path) -> str:
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]+>", " ", page.read_text(), flags=re.S)
    return re.sub(r"\s+", " ", text.replace("\u00a0", " "))


def random_cell(features: int = 3, hidden: int = 6, **how: Any) -> gl.VanillaCell:
    rng = np.random.default_rng(1)
    return gl.VanillaCell.initialize(input_size=features, hidden_size=hidden, rng=rng, **how)


def fixed_cell(W_hh: np.ndarray, activation: str = "identity") -> gl.VanillaCell:
    W_xh = np.zeros((len(W_hh), 3))
    return gl.VanillaCell(W_hh=W_hh, W_xh=W_xh, b_h=None, activation=activation)


ODD = {
    "one step": (random_cell(), 1),
    "two steps": (random_cell(), 2),
    "one unit": (fixed_cell(np.array([[1.5]]), "tanh"), 10),
    "zero matrix": (fixed_cell(np.zeros((3, 3)), "tanh"), 6),
    "nilpotent": (fixed_cell(np.eye(6, k=1)), 12),
    "below every float": (fixed_cell(1e-200 * np.eye(4)), 40),
    "beyond every float": (fixed_cell(1e200 * np.eye(4)), 40),
    "dead relu": (random_cell(activation="relu", bias=-9.0), 12),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_networks_have_whole_pages(save_run: SaveRun, name: str) -> None:
    cell, steps = ODD[name]
    run = save_run(cell, steps=steps)
    page = words_of(write_report(run))
    assert "could not be drawn" not in page
    assert "no room" not in page
    summary = json.loads((run / "summary.json").read_text())["recurrences"][0]
    assert f" {summary['regime']['name']} " in page
    expected = {kind.name for kind in RUN_KINDS if not kind.partial}
    expected |= {"lyapunov", "directions"}
    assert {path.stem for path in (run / "figures").iterdir()} == expected


def test_a_nilpotent_network_is_told_to_vanish_completely_from_its_order_on(
    save_run: SaveRun,
) -> None:
    page = words_of(write_report(save_run(fixed_cell(np.eye(6, k=1)))))
    assert "The gradient vanishes completely: the median" in page
    assert "exactly 0 from lag 6 on" in page


def test_a_network_that_vanishes_in_spite_of_its_bound_names_the_false_friend(
    save_run: SaveRun,
) -> None:
    """Saturated tanh with gamma_w = 3: the bound grows, the gradient vanishes."""
    page = words_of(write_report(save_run(random_cell(hidden=8, gamma=3.0, bias=4.0), steps=40)))
    verdict = page.index("The gradient vanishes: each step back in time multiplies it by")
    friend = page.index("False friend: σ max = 3 would suggest explosion; measured −")
    assert verdict < friend < page.index("Evidence")
    assert "explodes" not in page


def test_the_page_says_the_rate_that_the_run_measured(save_run: SaveRun) -> None:
    """W = 0.9 I under the identity: exactly 0.9 per step, and the bound is attained."""
    run = save_run(fixed_cell(0.9 * np.eye(4)), steps=60)
    page = words_of(write_report(run))
    assert "each step back in time multiplies it by 0.900" in page
    assert "from lag 44 on" in page  # 0.9^43 = 0.0108, 0.9^44 = 0.0097
    profile = pd.read_csv(run / "lag_profile.csv")
    assert profile["log_norm_median"].iloc[-1] == pytest.approx(60 * np.log(0.9))


def test_layers_and_directions_have_sections_of_their_own(save_run: SaveRun) -> None:
    places = [("l0", 0, "forward"), ("l0.reverse", 0, "backward"), ("l1", 1, "forward")]
    recurrences = [
        gl.Recurrence(
            name=name,
            cell=random_cell(features=3 if layer == 0 else 12),
            layer=layer,
            direction=direction,
            stack="rnn",
        )
        for name, layer, direction in places
    ]
    page = words_of(write_report(save_run(gl.Network(recurrences))))
    assert "3 recurrences" in page
    assert "layer 0, backward" in page
    assert "could not be drawn" not in page


def test_a_real_sweep_has_its_three_figures(tmp_path: Path) -> None:
    points = gl.grid(gamma=[0.5, 1.5], seed=[0, 1])
    result = gl.sweep(points, hidden_size=6, length=12, batch=2)
    folder = gl.save_sweep(result, tmp_path / "sweep")
    assert len(write_sweep_figures(folder)) == 6
