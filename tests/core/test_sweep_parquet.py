"""Tables of a sweep as Parquet: the same numbers, in the memory of a block."""

from __future__ import annotations

import csv
import math
import sys
import tracemalloc
from pathlib import Path

import pytest

import gradlab as gl
from gradlab.records.sweep import MEASURED

FLOATS = (*MEASURED, "gamma")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweep with a failed point and one whose gradient is exactly zero."""
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("parquet") / "sweep"
    points = gl.grid(gamma=[0.5, 1.5], activation=["tanh", "relu"], seed=range(2))
    gl.run_sweep(points, path, hidden_size=4, input_size=2, length=8, batch=2)
    text = (path / "sweep.csv").read_text(encoding="utf-8").splitlines()
    gone = ",".join(["0.5", "erf", "7", *["nan"] * 9, "", "failed", '"a, b"'])
    (path / "sweep.csv").write_text("\n".join([*text, gone]) + "\n", encoding="utf-8")
    gl.save_sweep_parquet(path)
    return path


@pytest.mark.parametrize("name", ["sweep", "sweep_profiles"])
def test_parquet_holds_every_cell_of_the_csv(folder: Path, name: str) -> None:
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(folder / f"{name}.parquet").to_pylist()
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        expected = list(csv.DictReader(stream))
    assert len(rows) == len(expected) > 8
    for row, texts in zip(rows, expected, strict=True):
        assert list(row) == list(texts)
        for column, value in row.items():
            if isinstance(value, float):
                told = float(texts[column])
                assert value == told or (math.isnan(value) and math.isnan(told))
            else:
                assert str(value) == texts[column]


def test_types_are_those_of_the_columns(folder: Path) -> None:
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(folder / "sweep.parquet")
    assert all(str(schema.field(name).type) == "double" for name in FLOATS)
    assert str(schema.field("seed").type) == "int64"
    assert {str(schema.field(name).type) for name in ("activation", "status", "message")} == {
        "string"
    }


def test_settings_that_are_not_always_set_are_nan(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    points = gl.grid(gain=[0.5, 1.0], max_lag=[None, 5], inclusive=[False, True])
    gl.run_sweep(points, tmp_path / "out", hidden_size=4, input_size=2, length=8, batch=2)
    gl.save_sweep_parquet(tmp_path / "out")
    lags = parquet.read_table(tmp_path / "out" / "sweep.parquet")["max_lag"].to_pylist()
    assert [5.0 if lag == 5.0 else math.isnan(lag) for lag in lags] == [True, True, 5.0, 5.0] * 2
    curves = gl.analyze_sweep(tmp_path / "out").curves
    assert [dict(curve.parameters)["max_lag"] for curve in curves] == [None, None, 5, 5]


def test_many_points_take_no_more_memory_than_a_block(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    header = ["gamma", "seed", *MEASURED, "regime", "status", "message"]
    line = ",".join(["0.5", "1", *["0.123456789012345"] * 9, "vanishing", "ok", ""])
    count = 200_000
    (tmp_path / "sweep.csv").write_text("\n".join([",".join(header), *[line] * count]) + "\n")
    (tmp_path / "sweep_profiles.csv").write_text("point,lag,log_norm_median\n0,1,-inf\n")
    before = arrow.default_memory_pool().max_memory()
    tracemalloc.start()
    gl.save_sweep_parquet(tmp_path)
    ours = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    import pyarrow.parquet

    size = (tmp_path / "sweep.csv").stat().st_size
    assert ours + arrow.default_memory_pool().max_memory() - before < 100e6
    assert ours < size / 4
    assert pyarrow.parquet.read_metadata(tmp_path / "sweep.parquet").num_rows == count


def test_folder_without_tables_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(gl.RunFolderError, match=r"holds no sweep\.csv"):
        gl.save_sweep_parquet(tmp_path)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(gl.MissingExtraError, match=r"gradlab-rnn\[parquet\]"):
        gl.require_parquet()
