"""Live modules: with stand-ins that have what gradlab asks for, and with PyTorch where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

LAYER = {"weight_ih_l0": (4, 3), "weight_hh_l0": (4, 4), "bias_ih_l0": (4,), "bias_hh_l0": (4,)}


class FakeTensor:
    """What is asked of a tensor; one of bfloat16 has no NumPy form."""

    def __init__(self, values: Array, kind: str = "float32", **flags: bool) -> None:
        self.values = values
        self.dtype = f"torch.{kind}"
        self.is_meta = flags.get("is_meta", False)
        self.is_quantized = flags.get("is_quantized", False)

    def detach(self) -> FakeTensor:
        return self

    def cpu(self) -> FakeTensor:
        return self

    def float(self) -> FakeTensor:
        return FakeTensor(self.values)

    def numpy(self) -> Array:
        if self.dtype == "torch.sparse":
            raise RuntimeError("no dense values")
        if self.dtype == "torch.bfloat16":
            raise TypeError("unsupported ScalarType BFloat16")
        return self.values


class FakeModule:
    """What is asked of a module."""

    def __init__(self, state: Mapping[str, Any], **attributes: Any) -> None:
        self.state = dict(state)
        self.inner: dict[str, FakeModule] = {}
        self.__dict__.update(attributes)

    def state_dict(self) -> dict[str, Any]:
        held = {f"{name}.{key}": value for name, inner in self.inner.items()
                for key, value in inner.state_dict().items()}  # fmt: skip
        return {**self.state, **held}

    def named_modules(self) -> Iterator[tuple[str, FakeModule]]:
        yield "", self
        for name, inner in self.inner.items():
            for below, module in inner.named_modules():
                yield ".".join(part for part in (name, below) if part), module


def layer(shapes: Mapping[str, tuple[int, ...]] = LAYER, **flags: Any) -> dict[str, FakeTensor]:
    rng = np.random.default_rng(3)
    return {
        name: FakeTensor(rng.normal(size=shape).astype(np.float32), **flags)
        for name, shape in shapes.items()
    }


def torch_class(name: str) -> type[FakeModule]:
    return type(name, (FakeModule,), {"__module__": "torch.nn.modules.rnn"})


def test_layer_says_its_nonlinearity_and_axis() -> None:
    state = layer()
    module = torch_class("RNN")(state, mode="RNN_RELU", batch_first=True)
    network = gl.from_torch(module)
    assert list(network) == ["l0"]
    cell = network.only()
    np.testing.assert_array_equal(cell.parameters["W_hh"], state["weight_hh_l0"].values)
    assert network.source == "RNN"
    assert network.assumptions == (
        "l0: torch.nn.modules.rnn.RNN, as the source says",
        "l0: non-linearity relu, as the source says",
        "l0: built for inputs (batch, time, features), as the source says; sequences are read as "
        "(time, batch, features) here",
    )


def test_modules_inside_are_named_by_the_way_to_them() -> None:
    outer = FakeModule({"head.weight": FakeTensor(np.ones((2, 4)))})
    outer.inner["encoder"] = torch_class("GRU")(
        layer({name: (12, *shape[1:]) for name, shape in LAYER.items()}), mode="GRU"
    )
    network = gl.from_torch(outer)
    assert {name: cell.kind for name, cell in network.items()} == {"encoder.l0": "gru"}
    assert "encoder.l0: torch.nn.modules.rnn.GRU, as the source says" in network.assumptions


def test_state_dict_gives_the_same_cells_and_says_less() -> None:
    module = torch_class("RNN")(layer(), mode="RNN_TANH", batch_first=False)
    whole, state = gl.from_torch(module), gl.from_torch(module.state_dict())
    for name, array in whole.only().parameters.items():
        np.testing.assert_array_equal(state.only().parameters[name], array)
    assert any("tanh assumed" in said for said in state.assumptions)


def test_class_of_the_callers_own_is_taken_by_its_names_with_the_assumption() -> None:
    cell = FakeModule(layer({name: (16, *shape[1:]) for name, shape in LAYER.items()}))
    said = "\n".join(gl.from_torch(cell).assumptions)
    assert "read as PyTorch's LSTM" in said
    vanilla = gl.from_torch(FakeModule(layer()), nonlinearity="relu", dtype="float32")
    assert vanilla.only().parameters["W_hh"].dtype == np.float32


def test_type_without_a_numpy_form_is_widened() -> None:
    halves, floats = gl.from_torch(layer(kind="bfloat16")), gl.from_torch(layer())
    for name, array in floats.only().parameters.items():
        np.testing.assert_array_equal(halves.only().parameters[name], array)
    assert halves.recurrences[0].stored_dtype == "bfloat16"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((2, 2)), r"ndarray given: expected a PyTorch module or its state dict"),
        ({}, r"PyTorch module with no tensors"),
        (layer(is_meta=True), r"weight_hh_l0 is on the meta device"),
        (layer(is_quantized=True), r"weight_hh_l0 is quantized"),
        (layer(kind="sparse"), r"weight_hh_l0 gives no values \(no dense values\)"),
        ({"rnn._packed": SimpleNamespace()}, r"rnn\._packed skipped \(SimpleNamespace\)"),
    ],
)
def test_what_holds_no_weights_is_refused(given: Any, message: str) -> None:
    with pytest.raises(gl.ModelFileError, match=message):
        gl.from_torch(given)


class Live:
    """PyTorch, and each of its layers with what tells one from another."""

    def __init__(self, folder: Path) -> None:
        self.torch = pytest.importorskip("torch")
        self.folder = folder

    def layers(self) -> dict[str, Any]:
        nn = self.torch.nn
        return {
            "relu": nn.RNN(3, 4, nonlinearity="relu", num_layers=2, bidirectional=True),
            "lstm": nn.LSTM(3, 4, batch_first=True, proj_size=2, num_layers=2),
            "gru": nn.GRU(3, 4, bias=False),
            "cells": nn.ModuleDict({"a": nn.RNNCell(3, 4), "b": nn.LSTMCell(3, 4)}),
            "half": nn.GRU(3, 4).bfloat16(),
        }

    def saved(self, module: Any) -> Path:
        path = self.folder / "model.pt"
        self.torch.save(module.state_dict(), path)
        return path


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(tmp_path)


def same_weights(found: gl.Network, expected: gl.Network) -> None:
    assert list(found) == list(expected)
    for name, cell in found.items():
        assert cell.kind == expected[name].kind
        for key, array in cell.parameters.items():
            np.testing.assert_array_equal(array, expected[name].parameters[key])


@pytest.mark.parametrize("kind", ["relu", "lstm", "gru", "cells", "half"])
def test_live_layer_is_that_of_its_saved_state_dict(live: Live, kind: str) -> None:
    module = live.layers()[kind]
    same_weights(gl.from_torch(module), gl.load(live.saved(module), nonlinearity="relu"))


def test_live_outputs_are_those_of_the_module(live: Live) -> None:
    torch = live.torch
    torch.manual_seed(0)
    for kind in ("relu", "lstm", "gru"):
        module = live.layers()[kind].double()
        x = torch.randn(6, 1, 3, dtype=torch.float64)
        expected = module(x.transpose(0, 1) if kind == "lstm" else x)[0].detach().numpy()
        network = gl.from_torch(module)
        run = list(gl.rollout_network(network, x.numpy()).values())[-1]
        last = network.recurrences[-1].cell
        output = last.output(run.states[1:, 0])
        width = output.shape[1]
        if kind == "relu":  # the last recurrence runs backward and stands last, in time order
            np.testing.assert_allclose(output[::-1], expected[:, 0, width:], atol=1e-12)
        else:
            np.testing.assert_allclose(output, expected.reshape(6, width), atol=1e-12)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "orthogonal"])
def test_live_parametrization_is_that_of_the_file(live: Live, name: str) -> None:
    parametrize = getattr(live.torch.nn.utils.parametrizations, name)
    module = parametrize(live.torch.nn.RNN(3, 4), "weight_hh_l0")
    before = {key: value.clone() for key, value in module.state_dict().items()}
    found = gl.from_torch(module)
    same_weights(found, gl.load(live.saved(module)))
    assert "l0: torch.nn.modules.rnn.RNN, as the source says" in found.assumptions
    for key, value in module.state_dict().items():  # no step of the power iteration was taken
        assert live.torch.equal(value, before[key])


@pytest.mark.parametrize("weight", ["weight_hh_l0", "weight_hr_l0"])
def test_orthogonal_stack_and_projection_are_rebuilt_as_the_module_does(
    live: Live, weight: str
) -> None:
    """Neither is square: PyTorch takes Householder's reflections, and the file is read so."""
    module = live.torch.nn.LSTM(3, 5, proj_size=2).double()
    live.torch.nn.utils.parametrizations.orthogonal(module, weight)
    with live.torch.no_grad():
        original = module.parametrizations[weight].original
        original.add_(live.torch.rand(*original.shape).tril(-1 if weight == "weight_hh_l0" else 0))
    network = gl.load(live.saved(module))
    name = {"weight_hh_l0": "W_h", "weight_hr_l0": "W_hr"}[weight]
    expected = getattr(module, weight).detach().numpy()
    np.testing.assert_allclose(network.only().parameters[name], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ["cayley", "householder"])
def test_live_orthogonal_map_that_no_file_tells_is_the_modules_own(live: Live, kind: str) -> None:
    module = live.torch.nn.RNN(3, 4)
    orthogonal = live.torch.nn.utils.parametrizations.orthogonal
    orthogonal(module, "weight_hh_l0", orthogonal_map=kind)
    with live.torch.no_grad():
        module.parametrizations.weight_hh_l0.original.add_(live.torch.rand(4, 4) - 0.5)
    network = gl.from_torch(module)
    W_hh = network.only().parameters["W_hh"]
    np.testing.assert_array_equal(W_hh, module.weight_hh_l0.detach().numpy())
    assert any("weight_hh_l0 is what its parametrization gives (_Orthogonal)" in said
               for said in network.assumptions)  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # PyTorch announces another way to quantize
def test_live_quantized_layer_is_refused(live: Live) -> None:
    quantize = live.torch.ao.quantization.quantize_dynamic
    module = quantize(live.torch.nn.ModuleDict({"rnn": live.torch.nn.LSTM(3, 4)}))
    with pytest.raises(gl.ModelFileError, match=r"param skipped \(quantized: give the float"):
        gl.from_torch(module)
