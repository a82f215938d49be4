"""Figures drawn from records equal those drawn from the files that the records save."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab_reports.canvas import figure_of, rendered
from gradlab_reports.catalog import KINDS, RUN_KINDS
from gradlab_reports.drawing import plot_function
from gradlab_reports.loading import load_frame

MODELS = Path(__file__).parents[1] / "fixtures" / "models"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[gl.GradientDynamics, Path]:
    """A gated cell with a loss at each step, so that every kind has something to show."""
    rng = np.random.default_rng(0)
    cell = gl.GRUCell.initialize(input_size=2, hidden_size=4, rng=rng)
    readout = gl.Readout(W_hy=rng.standard_normal((1, 4)), b_y=np.zeros(1), loss="squared_error")
    inputs, targets = rng.standard_normal((9, 2, 2)), rng.standard_normal((9, 2, 1))
    run = gl.analyze(cell, inputs, targets=targets, readout=readout)
    return run, gl.save(run, tmp_path_factory.mktemp("run") / "run", pairs=True)


@pytest.mark.parametrize("kind", [kind.name for kind in RUN_KINDS])
def test_a_run_draws_as_its_folder_does(
    measured: tuple[gl.GradientDynamics, Path], kind: str
) -> None:
    run, folder = measured
    plot = plot_function(KINDS[kind])
    from_record, from_file = plot(run), plot(load_frame(folder, KINDS[kind]))
    assert rendered(figure_of(from_record), "svg") == rendered(figure_of(from_file), "svg")


def test_single_measurements_draw_as_well(measured: tuple[gl.GradientDynamics, Path]) -> None:
    (entry,) = measured[0].recurrences.values()
    for kind, record in (
        ("decay", entry.jacobians),
        ("bounds", entry.last_ladder),
        ("slopes", entry.saturation),
        ("units", entry.saturation),
        ("gates", entry.gates),
        ("gradient", entry.gradient),
        ("spectrum", entry.spectrum),
        ("lyapunov", entry.lyapunov),
    ):
        assert plot_function(KINDS[kind])(record).has_data()


def test_a_sweep_draws_without_a_folder() -> None:
    swept = gl.sweep(gl.grid(gamma=[0.5, 1.5], seed=[0, 1]), hidden_size=4, length=8, batch=1)
    ax = plot_function(KINDS["decay-by-gamma"])(swept)
    assert len(ax.collections[0].get_paths()) == 2
    assert plot_function(KINDS["rate"])(swept).collections


def test_a_record_without_the_table_is_refused(
    measured: tuple[gl.GradientDynamics, Path],
) -> None:
    (entry,) = measured[0].recurrences.values()
    with pytest.raises(gl.SettingError, match="has no table for the figure 'decay'"):
        plot_function(KINDS["decay"])(entry.regime)
