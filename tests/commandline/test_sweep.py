"""``gradlab sweep``."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab_reports

Run = Callable[..., Any]

GRID = ("--gamma", "0.5:1.5:3", "--hidden-size", 6, "--length", 12, "--batch", 2)
TABLES = ("sweep.csv", "sweep_profiles.csv")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def test_one_row_a_point_with_the_grid_first(gradlab: Run, tmp_path: Path) -> None:
    outcome = gradlab("sweep", *GRID, "--seeds", 2, "--jobs", 1, "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    table = rows(tmp_path / "out")
    assert list(table[0])[:5] == ["gamma", "hidden_size", "length", "batch", "seed"]
    assert [(row["gamma"], row["seed"]) for row in table] == [
        (gamma, seed) for gamma in ("0.5", "1.0", "1.5") for seed in ("0", "1")
    ]
    for row in table:
        assert float(row["gamma_w"]) == pytest.approx(float(row["gamma"]), rel=1e-12)
        assert float(row["bound_rate"]) == pytest.approx(math.log(float(row["gamma"])), abs=1e-12)
    assert outcome.out.splitlines()[-1] == str(tmp_path / "out" / "sweep.csv")


def test_tables_are_the_same_bytes_for_any_number_of_jobs(gradlab: Run, tmp_path: Path) -> None:
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        assert gradlab("sweep", *GRID, "--jobs", jobs, "-o", folder).code == 0
    for name in TABLES:
        assert len({(tmp_path / jobs / name).read_bytes() for jobs in "12"}) == 1


def test_both_figures_are_drawn(gradlab: Run, tmp_path: Path) -> None:
    assert gradlab("sweep", *GRID, "--jobs", 1, "-o", tmp_path / "out").code == 0
    names = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert {"rate.svg", "rate.png", "decay-by-gamma.svg", "decay-by-gamma.png"} <= names


def test_lists_of_names_and_counts_are_axes(gradlab: Run, tmp_path: Path) -> None:
    axes = ("--activation", "tanh,identity", "--hidden-size", "4,5", "--length", 6)
    assert gradlab("sweep", *axes, "--jobs", 1, "--seed", 9, "-o", tmp_path / "out").code == 0
    assert [
        (row["hidden_size"], row["activation"], row["seed"]) for row in rows(tmp_path / "out")
    ] == [(size, name, "9") for size in ("4", "5") for name in ("tanh", "identity")]


def test_document_counts_points_and_regimes(gradlab: Run, tmp_path: Path) -> None:
    document = json.loads(
        gradlab("sweep", *GRID, "--jobs", 1, "--json", "-o", tmp_path / "out").out
    )
    assert (document["points"], document["failed"]) == (3, 0)
    assert sum(document["regimes"].values()) == 3


def test_failed_points_are_rows_and_end_with_their_number(gradlab: Run, tmp_path: Path) -> None:
    """An identity network of sigma_max 1e30 leaves float64 after eleven steps."""
    axes = ("--gamma", "0.5,1e30", "--activation", "identity", "--hidden-size", 4)
    outcome = gradlab("sweep", *axes, "--length", 20, "--jobs", 1, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "1 of 2 points failed" in outcome.error
    good, bad = rows(tmp_path / "out")
    assert (good["status"], good["message"]) == ("ok", "")
    assert bad["status"] != "ok"
    assert bad["message"]
    assert bad["rate"] == "nan"


def test_unknown_activation_fails_its_points_with_the_nearest_name(
    gradlab: Run, tmp_path: Path
) -> None:
    outcome = gradlab("sweep", *GRID, "--activation", "thanh", "--jobs", 1, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "did you mean 'tanh'?" in outcome.error


def test_figure_that_fails_loses_no_row(
    gradlab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> list[Path]:
        raise RuntimeError("no picture")

    monkeypatch.setattr(gradlab_reports, "write_sweep_figures", fail, raising=False)
    outcome = gradlab("sweep", *GRID, "--jobs", 1, "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "no picture" in outcome.error
    assert len(rows(tmp_path / "out")) == 3


def test_folder_that_exists_is_refused_before_any_work(gradlab: Run, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine", encoding="utf-8")
    outcome = gradlab("sweep", *GRID, "-o", tmp_path)
    assert outcome.code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--gamma", "0.5:1.5", "start:stop:count"),
        ("--gamma", "many", "start:stop:count"),
        ("--hidden-size", "8:9:4", "whole number"),
        ("--activation", "tanh,,relu", "comma list of names"),
    ],
)
def test_axis_that_cannot_be_read_is_wrong_usage(
    gradlab: Run, tmp_path: Path, option: str, text: str, expected: str
) -> None:
    outcome = gradlab("sweep", option, text, "-o", tmp_path / "never")
    assert outcome.code == 2
    for part in (option, repr(text), expected):
        assert part in outcome.error
    assert list(tmp_path.iterdir()) == []


def test_tables_are_also_written_as_parquet(gradlab: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "sweep"
    shape = "--gamma 0.5,1.5 --hidden-size 3 --length 6 --batch 1 --jobs 1 --quiet"
    assert gradlab("sweep", *shape.split(), "--format", "parquet", "-o", folder).code == 0
    rates = parquet.read_table(folder / "sweep.parquet")["rate"].to_pylist()
    lines = (folder / "sweep.csv").read_text().splitlines()
    place = lines[0].split(",").index("rate")
    assert rates == [float(line.split(",")[place]) for line in lines[1:]]
