"""Every figure: what it draws, what it says, and that it leaves nothing behind."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from gradlab_reports import figures
from gradlab_reports.canvas import axes_or_new, figure_of, rendered
from gradlab_reports.catalog import (
    COMPARISON,
    KINDS,
    RUN_KINDS,
    SWEEP_KINDS,
    SWEEP_MODELS,
    TRAINING_KINDS,
    figure_kinds,
)
from gradlab_reports.figures.ladder import plot_ladder
from gradlab_reports.figures.pairs import plot_pairs
from gradlab_reports.figures.saturation import plot_saturation
from gradlab_reports.figures.singular_values import plot_singular_values
from gradlab_reports.figures.spectrum import plot_spectrum
from gradlab_reports.figures.sweep_decay import plot_sweep_decay
from gradlab_reports.figures.sweep_rate import plot_sweep_rate
from gradlab_reports.loading import load_frame
from gradlab_reports.style import EXACT_ZERO, MISSING, VERMILLION

WriteRun = Callable[..., Path]
LN10 = math.log(10.0)


def frame_of(kind: str, folder: Path, recurrence: str | None = None) -> pd.DataFrame:
    return load_frame(folder, KINDS[kind], recurrence)


def offsets(ax: Axes) -> NDArray[np.float64]:
    """Places of the markers of a scatter plot."""
    points = next(item for item in ax.collections if isinstance(item, PathCollection))
    return np.asarray(points.get_offsets(), dtype=np.float64)


def curve(line: Line2D) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of a line."""
    x, y = line.get_data()
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)


def cells(ax: Axes) -> NDArray[np.float64]:
    """Values behind the only image."""
    values = ax.images[0].get_array()
    assert values is not None
    return np.asarray(np.ma.getdata(values), dtype=np.float64)


def radii(ax: Axes) -> list[float]:
    """Radii of the circles around the origin."""
    curves = [curve(line) for line in ax.lines]
    return [float(np.hypot(x, y).max()) for x, y in curves if len(x)]


