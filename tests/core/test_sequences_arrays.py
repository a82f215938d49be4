"""Sequences from NumPy files: layouts, lengths, refusals; and synthetic ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.arrays import Array

TIME, BATCH, FEATURES = 5, 3, 2
X = np.arange(float(TIME * BATCH * FEATURES)).reshape(TIME, BATCH, FEATURES)


def saved(folder: Path, array: Array, **others: Array) -> Path:
    """File of one array, or of ``inputs`` and others."""
    if not others:
        np.save(folder / "x.npy", array)
        return folder / "x.npy"
    np.savez(folder / "x.npz", allow_pickle=True, inputs=array, **others)
    return folder / "x.npz"


@pytest.mark.parametrize(
    ("array", "expected"),
    [(X, X), (X[:, 0], X[:, :1]), (X[:, 0, 0], X[:, :1, :1])],
    ids=["three axes", "two axes", "one axis"],
)
def test_missing_axes_are_one_sequence_and_one_feature(
    tmp_path: Path, array: Array, expected: Array
) -> None:
    sequences = gl.read_sequences(saved(tmp_path, array))
    np.testing.assert_array_equal(sequences.inputs, expected)
    assert sequences.lengths.tolist() == [TIME] * expected.shape[1]
    assert not sequences.synthetic
    assert sequences.description.startswith("x.npy, axes (time")


def test_batch_first_is_a_transpose_and_never_a_reshape(tmp_path: Path) -> None:
    """Case H26."""
    path = saved(tmp_path, X.transpose(1, 0, 2))
    np.testing.assert_array_equal(gl.read_sequences(path, batch_first=True).inputs, X)
    assert gl.read_sequences(path).inputs.shape == (BATCH, TIME, FEATURES)


@pytest.mark.parametrize(
    ("batch_first", "axes"), [(False, "(time, batch, features)"), (True, "(batch, time, features)")]
)
def test_equal_axes_are_read_aloud(tmp_path: Path, batch_first: bool, axes: str) -> None:
    path = saved(tmp_path, X[:BATCH])
    (said,) = gl.read_sequences(path, batch_first=batch_first).assumptions
    assert said == f"x.npy has 3 steps and 3 sequences: axes read as {axes} (option batch_first)"
    assert gl.read_sequences(saved(tmp_path, X)).assumptions == ()


def test_padding_is_cleared_whatever_stands_in_it(tmp_path: Path) -> None:
    """Case H25: NaN behind the end of a sequence is no data, and can poison nothing."""
    padded = X.copy()
    padded[2:, 1] = np.nan
    path = saved(tmp_path, padded, lengths=np.array([5, 2, 4], dtype=np.int32))
    sequences = gl.read_sequences(path)
    assert sequences.lengths.tolist() == [5, 2, 4]
    valid = np.arange(TIME)[:, None] < sequences.lengths
    np.testing.assert_array_equal(sequences.inputs, np.where(valid[:, :, None], X, 0.0))


@pytest.mark.parametrize(
    ("lengths", "kind", "part"),
    [
        ([5, 0, 5], gl.SettingError, "sequence 2 has length 0"),
        ([5, 5, 6], gl.SettingError, "sequence 3 has length 6"),
        ([-1, 5, 5], gl.SettingError, "sequence 1 has length -1"),
        ([5, 5], gl.ShapeError, "expected 3 integers"),
        ([[5], [5], [5]], gl.ShapeError, "expected 3 integers"),
        ([5.0, 5.0, 5.0], gl.ShapeError, "expected 3 integers"),
    ],
)
def test_lengths_that_do_not_fit_are_refused_by_sequence(
    tmp_path: Path, lengths: list[int], kind: type[gl.GradlabError], part: str
) -> None:
    """Case H27: sequences are counted from 1."""
    path = saved(tmp_path, X, lengths=np.array(lengths))
    with pytest.raises(kind, match=part) as refusal:
        gl.read_sequences(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_value_that_is_not_finite_is_named_by_its_index(tmp_path: Path, value: float) -> None:
    wrong = X.copy()
    wrong[3, 1, 0] = value
    with pytest.raises(gl.NonFiniteError, match=r"x\.npy.*inputs holds 1 .*\(3, 1, 0\)"):
        gl.read_sequences(saved(tmp_path, wrong))


@pytest.mark.parametrize("shape", [(), (0, 2, 1), (3, 0, 1), (3, 2, 0), (0,), (2, 2, 2, 2)])
def test_empty_and_surplus_axes_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(gl.ShapeError, match="no axis empty"):
        gl.read_sequences(saved(tmp_path, np.zeros(shape)))


@pytest.mark.parametrize("kind", ["int32", "uint8", "bool", "float16", ">f4"])
def test_real_numbers_of_any_type_become_float64(tmp_path: Path, kind: str) -> None:
    array = (X % 2).astype(kind)
    sequences = gl.read_sequences(saved(tmp_path, array))
    assert sequences.inputs.dtype == np.float64
    np.testing.assert_array_equal(sequences.inputs, X % 2)


@pytest.mark.parametrize(
    "array",
    [np.array([[None, 1.0]]), np.array([["a", "b"]]), np.ones((2, 2), complex)],
    ids=["objects", "text", "complex"],
)
def test_arrays_of_anything_else_are_refused(tmp_path: Path, array: Array) -> None:
    for others in ({}, {"lengths": np.array([1])}):
        with pytest.raises(gl.GradlabError, match=r"expected (real )?numbers"):
            gl.read_sequences(saved(tmp_path, array, **others))


def test_archive_of_one_array_needs_no_name(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", anything=X)
    np.testing.assert_array_equal(gl.read_sequences(tmp_path / "x.npz").inputs, X)


def test_archive_of_several_arrays_needs_one_named_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=X, b=X)
    with pytest.raises(gl.InputFileError, match="arrays named a, b: expected inputs"):
        gl.read_sequences(tmp_path / "x.npz")


def test_features_are_chosen_by_index(tmp_path: Path) -> None:
    path = saved(tmp_path, X)
    for columns in ([1], ["1"]):
        chosen = gl.read_sequences(path, columns=columns).inputs
        np.testing.assert_array_equal(chosen, X[:, :, 1:])
    with pytest.raises(gl.SettingError, match=r"column 2: expected one of 0 to 1"):
        gl.read_sequences(path, columns=[2])


def test_rows_of_a_numpy_file_cannot_be_ragged(tmp_path: Path) -> None:
    with pytest.raises(gl.SettingError, match="text files"):
        gl.read_sequences(saved(tmp_path, X), ragged=True)


def test_file_that_is_missing_empty_or_a_folder_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "empty.npy").touch()
    for name, part in (("none.npy", "does not exist"), ("", "a folder"), ("empty.npy", "empty")):
        with pytest.raises(gl.InputFileError, match=part):
            gl.read_sequences(tmp_path / name)


def test_numpy_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    for whole in (saved(tmp_path, X), saved(tmp_path, X, lengths=np.array([5, 5, 5]))):
        data = whole.read_bytes()
        for length in range(0, len(data), 7):
            whole.write_bytes(data[:length])
            with pytest.raises(gl.InputFileError, match=r"x\.np"):
                gl.read_sequences(whole)


@settings(max_examples=150, deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), max_size=4))
def test_changed_bytes_of_an_array_give_clear_errors_only(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("edited")
    path = saved(folder, X)
    data = bytearray(path.read_bytes())
    for place, bits in edits:
        data[place % len(data)] ^= bits
    path.write_bytes(data)
    try:
        sequences = gl.read_sequences(path)
    except gl.GradlabError as error:
        message = str(error)
    else:
        message = str(path)
        assert np.isfinite(sequences.inputs).all()
    assert str(path) in message


def test_record_is_closed_to_writing() -> None:
    sequences = gl.Sequences(inputs=X, lengths=np.array([5, 5, 5]), description="x")
    for array in (sequences.inputs, sequences.lengths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    X[0, 0, 0] += 1.0
    assert sequences.inputs[0, 0, 0] == X[0, 0, 0] - 1.0
    X[0, 0, 0] -= 1.0
