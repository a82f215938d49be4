"""Figures of a sweep: theory beside measurements, the map, and any column against any other."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.image import AxesImage

import gradlab as gl
from gradlab_reports import write_figure, write_sweep_figures
from gradlab_reports.canvas import figure_of
from gradlab_reports.catalog import KINDS
from gradlab_reports.figures.sweep_columns import plot_sweep_columns
from gradlab_reports.figures.sweep_map import plot_sweep_map
from gradlab_reports.figures.sweep_models import plot_sweep_models
from gradlab_reports.figures.sweep_rate import plot_sweep_rate
from gradlab_reports.loading import load_frame
from gradlab_reports.sweep_axes import told_apart
from gradlab_reports.sweep_loading import fitting_kinds

WriteRun = Callable[..., Path]
GAMMAS = (0.5, 1.0, 2.0)


@pytest.fixture
def table() -> pd.DataFrame:
    """Sweep of known rates: ln gamma - 1/length, of three activations."""
    rows = [
        {"gamma": g, "length": n, "activation": phi, "hidden_size": 8, "seed": seed, "gamma_w": g}
        | {"rate": math.log(g) - 1.0 / n + 0.01 * seed, "bound_rate": math.log(g)}
        | {"regime": "exploding" if g > 1.0 else "vanishing", "status": "ok", "message": ""}
        for g in GAMMAS
        for n in (10, 20)
        for phi in ("tanh", "relu", "erf")
        for seed in range(3)
    ]
    return pd.DataFrame(rows).assign(mean_field_rate=np.nan)


def test_words_are_told_apart_before_numbers_and_only_as_many_as_there_are_colors(
    table: pd.DataFrame,
) -> None:
    assert told_apart(table, 6) == ["activation", "length"]
    assert told_apart(table, 5) == ["activation"]
    assert told_apart(table, 2) == ["length"]


def test_every_point_is_drawn_even_where_combinations_outnumber_colors(
    table: pd.DataFrame,
) -> None:
    many = pd.concat([table.assign(hidden_size=n) for n in (8, 16)])
    ax = plot_sweep_rate(many)
    drawn = [found for found in ax.collections if isinstance(found, PathCollection)]
    assert sum(len(np.asarray(found.get_offsets())) for found in drawn) == len(many)


def test_theory_of_each_series_has_a_line_with_its_band(write_sweep: WriteRun) -> None:
    folder = write_sweep("sweep", GAMMAS)
    lines = ["hidden_size,gamma_w,log_gamma_w,mean_field_rate,mean_field_low,mean_field_high"]
    lines += [f"8,{g},{math.log(g)},{g},{g - 0.25},{g + 0.5}" for g in GAMMAS]
    (folder / "sweep_analysis.csv").write_text("\n".join(lines) + "\n")
    ax = plot_sweep_rate(load_frame(folder, KINDS["rate"]))
    theory = next(line for line in ax.lines if np.array_equal(np.asarray(line.get_ydata()), GAMMAS))
    assert np.allclose(np.asarray(theory.get_xdata()), np.log(GAMMAS))
    band = next(found for found in ax.collections if not isinstance(found, PathCollection))
    heights = np.unique(np.asarray(band.get_paths()[0].vertices)[:, 1])
    assert np.allclose(heights, np.unique([[g - 0.25, g + 0.5] for g in GAMMAS]))


def test_map_has_the_mean_rate_of_every_place_with_its_sign(table: pd.DataFrame) -> None:
    ax = plot_sweep_map(table)
    (image,) = ax.get_images()
    assert isinstance(image, AxesImage)
    expected = [[math.log(g) - 1.0 / n + 0.01 for g in GAMMAS] for n in (10, 20)]
    assert np.allclose(np.asarray(image.get_array()), expected)
    signs = [text.get_text() for text in ax.texts if len(text.get_text()) == 1]
    assert signs.count("−") == 4
    assert signs.count("+") == 2
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["10", "20"]


def test_map_leaves_places_without_a_rate_empty(table: pd.DataFrame) -> None:
    lost = table.assign(rate=table["rate"].where((table.gamma != 1.0) | (table.length != 10)))
    (image,) = plot_sweep_map(lost).get_images()
    assert np.ma.getmaskarray(np.ma.asarray(image.get_array())).sum() == 1


def panels(ax: Axes) -> list[Axes]:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return list(figure.axes)


def test_columns_have_a_panel_a_facet_and_the_median_of_each_hue(table: pd.DataFrame) -> None:
    ax = plot_sweep_columns(table, x="gamma", y="rate", hue="length", facet="activation")
    found = panels(ax)
    assert [panel.get_title(loc="left") for panel in found] == [
        f"activation {name}" for name in ("tanh", "relu", "erf")
    ]
    for panel in found:
        heights = [np.asarray(line.get_ydata()) for line in panel.lines]
        for n in (10, 20):
            expected = [math.log(g) - 1.0 / n + 0.01 for g in GAMMAS]
            assert any(len(y) == 3 and np.allclose(y, expected) for y in heights)


def test_points_that_share_no_place_are_markers(table: pd.DataFrame) -> None:
    single = table[(table.activation == "tanh") & (table.length == 10) & (table.seed == 0)]
    ax = plot_sweep_columns(single, x="gamma", y="rate")
    (markers,) = [found for found in ax.collections if isinstance(found, PathCollection)]
    offsets = np.asarray(markers.get_offsets())
    assert np.allclose(offsets, single[["gamma", "rate"]].to_numpy())


def test_words_across_have_bars_and_absent_numbers_are_counted(table: pd.DataFrame) -> None:
    lost = table.assign(rate=table["rate"].where(table.gamma > 0.5))
    ax = plot_sweep_columns(lost, x="activation", y="rate", hue="length")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["tanh", "relu", "erf"]
    assert "18 of 54 points have none" in ax.get_title(loc="left")


def test_columns_that_cannot_be_drawn_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(gl.UnknownNameError, match=r"'gama'.*did you mean 'gamma'"):
        plot_sweep_columns(table, x="gama")
    with pytest.raises(gl.SettingError, match="regime holds words"):
        plot_sweep_columns(table, y="regime")
    many = table.assign(point=range(len(table)))
    with pytest.raises(gl.SettingError, match="point has 54 values"):
        plot_sweep_columns(many, facet="point")


def test_columns_of_other_figures_cannot_be_chosen(write_sweep: WriteRun, tmp_path: Path) -> None:
    folder, output = write_sweep("sweep", GAMMAS), tmp_path / "x.png"
    with pytest.raises(gl.SettingError, match="kind 'rate'"):
        write_figure(folder, "rate", output, columns={"x": "gamma"})
    write_figure(folder, "sweep", output, columns={"x": "gamma", "y": "spectral_radius"})
    assert output.read_bytes().startswith(b"\x89PNG")


def test_sweep_folder_gets_its_three_figures(write_sweep: WriteRun) -> None:
    names = {path.name for path in write_sweep_figures(write_sweep("sweep", GAMMAS))}
    stems = ("rate", "decay-by-gamma", "regime-map")
    assert names == {f"{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")}


def test_the_map_names_files_by_the_ends_of_their_paths() -> None:
    """Long paths would leave no room for the map: layout warnings are errors."""
    folder = "/somewhere/in/the/cellar/of/a/cluster/" + "deep/" * 40
    table = pd.DataFrame(
        {
            "model": [f"{folder}epoch-{epoch}.npz" for epoch in (1, 2)],
            "gamma_w": [0.5, 0.7],
            "rate": [-0.7, -0.35],
            "regime": ["vanishing", "vanishing"],
        }
    )
    ax = plot_sweep_map(table)
    figure_of(ax).draw_without_rendering()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert [label[-12:] for label in labels] == ["/epoch-1.npz", "/epoch-2.npz"]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Sweep over three files of two recurrences, one of which could not be read."""
    rows = [
        {"model": f"run/epoch-{epoch}.pt", "recurrence": name, "seed": seed, "gamma_w": np.nan}
        | {"rate": -1.0 / epoch - 0.1 * seed - 0.2 * (name == "b"), "horizon_1pct": 5.0 * epoch}
        | {"status": "ok", "message": "", "regime": "vanishing"}
        for epoch in (2, 5, 10)
        for name in "ab"
        for seed in (0, 1, 2)
    ]
    table = pd.DataFrame(rows)
    table.loc[table["model"] == "run/epoch-5.pt", ["rate", "horizon_1pct"]] = np.nan
    table.loc[table["model"] == "run/epoch-10.pt", "horizon_1pct"] = np.nan
    table.to_csv(tmp_path / "sweep.csv", index=False, na_rep="nan")
    return tmp_path


