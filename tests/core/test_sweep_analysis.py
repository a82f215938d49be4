"""What a sweep says as a whole: right where the truth is known."""

from __future__ import annotations

import csv
import json
import math
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.zero_crossing import (
    interval,
    resampled_means,
    rising_fit,
    slope,
    zero_crossing,
)
from gradlab.sweeps.levels import MOST_KEPT, Level

HEADER = (
    "gamma,hidden_size,seed,gamma_w,spectral_radius,rate,rate_se,bound_rate,mean_field_rate,"
    "saturated_share,lyapunov_leading,horizon_1pct,regime,status,message"
).split(",")
Rate = Callable[[float, int, int], float]


def level_of(rates: Sequence[float]) -> Level:
    level = Level()
    for rate in rates:
        level.take({"gamma_w": 2.0, "rate": rate, "bound_rate": 0.7, "mean_field_rate": math.nan})
    return level


@settings(deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_few_networks_of_a_level_are_kept_as_they_are(rates: list[float]) -> None:
    level = level_of(rates)
    assert level.drawn_from().tolist() == rates
    assert level.mean("rate") == pytest.approx(np.mean(rates), rel=1e-12, abs=1e-9)
    assert level.mean("log_gamma_w") == pytest.approx(math.log(2.0), rel=1e-14)
    assert math.isnan(level.mean("mean_field_rate"))
    if len(rates) > 1:
        expected = np.std(rates, ddof=1) / math.sqrt(len(rates))
        assert level.standard_error() == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("count", [MOST_KEPT + 1, 9_999, 30_000])
def test_many_networks_of_a_level_are_kept_by_blocks_of_the_same_error(count: int) -> None:
    rng = np.random.default_rng(count)
    rates = 3.0 + rng.normal(size=count)
    level = level_of(rates.tolist())
    drawn = level.drawn_from()
    assert MOST_KEPT / 2 <= len(drawn) <= MOST_KEPT
    assert drawn.mean() == pytest.approx(rates.mean(), rel=1e-12)
    error = rates.std(ddof=1) / math.sqrt(count)
    assert level.standard_error() == pytest.approx(error, rel=1e-9)
    means = resampled_means([drawn], 4000, rng)
    assert means.std() == pytest.approx(
        error, rel=0.08
    )  # of 1024 blocks the spread is known to 2 %


def test_analysis_takes_no_more_memory_for_more_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlab.sweeps.levels.MOST_KEPT", 64)
    monkeypatch.setattr("gradlab.sweeps.analyses.MOST_BANDS", 0)  # theory takes its own memory
    peaks = []
    for seeds in (10, 300, 1800):  # the first loads what is loaded once
        folder = write_sweep(tmp_path / str(seeds), [1.0], seeds, lambda g, n, s: -0.1 * (s % 7))
        tracemalloc.start()
        gl.analyze_sweep(folder, resamples=10)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Four numbers of each of 3000 further networks would be 96 kB; what is freed late is 30 kB.
    assert peaks[2] < peaks[1] + 60_000


def test_analysis_of_a_parquet_table_is_that_of_the_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    points = gl.grid(gamma=[0.5, 1.5], activation=["tanh", "relu"], seed=range(3))
    gl.run_sweep(points, tmp_path, force=True, hidden_size=4, length=12, batch=1)
    gl.save_sweep_parquet(tmp_path)
    expected = gl.analyze_sweep(tmp_path)
    (tmp_path / "sweep.csv").unlink()
    found = gl.analyze_sweep(tmp_path)
    assert found.to_summary() == expected.to_summary()
    assert found.to_frame().equals(expected.to_frame())
    (tmp_path / "sweep.parquet").write_bytes(b"PAR1")
    with pytest.raises(gl.RunFolderError, match=r"sweep\.parquet is no Parquet file"):
        gl.analyze_sweep(tmp_path)


def write_sweep(folder: Path, gammas: Sequence[float], seeds: int, rate: Rate) -> Path:
    """Sweep of made-up rates, of two sizes."""
    folder.mkdir()
    with (folder / "sweep.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER)
        for gamma in gammas:
            for size in (16, 32):
                for seed in range(seeds):
                    found = (gamma, 0.5 * gamma, rate(gamma, size, seed), 0.01, math.log(gamma))
                    rest = ("nan", 0.1, 0.0, 50.0, "vanishing", "ok", "")
                    writer.writerow((gamma, size, seed, *found, *rest))
    return folder


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_rising_fit_is_the_best_rising_curve(values: list[float], seed: int) -> None:
    rate, rng = np.array(values), np.random.default_rng(seed)
    weights = rng.uniform(0.5, 5.0, len(rate))
    fit = rising_fit(rate, weights)
    assert np.all(np.diff(fit) >= 0.0)
    miss = weights @ (fit - rate) ** 2
    for _ in range(20):
        other = np.sort(fit + rng.normal(scale=0.3, size=len(rate)))
        assert weights @ (other - rate) ** 2 >= miss - 1e-9


@pytest.mark.parametrize(
    ("rising", "place"),
    [
        ([-1.0, 1.0, 2.0], 0.5),
        ([-3.0, -1.0, 3.0], 1.25),
        ([-1.0, 0.0, 0.0], 1.0),
        ([1.0, 2.0, 3.0], -math.inf),
        ([-3.0, -2.0, -1.0], math.inf),
        ([0.0, 0.0, 1.0], 0.0),
    ],
)
def test_zero_crossing_is_interpolated_or_beyond(rising: list[float], place: float) -> None:
    assert zero_crossing(np.array([0.0, 1.0, 2.0]), np.array(rising)) == place


def test_slope_of_a_line_is_its_slope_whatever_the_weights() -> None:
    x = np.array([0.0, 1.0, 3.0])
    assert slope(x, 2.0 - 0.7 * x, np.array([1.0, 5.0, 2.0])) == pytest.approx(-0.7, rel=1e-14)
    assert math.isnan(slope(np.ones(1), np.ones(1), np.ones(1)))


def test_resampled_means_have_the_standard_error_of_the_mean() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=40)
    means = resampled_means([values, np.full(7, 2.5)], 20000, rng)
    assert means.shape == (20000, 2)
    assert means[:, 0].std() == pytest.approx(values.std() / math.sqrt(40), rel=0.03)
    assert np.all(means[:, 1] == 2.5)


def test_interval_may_end_beyond_the_levels() -> None:
    values = np.append(np.linspace(0.0, 1.0, 95), np.full(5, np.inf))
    low, high = interval(values, 0.95)
    assert low == pytest.approx(2 / 94)
    assert high == math.inf


def test_crossing_slope_and_bound_of_known_rates_come_back(tmp_path: Path) -> None:
    gammas = np.geomspace(0.5, 4.0, 13).tolist()
    folder = write_sweep(
        tmp_path / "sweep", gammas, 3, lambda g, n, s: 0.8 * math.log(g / (1.0 + n / 16))
    )
    analysis = gl.analyze_sweep(folder, resamples=50)
    assert analysis.scale == "gamma"
    assert [dict(curve.parameters) for curve in analysis.curves] == [
        {"hidden_size": 16},
        {"hidden_size": 32},
    ]
    for curve, zero in zip(analysis.curves, (2.0, 3.0), strict=True):
        assert curve.zero_gamma == pytest.approx(zero, rel=1e-12)
        assert (curve.zero_gamma_low, curve.zero_gamma_high) == pytest.approx((zero, zero))
        assert curve.slope == pytest.approx(0.8, rel=1e-12)
        assert curve.bound_gamma == pytest.approx(1.0, rel=1e-12)
        assert curve.points.tolist() == [3] * 13


def test_interval_covers_the_truth_about_as_often_as_it_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    covered = []
    for trial in range(40):
        folder = write_sweep(
            tmp_path / str(trial),
            [1.0, 1.5, 2.0, 2.5, 3.0],
            12,
            lambda g, n, s: math.log(g / 2.0) + 0.1 * float(rng.normal()),
        )
        for curve in gl.analyze_sweep(folder, resamples=200, confidence=0.9).curves:
            covered.append(curve.zero_gamma_low <= 2.0 <= curve.zero_gamma_high)
    assert 0.78 < np.mean(covered) < 0.98  # binomial of 80 about 0.9, and a little too narrow


def test_rates_that_never_reach_zero_cross_beyond_the_levels(tmp_path: Path) -> None:
    below = write_sweep(tmp_path / "below", [0.5, 1.0], 2, lambda g, n, s: -1.0)
    above = write_sweep(tmp_path / "above", [0.5, 1.0], 2, lambda g, n, s: 1.0)
    assert gl.analyze_sweep(below).curves[0].zero_gamma == math.inf
    assert gl.analyze_sweep(above).curves[0].zero_gamma_high == 0.0


def test_single_networks_have_no_interval_and_infinite_rates_are_counted(tmp_path: Path) -> None:
    folder = write_sweep(
        tmp_path / "sweep",
        [0.5, 1.0, 2.0],
        1,
        lambda g, n, s: -math.inf if g == 0.5 else math.log(g / 1.5),
    )
    curve = gl.analyze_sweep(folder).curves[0]
    assert math.isnan(curve.zero_gamma_low)
    assert math.isnan(curve.rate_se[0])
    assert curve.left_out == 1
    assert len(curve.gamma_w) == 2


def test_measured_crossing_of_random_networks_is_that_of_mean_field_theory(tmp_path: Path) -> None:
    points = gl.grid(gamma=np.linspace(1.5, 4.0, 6), seed=range(3))
    gl.run_sweep(points, tmp_path / "sweep", hidden_size=64, length=60, batch=1)
    analysis = gl.analyze_sweep(tmp_path / "sweep")
    (curve,) = analysis.curves
    # g_c of tanh at drive 0.5, times the expected spectral norm of a Gaussian matrix of 64 units.
    theory = gl.mean_field("tanh", gain=1.0, input_std=0.5)
    expected = theory.critical_gain * theory.sigma_max(64)[0]
    assert curve.mean_field_gamma == pytest.approx(expected, rel=1e-9)
    assert curve.zero_gamma == pytest.approx(expected, rel=0.15)
    assert curve.zero_gamma_low > 2.0 > curve.bound_gamma  # far from the textbook's 1
    assert np.all(curve.mean_field_low < curve.mean_field_high)
    assert curve.mean_field_inside >= 5 / 6
    gl.save_sweep_analysis(analysis, tmp_path / "sweep")
    document = json.loads((tmp_path / "sweep" / "sweep_analysis.json").read_text())
    assert document["curves"][0]["zero_gamma"] == curve.zero_gamma
    with (tmp_path / "sweep" / "sweep_analysis.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["rate"]) for row in rows] == curve.rate.tolist()


def test_cells_without_a_spectral_norm_have_no_curve(tmp_path: Path) -> None:
    points = gl.grid(gain=[0.5, 1.0], seed=range(2))
    small: dict[str, Any] = {"hidden_size": 4, "length": 6, "batch": 1, "input_size": 2}
    gl.run_sweep(points, tmp_path / "sweep", cell="lstm", **small)
    analysis = gl.analyze_sweep(tmp_path / "sweep")
    assert analysis.curves == ()
    assert analysis.to_frame().empty


def test_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.RunFolderError, match=r"holds no sweep\.csv"):
        gl.analyze_sweep(tmp_path)
