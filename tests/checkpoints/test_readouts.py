"""Readouts and targets from files: the one layer that fits, or a line that says why not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
RNN = {"rnn.weight_ih_l0": np.ones((4, 2)), "rnn.weight_hh_l0": np.eye(4)}


def saved(folder: Path, extra: Mapping[str, Array]) -> Path:
    path = folder / "model.npz"
    np.savez(path, **RNN, **extra)  # type: ignore[arg-type]
    return path


def test_the_digits_readout_gives_the_logits_of_the_framework() -> None:
    with np.load(FIXTURES.parent / "digits" / "digits.oracle.npz", allow_pickle=False) as oracle:
        states, logits = oracle["s"], oracle["logits"]
    readout = gl.load_readout(DIGITS / "digits_rnn.safetensors")
    np.testing.assert_allclose(readout.outputs(states[-1]), logits, rtol=0.0, atol=1e-12)
    assert readout.source == "readout.weight (10, 64) with readout.bias"


@pytest.mark.parametrize("name", ["trained_rnn_echo3", "trained_lstm_echo8", "trained_gru_echo8"])
def test_a_prefix_of_any_name_and_any_cell_will_do(name: str) -> None:
    readout = gl.load_readout(FIXTURES / f"{name}.pt", loss="squared_error")
    [cell] = gl.load(FIXTURES / f"{name}.pt").values()
    assert readout.hidden_size == cell.hidden_size
    assert readout.source.startswith("out.weight (1, ")


def test_a_layer_without_bias_has_zeros_and_optimizer_moments_are_no_layers() -> None:
    readout = gl.load_readout(FIXTURES / "lstm_2l_lightning.pt")
    assert readout.source == "model.encoder.head.weight (2, 4) without a bias"
    assert not np.any(readout.b_y)


def test_gradlabs_own_names_are_read_too(tmp_path: Path) -> None:
    W_hy, b_y = np.arange(12.0).reshape(3, 4), np.array([1.0, 2.0, 3.0])
    np.savez(tmp_path / "own.npz", W_hh=np.eye(4), W_xh=np.ones((4, 1)), W_hy=W_hy, b_y=b_y)
    readout = gl.load_readout(tmp_path / "own.npz")
    np.testing.assert_array_equal(readout.W_hy, W_hy)
    np.testing.assert_array_equal(readout.b_y, b_y)


def test_both_directions_of_the_last_layer_count_as_outputs(tmp_path: Path) -> None:
    reverse = {f"{name}_reverse": array for name, array in RNN.items()}
    path = saved(tmp_path, reverse | {"out.weight": np.ones((3, 8)), "half.weight": np.eye(4)})
    assert gl.load_readout(path).source.startswith("out.weight (3, 8)")


def test_two_layers_that_fit_are_listed_and_one_is_named(tmp_path: Path) -> None:
    heads = {"fc.weight": np.ones((3, 4)), "tags.weight": np.ones((2, 4)), "tags.bias": np.ones(2)}
    path = saved(tmp_path, heads)
    with pytest.raises(gl.AmbiguousModelError) as caught:
        gl.load_readout(path)
    assert "fc.weight (3, 4), tags.weight (2, 4)" in str(caught.value)
    assert "option readout" in str(caught.value)
    for key in ("tags", "tags.weight"):
        assert gl.load_readout(path, key).source == "tags.weight (2, 4) with tags.bias"


def test_the_first_of_two_layers_in_a_row_is_not_taken_for_the_readout(tmp_path: Path) -> None:
    head = {"head.0.weight": np.ones((6, 4)), "head.2.weight": np.ones((3, 6))}
    path = saved(tmp_path, head)
    with pytest.raises(gl.AmbiguousModelError, match=r"may feed head\.2\.weight \(3, 6\)"):
        gl.load_readout(path)
    assert gl.load_readout(path, "head.0").output_size == 6


@pytest.mark.parametrize(
    ("extra", "key", "error", "words"),
    [
        ({}, None, gl.ModelFileError, "there is none at all"),
        ({"fc.weight": np.ones((3, 5))}, None, gl.ModelFileError, r"found fc\.weight \(3, 5\)"),
        ({"fc.weight": np.ones((3, 5))}, "fc", gl.ShapeError, r"expected \(outputs, 4\)"),
        ({"fc.weight": np.ones((3, 4))}, "fd", gl.UnknownNameError, r"fc\.weight"),
        (
            {"fc.weight": np.ones((3, 4)), "fc.bias": np.ones(4)},
            None,
            gl.ShapeError,
            r"fc\.bias has shape \(4,\)",
        ),
        ({"fc.weight": np.full((3, 4), np.nan)}, None, gl.NonFiniteError, r"fc\.weight"),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(
    tmp_path: Path, extra: Mapping[str, Array], key: str | None, error: type[Exception], words: str
) -> None:
    path = saved(tmp_path, extra)
    with pytest.raises(error, match=words) as caught:
        gl.load_readout(path, key)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_a_recurrent_layer_has_no_readout(tmp_path: Path) -> None:
    np.savez(tmp_path / "mlp.npz", **{"fc.weight": np.ones((3, 4))})  # type: ignore[arg-type]
    with pytest.raises(gl.ModelFileError, match="no recurrent layer"):
        gl.load_readout(tmp_path / "mlp.npz")


def test_targets_keep_their_values_and_batch_first_ones_are_transposed(tmp_path: Path) -> None:
    classes, reals = np.arange(6).reshape(2, 3), np.arange(12.0).reshape(2, 3, 2)
    np.save(tmp_path / "classes.npy", classes)
    np.save(tmp_path / "reals.npy", reals)
    np.testing.assert_array_equal(gl.read_targets(tmp_path / "classes.npy"), classes)
    turned = gl.read_targets(tmp_path / "classes.npy", batch_first=True)
    np.testing.assert_array_equal(turned, classes.T)
    turned = gl.read_targets(tmp_path / "reals.npy", "squared_error", batch_first=True)
    np.testing.assert_array_equal(turned, reals.transpose(1, 0, 2))


def test_targets_of_the_last_step_have_no_time_axis_to_transpose(tmp_path: Path) -> None:
    reals = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "reals.npy", reals)
    read = gl.read_targets(tmp_path / "reals.npy", "squared_error", batch_first=True)
    np.testing.assert_array_equal(read, reals)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"0,1,2\n", r"no \.npy file"),
        (b"\x93NUMPY\x01\x00", "truncated or damaged"),
    ],
)
def test_a_file_of_targets_that_is_none_is_refused(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "targets.npy"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(gl.InputFileError, match=words) as caught:
        gl.read_targets(path)
    assert "\n" not in str(caught.value)


def test_pickled_targets_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(gl.InputFileError, match="Python objects"):
        gl.read_targets(tmp_path / "objects.npy")
