"""Tables of a sweep that are longer than a figure can show: bounded memory, honest shares."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection

import gradlab as gl
from gradlab_reports import write_figure, write_sweep_figures
from gradlab_reports.catalog import KINDS, SWEEP_KINDS
from gradlab_reports.figures.sweep_rate import finding, plot_sweep_rate
from gradlab_reports.loading import load_frame
from gradlab_reports.sweep_tables import averaged, blocks, sampled

WriteRun = Callable[..., Path]
GAMMAS = (0.5, 1.0, 2.0)
RATE = ("gamma_w", "rate")


def long_table(path: Path, networks: int) -> pd.DataFrame:
    """Networks at three spectral norms and two sizes, with rates of their own."""
    rng = np.random.default_rng(networks)
    size, gamma = rng.choice([8, 16], networks), rng.choice(GAMMAS, networks)
    rate = np.log(gamma) - 1.0 / size + 0.1 * rng.normal(size=networks)
    table = pd.DataFrame({"gamma": gamma, "hidden_size": size, "gamma_w": gamma, "rate": rate})
    table["bound_rate"] = np.log(gamma)
    table["regime"] = np.where(rate > 0.0, "exploding", "vanishing")
    table.loc[::17, "rate"] = np.nan
    table.to_csv(path, index=False, na_rep="nan")
    return table


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are long from 200 rows on, and are read by 64."""
    monkeypatch.setattr("gradlab_reports.sweep_tables.MOST_ROWS", 200)
    monkeypatch.setattr("gradlab_reports.sweep_tables.BATCH", 64)
    monkeypatch.setattr("gradlab_reports.run_folder.BLOCK", 64)


@pytest.mark.usefixtures("few")
def test_short_tables_are_read_whole(tmp_path: Path) -> None:
    table = long_table(tmp_path / "sweep.csv", 200)
    rows = sampled(tmp_path / "sweep.csv", RATE)
    assert rows.attrs["rows"] == 200
    pd.testing.assert_frame_equal(rows.drop(columns="point"), table, check_dtype=False)
    assert rows["point"].tolist() == list(range(200))


@pytest.mark.usefixtures("few")
def test_of_long_tables_every_row_has_the_same_chance(tmp_path: Path) -> None:
    table = long_table(tmp_path / "sweep.csv", 3000)
    rows = sampled(tmp_path / "sweep.csv", RATE)
    assert (len(rows), rows.attrs["rows"]) == (200, 3000)
    places = rows["point"].to_numpy()
    assert np.all(np.diff(places) > 0)
    assert rows["rate"].tolist() == pytest.approx(table["rate"][places].tolist(), nan_ok=True)
    # The mean of 200 places drawn from 3000 is known to 60, and the first tenth holds 20 of them.
    assert abs(places.mean() - 1500) < 180
    assert 7 <= (places < 300).sum() <= 36
    pd.testing.assert_frame_equal(rows, sampled(tmp_path / "sweep.csv", RATE))


@pytest.mark.usefixtures("few")
def test_places_have_the_mean_and_regime_of_all_their_rows(tmp_path: Path) -> None:
    table = long_table(tmp_path / "sweep.csv", 3000)
    found = averaged(tmp_path / "sweep.csv", RATE, ["gamma", "hidden_size"])
    finite = table[np.isfinite(table["rate"])]
    groups = finite.groupby(["gamma", "hidden_size"])
    assert found["rate"].tolist() == pytest.approx(groups["rate"].mean().tolist(), rel=1e-12)
    assert found["networks"].tolist() == groups.size().tolist()
    expected = groups["regime"].agg(lambda names: names.mode().iloc[0])
    assert found["regime"].tolist() == expected.tolist()


def test_memory_does_not_grow_with_the_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlab_reports.sweep_tables.MOST_ROWS", 2000)
    monkeypatch.setattr("gradlab_reports.run_folder.BLOCK", 2000)
    peaks = []
    for networks in (5000, 10_000, 40_000):  # the first loads what is loaded once
        folder = tmp_path / str(networks)
        folder.mkdir()
        long_table(folder / "sweep.csv", networks)
        tracemalloc.start()
        load_frame(folder, KINDS["regime-map"])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1]


@pytest.mark.usefixtures("few")
def test_figures_of_long_tables_say_how_many_networks_they_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlab_reports.frames.some_rows.__defaults__", (50,))
    long_table(tmp_path / "sweep.csv", 3000)
    frame = load_frame(tmp_path, KINDS["rate"])
    ax = plot_sweep_rate(frame)
    drawn = [found for found in ax.collections if isinstance(found, PathCollection)]
    assert sum(len(np.asarray(found.get_offsets())) for found in drawn) == 50
    assert ax.get_title(loc="left").endswith("50 of 3000 networks")
    assert "drawn at random from 3000" in finding(frame)


def test_curves_of_many_networks_are_as_many_at_each_scale(
    write_sweep: WriteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlab_reports.sweep_tables.MOST_PROFILE_ROWS", 6 * 4)
    folder = write_sweep("sweep", GAMMAS, seeds=20, steps=4)
    frame = load_frame(folder, KINDS["decay-by-gamma"])
    assert frame.groupby("gamma")["point"].nunique().to_dict() == dict.fromkeys(GAMMAS, 2)
    for gamma, rows in frame.groupby("gamma"):
        norms = rows.groupby("lag")["log_norm_median"].median()
        assert norms.to_numpy() == pytest.approx(norms.index * math.log(float(str(gamma))), abs=0.5)


def test_figures_are_drawn_from_parquet_where_the_csv_is_gone(
    write_sweep: WriteRun, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    folder = write_sweep("sweep", GAMMAS, seeds=2)
    gl.save_sweep_parquet(folder)
    expected = {kind.name: load_frame(folder, kind) for kind in SWEEP_KINDS}
    for name in ("sweep", "sweep_profiles"):
        (folder / f"{name}.csv").unlink()
    for kind in SWEEP_KINDS:
        pd.testing.assert_frame_equal(load_frame(folder, kind), expected[kind.name])
    write_figure(folder / "sweep.parquet", "rate", tmp_path / "a.png")
    write_figure(folder, "sweep", tmp_path / "b.png", columns={"x": "gamma", "y": "rate"})
    assert {path.suffix for path in write_sweep_figures(folder)} == {".png", ".svg"}


def test_damaged_tables_are_told_with_their_line(tmp_path: Path, few: None) -> None:
    table = long_table(tmp_path / "sweep.csv", 100).astype(object)
    table.loc[90, "rate"] = "much"
    table.to_csv(tmp_path / "sweep.csv", index=False)
    with pytest.raises(gl.RunFolderError, match=r"line 92: column 'rate' holds 'much'"):
        sampled(tmp_path / "sweep.csv", RATE)
    (tmp_path / "sweep.csv").write_text("gamma_w\n", encoding="utf-8")
    with pytest.raises(gl.RunFolderError, match="has no column 'rate'"):
        list(blocks(tmp_path / "sweep.csv", RATE))
    (tmp_path / "sweep.csv").write_text("gamma_w,rate\n", encoding="utf-8")
    with pytest.raises(gl.RunFolderError, match="no rows"):
        sampled(tmp_path / "sweep.csv", RATE)


def test_damaged_parquet_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "sweep.parquet").write_bytes(b"PAR1")
    with pytest.raises(gl.RunFolderError, match="is no Parquet file"):
        load_frame(tmp_path, KINDS["rate"])