def test_rate_and_horizon_of_model_files_are_medians_in_the_order_of_the_files(
    checkpoints: Path,
) -> None:
    ax = plot_sweep_models(load_frame(checkpoints, KINDS["models"]))
    upper, lower = panels(ax)
    rates = [np.asarray(line.get_ydata(), dtype=float) for line in upper.lines[:2]]
    np.testing.assert_allclose(rates[0], [-0.6, np.nan, -0.2])
    np.testing.assert_allclose(rates[1], [-0.8, np.nan, -0.4])
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), [10.0, np.nan, np.nan])
    assert "not within the run: 6 of 12 networks" in [text.get_text() for text in lower.texts]
    labels = [label.get_text() for label in lower.get_xticklabels()]
    assert labels == ["epoch-2.pt", "epoch-5.pt", "epoch-10.pt"]
    legend = upper.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_model_files_without_spectral_norms_have_their_own_figure_alone(checkpoints: Path) -> None:
    assert {path.stem for path in write_sweep_figures(checkpoints)} == {"models"}
    table = pd.read_csv(checkpoints / "sweep.csv").assign(gamma_w=1.5)
    table.to_csv(checkpoints / "sweep.csv", index=False)
    assert [kind.name for kind in fitting_kinds(checkpoints)] == [
        "models",
        "rate",
        "decay-by-gamma",
    ]


def test_many_long_words_across_are_thinned_and_slanted(checkpoints: Path) -> None:
    names = [f"cellar/a-rather-long-name-{k}.pt" for k in range(60)]
    table = pd.DataFrame({"model": names, "rate": np.linspace(-1.0, 0.0, 60)})
    ax = plot_sweep_columns(table, x="model")
    labels = ax.get_xticklabels()
    assert len(labels) == 12
    assert labels[0].get_text() == "a-rather-long-name-0.pt"
    assert {label.get_rotation() for label in labels} == {30.0}


def test_what_figures_need_is_loaded_on_the_side() -> None:
    code = "import sys, gradlab_reports; gradlab_reports.load_early().join()"
    code += "; print('matplotlib' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.stderr) == ("True", "")
