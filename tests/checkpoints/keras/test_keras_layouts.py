"""Where Keras puts weights, over its versions: the layer is found by its name and its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.checkpoints.keras.conftest import KerasWriter

pytest.importorskip("h5py")

PARTS = ("kernel:0", "recurrent_kernel:0", "bias:0")
ONE = np.ones((1, 1))


def named(prefix: str, weights: Sequence[Array]) -> dict[str, Array]:
    """Weights by the names of Keras 2."""
    return {
        f"{prefix}/{part}": weight
        for part, weight in zip(PARTS[: len(weights)], weights, strict=True)
    }


def shapes(network: gl.Network) -> dict[str, tuple[str, int, int]]:
    return {name: (cell.kind, cell.input_size, cell.hidden_size) for name, cell in network.items()}


def blocks(values: Sequence[float]) -> Array:
    """One unit, with a recurrent number for each gate in the file's order."""
    return np.array([list(values)])


@pytest.mark.parametrize("level", ["lstm/lstm_cell", "lstm"])
def test_arrays_of_keras_2_are_read_with_or_without_a_level_for_the_cell(
    keras: KerasWriter, level: str
) -> None:
    """Case H36: the gates are columns 0-1 i, 2-3 f, 4-5 c, 6-7 o; W_hh of a gate is transposed."""
    kernel, recurrent, bias = keras.weights("LSTM", 3, 2)
    gates = {"activation": "tanh", "recurrent_activation": "sigmoid", "time_major": False}
    config = keras.sequential(("LSTM", {"name": "lstm", **gates}))
    path = keras.listed({"lstm": named(level, [kernel, recurrent, bias])}, config=config)
    cell = gl.load(path)["lstm"]
    assert (cell.kind, cell.hidden_size, cell.input_size) == ("lstm", 2, 3)
    for gate in range(4):
        columns = slice(2 * gate, 2 * gate + 2)
        np.testing.assert_array_equal(cell.parameters["W_h"][columns], recurrent[:, columns].T)
        np.testing.assert_array_equal(cell.parameters["W_x"][columns], kernel[:, columns].T)
        np.testing.assert_array_equal(cell.parameters["b_x"][columns], bias[columns])


def test_gates_come_in_the_order_of_gradlab(keras: KerasWriter) -> None:
    """Case H29: blocks 1, 2, 3, 4 in the file's order are i, f, c, o; of a GRU z, r, h."""
    lstm = [np.zeros((1, 4)), blocks([1, 2, 3, 4]), np.zeros(4)]
    gru = [np.zeros((1, 3)), blocks([1, 2, 3]), np.array([[4.0, 5, 6], [7, 8, 9]])]
    path = keras.listed({"a": named("a/a", lstm), "b": named("b/b", gru)})
    network = gl.load(path)
    sigma = gl.spectral_summary(network["a"]).gates
    assert {gate: sigma[gate].sigma_max for gate in "ifgo"} == {"i": 1, "f": 2, "g": 3, "o": 4}
    assert network["b"].parameters["W_h"].ravel().tolist() == [2, 1, 3]
    assert network["b"].parameters["b_x"].tolist() == [5, 4, 6]
    assert network["b"].parameters["b_h"].tolist() == [8, 7, 9]


@pytest.mark.parametrize("split", [False, True])
def test_layers_come_in_the_order_of_the_list_and_not_of_the_alphabet(
    keras: KerasWriter, split: bool
) -> None:
    """Keras splits a long list over numbered attributes."""
    names = [f"z{index}" for index in range(11)] + ["a"]
    layers = {name: named(name, keras.weights("LSTM", 2, 2)) for name in names}
    assert list(gl.load(keras.listed(layers, split=split))) == names


@pytest.mark.parametrize("reverse", [False, True])
def test_order_of_a_list_of_layers_is_that_of_the_configuration(
    keras: KerasWriter, reverse: bool
) -> None:
    """The configuration of older files is a list without names around it."""
    entries = keras.sequential(
        ("Embedding", {"name": "e"}), ("LSTM", {"name": "b"}), ("LSTM", {"name": "a"})
    )["config"]["layers"]
    layers = {name: named(f"{name}/{name}", keras.weights("LSTM", 2, 2)) for name in "ab"}
    order = dict(sorted(layers.items(), reverse=reverse))
    path = keras.listed(order, config={"class_name": "Sequential", "config": entries})
    network = gl.load(path)
    assert list(network) == ["b", "a"]
    assert [(entry.stack, entry.layer) for entry in network.recurrences] == [("b", 0), ("b", 1)]


