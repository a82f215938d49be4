"""Live Keras objects: stand-ins with the few methods that are asked for, and Keras where it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

if TYPE_CHECKING:
    from pathlib import Path

    from tests.checkpoints.keras.conftest import KerasWriter


@dataclass(eq=False)
class Layer:
    """What every Keras layer has."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    arrays: Sequence[Array] = ()

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "return_sequences": True, **self.settings}

    def get_weights(self) -> list[Array]:
        return list(self.arrays)


class Cell(Layer):
    """Holder of a layer's weights."""


class LSTMCell(Layer):
    """One of several cells."""


class Dense(Layer):
    """A layer that is not recurrent."""


@dataclass(eq=False)
class Recurrent(Layer):
    """A recurrent layer, whose weights are its cell's."""

    def __post_init__(self) -> None:
        self.cell = Cell("cell", arrays=self.arrays)


class LSTM(Recurrent):
    """Keras's class by its name and package."""


class GRU(Recurrent):
    """Likewise."""


class CuDNNLSTM(Layer):
    """A layer that holds its weights itself."""

    cell = (2, 2)


class MyLSTM(LSTM):
    """A class of the user's, of another package."""


class Stack:
    """Cells of one layer."""

    def __init__(self, cells: Sequence[Layer]) -> None:
        self.cells = list(cells)


class RNN(Layer):
    """A layer of several cells."""

    def __init__(self, name: str, cells: Sequence[Layer]) -> None:
        entries = [{"class_name": type(cell).__name__, "config": cell.get_config()}
                   for cell in cells]  # fmt: skip
        inner = {"class_name": "StackedRNNCells", "config": {"cells": entries}}
        super().__init__(name, {"cell": inner})
        self.cell = Stack(cells)


class Bidirectional(Layer):
    """Two layers side by side."""

    def __init__(self, name: str, forward: Layer, backward: Layer) -> None:
        kind = type(forward).__name__
        inner = {"class_name": kind, "config": forward.get_config()}
        turned = {"class_name": kind, "config": {**backward.get_config(), "go_backwards": True}}
        super().__init__(name, {"layer": inner, "backward_layer": turned})
        self.forward_layer, self.backward_layer = forward, backward


class Sequential(Layer):
    """A model that lists its layers."""

    def __init__(self, name: str, layers: Sequence[Layer]) -> None:
        super().__init__(name)
        self.layers = list(layers)

    def get_config(self) -> dict[str, Any]:
        entries = [{"class_name": type(layer).__name__, "config": layer.get_config()}
                   for layer in self.layers]  # fmt: skip
        return {"name": self.name, "layers": entries}


