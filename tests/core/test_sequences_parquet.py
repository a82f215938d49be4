"""Sequences from Parquet tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl

X = np.random.default_rng(0).normal(size=(6, 2))


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writer of a table by its columns."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def written(**columns: Any) -> Path:
        path = tmp_path / "x.parquet"
        parquet.write_table(pyarrow.table(columns), path)
        return path

    return written


def test_columns_are_features_and_a_time_index_is_left_out(write: Any) -> None:
    read = gl.read_sequences(write(t=np.arange(6), a=X[:, 0], b=X[:, 1]))
    np.testing.assert_array_equal(read.inputs[:, 0], X)
    assert any("time index" in said for said in read.assumptions)


def test_columns_can_be_chosen_by_name(write: Any) -> None:
    read = gl.read_sequences(write(a=X[:, 0], b=X[:, 1]), columns=["b"])
    np.testing.assert_array_equal(read.inputs[:, 0, 0], X[:, 1])


def test_whole_numbers_are_numbers_too(write: Any) -> None:
    assert gl.read_sequences(write(a=np.arange(6, dtype=np.int8))).inputs[-1, 0, 0] == 5.0


@pytest.mark.parametrize(("column", "message"), [(["x"] * 6, "holds string"),
                         ([None, *X[1:, 0].tolist()], "row 1")])  # fmt: skip
def test_text_and_holes_are_refused_by_column(column: Any, message: str, write: Any) -> None:
    with pytest.raises(gl.GradlabError) as refusal:
        gl.read_sequences(write(a=X[:, 0], b=column))
    assert "column b" in str(refusal.value)
    assert message in str(refusal.value)


def test_infinity_is_named_by_row(write: Any) -> None:
    with pytest.raises(gl.NonFiniteError, match="column a, row 3: inf"):
        gl.read_sequences(write(a=[1.0, 2.0, np.inf]))


def test_damaged_file_is_one_clear_error(write: Any) -> None:
    path = write(a=X[:, 0])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(gl.InputFileError, match="cannot be read as a Parquet table"):
        gl.read_sequences(path)


def test_missing_extra_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + bytes(40))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(gl.MissingExtraError, match=r"pip install 'gradlab-rnn\[parquet\]'"):
        gl.read_sequences(path)