def test_class_decides_and_not_the_name(keras: KerasWriter) -> None:
    config = keras.sequential(("SimpleRNN", {"name": "lstm", "activation": "relu"}))
    path = keras.listed({"lstm": named("lstm", keras.weights("SimpleRNN", 3, 4))}, config=config)
    cell = gl.load(path)["lstm"]
    assert isinstance(cell, gl.VanillaCell)
    assert cell.activation == "relu"


def test_directions_of_old_files_are_told_apart_by_their_names(keras: KerasWriter) -> None:
    """No backward_layer in the configuration, and the backward weights listed first."""
    forward, backward = (keras.weights("GRU", 3, 2, seed=seed) for seed in (1, 2))
    weights = named("both/backward_gru_1", backward) | named("both/forward_gru_1", forward)
    inner = {"class_name": "GRU", "config": {"name": "gru_1", "return_sequences": True}}
    config = keras.sequential(("Bidirectional", {"name": "both", "layer": inner}))
    for network in (
        gl.load(keras.listed({"both": weights}, config=config)),
        gl.load(keras.listed({"both": weights}, name="weights.h5")),
    ):
        entries = {entry.name: entry for entry in network.recurrences}
        for side, stored in (("forward", forward), ("backward", backward)):
            entry = entries[f"both.{side}"]
            assert (entry.direction, entry.layer, entry.stack) == (side, 0, "both")
            np.testing.assert_array_equal(entry.cell.parameters["W_x"][2:4], stored[0].T[:2])


def test_weights_of_a_nested_model_are_joined_by_name(keras: KerasWriter) -> None:
    """They share the group of the model, where frozen layers are listed last."""
    inner = keras.sequential(("LSTM", {"name": "one"}), ("LSTM", {"name": "two"}))
    config = keras.sequential(("Sequential", inner["config"] | {"name": "encoder"}))
    weights = named("two/two", keras.weights("LSTM", 4, 5)) | named(
        "one/one", keras.weights("LSTM", 3, 4)
    )
    network = gl.load(keras.listed({"encoder": weights}, config=config))
    assert shapes(network) == {"encoder.one": ("lstm", 3, 4), "encoder.two": ("lstm", 4, 5)}


def test_weights_whose_names_tell_nothing_are_joined_in_order(keras: KerasWriter) -> None:
    cells = [{"class_name": f"{kind}Cell", "config": {"name": name}}
             for kind, name in (("LSTM", "low"), ("GRU", "high"))]  # fmt: skip
    rnn = {"name": "rnn", "cell": {"class_name": "StackedRNNCells", "config": {"cells": cells}}}
    weights = named("rnn/a", keras.weights("LSTM", 3, 4)) | named(
        "rnn/b", keras.weights("GRU", 4, 2)
    )
    network = gl.load(keras.listed({"rnn": weights}, config=keras.sequential(("RNN", rnn))))
    assert shapes(network) == {"rnn.low": ("lstm", 3, 4), "rnn.high": ("gru", 4, 2)}
    assert [(entry.stack, entry.layer) for entry in network.recurrences] == [("rnn", 0), ("rnn", 1)]


def test_moments_of_the_optimizer_are_no_layers(keras: KerasWriter) -> None:
    """They have the shapes, and in old files the names, of the weights."""
    h5py = pytest.importorskip("h5py")
    weights = keras.weights("LSTM", 3, 2)
    path = keras.listed(
        {"lstm": named("lstm", weights)}, config=keras.sequential(("LSTM", {"name": "lstm"}))
    )
    with h5py.File(path, "a") as file:
        group = file.create_group("optimizer_weights")
        group.attrs["weight_names"] = np.array([b"lstm/kernel:0", b"lstm/recurrent_kernel:0"])
        for part, weight in zip(PARTS, weights, strict=True):
            group[f"training/Adam/lstm/{part}"] = 0 * weight
    moments = {f"optimizer/{index}/cell": [0 * weight for weight in weights] for index in range(2)}
    modern = keras.numbered({"layers/lstm/cell": weights} | moments, {"layers/lstm": "lstm"})
    for file in (path, modern):
        assert list(gl.load(file)) == ["lstm"]
        assert gl.load(file).only().parameters["W_h"].any()


