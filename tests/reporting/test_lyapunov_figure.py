"""The figure of the Lyapunov exponents: measured places, bars, theory, and what is lost."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import gradlab as gl
from gradlab_reports import write_report
from gradlab_reports.catalog import KINDS, RUN_KINDS
from gradlab_reports.figures.lyapunov import finding, plot_lyapunov
from gradlab_reports.loading import RunTables, load_frame

WriteRun = Callable[..., Path]


def spectrum(exponents: list[float], **more: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {"index": range(len(exponents)), "exponent": exponents, "standard_error": 0.01, **more}
    )


def line(ax: Axes, label: str) -> Any:
    return dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))[label]


def test_markers_stand_at_the_exponents_and_bars_reach_two_standard_errors() -> None:
    ax = plot_lyapunov(spectrum([0.5, -0.1, -2.0]))
    markers, _, (bars,) = line(ax, "measured")
    np.testing.assert_array_equal(markers.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(markers.get_ydata(), [0.5, -0.1, -2.0])
    heights = [segment[:, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(heights[0], [0.48, 0.52])
    assert markers.get_linestyle() == "None"


def test_theory_is_dotted_and_named_as_theory() -> None:
    ax = plot_lyapunov(spectrum([0.5, -0.1], predicted=[0.6, -math.inf]))
    theory = line(ax, "mean-field theory")
    np.testing.assert_array_equal(theory.get_xydata(), [[1.0, 0.6]])
    assert theory.get_linestyle() != "-"
    _, labels = plot_lyapunov(spectrum([0.5, -0.1])).get_legend_handles_labels()
    assert labels == ["measured"]


def test_lost_directions_are_counted_in_words() -> None:
    frame = spectrum([0.5, -math.inf, -0.1, -math.inf])
    frame.loc[[1, 3], "standard_error"] = math.nan
    ax = plot_lyapunov(frame)
    markers = line(ax, "measured (2 of 4 are −∞)")[0]
    np.testing.assert_array_equal(markers.get_xydata(), [[1.0, 0.5], [3.0, -0.1]])
    assert "2 are −∞" in finding(frame)


def test_spectrum_without_a_finite_exponent_can_be_drawn() -> None:
    frame = spectrum([-math.inf, -math.inf])
    ax = plot_lyapunov(frame)
    assert "2 of 2 are −∞" in ax.get_legend_handles_labels()[1][0]
    assert finding(frame).startswith("All 2 exponents are −∞")


def test_equal_exponents_do_not_magnify_rounding() -> None:
    low, high = plot_lyapunov(spectrum([1e-16, -1e-16])).get_ylim()
    assert high - low == pytest.approx(0.1)


def test_finding_tells_the_ends_the_positive_ones_and_the_distance_of_the_theory() -> None:
    words = finding(spectrum([0.5, -0.1, -2.0], predicted=[0.53, -0.11, -2.5]))
    assert "3 exponents, the largest 0.5" in words
    assert "−2.00 nats" in words
    assert "number of positive ones: 1" in words
    assert "within 0.0300 of the theory" in words


def test_directions_lost_in_measurement_and_theory_alike_have_no_distance() -> None:
    words = finding(spectrum([0.5, -math.inf], predicted=[0.6, -math.inf]))
    assert "1 are −∞; half of them lie within 0.100 of the theory" in words


def test_theory_comes_from_the_table_beside_the_exponents(write_run: WriteRun, decay: Any) -> None:
    """Each recurrence gets its own, on the command line and on a page alike."""
    run = write_run("run", decay(name="a", rate=0.1), decay(name="b", rate=-0.2), partial=True)
    alone = load_frame(run, KINDS["lyapunov"], "b")
    on_page = RunTables(run, RUN_KINDS).frame("lyapunov.csv", "b")
    pd.testing.assert_frame_equal(alone, on_page)
    np.testing.assert_allclose(alone["predicted"] - alone["exponent"], 0.01)
    assert alone["predicted"].iloc[0] == pytest.approx(-0.2 + 0.5 * math.log(1.0 - 0.5 / 12))
    (run / "mean_field.csv").unlink()
    assert "predicted" not in load_frame(run, KINDS["lyapunov"], "b").columns


def test_page_of_a_random_network_shows_the_measured_spectrum_on_the_curve(tmp_path: Path) -> None:
    """The median distance is a hundredth of the spectrum's width."""
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=48, hidden_size=48, gain=1.5, rng=rng)
    dynamics = gl.analyze(cell, rng.standard_normal((80, 2, 48)), anchors="last")
    run = gl.save(dynamics, tmp_path / "run")
    frame = load_frame(run, KINDS["lyapunov"])
    distance = np.abs(frame["exponent"] - frame["predicted"])
    assert np.median(distance) < 0.1
    assert np.ptp(frame["exponent"]) > 2.0
    page = write_report(run).read_text(encoding="utf-8")
    assert "Lyapunov exponents" in page
    assert (run / "figures" / "lyapunov.png").is_file()
