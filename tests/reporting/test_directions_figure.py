"""The figure of the directions: every singular value of the product, and how many count."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import gradlab as gl
from gradlab_reports import write_report
from gradlab_reports.canvas import figure_of
from gradlab_reports.catalog import KINDS, RUN_KINDS
from gradlab_reports.figures.directions import finding, plot_directions
from gradlab_reports.loading import RunTables, load_frame

LN10 = math.log(10.0)
WriteRun = Callable[..., Path]


def spectrum(rates: list[float], lags: tuple[int, ...] = (1, 10, 100)) -> pd.DataFrame:
    rows = [(lag, i, rate * lag) for lag in lags for i, rate in enumerate(rates)]
    frame = pd.DataFrame(rows, columns=["lag", "index", "log_singular_value"])
    kept = frame["log_singular_value"] >= math.log(0.01)
    counts = kept.groupby(frame["lag"]).transform("sum").astype(float)
    return frame.assign(surviving=counts, participation_ratio=2.0)


def lower_panel(ax: Axes) -> Axes:
    return figure_of(ax).axes[1]


def words(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


def test_there_is_a_curve_for_every_singular_value() -> None:
    rates = [-0.01, -0.1, -0.2]
    ax = plot_directions(spectrum(rates))
    curves = [line for line in ax.get_lines() if len(np.asarray(line.get_xdata())) == 3]
    ends = sorted(float(np.asarray(line.get_ydata())[-1]) for line in curves)
    np.testing.assert_allclose(ends, sorted(100.0 * rate / LN10 for rate in rates))
    assert ax.get_xscale() == "log"


def test_of_many_singular_values_some_are_drawn_with_both_ends() -> None:
    ax = plot_directions(spectrum((-np.linspace(0.0, 0.1, 200)).tolist()))
    curves = [line for line in ax.get_lines() if len(np.asarray(line.get_xdata())) == 3]
    assert len(curves) == 40
    ends = [float(np.asarray(line.get_ydata())[-1]) for line in curves]
    assert max(ends) == 0.0
    assert min(ends) == pytest.approx(-10.0 / LN10)


def test_the_counts_are_drawn_below() -> None:
    lower = lower_panel(plot_directions(spectrum([-0.01, -0.1, -0.2])))
    curves = {str(line.get_label()): line for line in lower.get_lines()}
    np.testing.assert_array_equal(curves["surviving"].get_ydata(), [3, 3, 1])
    np.testing.assert_array_equal(curves["participation_ratio"].get_ydata(), [2, 2, 2])
    assert lower.get_ylabel() == "directions of 3"
    assert "keep 1 %" in words(lower)


def test_exact_zeros_and_what_lies_below_the_axes_are_said_in_words() -> None:
    ax = plot_directions(spectrum([0.0, -2.0, -math.inf]))
    assert "↓ to 1.4\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁸⁷" in words(ax)
    assert "(1 are exactly 0)" in words(ax)


def test_the_finding_counts_directions() -> None:
    frame = spectrum([-0.01, -0.1, -0.2])
    assert finding(frame) == (
        "At lag 100 the 3 singular values of the product go from 0.368 down to 2.06 × 10⁻⁹; "
        "1.00 of them keep 1 % or more; the participation ratio is 2.00."
    ).replace("2.06 × 10⁻⁹", "2.06\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁹")
    frame.loc[frame["index"] == 2, "log_singular_value"] = math.nan
    assert "(1 below are not resolved)" in finding(frame)


def test_a_last_lag_of_which_nothing_is_resolved_is_said_to_be_so() -> None:
    frame = spectrum([-0.01, -0.1, -0.2])
    frame.loc[frame["lag"] == 100, "log_singular_value"] = math.nan
    said = finding(frame)
    assert said.startswith("At lag 10 the 3 singular values")
    assert said.endswith("Beyond it, to lag 100, none is resolved.")
    assert len(plot_directions(frame).get_lines()) > 3


def test_the_counts_come_from_the_table_beside(write_run: WriteRun) -> None:
    run = write_run("run", steps=20, partial=True)
    frame = load_frame(run, KINDS["directions"])
    assert {"surviving", "participation_ratio"} <= set(frame.columns)
    on_page = RunTables(run, RUN_KINDS).frame("product_spectrum.csv", frame["recurrence"].iloc[0])
    assert set(on_page.columns) == set(frame.columns)
    (run / "directions.csv").unlink()
    ax = plot_directions(load_frame(run, KINDS["directions"]))
    assert lower_panel(ax).get_lines() == []


def test_a_report_of_a_real_run_shows_bounds_and_directions(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cell = gl.GRUCell.initialize(input_size=2, hidden_size=4, rng=rng)
    gl.save(gl.analyze(cell, rng.standard_normal((12, 2, 2))), tmp_path / "run")
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "The norm between proven bounds" in page
    assert "Directions in which the gradient survives" in page
    assert "row sums of each step, from the weights and z" in page
    for name in ("directions.csv", "product_spectrum.csv", "figures/directions.png"):
        assert (tmp_path / "run" / name).is_file()