@pytest.mark.parametrize("container", ["layers", "_layer_checkpoint_dependencies"])
@pytest.mark.parametrize("join", ["/", "\\"])
def test_files_without_names_are_joined_by_the_class_counted(
    keras: KerasWriter, container: str, join: str
) -> None:
    """tf.keras 2.12 and Keras 3.0 wrote no names; on Windows a path was one name."""
    config = keras.sequential(
        ("GRU", {"name": "b"}), ("Dense", {"name": "d"}), ("GRU", {"name": "gru"})
    )
    inner = keras.folder / "inner.h5"
    with pytest.importorskip("h5py").File(inner, "w") as file:
        for name, sizes in (("gru", (3, 4)), ("gru_1", (5, 2))):
            for index, weight in enumerate(keras.weights("GRU", *sizes)):
                file[join.join((container, name, "cell", "vars", str(index)))] = weight
    path = keras.zipped(config, {}, weights=inner)
    assert shapes(gl.load(path)) == {"b": ("gru", 3, 4), "gru": ("gru", 5, 2)}


def test_layers_of_a_file_of_weights_come_by_number(keras: KerasWriter) -> None:
    sizes = list(range(2, 14))
    paths = ["layers/gru", *(f"layers/gru_{index}" for index in range(1, 11))]
    cells = {
        f"{path}/cell": keras.weights("GRU", below, size)
        for path, below, size in zip(paths, sizes[:-1], sizes[1:], strict=True)
    }
    names = {path: path.rpartition("/")[2] for path in paths}
    network = gl.load(keras.numbered(cells, names))
    assert [cell.hidden_size for cell in network.values()] == sizes[1:]
    assert [entry.layer for entry in network.recurrences] == list(range(11))
    assert "gru -> gru_1 -> gru_2" in network.assumptions[0]


def test_attributes_of_a_subclassed_model_name_its_layers(keras: KerasWriter) -> None:
    """Its configuration lists no layers."""
    cells = {
        "encoder/cell": keras.weights("LSTM", 3, 4),
        "decoder/backward_layer/cell": keras.weights("GRU", 4, 2, bias=(2, 6)),
        "decoder/forward_layer/cell": keras.weights("GRU", 4, 2, bias=(2, 6)),
        "head": [np.ones((4, 2)), np.ones(2)],
        "step": keras.weights("SimpleRNN", 2, 2),
    }
    names = {"encoder": "lstm_7", "decoder": "bidirectional_2", "step": "simple_rnn_cell_3"}
    custom = {"module": None, "registered_name": "Model"}
    config: dict[str, Any] = {"class_name": "Model", "config": {}, **custom}
    for path in (keras.zipped(config, cells, names), keras.numbered(cells, names)):
        network = gl.load(path)
        assert shapes(network) == {
            "decoder.forward": ("gru", 4, 2), "decoder.backward": ("gru", 4, 2),
            "encoder": ("lstm", 3, 4), "step": ("rnn", 2, 2),
        }  # fmt: skip
        assert any("does not say what feeds decoder, encoder, step" in said
                   for said in network.assumptions)  # fmt: skip


def test_two_layers_of_one_name_are_told_apart_by_their_paths(keras: KerasWriter) -> None:
    cells = {f"layers/{path}/cell": keras.weights("GRU", 2, 2) for path in ("a", "b")}
    network = gl.load(keras.numbered(cells, {"layers/a": "same", "layers/b": "same"}))
    assert list(network) == ["layers/a/cell", "layers/b/cell"]


