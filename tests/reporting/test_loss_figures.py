"""Figures of a loss's gradient and of gates: positions and words against closed forms."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from numpy.typing import NDArray

import gradlab as gl
from gradlab_reports import write_figure, write_report
from gradlab_reports.canvas import figure_of, rendered
from gradlab_reports.catalog import KINDS
from gradlab_reports.figures import gates, gradient, gradient_pairs, paths
from gradlab_reports.loading import load_frame
from gradlab_reports.style import MISSING, NOTHING

WriteRun = Callable[..., Path]
LN10 = math.log(10.0)


def frame_of(kind: str, folder: Path) -> pd.DataFrame:
    return load_frame(folder, KINDS[kind])


def geometric(w: float, steps: int) -> pd.DataFrame:
    """Columns of gradient.csv for terms w^lag without slack."""
    lag = np.arange(steps)
    log_norm = lag * math.log(w)
    share = w**lag / (w**lag).sum()
    return pd.DataFrame(
        {
            "lag": lag,
            "log_term_norm_median": log_norm,
            "log_term_bound_median": log_norm,
            "share": share,
            "cumulative_share": share.cumsum(),
        }
    )


def marks(ax: Axes) -> dict[str, float]:
    """Words of the vertical lines, and where these stand."""
    return {text.get_text(): float(text.xy[0]) for text in ax.texts if "up to" in text.get_text()}  # type: ignore[attr-defined]


def panels(ax: Axes) -> list[Axes]:
    return figure_of(ax).axes


def curve(ax: Axes, index: int = 0) -> tuple[list[float], list[float]]:
    x, y = ax.lines[index].get_data()
    return list(np.asarray(x, dtype=float)), list(np.asarray(y, dtype=float))


def cells(ax: Axes) -> NDArray[np.float64]:
    """Numbers of a map, nan where there is no term."""
    image = ax.images[0].get_array()
    assert image is not None
    return np.asarray(np.ma.filled(np.ma.asarray(image), np.nan))


def test_lags_that_hold_the_gradient_are_marked_where_the_series_says() -> None:
    """Of 2^-lag, lags 0 to l hold 1 - 2^-(l+1): 1/2 at 0, 90 % at 3, 99 % at 6."""
    frame = geometric(0.5, 60)
    ax = gradient.plot_gradient(frame)
    assert marks(ax) == {"50 % up to lag 0": 0.0, "90 % up to lag 3": 3.0, "99 % up to lag 6": 6.0}
    lag, percent = curve(ax)
    np.testing.assert_allclose(percent, 100.0 * 0.5 ** (np.array(lag) + 1.0), rtol=1e-12)
    said = gradient.finding(frame)
    assert said.startswith("Half of the gradient comes from lags up to 0, 90 % from lags up to 3")
    assert "(lag 0) has 50\u00a0%" in said


def test_norms_of_the_terms_stand_in_decades_below_their_bound() -> None:
    frame = geometric(0.1, 12).assign(log_term_bound_median=0.0)
    lower = panels(gradient.plot_gradient(frame))[1]
    np.testing.assert_allclose(curve(lower)[1], -np.arange(12.0), atol=1e-12)
    np.testing.assert_allclose(curve(lower, 1)[1], np.zeros(12), atol=1e-12)
    assert [text.get_text() for text in lower.texts] == ["measured", "bound"]
    assert lower.lines[1].get_linestyle() == "--"


def test_a_bound_far_above_is_cut_and_its_end_told() -> None:
    frame = geometric(0.9, 40).assign(log_term_bound_median=np.arange(40) * 2.0 * LN10)
    lower = panels(gradient.plot_gradient(frame))[1]
    assert "bound\n↑ to 1.0\u00a0×\u00a010⁷⁸" in [text.get_text() for text in lower.texts]
    assert lower.get_ylim()[1] < 10.0


def test_gated_cells_have_terms_and_no_bound() -> None:
    lower = panels(gradient.plot_gradient(geometric(0.5, 9).assign(log_term_bound_median=np.nan)))[
        1
    ]
    assert [text.get_text() for text in lower.texts] == ["measured"]


@pytest.mark.parametrize("w", [0.3, 0.6, 0.97, 1.0, 1.2])
def test_words_of_the_marks_never_lie_over_each_other(w: float) -> None:
    ax = gradient.plot_gradient(geometric(w, 64))
    rendered(figure_of(ax), "png")
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 3
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)
    inside = ax.get_window_extent()
    assert all(box.x0 >= inside.x0 and box.y1 <= inside.y1 + 1.0 for box in boxes)


def test_a_gradient_of_zero_is_told_so() -> None:
    nothing = geometric(0.5, 5).assign(
        share=np.nan, cumulative_share=np.nan, log_term_norm_median=-np.inf
    )
    assert gradient.finding(nothing) == "Every term of the gradient is exactly 0."
    assert "every term is exactly 0" in [
        t.get_text() for t in gradient.plot_gradient(nothing).texts
    ]


def test_a_single_lag_is_a_picture_too() -> None:
    assert marks(gradient.plot_gradient(geometric(0.5, 1)))["99 % up to lag 0"] == 0.0


def test_the_map_of_terms_holds_the_median_over_sequences(write_run: WriteRun) -> None:
    frame = frame_of("gradient-pairs", write_run("run", steps=30, partial=True))
    frame["log_term_norm"] += 0.5 * (2 * frame["sequence"] - 1)
    ax = gradient_pairs.plot_gradient_pairs(frame)
    grid = cells(ax)
    for t, k in [(30, 1), (30, 30), (12, 4)]:
        assert grid[t - 1, k] == pytest.approx((t - k) * math.log10(0.9))
    assert np.isnan(grid[3, 5:]).all()
    assert ax.get_ylabel() == "t: step of the loss"
    assert ax.get_xlim() == (0.5, 30.5)


def test_sequences_with_one_loss_each_have_rows_of_their_own(write_run: WriteRun) -> None:
    frame = frame_of("gradient-pairs", write_run("run", steps=20, partial=True))
    last = frame[frame["t"] == 20].assign(
        log_term_norm=lambda rows: rows["log_term_norm"] - rows["sequence"]
    )
    ax = gradient_pairs.plot_gradient_pairs(last)
    grid = cells(ax)
    assert grid.shape == (2, 21)
    np.testing.assert_allclose(grid[0, 1:] - grid[1, 1:], 1.0 / LN10, rtol=1e-12)
    assert ax.get_ylabel() == "sequence"


def test_exact_zeros_of_the_terms_are_told_from_small_ones_and_from_none(
    write_run: WriteRun,
) -> None:
    frame = frame_of("gradient-pairs", write_run("run", steps=20, partial=True))
    frame.loc[frame["k"] == 1, "log_term_norm"] = -np.inf
    frame.loc[frame["k"] == 2, "log_term_norm"] = -900.0
    ax = gradient_pairs.plot_gradient_pairs(frame)
    image = ax.images[0]
    grid = image.get_array()
    assert grid is not None
    zero, small, none = (image.to_rgba(grid[:, column])[9] for column in (1, 2, 20))
    np.testing.assert_allclose(zero, to_rgba(NOTHING))
    np.testing.assert_allclose(none, to_rgba(MISSING))
    assert not np.allclose(small, zero)
    low, high = image.get_clim()
    assert high - low == pytest.approx(gradient_pairs.DECADES)
    assert "yellow: exactly 0" in [text.get_text() for text in ax.texts]


def test_the_largest_term_is_named_by_its_steps() -> None:
    frame = pd.DataFrame(
        {"sequence": 0, "t": [5, 5, 6], "k": [5, 2, 6], "log_term_norm": [0.0, math.log(3.0), -1.0]}
    )
    said = gradient_pairs.finding(frame)
    assert "norm 3.00, for the loss at step 5 and the weights at step 2, lag 3" in said
    assert "exactly 0" in gradient_pairs.finding(frame.assign(log_term_norm=-np.inf))


def test_gates_have_a_panel_each_with_their_mean_and_the_first_sequence(
    write_run: WriteRun,
) -> None:
    frame = frame_of("gates", write_run("run", steps=31, partial=True))
    frame["mean"] += 0.1 * (2 * frame["sequence"] - 1)
    ax = gates.plot_gates(frame)
    assert [panel.get_ylabel() for panel in panels(ax)] == ["i", "f"]
    opening = np.linspace(0.2, 0.8, 31)
    np.testing.assert_allclose(curve(panels(ax)[1])[1], opening, atol=1e-12)
    np.testing.assert_allclose(curve(panels(ax)[1], 1)[1], opening - 0.1, atol=1e-12)
    assert gates.finding(frame) == "Mean value over units and 31 steps by gate: i 0.500, f 0.500."


def test_candidates_have_both_signs_and_unbounded_ones_all_their_range(
    write_run: WriteRun,
) -> None:
    frame = frame_of("gates", write_run("run", steps=5, partial=True))
    signed = frame.assign(q05=-0.5)
    assert gates.plot_gates(signed).get_ylim() == (-1.05, 1.05)
    low, high = gates.plot_gates(frame.assign(q05=-0.5, q95=4.0)).get_ylim()
    assert low < -0.5
    assert high > 4.0


def test_paths_stand_beside_the_measured_norm_in_decades(write_run: WriteRun) -> None:
    frame = frame_of("paths", write_run("run", steps=8, partial=True))
    upper, lower = panels(paths.plot_paths(frame))
    lag = np.arange(1.0, 9.0)
    heights = {upper.lines[i].get_marker(): curve(upper, i)[1] for i in range(len(upper.lines))}
    for marker, factor in (("o", 0.9), ("s", 0.5), ("^", 0.25)):
        np.testing.assert_allclose(heights[marker], lag * math.log10(factor), rtol=1e-12)
    assert {text.get_text() for text in lower.texts} == {"through h", "through c"}
    assert lower.get_ylim() == (0.0, 100.0)
    said = paths.finding(frame)
    assert "largest product of f over a unit 0.00391" in said  # 2^-8
    assert "25\u00a0% is in h and 75\u00a0% is in c" in said


def test_a_product_far_below_the_gradient_leaves_the_picture_with_its_end_told(
    write_run: WriteRun,
) -> None:
    frame = frame_of("paths", write_run("run", steps=60, partial=True))
    upper = panels(paths.plot_paths(frame))[0]
    told = [text.get_text() for text in upper.texts]
    assert any(words.endswith("median unit\n↓ to 7.5\u00a0×\u00a010⁻³⁷") for words in told)  # 4^-60
    assert upper.get_ylim()[0] > -20.0


def test_a_state_of_one_part_has_one_panel(write_run: WriteRun) -> None:
    frame = frame_of("paths", write_run("run", steps=6, partial=True))
    one = frame[frame["name"] != "c"]
    assert len(panels(paths.plot_paths(one))) == 1
    assert "is in h" not in paths.finding(one)


@pytest.fixture
def mixed_run(tmp_path: Path) -> Path:
    """A run of a vanilla layer below an LSTM, with a loss."""
    rng = np.random.default_rng(0)
    lower = gl.VanillaCell.initialize(input_size=2, hidden_size=4, rng=rng)
    upper = gl.LSTMCell.initialize(input_size=4, hidden_size=3, rng=rng)
    network = gl.Network(
        [
            gl.Recurrence(name="lower", cell=lower, layer=0, stack="s"),
            gl.Recurrence(name="upper", cell=upper, layer=1, stack="s"),
        ]
    )
    dynamics = gl.analyze(
        network,
        rng.standard_normal((9, 2, 2)),
        targets=rng.integers(0, 2, (9, 2)),
        readout=gl.Readout(W_hy=rng.standard_normal((2, 3))),
    )
    return gl.save(dynamics, tmp_path / "run", pairs=True)


def test_every_layer_has_the_figures_that_it_has_numbers_for(
    mixed_run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page = write_report(mixed_run).read_text(encoding="utf-8")
    names = {path.stem for path in (mixed_run / "figures").glob("*.png")}
    assert {"gradient-lower", "gradient-upper", "gradient-pairs-lower", "gates-upper",
            "paths-upper"} <= names  # fmt: skip
    assert not {"gates-lower", "paths-lower"} & names
    assert caplog.records == []
    assert "could not be drawn" not in page
    assert page.count("<caption>Gradient of the loss</caption>") == 2
    assert page.count("<caption>Gates</caption>") == 1


def test_a_recurrence_missing_where_all_belong_is_still_a_failure(
    mixed_run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = pd.read_csv(mixed_run / "lag_profile.csv")
    table[table["recurrence"] == "upper"].to_csv(mixed_run / "lag_profile.csv", index=False)
    page = write_report(mixed_run).read_text(encoding="utf-8")
    assert "could not be drawn" in page
    assert any("decay-lower" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [("gradient", "--targets"), ("gradient-pairs", "--pairs"), ("gates", "only gated cells")],
)
def test_a_kind_without_its_file_says_how_to_have_it(
    write_run: WriteRun, tmp_path: Path, kind: str, advice: str
) -> None:
    with pytest.raises(gl.RunFolderError, match=advice):
        write_figure(write_run("run"), kind, tmp_path / "x.svg")


def test_the_page_leads_with_the_lag_that_holds_most_of_the_gradient(
    write_run: WriteRun, decay: Any
) -> None:
    run = write_run("run", decay(), partial=True)
    summary = json.loads((run / "summary.json").read_text())
    entry = {"lag_50": 6, "lag_90": 21, "lag_99": 43, "cancellation_ratio": 0.5,
             "total_norm": 20.0, "log_total_norm": math.log(20.0),
             "log_sum_of_norms": math.log(40.0)}  # fmt: skip
    summary["recurrences"][0]["gradient"] = entry
    (run / "summary.json").write_text(json.dumps(summary))
    page = write_report(run).read_text(encoding="utf-8").replace("\u00a0", " ")
    assert page.index("hold 90 % of the loss&#39;s gradient") < page.index("Evidence")
    assert "lag 21" in page
