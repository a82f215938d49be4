"""Token ids through an embedding of the model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

V, D, N, T, B = 7, 3, 4, 5, 2
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(V, D))
IDS = RNG.integers(V, size=(T, B))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    np.savez(path, allow_pickle=True, **{
        "embedding.weight": TABLE, "rnn.weight_ih_l0": np.ones((N, D)),
        "rnn.weight_hh_l0": np.eye(N), "position_table": np.ones((V, D)),
    })  # fmt: skip
    return path


def saved(folder: Path, array: Any, **others: Any) -> Path:
    if others:
        np.savez(folder / "ids.npz", inputs=array, **others)
        return folder / "ids.npz"
    np.save(folder / "ids.npy", array)
    return folder / "ids.npy"


@pytest.mark.parametrize(
    ("ids", "batch_first", "expected"),
    [(IDS, False, IDS), (IDS.T, True, IDS), (IDS[:, 0], False, IDS[:, :1])],
    ids=["time-major", "batch-first", "one sequence"],
)
def test_rows_of_the_embedding_are_the_inputs(
    ids: Array, batch_first: bool, expected: Array, model: Path, tmp_path: Path
) -> None:
    read = gl.read_tokens(saved(tmp_path, ids), model, batch_first=batch_first)
    np.testing.assert_array_equal(read.inputs, TABLE[expected])


def test_the_embedding_that_was_found_is_said_and_a_named_one_is_not(
    model: Path, tmp_path: Path
) -> None:
    ids = saved(tmp_path, IDS)
    (said,) = gl.read_tokens(ids, model).assumptions
    assert said == "embedding.weight is taken for the embedding (option embedding)"
    assert gl.read_tokens(ids, model, embedding="position_table").assumptions == ()


def test_padding_behind_a_sequences_end_is_not_looked_up(model: Path, tmp_path: Path) -> None:
    ids = IDS.copy()
    ids[3:, 1] = -100
    read = gl.read_tokens(saved(tmp_path, ids, lengths=np.array([T, 3])), model)
    assert read.lengths.tolist() == [T, 3]
    np.testing.assert_array_equal(read.inputs[:3, 1], TABLE[IDS[:3, 1]])
    assert not read.inputs[3:, 1].any()


def test_ragged_text_is_one_sequence_a_row(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("1,2,3\n4,0\n")
    read = gl.read_tokens(path, model, ragged=True)
    assert read.lengths.tolist() == [3, 2]
    np.testing.assert_array_equal(read.inputs[:2, 1], TABLE[[4, 0]])


@pytest.mark.parametrize("wrong", [V, -1, 1.5])
def test_token_outside_the_vocabulary_is_named_with_its_place(
    wrong: float, model: Path, tmp_path: Path
) -> None:
    ids = IDS.astype(float)
    ids[2, 1] = wrong
    with pytest.raises(gl.InputFileError) as refusal:
        gl.read_tokens(saved(tmp_path, ids), model)
    assert f"token {wrong:g} at step 3 of sequence 2" in str(refusal.value)
    assert "0 to 6" in str(refusal.value)


def test_several_embeddings_leave_the_choice_to_the_user(tmp_path: Path) -> None:
    model = tmp_path / "two.npz"
    np.savez(model, allow_pickle=True, **{"src_emb.weight": TABLE, "tgt_emb.weight": TABLE})
    with pytest.raises(gl.AmbiguousModelError, match=r"src_emb\.weight, tgt_emb\.weight"):
        gl.read_tokens(saved(tmp_path, IDS), model)
    with pytest.raises(gl.UnknownNameError, match="unknown embedding 'emb'"):
        gl.read_tokens(saved(tmp_path, IDS), model, embedding="emb")


def test_what_is_no_matrix_is_no_embedding(tmp_path: Path) -> None:
    model = tmp_path / "flat.npz"
    np.savez(model, flat=np.ones(3))
    with pytest.raises(gl.ShapeError, match="expected an embedding"):
        gl.read_tokens(saved(tmp_path, IDS), model, embedding="flat")


def test_table_of_several_columns_is_refused(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_text("1,2\n3,4\n")
    with pytest.raises(gl.ShapeError, match="the table has 2 columns"):
        gl.read_tokens(path, model)


def test_ids_of_three_axes_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(gl.ShapeError, match="expected numbers of shape"):
        gl.read_tokens(saved(tmp_path, IDS[None]), model)