def words(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


def write_trained(folder: Path) -> Path:
    """Tables of a training of four steps."""
    norms = [0.3, 1.2, 4.0, 0.8]
    audit = pd.DataFrame({"step": [1, 2, 3, 4], "norm_before": norms})
    audit.to_csv(folder / "clipping.csv", index=False)
    means = {"loss": [math.nan, 1.1], "gradient_norm": [math.nan, 1.6], "clipped_norm": 0.8}
    log = pd.DataFrame({"step": [0, 4], **means, "test_loss": 1.2, "rate": [-0.3, -0.2]})
    log.to_csv(folder / "training.csv", index=False)
    return folder


@pytest.fixture
def sources(
    write_run: WriteRun,
    write_sweep: WriteRun,
    write_compared: WriteRun,
    decay: Any,
    tmp_path: Path,
) -> dict[str, Path]:
    run, sweep = write_run("run", partial=True), write_sweep("sweep", [0.5, 1.0, 1.5])
    compared = write_compared("compared", decay(name="a"), decay(name="b", rate=-0.3))
    runs = dict.fromkeys((kind.name for kind in RUN_KINDS), run)
    sweeps = dict.fromkeys((kind.name for kind in SWEEP_KINDS), sweep)
    trained = dict.fromkeys((kind.name for kind in TRAINING_KINDS), write_trained(tmp_path))
    (models := tmp_path / "models").mkdir()
    rates = {"model": ["a/1.pt", "a/2.pt"], "rate": [-0.3, 0.1], "horizon_1pct": [9.0, math.nan]}
    pd.DataFrame(rates).to_csv(models / "sweep.csv", index=False, na_rep="nan")
    one = {COMPARISON.name: compared, SWEEP_MODELS.name: models}
    return runs | sweeps | trained | one


def test_every_figure_file_is_in_the_catalog_and_the_reverse() -> None:
    folder = Path(str(figures.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == {kind.module for kind in KINDS.values()}
    assert figure_kinds() == tuple(KINDS)


@pytest.mark.parametrize("name", figure_kinds())
def test_every_figure_has_labeled_axes_and_words(name: str, sources: dict[str, Path]) -> None:
    module = importlib.import_module(f"gradlab_reports.figures.{KINDS[name].module}")
    frame = frame_of(name, sources[name])
    ax = getattr(module, f"plot_{KINDS[name].module}")(frame)
    for axes in figure_of(ax).axes:
        assert axes.get_ylabel()
    assert any(axes.get_xlabel() for axes in figure_of(ax).axes)
    assert ax.get_title(loc="left")
    assert len(module.caption()) > 60
    assert any(character.isdigit() for character in module.finding(frame))


@pytest.mark.parametrize("name", figure_kinds())
def test_every_figure_draws_on_given_axes_and_restores_settings(
    name: str, sources: dict[str, Path]
) -> None:
    module = importlib.import_module(f"gradlab_reports.figures.{KINDS[name].module}")
    frame = frame_of(name, sources[name])
    importlib.import_module("seaborn")  # what it sets on import is its own affair
    with mpl.rc_context({"font.size": 17.0, "svg.fonttype": "path", "axes.grid": False}):
        before = dict(mpl.rcParams)
        ax = axes_or_new(None, (6.0, 4.0))
        assert getattr(module, f"plot_{KINDS[name].module}")(frame, ax=ax) is ax
        rendered(figure_of(ax), "svg")
        assert dict(mpl.rcParams) == before


def test_drawing_opens_no_pyplot_figure(sources: dict[str, Path]) -> None:
    for name in figure_kinds():
        module = importlib.import_module(f"gradlab_reports.figures.{KINDS[name].module}")
        getattr(module, f"plot_{KINDS[name].module}")(frame_of(name, sources[name]))
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_the_map_holds_the_median_over_sequences_at_every_pair(write_run: WriteRun) -> None:
    frame = frame_of("pairs", write_run("run", steps=50))
    frame["log_norm"] += 0.5 * (2 * frame["sequence"] - 1)  # two sequences around the closed form
    ax = plot_pairs(frame)
    grid = cells(ax)
    for t, k in [(50, 0), (50, 49), (20, 3), (1, 0)]:
        assert grid[t - 1, k] == pytest.approx((t - k) * math.log10(0.9))
    assert np.isnan(grid[0, 1:]).all()
    low, high = ax.images[0].get_clim()
    assert (low, high) == pytest.approx((50 * math.log10(0.9), -50 * math.log10(0.9)))


def test_only_measured_end_times_have_rows_with_their_own_names(write_run: WriteRun) -> None:
    ax = plot_pairs(frame_of("pairs", write_run("run", steps=40, end_times=[5, 20, 40])))
    assert cells(ax).shape == (3, 40)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["5", "20", "40"]


def test_exact_zeros_of_the_map_are_told_from_missing_pairs(
    write_run: WriteRun, decay: Any
) -> None:
    """Nilpotent shift: pairs of lag 6 and more are exactly zero, pairs with k >= t do not exist."""
    ax = plot_pairs(frame_of("pairs", write_run("run", decay(rate=0.0, zero_from=6), steps=12)))
    image, grid = ax.images[0], cells(ax)
    shown = image.to_rgba(np.ma.masked_invalid(np.array([grid[11, 0], grid[0, 11]])))
    np.testing.assert_allclose(shown, [to_rgba(EXACT_ZERO), to_rgba(MISSING)])
    assert "black: exactly 0" in words(ax)


def test_a_long_map_keeps_the_right_cells(write_run: WriteRun) -> None:
    times = np.array([3000])
    k = np.arange(3000)
    frame = pd.DataFrame({"t": np.repeat(times, 3000), "k": k, "log_norm": -(3000.0 - k)})
    grid = cells(plot_pairs(frame))
    assert grid.shape == (1, 1000)
    assert grid[0, 0] == pytest.approx(-3000 / LN10)
    assert grid[0, 999] == pytest.approx(-3 / LN10)


def test_eigenvalues_stand_in_the_plane_inside_the_circle_of_sigma_max(
    write_run: WriteRun, decay: Any
) -> None:
    ax = plot_spectrum(frame_of("spectrum", write_run("run", decay(gamma_w=1.8))))
    np.testing.assert_allclose(np.hypot(*offsets(ax).T), 0.9, rtol=1e-12)
    # Singular values fall evenly: the circular law has the root of their mean square.
    law = 1.8 * math.sqrt(sum((1.0 - i / 12) ** 2 for i in range(12)) / 12)
    assert radii(ax) == pytest.approx([1.0, 1.8, law])
    assert "circular law" in words(ax)
    assert ax.get_aspect() == 1.0
    assert "1.80" in words(ax)


def test_gates_have_circles_and_marks_of_their_own() -> None:
    rows = [("i", 1.2), ("f", 0.7), ("stack", 1.5)]
    frame = pd.DataFrame(
        {
            "gate": [gate for gate, _ in rows],
            "index": 0,
            "singular_value": [sigma for _, sigma in rows],
            "eigenvalue_re": [0.5, 0.1, math.nan],
            "eigenvalue_im": [0.0, 0.0, math.nan],
        }
    )
    ax = plot_spectrum(frame)
    assert radii(ax) == pytest.approx([1.0, 1.2, 0.7])
    legend = ax.get_legend()
    assert legend is not None
    said = [text.get_text() for text in legend.get_texts()]
    assert [name.partition(":")[0] for name in said] == ["radius 1", "i", "f"]
    assert said[1].endswith("1.20")
    dashes = {str(line.get_linestyle()) for line in legend.get_lines()}
    assert len({str(handle._dash_pattern) for handle in legend.get_lines()}) == 3, dashes  # type: ignore[attr-defined]
    values = plot_singular_values(frame)
    assert [line.get_label() for line in values.lines[:2]] == ["i", "f"]


def test_singular_values_fall_from_gamma_w(write_run: WriteRun, decay: Any) -> None:
    ax = plot_singular_values(frame_of("singular-values", write_run("run", decay(gamma_w=1.8))))
    _, values = curve(ax.lines[0])
    np.testing.assert_allclose(values, 1.8 * (1.0 - np.arange(12) / 12), rtol=1e-12)
    assert "1.80" in words(ax)


def test_saturation_shows_mean_largest_and_share_over_sequences(write_run: WriteRun) -> None:
    frame = frame_of("saturation", write_run("run", steps=30))
    upper = plot_saturation(frame)
    lower = figure_of(upper).axes[1]
    t = np.arange(1, 31)
    mean = 0.6 + 0.05 * (np.sin(t / 5) + np.sin(t / 5 + 1))
    np.testing.assert_allclose(curve(upper.lines[0])[1], mean, rtol=1e-12)
    np.testing.assert_allclose(curve(upper.lines[1])[1], 0.99)
    np.testing.assert_allclose(curve(lower.lines[0])[1], 8.0)
    assert lower.get_ylim() == (0.0, 100.0)
    assert "%" in lower.get_ylabel()


def test_gates_saturate_on_lines_of_their_own(write_run: WriteRun) -> None:
    frame = frame_of("saturation", write_run("run", steps=9))
    flatter = frame.assign(activation="g", derivative_mean=0.25, saturated_share=0.5)
    upper = plot_saturation(pd.concat([frame.assign(activation="f"), flatter]))
    lower = figure_of(upper).axes[1]
    np.testing.assert_allclose(curve(upper.lines[1])[1], [0.25] * 9)
    np.testing.assert_allclose(curve(lower.lines[0])[1], [8.0] * 9)
    np.testing.assert_allclose(curve(lower.lines[1])[1], [50.0] * 9)
    assert words(upper).split("\n") == ["● f: mean", "■ g: mean"]


def test_the_bands_of_the_ladder_add_up_to_the_slack(write_run: WriteRun, decay: Any) -> None:
    slack = {"saturation": 0.1, "onestep": 0.15, "alignment": 0.44}
    run = write_run("run", decay(rate=math.log(1.8) - 0.69, gamma_w=1.8, **slack), steps=40)
    ax = plot_ladder(frame_of("ladder", run))
    tops = [float(np.asarray(band.get_paths()[0].vertices)[:, 1].max()) for band in ax.collections]
    np.testing.assert_allclose(tops, [40 * 0.44, 40 * 0.59, 40 * 0.69], rtol=1e-9)
    assert "saturation\n4.00" in words(ax)
    assert "one-step\nstructure\n6.00" in words(ax)
    assert "alignment\nacross steps\n17.6" in words(ax)


def test_a_bound_that_is_attained_is_said_to_be(write_run: WriteRun) -> None:
    assert "attains every bound" in words(plot_ladder(frame_of("ladder", write_run("run"))))


def test_infinite_slack_is_said_not_drawn(write_run: WriteRun, decay: Any) -> None:
    run = write_run("run", decay(rate=-0.2, gamma_w=1.5, zero_from=7), steps=20)
    ax = plot_ladder(frame_of("ladder", run))
    assert "From lag 7 on the norm is exactly 0" in words(ax)
    zero = plot_ladder(frame_of("ladder", write_run("zero", decay(zero_from=1), steps=5)))
    assert "From lag 1 on the norm is exactly 0" in words(zero)
    rendered(figure_of(zero), "png")


def test_rungs_that_gated_cells_lack_are_left_out() -> None:
    frame = pd.DataFrame(
        {
            "lag": [1, 2],
            "log_norm_median": [-1.0, -2.0],
            "log_bound_onestep": [-0.5, -1.0],
            "log_bound_gamma": [math.nan] * 2,
            "log_bound_saturation": [math.nan] * 2,
        }
    )
    text = words(plot_ladder(frame))
    assert "alignment\nacross steps\n1.00" in text
    assert "saturation" not in text


def test_sweep_rates_stand_over_ln_gamma_below_the_bound_line(write_sweep: WriteRun) -> None:
    gammas = [0.5, 1.0, 1.5]
    ax = plot_sweep_rate(frame_of("rate", write_sweep("sweep", gammas, seeds=2)))
    expected = [(math.log(g), math.log(g) - 0.1 - 0.01 * seed) for g in gammas for seed in (0, 1)]
    np.testing.assert_allclose(offsets(ax), expected, rtol=1e-12)
    bound = next(line for line in ax.lines if line.get_color() == VERMILLION)
    np.testing.assert_allclose(curve(bound)[1], np.log(gammas), atol=1e-12)
    assert "grows" in words(ax)
    assert "shrinks" in words(ax)


def test_failed_points_and_missing_theory_are_left_out(write_sweep: WriteRun) -> None:
    frame = frame_of("rate", write_sweep("sweep", [0.5, 1.5], seeds=1))
    frame.loc[0, ["rate", "gamma_w"]] = math.nan
    frame["mean_field_rate"] = math.nan
    ax = plot_sweep_rate(frame)
    assert len(offsets(ax)) == 1
    assert "mean-field" not in words(ax)


def test_further_axes_of_a_sweep_become_series(write_sweep: WriteRun) -> None:
    frame = frame_of("rate", write_sweep("sweep", [0.5, 1.5], seeds=2))
    frame.insert(1, "activation", ["tanh", "relu"] * 2)
    legend = plot_sweep_rate(frame).get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["tanh", "relu"]
    assert legend.get_title().get_text() == "activation"


def test_sweep_decay_has_one_curve_a_gamma_the_median_over_seeds(write_sweep: WriteRun) -> None:
    ax = plot_sweep_decay(frame_of("decay-by-gamma", write_sweep("sweep", [0.5, 1.5], seeds=3)))
    curves = next(item for item in ax.collections if isinstance(item, LineCollection))
    lag = np.arange(1, 41)
    for segment, gamma in zip(curves.get_segments(), (0.5, 1.5), strict=True):
        expected = (math.log(gamma) - 0.11) / LN10 * lag
        np.testing.assert_allclose(segment, np.column_stack([lag, expected]), rtol=1e-10)


def test_names_from_files_are_drawn_as_they_stand(write_run: WriteRun, decay: Any) -> None:
    """A name that would be broken mathematics to the drawing library is plain text."""
    run = write_run("run", decay(name="$\\frac{$ & <b>"), steps=5, partial=True)
    for kind in RUN_KINDS:
        module = importlib.import_module(f"gradlab_reports.figures.{kind.module}")
        ax = getattr(module, f"plot_{kind.module}")(frame_of(kind.name, run))
        svg = rendered(figure_of(ax), "svg").decode()
        assert "<b>" not in svg
        assert "$\\frac{$ &amp; &lt;b&gt;" in svg


@pytest.mark.parametrize(("rate", "signs"), [(0.1, True), (-0.1, False)])
def test_growth_has_signs_on_the_map_and_decay_has_none(
    write_run: WriteRun, decay: Any, rate: float, signs: bool
) -> None:
    """So that both are told apart in print without colors."""
    ax = plot_pairs(frame_of("pairs", write_run("run", decay(rate=rate, gamma_w=3.0), steps=30)))
    assert bool(ax.collections) == signs
    assert ("+ at least doubled" in words(ax)) == signs
    if signs:
        k, t = offsets(ax).T
        assert ((t - k) * rate > math.log(2.0) - 0.1).all()


def test_stacks_of_blocks_are_no_gates_and_gates_without_a_color_are_counted() -> None:
    """A joint state of three LSTM layers has twelve gates, and eight curves can be told apart."""
    names = [f"l{layer}.{gate}" for layer in range(3) for gate in ("i", "f", "g", "o", "stack")]
    frame = pd.DataFrame(
        {
            "gate": names,
            "index": 0,
            "singular_value": [9.0 if name.endswith("stack") else 0.5 for name in names],
            "eigenvalue_re": math.nan,
            "eigenvalue_im": math.nan,
        }
    )
    ax = plot_spectrum(frame)
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "gate (4 more not shown)"
    assert max(radii(ax)) == pytest.approx(1.0)
    assert "not square" in words(ax)
    assert plot_singular_values(frame).get_ylim()[1] == pytest.approx(0.55)
