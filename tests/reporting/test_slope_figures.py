"""Slopes over time: ridges of their spread, and the raster of units."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gradlab_reports.canvas import figure_of, rendered
from gradlab_reports.catalog import KINDS
from gradlab_reports.figures.slopes import HIGHEST, finding, plot_slopes
from gradlab_reports.figures.units import finding as unit_finding
from gradlab_reports.figures.units import plot_units
from gradlab_reports.loading import load_frame

WriteRun = Callable[..., Path]


@pytest.fixture
def slopes(write_run: WriteRun) -> pd.DataFrame:
    """All units between 0.5 and 1 in the first half, one in four below 0.5 in the second."""
    return load_frame(write_run("run", steps=10), KINDS["slopes"])


@pytest.fixture
def units(write_run: WriteRun, decay: Any) -> pd.DataFrame:
    """Six pairs of units with slopes i/6, the first pair saturated throughout."""
    return load_frame(write_run("run", decay(hidden_size=12), steps=10), KINDS["units"])


def test_ridges_stand_a_slice_apart_with_the_square_roots_of_shares(slopes: pd.DataFrame) -> None:
    ax = plot_slopes(slopes)
    ridges = [line for line in ax.lines if len(line.get_xdata()) > 2]  # type: ignore[arg-type]
    tops = [np.unique(np.asarray(line.get_ydata())) for line in ridges]
    np.testing.assert_allclose(tops[0], [0.0, HIGHEST])
    np.testing.assert_allclose(tops[1], [1.0, 1.0 + 0.5 * HIGHEST, 1.0 + HIGHEST * 0.75**0.5])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1–5", "6–10"]


def test_dots_are_the_means_of_ridges(slopes: pd.DataFrame) -> None:
    dots = [line for line in plot_slopes(slopes).lines if line.get_marker() == "o"]
    assert [float(np.asarray(dot.get_xdata())[0]) for dot in dots] == pytest.approx([0.75, 0.625])
    assert "mean derivative 0.750 in the first and 0.625 in the last slice" in finding(slopes)


def test_gates_have_panels_with_scales_of_their_own(slopes: pd.DataFrame) -> None:
    quarter = slopes.assign(
        activation="i",
        derivative_low=slopes["derivative_low"] / 4,
        derivative_high=slopes["derivative_high"] / 4,
    )
    ax = plot_slopes(pd.concat([slopes.assign(activation="g"), quarter]))
    panels = figure_of(ax).axes
    assert [panel.get_title(loc="left") for panel in panels] == ["\ng", "\ni"]
    assert panels[0].get_xlim()[1] == pytest.approx(4.0 * panels[1].get_xlim()[1])
    assert rendered(figure_of(ax), "png", 40)


def test_the_raster_has_the_flattest_unit_on_top(units: pd.DataFrame) -> None:
    ax = plot_units(units)
    values = ax.images[0].get_array()
    assert values is not None
    np.testing.assert_allclose(values[:, 0], np.arange(5, -1, -1) / 6)
    assert tuple(ax.images[0].get_extent()) == (0.5, 10.5, 0.0, 12.0)
    said = unit_finding(units).replace("\u00a0", " ")
    assert "16.7 % of the units are saturated at half of the steps or more, 16.7 %" in said


def test_slopes_of_a_gate_are_drawn_beside_their_own_supremum(units: pd.DataFrame) -> None:
    quarter = units.assign(
        activation="i", derivative_mean=units["derivative_mean"] / 4, derivative_sup=0.25
    )
    top = plot_units(pd.concat([units.assign(activation="g"), quarter]))
    first, second = (panel.images[0].get_array() for panel in figure_of(top).axes[:2])
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first, second)
