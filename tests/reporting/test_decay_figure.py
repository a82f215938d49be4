"""The decay figure shows what was saved, and never a bound as a measurement."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, figure_of, rendered
from gradlab_reports.catalog import KINDS, RUN_KINDS
from gradlab_reports.figures.decay import finding, plot_decay, value_range
from gradlab_reports.loading import RunTables, load_frame
from gradlab_reports.style import BOUNDS, MEASURED

WriteRun = Callable[..., Path]
LN10 = math.log(10.0)


@pytest.fixture
def profile(write_run: WriteRun, decay: Any) -> Callable[..., pd.DataFrame]:
    names = itertools.count()

    def load(steps: int = 60, **how: Any) -> pd.DataFrame:
        folder = write_run(f"run{next(names)}", decay(**how), steps=steps, pairs=False)
        return pd.read_csv(folder / "lag_profile.csv")

    return load


def line(ax: Axes, name: str) -> Line2D:
    return next(line for line in ax.lines if line.get_label() == name)


def points(line: Line2D) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = line.get_data()
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)


def words(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


@pytest.mark.parametrize("decades", [-400.0, -7000.0, 308.5, 7000.0])
def test_curve_is_right_where_the_norm_is_no_float(
    profile: Callable[..., pd.DataFrame], decades: float
) -> None:
    """W = gamma Q under the identity: the norm at lag l is gamma^l, exactly."""
    frame = profile(rate=decades * LN10 / 60, gamma_w=2.0)
    ax = plot_decay(frame)
    x, y = points(line(ax, "log_norm_median"))
    np.testing.assert_array_equal(x, np.arange(1, 61))
    np.testing.assert_allclose(y, decades / 60 * np.arange(1, 61), rtol=1e-12)


def test_every_rung_is_drawn_at_its_own_height(profile: Callable[..., pd.DataFrame]) -> None:
    frame = profile(rate=-0.1, gamma_w=1.8, saturation=0.1, onestep=0.15, alignment=0.3)
    ax = plot_decay(frame)
    for bound in BOUNDS:
        _, drawn = points(line(ax, bound.column))
        np.testing.assert_allclose(drawn, frame[bound.column] / LN10, rtol=1e-12)


def test_bounds_are_never_drawn_in_the_style_of_measurements(
    profile: Callable[..., pd.DataFrame],
) -> None:
    ax = plot_decay(profile(rate=-0.1, gamma_w=1.8))
    measured = line(ax, "log_norm_median")
    assert measured.get_marker() == "o"
    assert measured.get_linestyle() == "-"
    assert measured.get_color() == MEASURED
    for bound in BOUNDS:
        drawn = line(ax, bound.column)
        assert drawn.get_marker() in ("", "None", None)
        assert drawn.get_linestyle() == "--"
        assert drawn.get_color() != MEASURED
    assert words(ax).count("measured") == 1
    assert words(ax).count("bound") == len(BOUNDS)


def test_an_exact_zero_is_marked_at_the_lag_where_it_begins(
    profile: Callable[..., pd.DataFrame],
) -> None:
    """Nilpotent shift of order 6: norms 1 up to lag 5, exactly 0 from lag 6 on."""
    ax = plot_decay(profile(steps=20, rate=0.0, gamma_w=1.0, zero_from=6))
    assert "exactly 0 from lag 6" in words(ax)
    assert points(line(ax, "log_norm_median"))[0].max() == 5
    marks = [mark for mark in ax.lines if mark.get_marker() == "v"]
    assert [points(mark)[0].tolist() for mark in marks] == [[6.0]]


def test_a_zero_matrix_is_drawn_without_any_finite_norm(
    profile: Callable[..., pd.DataFrame],
) -> None:
    ax = plot_decay(profile(steps=5, rate=0.0, gamma_w=1.0, zero_from=1))
    assert "exactly 0 from lag 1" in words(ax)
    assert all(line.get_label() != "log_norm_median" for line in ax.lines)
    rendered(figure_of(ax), "png")


def test_zero_is_not_claimed_where_only_single_lags_are_zero(
    profile: Callable[..., pd.DataFrame],
) -> None:
    frame = profile(steps=10)
    frame.loc[3, "log_norm_median"] = -math.inf
    assert "exactly" not in words(plot_decay(frame))


def test_all_measured_values_lie_within_the_axes(profile: Callable[..., pd.DataFrame]) -> None:
    frame = profile(rate=0.01, gamma_w=6.0, spread=0.5)
    low, high = value_range(frame)
    for name in ("log_norm_q05", "log_norm_median", "log_norm_q95", "log_norm_max"):
        assert (frame[name] / LN10).between(low, high).all()


def test_a_bound_that_leaves_the_axes_says_how_far_it_goes(
    profile: Callable[..., pd.DataFrame],
) -> None:
    ax = plot_decay(profile(rate=0.001, gamma_w=6.0))
    assert f"↑ to 4.9\u00a0×\u00a010{'⁴⁶'}" in words(ax)  # 6^60 = 4.887e46
    assert ax.get_ylim()[1] < 46


def test_a_bound_that_fits_is_shown_in_full(profile: Callable[..., pd.DataFrame]) -> None:
    ax = plot_decay(profile(rate=-0.1, gamma_w=1.8))
    assert "↑" not in words(ax)
    assert ax.get_ylim()[1] > 60 * math.log10(1.8)


def test_number_formats_are_marked_where_the_norm_passes_their_end(
    profile: Callable[..., pd.DataFrame],
) -> None:
    text = words(plot_decay(profile(rate=-40 * LN10 / 60, gamma_w=0.9)))
    assert "float16: smallest normal" in text
    assert "bfloat16, float32: smallest normal" in text
    assert "float64" not in text
    assert "overflow" not in text
    grown = words(plot_decay(profile(rate=40 * LN10 / 60, gamma_w=10.0)))
    assert "bfloat16, float32: overflow" in grown


def test_overflow_is_marked_for_measured_norms_only(
    profile: Callable[..., pd.DataFrame],
) -> None:
    """1.8^60 is beyond float16, but the network vanishes: what overflows is only the bound."""
    ax = plot_decay(profile(rate=-0.1, gamma_w=1.8))
    heights = [float(points(line)[1][0]) for line in ax.lines]
    assert ax.get_ylim()[1] > math.log10(65504.0)
    assert not any(height == pytest.approx(math.log10(65504.0)) for height in heights)


def test_labels_do_not_overlap_when_all_rungs_coincide(
    profile: Callable[..., pd.DataFrame],
) -> None:
    ax = plot_decay(profile(rate=math.log(0.9), gamma_w=0.9))
    rendered(figure_of(ax), "png")
    boxes = [Text.get_window_extent(text) for text in ax.texts if text.get_text()]  # no leaders
    for first, second in itertools.combinations(boxes, 2):
        assert not first.padded(-1.0).overlaps(second.padded(-1.0))


def test_columns_that_a_table_lacks_are_left_out() -> None:
    frame = pd.DataFrame({"lag": [1, 2, 3], "log_norm_median": [-1.0, -2.0, -3.0]})
    ax = plot_decay(frame)
    assert "bound" not in words(ax)
    assert finding(frame) == (
        "The measured median norm goes from 0.368 at lag 1 to 0.0498 at lag 3."
    )


def test_unresolved_norms_leave_a_gap_and_no_zero() -> None:
    frame = pd.DataFrame({"lag": [1, 2, 3], "log_norm_median": [-1.0, -2.0, math.nan]})
    assert "exactly" not in words(plot_decay(frame))


def test_long_profiles_are_thinned_with_their_extremes_kept() -> None:
    lag = np.arange(1, 100_001)
    median = -1e-3 * lag
    median[54_321] = 7.0
    ax = plot_decay(pd.DataFrame({"lag": lag, "log_norm_median": median}))
    x, y = points(line(ax, "log_norm_median"))
    assert len(x) < 1000
    assert (x[0], x[-1]) == (1, 100_000)
    assert np.max(y) == pytest.approx(7.0 / LN10)


def test_given_axes_are_drawn_on_and_returned(profile: Callable[..., pd.DataFrame]) -> None:
    ax = axes_or_new(None, (5.0, 4.0))
    assert plot_decay(profile(), ax=ax) is ax


def test_finding_names_what_was_measured_and_what_the_bound_allows(
    profile: Callable[..., pd.DataFrame],
) -> None:
    assert finding(profile(rate=-0.1, gamma_w=2.0)) == (
        "The measured median norm goes from 0.905 at lag 1 to 0.00248 at lag 60, where the bound "
        "from the spectral norm alone allows 1.15\u00a0×\u00a010¹⁸."
    )


def test_theory_is_drawn_beside_the_measurement_where_there_is_one(
    profile: Callable[..., pd.DataFrame],
) -> None:
    frame = profile(rate=-0.1, gamma_w=1.8)
    assert "mean-field theory" not in words(plot_decay(frame))
    ax = plot_decay(frame.assign(log_norm_predicted=-0.11 * frame["lag"]))
    x, y = points(line(ax, "log_norm_predicted"))
    np.testing.assert_array_equal(x, frame["lag"])
    np.testing.assert_allclose(y, -0.11 * frame["lag"] / LN10, rtol=1e-12)
    assert "mean-field theory" in words(ax)
    assert line(ax, "log_norm_predicted").get_color() != MEASURED


def test_theory_that_leaves_the_picture_is_told_where_it_goes(
    profile: Callable[..., pd.DataFrame],
) -> None:
    frame = profile(rate=-0.1, gamma_w=1.8)
    ax = plot_decay(frame.assign(log_norm_predicted=-9.0 * frame["lag"]))
    assert "mean-field theory\n↓ to 3.0 × 10⁻²³⁵" in words(ax).replace("\u00a0", " ")
    assert ax.get_ylim()[0] > -9.0 * 60 / LN10


def test_theory_comes_from_the_table_beside_the_profile(write_run: WriteRun, decay: Any) -> None:
    run = write_run("run", decay(name="a", rate=-0.1), decay(name="b", rate=-0.2), steps=20)
    assert "log_norm_predicted" not in load_frame(run, KINDS["decay"], "b").columns
    rows = [f"{name},{lag},{rate * lag}" for name, rate in (("a", -1.0), ("b", -2.0))
            for lag in range(1, 21)]  # fmt: skip
    (run / "mean_field_profile.csv").write_text("\n".join(["recurrence,lag,log_norm", *rows]))
    frame = load_frame(run, KINDS["decay"], "b")
    np.testing.assert_array_equal(frame["log_norm_predicted"], -2.0 * frame["lag"])
    assert len(frame) == 20
    pd.testing.assert_frame_equal(frame, RunTables(run, RUN_KINDS).frame("lag_profile.csv", "b"))


def test_slack_is_the_room_below_the_lowest_bound_and_its_name_lies_in_it(
    profile: Callable[..., pd.DataFrame],
) -> None:
    frame = profile(rate=-0.3, gamma_w=1.5, onestep=0.1, alignment=0.3)
    ax = plot_decay(frame)
    shade = np.asarray(ax.collections[0].get_paths()[0].vertices, dtype=np.float64)
    lowest = frame["log_bound_blocks"] / LN10
    assert shade[:, 1].max() == pytest.approx(lowest.max())
    assert shade[:, 1].min() == pytest.approx(frame["log_norm_median"].min() / LN10)
    name = next(text for text in ax.texts if text.get_text() == "slack")
    lag, height = name.get_position()
    assert -0.3 * float(lag) / LN10 < float(height) < float(np.interp(lag, frame["lag"], lowest))


def test_a_bound_that_is_attained_has_no_slack(profile: Callable[..., pd.DataFrame]) -> None:
    assert "slack" not in words(plot_decay(profile(rate=math.log(0.9), gamma_w=0.9)))