class Subclassed(Layer):
    """A model of the user's, which lists nothing."""

    def __init__(self, encoder: Layer, head: Layer) -> None:
        super().__init__("subclassed")
        self.encoder, self.head = encoder, head
        self.layers = [encoder, head]

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package that the stand-ins claim to be of."""
    module = ModuleType("keras")
    monkeypatch.setattr(module, "__version__", "3.15.1", raising=False)
    monkeypatch.setitem(sys.modules, "keras", module)
    for kind in (Layer, Recurrent, LSTM, GRU, CuDNNLSTM, RNN, Bidirectional, Sequential):
        monkeypatch.setattr(kind, "__module__", "keras.src.layers")
    return module


def test_layer_alone_is_a_network_of_one_cell(package: ModuleType, keras: KerasWriter) -> None:
    kernel, recurrent, bias = keras.weights("GRU", 3, 2, bias=(2, 6))
    layer = GRU("top", {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
                [kernel, recurrent, bias])  # fmt: skip
    network = gl.from_keras(layer, batch_first=True)
    cell = network["top"]
    assert isinstance(cell, gl.GRUCell)
    assert (cell.activation, cell.recurrent_activation, cell.reset) == (
        "relu", "hard_sigmoid_6", "after",
    )  # fmt: skip
    np.testing.assert_array_equal(cell.W_h[:2], recurrent[:, 2:4].T)
    assert network.recurrences[0].tensors == ("top/kernel", "top/recurrent_kernel", "top/bias")
    assert network.assumptions == ()
    assert network.source == "GRU"


@pytest.mark.parametrize(
    ("version", "slope"), [("2.15.0", "hard_sigmoid"), ("3.0.0", "hard_sigmoid_6")]
)
def test_version_is_that_of_the_layers_own_package(
    package: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    keras: KerasWriter,
    version: str,
    slope: str,
) -> None:
    monkeypatch.setattr(package, "__version__", version)
    layer = LSTM("a", {"recurrent_activation": "hard_sigmoid"}, keras.weights("LSTM", 3, 2))
    assert getattr(gl.from_keras(layer).only(), "recurrent_activation", "") == slope


def test_version_that_no_package_tells_can_be_told(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch, keras: KerasWriter
) -> None:
    monkeypatch.delitem(sys.modules, "keras")
    layer = LSTM("a", {"recurrent_activation": "hard_sigmoid"}, keras.weights("LSTM", 3, 2))
    assert any("slope 1/6 assumed" in said for said in gl.from_keras(layer).assumptions)
    told = gl.from_keras(layer, keras_version=2)
    assert getattr(told.only(), "recurrent_activation", "") == "hard_sigmoid"


def test_model_is_read_as_its_file_would_be(package: ModuleType, keras: KerasWriter) -> None:
    model = Sequential("model", [
        Bidirectional("both", LSTM("f", {}, keras.weights("LSTM", 3, 2, seed=1)),
                      LSTM("b", {}, keras.weights("LSTM", 3, 2, seed=2))),
        RNN("rnn", [LSTMCell("low", {}, keras.weights("LSTM", 4, 5)),
                    LSTMCell("high", {}, keras.weights("LSTM", 5, 2))]),
        Dense("head", {}, [np.ones((2, 2))]),
        Sequential("inner", [CuDNNLSTM("fast", {}, keras.weights("LSTM", 2, 2, bias=(16,)))]),
    ])  # fmt: skip
    network = gl.from_keras(model)
    assert [(entry.name, entry.stack, entry.layer) for entry in network.recurrences] == [
        ("both.forward", "both", 0), ("both.backward", "both", 0), ("rnn.low", "both", 1),
        ("rnn.high", "both", 2), ("inner.fast", "inner.fast", 0),
    ]  # fmt: skip
    for seed, side in ((1, "forward"), (2, "backward")):
        expected = keras.weights("LSTM", 3, 2, seed=seed)[1].T
        np.testing.assert_array_equal(network[f"both.{side}"].parameters["W_h"], expected)


def test_layers_of_a_subclassed_model_bear_the_names_of_its_attributes(
    package: ModuleType, keras: KerasWriter
) -> None:
    model = Subclassed(LSTM("lstm_3", {}, keras.weights("LSTM", 3, 2)), Dense("dense"))
    network = gl.from_keras(model)
    assert list(network) == ["encoder"]
    assert "encoder reads the call of Subclassed" in network.assumptions[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "int given: expected a Keras layer or model"),
        (LSTM("a"), r"a \(LSTM\) has no weights: expected kernel and recurrent_kernel"),
        (Dense("d"), "has the layers .*Dense: expected SimpleRNN, LSTM or GRU"),
        (MyLSTM("m", {}, [np.ones((2, 8)), np.ones((2, 8))]), r"MyLSTM\) cannot be read: gradlab"),
    ],
)
def test_object_without_a_readable_layer_is_refused(
    package: ModuleType, given: Any, message: str
) -> None:
    with pytest.raises(gl.ModelFileError, match=message):
        gl.from_keras(given)


@pytest.mark.filterwarnings("ignore")
def test_model_of_keras_itself_is_read_as_its_file(tmp_path: Path) -> None:
    """Where Keras and a backend are installed; against its own output, too."""
    pytest.importorskip("h5py")
    real = pytest.importorskip("keras")
    layers = real.layers
    model = real.Sequential([
        layers.Input((None, 3)),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
        layers.RNN([layers.GRUCell(5), layers.LSTMCell(2)], return_sequences=True),
        layers.GRU(3, return_sequences=True, reset_after=False,
                   recurrent_activation="hard_sigmoid"),
    ])  # fmt: skip
    x = np.random.default_rng(0).standard_normal((2, 6, 3))
    expected = np.asarray(model.predict(x, verbose=0)).transpose(1, 0, 2)
    model.save(tmp_path / "model.keras")
    network = gl.from_keras(model)
    stored = gl.load(tmp_path / "model.keras")
    assert list(network) == list(stored)
    for name, cell in network.items():
        for key, array in cell.parameters.items():
            np.testing.assert_array_equal(array, stored[name].parameters[key])
    runs = gl.rollout_network(network, x.transpose(1, 0, 2))
    last = network.recurrences[-1]
    found = last.cell.output(runs[last.name].states[1:])
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