def test_half_precision_that_numpy_does_not_know_is_widened(keras: KerasWriter) -> None:
    """Keras stores bfloat16 as two bytes without a type."""
    exact = [np.array([[0.5, -1.25, 3.0]]), np.array([[1.0, 0.75, -2.0]]), np.zeros(3)]
    halves = [(array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2")
              for array in exact]  # fmt: skip
    network = gl.load(keras.numbered({"layers/gru/cell": halves}, {"layers/gru": "gru"}))
    np.testing.assert_array_equal(network["gru"].parameters["W_h"].ravel(), [0.75, 1.0, -2.0])
    assert network.recurrences[0].stored_dtype == "float32"


def wired(
    name: str, kind: str, *sources: str, modern: bool = True, **config: Any
) -> dict[str, Any]:
    """A layer of a functional model, with what it reads in either spelling."""
    histories = [[source, 0, 0] for source in sources]
    if modern:
        tensors = [{"class_name": "__keras_tensor__", "config": {"keras_history": history}}
                   for history in histories]  # fmt: skip
        nodes: list[Any] = [{"args": tensors, "kwargs": {}}] if sources else []
    else:
        nodes = [[[*history, {}] for history in histories]] if sources else []
    settings = {"name": name, "return_sequences": True, **config}
    return {"class_name": kind, "name": name, "config": settings, "inbound_nodes": nodes}


@pytest.mark.parametrize("modern", [True, False])
def test_stacks_are_the_layers_that_feed_each_other(keras: KerasWriter, modern: bool) -> None:
    entries = [
        wired("in", "InputLayer", modern=modern),
        wired("a", "LSTM", "in", modern=modern),
        wired("drop", "Dropout", "a", modern=modern),
        wired("b", "LSTM", "drop", modern=modern),
        wired("branch", "LSTM", "a", modern=modern),
        wired("dense", "Dense", "b", modern=modern),
        wired("c", "LSTM", "dense", modern=modern, return_sequences=False),
        wired("again", "RepeatVector", "c", modern=modern),
        wired("d", "LSTM", "again", modern=modern, go_backwards=True),
        wired("e", "LSTM", "d", "in", modern=modern),
        wired("other", "LSTM", "in", modern=modern),
    ]
    config = {"class_name": "Functional", "config": {
        "name": "model", "layers": entries, "input_layers": [["in", 0, 0]],
        "output_layers": [["e", 0, 0]]}}  # fmt: skip
    names = [entry["name"] for entry in entries if entry["class_name"] == "LSTM"]
    layers = {name: named(name, keras.weights("LSTM", 2, 2)) for name in names}
    network = gl.load(keras.listed(layers, config=config), batch_first=True)
    assert [(entry.name, entry.stack, entry.layer) for entry in network.recurrences] == [
        ("a", "a", 0), ("b", "a", 1), ("branch", "branch", 0), ("c", "c", 0), ("d", "d", 0),
        ("e", "e", 0), ("other", "other", 0),
    ]  # fmt: skip
    reads = dict(said.split(", not the")[0].split(" reads ") for said in network.assumptions
                 if " reads " in said)  # fmt: skip
    assert reads == {
        "branch": "the sequence of a",
        "c": "dense (Dense)",
        "d": "again (RepeatVector)",
        "e": "the reverse of d",
    }


@pytest.mark.parametrize(
    ("mode", "stacks"), [("concat", ["both", "both", "both"]), ("sum", ["both", "both", "top"])]
)
def test_layer_reads_both_directions_only_if_they_stand_side_by_side(
    keras: KerasWriter, mode: str, stacks: list[str]
) -> None:
    inner = {"class_name": "GRU", "config": {"name": "gru", "return_sequences": True}}
    config = keras.sequential(
        ("Bidirectional", {"name": "both", "layer": inner, "merge_mode": mode}),
        ("GRU", {"name": "top"}),
    )
    D = 4 if mode == "concat" else 2
    both = named("both/forward_gru", keras.weights("GRU", 3, 2)) | named(
        "both/backward_gru", keras.weights("GRU", 3, 2)
    )
    path = keras.listed(
        {"both": both, "top": named("top/top", keras.weights("GRU", D, 2))}, config=config
    )
    assert [entry.stack for entry in gl.load(path).recurrences] == stacks


@pytest.mark.parametrize("broken", ["class", "size"])
def test_stack_is_cut_above_a_layer_that_is_left_out(keras: KerasWriter, broken: str) -> None:
    """Else the layer above would be run on the output of the layer below the gap."""
    kind = "MyLSTM" if broken == "class" else "Dropout"
    config = keras.sequential(
        ("LSTM", {"name": "a"}), (kind, {"name": "b"}), ("LSTM", {"name": "c"}),
        ("LSTM", {"name": "d"}),
    )  # fmt: skip
    D = 2 if broken == "class" else 3
    layers = {name: named(name, keras.weights("LSTM", size, 2))
              for name, size in (("a", 2), ("b", 2), ("c", D), ("d", 2))
              if name != "b" or broken == "class"}  # fmt: skip
    network = gl.load(keras.listed(layers, config=config))
    assert [(entry.name, entry.stack, entry.layer) for entry in network.recurrences] == [
        ("a", "a", 0), ("c", "c", 0), ("d", "c", 1),
    ]  # fmt: skip
    assert any(said.startswith("c reads a layer that was left out") for said in network.assumptions)


def test_layer_inside_a_wrapper_is_read_under_the_wrappers_name(keras: KerasWriter) -> None:
    inner = {"class_name": "LSTM", "config": {"name": "lstm", "activation": "leaky_relu"}}
    config = keras.sequential(("TimeDistributed", {"name": "td", "layer": inner}))
    path = keras.zipped(
        config, {"layers/time_distributed/layer/cell": keras.weights("LSTM", 3, 2)},
        {"layers/time_distributed": "td", "layers/time_distributed/layer": "lstm"},
    )  # fmt: skip
    cell = gl.load(path)["td"]
    assert isinstance(cell, gl.LSTMCell)
    assert (cell.input_size, cell.activation) == (3, "leaky_relu(0.2)")
