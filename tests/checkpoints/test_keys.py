"""Which key is what: prefixes, layers, directions, wrappers, several networks in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

if TYPE_CHECKING:
    from tests.checkpoints.conftest import ModelWriter

HALF = 0.5 * np.eye(2)


def sigmas(network: gl.Network) -> dict[str, float]:
    """Largest singular value by name."""
    return {
        name: float(np.linalg.norm(cell.parameters["W_hh"], 2)) for name, cell in network.items()
    }


@pytest.mark.parametrize(
    ("prefix", "suffix", "name"),
    [
        ("rnn.", "_l0", "rnn.l0"),
        ("module.rnn.", "_l0", "module.rnn.l0"),
        ("_orig_mod.module.rnn.", "_l0", "_orig_mod.module.rnn.l0"),
        ("", "_l0", "l0"),
        ("", "", "cell"),
        ("encoder.cell.", "", "encoder.cell"),
        ("encoder/", "_l0", "encoder.l0"),
    ],
)
def test_recurrence_is_found_by_the_end_of_its_key_and_named_by_the_prefix(
    write: ModelWriter, prefix: str, suffix: str, name: str
) -> None:
    """Case H33."""
    layer = write.layer(HALF, prefix, suffix)
    for path in (write.torch(layer), write.npz(layer), write.legacy(layer, name="old.pt")):
        network = gl.load(path)
        assert sigmas(network) == {name: 0.5}
        assert network.only().state_size == 2


def test_every_layer_and_direction_is_listed_with_its_own_numbers(write: ModelWriter) -> None:
    """Case H32: layer by layer, forward first, whatever the order of the keys in the file."""
    layers = (
        ("_l1_reverse", 0.8, 4),
        ("_l0_reverse", 0.6, 3),
        ("_l1", 0.7, 4),
        ("_l0", 0.5, 3),
    )
    tensors: dict[str, Array] = {}
    for suffix, sigma, D in layers:
        tensors |= write.layer(sigma * np.eye(2), "", suffix, D)
    network = gl.load(write.torch(tensors))
    assert sigmas(network) == {"l0": 0.5, "l0.reverse": 0.6, "l1": 0.7, "l1.reverse": 0.8}
    assert list(network) == ["l0", "l0.reverse", "l1", "l1.reverse"]
    assert [cell.input_size for cell in network.values()] == [3, 3, 4, 4]


@pytest.mark.parametrize("wrapper", ["state_dict", "model_state_dict", "model", "net", "ema"])
def test_wrapper_dictionary_does_not_enter_the_name(write: ModelWriter, wrapper: str) -> None:
    checkpoint = {"epoch": 3, "lr": 1e-3, wrapper: write.layer(HALF, "model.rnn.")}
    assert list(gl.load(write.torch(checkpoint))) == ["model.rnn.l0"]


def test_dictionary_that_is_no_wrapper_is_a_part_of_the_model(write: ModelWriter) -> None:
    checkpoint = {"encoder": write.layer(HALF), "decoder": write.layer(2 * HALF)}
    assert sigmas(gl.load(write.torch(checkpoint))) == {"encoder.l0": 0.5, "decoder.l0": 1.0}


@pytest.mark.parametrize("order", [("state_dict", "ema"), ("ema", "state_dict")])
def test_running_average_is_a_recurrence_under_its_own_prefix(
    write: ModelWriter, order: tuple[str, str]
) -> None:
    weights = {"state_dict": write.layer(HALF, "rnn."), "ema": write.layer(2 * HALF, "rnn.")}
    network = gl.load(write.torch({key: weights[key] for key in order}))
    assert sigmas(network) == {"rnn.l0": 0.5, "ema.rnn.l0": 1.0}


def test_networks_side_by_side_in_one_file_are_separate_stacks(write: ModelWriter) -> None:
    layers = write.layer(HALF, "b.rnn.") | write.layer(2 * HALF, "a.rnn.")
    network = gl.load(write.npz(layers))
    assert list(network) == ["b.rnn.l0", "a.rnn.l0"]
    assert network.stacks == ("b.rnn", "a.rnn")


def test_moments_of_an_optimizer_are_no_recurrences(write: ModelWriter) -> None:
    """They have the weights' shapes, and some optimizers keep them under the weights' names."""
    moments = {"exp_avg": write.layer(HALF, "rnn."), "exp_avg_sq": write.layer(HALF, "rnn.")}
    by_number = {"state": {0: {"exp_avg": HALF}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    checkpoint = {
        "model": write.layer(HALF, "rnn."),
        "optimizer": moments,
        "optimizer_states": [by_number],
    }
    assert list(gl.load(write.torch(checkpoint))) == ["rnn.l0"]


def test_tensors_of_other_layers_are_never_read(write: ModelWriter) -> None:
    """The head's storage lies outside the file: only someone who reads it can notice."""
    broken = write.view(np.zeros(1), 10**6, (4, 4), (4, 1))
    layer: dict[str, object] = {**write.layer(HALF, "rnn."), "head.weight": broken}
    assert list(gl.load(write.torch(layer))) == ["rnn.l0"]


def test_arrays_under_the_letters_of_the_derivation_are_a_layer(write: ModelWriter) -> None:
    rng = np.random.default_rng(0)
    arrays = {"W_hh": rng.normal(size=(4, 4)), "W_xh": rng.normal(size=(4, 2)), "b_h": np.ones(4)}
    network = gl.load(write.npz(arrays))
    assert list(network) == ["cell"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(network["cell"].parameters[name], array)
    del arrays["b_h"]
    without = gl.load(write.npz(arrays))
    np.testing.assert_array_equal(without.only().parameters["b_h"], np.zeros(4))


def test_layer_that_is_missing_in_the_middle_is_an_error(write: ModelWriter) -> None:
    tensors = write.layer(HALF, "rnn.") | write.layer(HALF, "rnn.", "_l2", 2)
    with pytest.raises(gl.ModelFileError, match=r"rnn\.weight_hh_l2 leave out a layer"):
        gl.load(write.npz(tensors))


def test_backward_direction_alone_is_an_error(write: ModelWriter) -> None:
    with pytest.raises(gl.ModelFileError, match="forward direction"):
        gl.load(write.npz(write.layer(HALF, "rnn.", "_l0_reverse")))


def test_two_spellings_of_one_layer_are_refused_as_ambiguous(write: ModelWriter) -> None:
    both = write.layer(HALF, "rnn.") | write.layer(HALF, "rnn.", "")
    with pytest.raises(gl.AmbiguousModelError, match=r"rnn\.weight_hh"):
        gl.load(write.npz(both))


def test_file_without_recurrent_keys_lists_what_it_holds(write: ModelWriter) -> None:
    arrays = {"a": np.ones((2, 2)), "b": np.ones((2, 2))}
    with pytest.raises(gl.ModelFileError, match=r"tensors a, b: expected keys .*weight_hh_l0"):
        gl.load(write.npz(arrays))


@pytest.mark.parametrize("gates", [2, 5])
def test_cell_of_unknown_gates_is_refused_by_their_number(write: ModelWriter, gates: int) -> None:
    tensors = write.layer(np.ones((2 * gates, 2)), "mlstm.")
    with pytest.raises(gl.ModelFileError, match=rf"mlstm\.l0 is a cell of {gates} gates"):
        gl.load(write.npz(tensors))
