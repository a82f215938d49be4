"""The figures of a training: what they draw from its tables, with numbers known beforehand."""

from __future__ import annotations

import json
import logging
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from numpy.typing import NDArray

import gradlab as gl
from gradlab_reports import write_figure, write_training
from gradlab_reports.canvas import axes_or_new, figure_of, rendered
from gradlab_reports.catalog import KINDS
from gradlab_reports.figures import clipping, training
from gradlab_reports.loading import load_frame

LN10 = math.log(10.0)


def log_frame(rows: int = 5, **columns: Any) -> pd.DataFrame:
    """Loss falls by a factor of ten a row, and so does the norm; every other number is constant."""
    index = np.arange(rows)
    known: dict[str, Any] = {
        "step": 100 * index,
        "loss": 10.0 ** -(index + 0.5),
        "test_loss": 10.0**-index,
        "gradient_norm": 10.0 ** (2 - index),
        "clipped_norm": np.minimum(10.0 ** (2 - index), 1.0),
        "rate": -0.2,
        "gamma_w": math.exp(0.5),
        "spectral_radius": math.exp(0.1),
        "horizon_1pct": 7.0,
        "baseline": 0.1,
        "probe_length": 20.0,
    }
    return pd.DataFrame(known | columns)


def panels(ax: Axes) -> list[Axes]:
    return list(figure_of(ax).axes)


def heights(ax: Axes, name: str) -> NDArray[np.float64]:
    """Heights of the curve of that name."""
    line = next(line for line in ax.lines if str(line.get_label()).startswith(name))
    return np.asarray(line.get_ydata(), dtype=np.float64)


