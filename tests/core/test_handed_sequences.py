"""Mistakes that users of other tools reported: padding, layouts, empty sequences and tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from jaxtyping import Float

import gradlab as gl
from gradlab.arrays import Array

TWO_SEQUENCES = np.array([[[1.0], [0.5], [-0.5]], [[0.2], [-0.4], [0.6]]])  # batch first


def scalar_cell(bias: float) -> gl.VanillaCell:
    return gl.VanillaCell(
        W_hh=np.array([[0.5]]), W_xh=np.array([[1.0]]), b_h=np.array([bias]), activation="tanh"
    )


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=[0.0, 1e30, np.nan], ids=["zero", "huge", "nan"])
def padded(request: pytest.FixtureRequest) -> Float[Array, "time batch features"]:
    """Sequences (1, 1, 1) and (1), with something behind the end of the second."""
    rest = float(request.param)
    return np.array([[[1.0], [1.0]], [[1.0], [rest]], [[1.0], [rest]]])


def test_padding_enters_no_number(padded: Float[Array, "time batch features"]) -> None:
    """Case H25: states behind the end are not 0 by themselves, for there is a bias."""
    cell = scalar_cell(1.0)
    trajectory = gl.rollout(cell, padded, lengths=np.array([3, 1]))
    longer = [0.96402758, 0.98612742, 0.98642858]
    np.testing.assert_allclose(trajectory.states[1:, 0, 0], longer, atol=5e-9)
    assert trajectory.states[1, 1, 0] == pytest.approx(0.96402758, abs=5e-9)
    counted = np.abs(trajectory.states[1:])[trajectory.valid]
    assert counted.size == 4
    assert counted.mean() == pytest.approx(0.9751527891, abs=5e-11)
    saturation = gl.saturation(cell, trajectory, threshold=0.97, strict=True)
    assert saturation.saturated_share == 0.5
    slopes = 1.0 - counted**2
    assert saturation.mean_derivative == pytest.approx(slopes.mean(), rel=1e-12)


def test_padding_adds_no_pairs(padded: Float[Array, "time batch features"]) -> None:
    """Case H25: a sequence of one step has the pair (1, 0) and no other."""
    cell = scalar_cell(1.0)
    trajectory = gl.rollout(cell, padded, lengths=np.array([3, 1]))
    profile = gl.jacobian_profile(cell, trajectory, anchors="all")
    pairs = list(zip(profile.sequence, profile.t, profile.k, strict=True))
    longer = [(0, t, k) for t in (1, 2, 3) for k in range(t - 1, -1, -1)]
    assert pairs == [*longer, (1, 1, 0)]
    ladder = gl.bound_ladder(cell, trajectory)
    assert ladder.lag[ladder.sequence == 1].tolist() == [1]
    assert np.all(np.isfinite(profile.log_norm))


@pytest.mark.parametrize("batch_first", [True, False])
def test_layout_is_an_option_and_the_array_is_transposed(tmp_path: Path, batch_first: bool) -> None:
    """Case H26: a reshape, or the wrong axis, gives other states without any error."""
    path = tmp_path / "x.npy"
    np.save(path, TWO_SEQUENCES)
    sequences = gl.read_sequences(path, batch_first=batch_first)
    expected = [-0.14554972, 0.4249712496] if batch_first else [0.52324452, -0.1673523, 0.35306544]
    assert sequences.inputs.shape == ((3, 2, 1) if batch_first else (2, 3, 1))
    final = gl.rollout(scalar_cell(0.0), sequences.inputs, lengths=sequences.lengths).final_states
    np.testing.assert_allclose(final[:, 0], expected, atol=1e-8)


def test_empty_sequence_is_refused_by_its_number() -> None:
    """Case H27: counted from 1, and never a mean over nothing."""
    inputs = np.ones((3, 2, 1))
    with pytest.raises(gl.GradlabError, match=r"sequence 2 .*length 0"):
        gl.rollout(scalar_cell(1.0), inputs, lengths=np.array([3, 0]))


def test_no_sequence_at_all_is_refused() -> None:
    """Case H27."""
    for shape in ((0, 2, 1), (3, 0, 1)):
        with pytest.raises(gl.ShapeError, match="at least one"):
            gl.rollout(scalar_cell(1.0), np.ones(shape))


def test_decimal_comma_is_an_option(tmp_path: Path) -> None:
    """Case H38: semicolons between cells, a comma before the decimals."""
    path = written(tmp_path, "x.csv", "t;x", "0;0,5", "1;-1,25")
    for columns in (None, ["x"]):
        sequences = gl.read_sequences(path, separator=";", decimal=",", columns=columns)
        np.testing.assert_array_equal(sequences.inputs, [[[0.5]], [[-1.25]]])
        assert sequences.lengths.tolist() == [2]
    both = gl.read_sequences(path, separator=";", decimal=",", columns=["t", "x"])
    np.testing.assert_array_equal(both.inputs[:, 0, :], [[0.0, 0.5], [1.0, -1.25]])


def test_cell_that_is_no_number_is_refused_with_line_and_column(tmp_path: Path) -> None:
    """Case H38: without the options the same file must not become other numbers."""
    path = written(tmp_path, "x.csv", "t;x", "0;0,5", "1;-1,25")
    with pytest.raises(gl.InputFileError, match=r"x\.csv.*line 2"):
        gl.read_sequences(path)
    path = written(tmp_path, "y.csv", "t,x", "0,0.5", "1,abc")
    with pytest.raises(gl.InputFileError, match=r"line 3.*column 2.*'abc'"):
        gl.read_sequences(path)


def test_row_of_another_length_is_refused_in_a_table(tmp_path: Path) -> None:
    """Case H39: short rows are never padded in silence."""
    path = written(tmp_path, "x.csv", "1,2,3", "4,5", "6,7,8")
    with pytest.raises(gl.InputFileError, match="line 2"):
        gl.read_sequences(path)


def test_rows_of_unequal_length_are_sequences_on_request(tmp_path: Path) -> None:
    """Case H39: one sequence a row, lengths kept, values untouched."""
    path = written(tmp_path, "x.csv", "1,2,3", "4,5", "6,7,8")
    sequences = gl.read_sequences(path, ragged=True)
    assert sequences.lengths.tolist() == [3, 2, 3]
    rows = [sequences.inputs[:length, i, 0] for i, length in enumerate(sequences.lengths)]
    for row, values in zip(rows, ([1, 2, 3], [4, 5], [6, 7, 8]), strict=True):
        np.testing.assert_array_equal(row, values)