def words(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Folder of a small training, as the command leaves it before it draws."""
    task = gl.task("echo", length=12)
    rng = np.random.default_rng(3)
    cell = gl.CELLS["rnn"].initialize(input_size=1, hidden_size=5, rng=rng)
    folder = tmp_path / "trained"
    gl.claim_training(folder)
    training_ = gl.train(task, cell, steps=9, seed=0, every=3, batch_size=3, clip=0.05)
    return gl.save_training(training_, folder)


def test_panels_share_the_updates_and_only_the_last_one_names_them() -> None:
    drawn = panels(training.plot_training(log_frame()))
    assert [ax.get_xlim() for ax in drawn] == [(0.0, 400.0)] * 4
    assert [bool(ax.get_xlabel()) for ax in drawn] == [False, False, False, True]


def test_losses_and_norms_stand_at_their_log10() -> None:
    loss, _, norm, _ = panels(training.plot_training(log_frame()))
    np.testing.assert_allclose(heights(loss, "test"), [0, -1, -2, -3, -4], atol=1e-12)
    np.testing.assert_allclose(heights(loss, "train"), [-0.5, -1.5, -2.5, -3.5, -4.5])
    np.testing.assert_allclose(heights(norm, "before"), [2, 1, 0, -1, -2], atol=1e-12)
    np.testing.assert_allclose(heights(norm, "after"), [0, 0, 0, -1, -2], atol=1e-12)


def test_norms_at_the_ends_of_float64_keep_their_places() -> None:
    norms = [1e-300, 5e-324, 1e300, 1.0, 0.0]
    norm = panels(training.plot_training(log_frame(gradient_norm=norms)))[2]
    expected = [-300.0, math.log10(5e-324), 300.0, 0.0, math.nan]
    np.testing.assert_allclose(heights(norm, "before"), expected, atol=1e-12)


def test_the_baseline_is_a_level_of_the_loss_only_where_it_is_known() -> None:
    known = training.plot_training(log_frame())
    assert "without memory" in words(known)
    assert any(np.allclose(np.asarray(line.get_ydata()), -1.0) for line in known.lines)
    unknown = training.plot_training(log_frame().drop(columns=["baseline", "probe_length"]))
    assert "without memory" not in words(unknown)
    assert "near-critical" not in words(panels(unknown)[1])


def test_the_weights_stand_beside_the_rate_as_nats_per_step() -> None:
    rate = panels(training.plot_training(log_frame()))[1]
    np.testing.assert_allclose(heights(rate, "measured"), -0.2)
    np.testing.assert_allclose(heights(rate, r"$\ln\,\sigma"), 0.5)
    np.testing.assert_allclose(heights(rate, r"$\ln\,\rho"), 0.1)


def test_the_near_critical_band_is_a_factor_of_ten_over_the_sequence() -> None:
    rate = panels(training.plot_training(log_frame()))[1]
    (band,) = (patch for patch in rate.patches if isinstance(patch, Rectangle))
    assert band.get_y() == pytest.approx(-LN10 / 20)
    assert band.get_height() == pytest.approx(2 * LN10 / 20)


def test_gated_cells_have_a_rate_without_norms_of_one_matrix() -> None:
    frame = log_frame(gamma_w=math.nan, spectral_radius=math.nan)
    assert words(panels(training.plot_training(frame))[1]).split("\n") == [
        "measured rate",
        "near-critical",
    ]


def test_horizons_beyond_the_sequence_are_marked_at_the_edge() -> None:
    horizon = panels(training.plot_training(log_frame(horizon_1pct=[7, 9, math.nan, 8, 7])))[3]
    np.testing.assert_array_equal(heights(horizon, "less than 1 %"), [7, 9, math.nan, 8, 7])
    (edge,) = (line for line in horizon.lines if line.get_marker() == "^")
    np.testing.assert_array_equal(np.asarray(edge.get_xdata()), [200])
    assert "beyond" in words(horizon)


def test_what_could_not_be_measured_is_no_horizon_beyond_the_sequence() -> None:
    diverged: Any = {"horizon_1pct": math.nan, "rate": math.nan, "test_loss": math.nan}
    ax = training.plot_training(log_frame(**diverged))
    assert "beyond" not in words(panels(ax)[3])
    assert "could not be measured" in training.finding(log_frame(**diverged))
    rendered(figure_of(ax), "svg")


def test_a_gradient_of_exactly_zero_is_marked_at_the_lower_edge() -> None:
    rate = panels(training.plot_training(log_frame(rate=[-0.1, -math.inf, -0.1, -0.1, -0.1])))[1]
    (edge,) = (line for line in rate.lines if line.get_marker() == "v")
    np.testing.assert_array_equal(np.asarray(edge.get_xdata()), [100])


def test_every_row_that_no_line_reaches_has_a_marker() -> None:
    rates = np.where(np.arange(201) == 101, -0.3, math.nan)
    rate = panels(training.plot_training(log_frame(201, loss=1.0, test_loss=1.0, gradient_norm=1.0,
                                                   clipped_norm=1.0, rate=rates)))[1]  # fmt: skip
    line = next(line for line in rate.lines if line.get_label() == "measured rate")
    assert line.get_markevery() == [101]


def test_one_curve_stands_for_norms_that_were_never_clipped() -> None:
    frame = log_frame(clipped_norm=log_frame()["gradient_norm"])
    assert words(panels(training.plot_training(frame))[2]) == "nothing clipped"


def test_a_single_row_can_be_drawn() -> None:
    ax = training.plot_training(log_frame(1, loss=math.nan, gradient_norm=math.nan,
                                          clipped_norm=math.nan))  # fmt: skip
    rendered(figure_of(ax), "png", dpi=30)


def norms_frame(norms: Any, **columns: Any) -> pd.DataFrame:
    before = np.asarray(norms, dtype=np.float64)
    return pd.DataFrame({"step": np.arange(1, len(before) + 1), "norm_before": before} | columns)


def curve_at(ax: Axes, place: float) -> float:
    """Height of the step curve at a place."""
    line = ax.lines[0]
    x, y = (np.asarray(data, dtype=np.float64) for data in line.get_data())
    return float(y[np.searchsorted(x, place, side="right") - 1])


def test_every_update_with_a_norm_is_in_one_bar() -> None:
    norms = 10.0 ** np.linspace(-2.0, 2.0, 101)
    upper = clipping.plot_clipping(norms_frame([*norms, math.nan]))
    assert sum(bar.get_height() for bar in upper.patches if isinstance(bar, Rectangle)) == 101


def test_the_curve_is_the_share_strictly_above_each_norm() -> None:
    norms = np.repeat([0.5, 1.0, 2.0, 4.0], [50, 30, 15, 5])
    lower = panels(clipping.plot_clipping(norms_frame(norms)))[1]
    for threshold in (0.49, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0):
        above = float(np.mean(norms > threshold))
        height = curve_at(lower, math.log10(threshold) + 1e-9)
        assert 10.0**height == pytest.approx(above), threshold
    assert np.asarray(lower.lines[0].get_xdata())[-1] == pytest.approx(math.log10(4.0))


def test_the_few_largest_of_many_norms_keep_their_places() -> None:
    norms = np.concatenate([np.full(20000, 1.0), [10.0, 100.0, 1000.0, 10000.0]])
    lower = panels(clipping.plot_clipping(norms_frame(norms)))[1]
    for above, place in ((4, 0.5), (3, 1.5), (2, 2.5), (1, 3.5)):
        assert 10.0 ** curve_at(lower, place) == pytest.approx(above / 20004)


def test_quantiles_and_shares_are_those_of_the_audit() -> None:
    norms = np.exp(np.random.default_rng(5).normal(size=400))
    audit = gl.clip_audit(norms)
    said = words(panels(clipping.plot_clipping(norms_frame(norms)))[1])
    for q, name in clipping.QUANTILES.items():
        assert f"{name} {audit.quantile(q):#.3g}" in said
    shares = re.findall(r"above (\S+): (\S+)", said)
    assert len(shares) == clipping.MAX_CANDIDATES
    for threshold, percent in shares:
        expected = 100.0 * audit.share_above(float(threshold))
        assert float(percent) == pytest.approx(expected, abs=0.051)


def test_the_threshold_crosses_both_panels_and_tells_what_it_clips() -> None:
    norms = np.repeat([0.5, 2.0], [75, 25])
    upper, lower = panels(clipping.plot_clipping(norms_frame(norms, threshold=1.0)))
    for ax in (upper, lower):
        assert any(np.allclose(np.asarray(line.get_xdata()), 0.0) for line in ax.lines)
    assert words(upper) == "threshold 1: clips 25\u00a0%"
    assert "clipped 25\u00a0%" in clipping.finding(norms_frame(norms, threshold=1.0))


def test_no_threshold_is_drawn_without_clipping() -> None:
    frame = norms_frame([1.0, 2.0, 3.0], threshold=math.inf)
    assert words(clipping.plot_clipping(frame)) == ""
    assert "Nothing was clipped" in clipping.finding(frame)
    assert "No threshold" in clipping.finding(norms_frame([1.0, 2.0]))


@pytest.mark.parametrize(
    "norms",
    [[1.0], [1.0] * 5, [0.0] * 4, [math.nan] * 3, [math.inf, 1.0, 0.0], [1e-300, 1e300, 1.0]],
)
def test_odd_norms_are_drawn_and_told(norms: list[float]) -> None:
    frame = norms_frame(norms, threshold=1.0)
    rendered(figure_of(clipping.plot_clipping(frame)), "png", dpi=30)
    assert clipping.finding(frame)


def test_labels_do_not_overlap() -> None:
    norms = np.exp(np.random.default_rng(8).normal(size=1000) * 0.3)
    for ax in (
        training.plot_training(log_frame(gradient_norm=1.0, clipped_norm=0.999, test_loss=0.1)),
        clipping.plot_clipping(norms_frame(norms, threshold=1.0)),
    ):
        figure = figure_of(ax)
        figure.draw_without_rendering()
        texts = [text for panel in figure.axes for text in panel.texts]
        boxes = [Text.get_window_extent(text) for text in texts]  # without their leaders
        for index, box in enumerate(boxes):
            assert not any(box.shrunk(1.0, 0.85).overlaps(other) for other in boxes[:index])


def test_many_panels_are_laid_out_alike_every_time() -> None:
    """The solver of the layout is not: its last bits vary from figure to figure."""
    frame = log_frame()
    pictures = {rendered(figure_of(training.plot_training(frame)), "svg") for _ in range(8)}
    assert len(pictures) == 1


def test_both_fit_into_given_axes() -> None:
    for plot, frame in (
        (training.plot_training, log_frame()),
        (clipping.plot_clipping, norms_frame([1.0, 2.0, 3.0])),
    ):
        ax = axes_or_new(None, (6.0, 6.0))
        assert plot(frame, ax=ax) is ax


def test_the_frame_has_what_the_manifest_knows(trained: Path) -> None:
    log = load_frame(trained, KINDS["training"])
    assert set(log["baseline"]) == {1.0}
    assert set(log["probe_length"]) == {12.0}
    assert set(load_frame(trained, KINDS["clipping"])["threshold"]) == {0.05}


def test_a_table_without_a_manifest_is_drawn_without_what_it_knows(
    trained: Path, tmp_path: Path
) -> None:
    for name in ("training", "clipping"):
        (trained / f"{name}.csv").rename(tmp_path / f"{name}.csv")
        assert write_figure(tmp_path / f"{name}.csv", name, tmp_path / f"{name}.png").stat().st_size
    log = load_frame(tmp_path / "training.csv", KINDS["training"])
    assert log["baseline"].isna().all()


def test_the_figures_of_a_training_are_written_below_its_folder(trained: Path) -> None:
    expected = [f"{kind}.{form}" for kind in ("training", "clipping") for form in ("png", "svg")]
    assert write_training(trained) == trained / "training.html"
    assert sorted(path.name for path in (trained / "figures").iterdir()) == sorted(expected)


def test_a_damaged_table_costs_its_own_figure_only(
    trained: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (trained / "clipping.csv").write_text("step,norm_before\n1,much\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        page = write_training(trained)
    drawn = sorted(path.name for path in (trained / "figures").iterdir())
    assert drawn == ["training.png", "training.svg"]
    assert "clipping.csv, line 2" in caplog.text
    assert "could not be drawn" in page.read_text(encoding="utf-8")


def test_what_is_no_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.RunFolderError, match="gradlab train -o"):
        write_training(tmp_path / "nothing")
    with pytest.raises(gl.RunFolderError, match="gradlab train -o"):
        write_figure(tmp_path, "training", tmp_path / "x.png")


def test_the_manifest_tells_the_baseline_and_the_steps_measured_along(trained: Path) -> None:
    manifest = json.loads((trained / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["baseline"] == {"loss": 1.0, "accuracy": 0.5}
    assert manifest["probe_length"] == 12
