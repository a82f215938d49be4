"""ONNX models built node by node: what a node may say, and where its weights may come from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

onnx = pytest.importorskip("onnx")
H, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def tensor(array: Array, name: str = "") -> Any:
    return onnx.numpy_helper.from_array(np.asarray(array), name)


def constant(array: Array, name: str) -> Any:
    return H.make_node("Constant", [], [name], value=tensor(array))


def flat(op: str, N: int = 1, D: int = 1, **given: Array) -> dict[str, Array]:
    """Weights of one direction that are 0 unless they are given."""
    rows = GATES[op] * N
    shapes = {"W": (1, rows, D), "R": (1, rows, N), "B": (1, 2 * rows)}
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()} | given


def drawn(op: str = "LSTM", N: int = 4, D: int = 3, seed: int = 0) -> dict[str, Array]:
    """Random weights of one direction."""
    rng = np.random.default_rng(seed)
    zeros = flat(op, N, D)
    return {
        name: np.asarray(rng.normal(size=zero.shape), np.float32) for name, zero in zeros.items()
    }


def recurrent(
    op: str = "LSTM",
    *,
    inputs: Sequence[str] = ("X", "W", "R", "B"),
    outputs: Sequence[str] = ("Y",),
    name: str = "node",
    **attributes: Any,
) -> Any:
    return H.make_node(op, list(inputs), list(outputs), name=name, **attributes)


@dataclass
class Builder:
    """Writes models of a few nodes into a folder."""

    folder: Path

    def graph(
        self,
        nodes: Sequence[Any],
        stored: Mapping[str, Array] | None = None,
        inputs: Sequence[Any] = (),
        outputs: Sequence[str] = ("Y",),
    ) -> Any:
        """Graph whose initializers are the arrays."""
        given = [H.make_tensor_value_info(name, FLOAT, None) for name in outputs]
        own = [value if not isinstance(value, str) else value_info(value) for value in inputs]
        initializers = [tensor(array, name) for name, array in (stored or {}).items()]
        return H.make_graph(list(nodes), "graph", own, given, initializers)

    def save(self, graph: Any, functions: Sequence[Any] = (), name: str = "model.onnx") -> Path:
        """File of a graph."""
        domains = [H.make_opsetid(domain, 17) for domain in ("", "own")]
        model = H.make_model(graph, functions=list(functions), opset_imports=domains)
        path = self.folder / name
        path.write_bytes(model.SerializeToString())
        return path

    def load(self, nodes: Sequence[Any], stored: Mapping[str, Array], **options: Any) -> Any:
        """Network of a graph with the input X."""
        return gl.load(self.save(self.graph(nodes, stored, ["X"])), **options)


def value_info(name: str, shape: Sequence[int] | None = None) -> Any:
    return H.make_tensor_value_info(name, FLOAT, shape)


@pytest.fixture
def build(tmp_path: Path) -> Builder:
    return Builder(tmp_path)


def refusal(path: Path, kind: type[gl.GradlabError] = gl.ModelFileError) -> str:
    """Message of the refusal, which is one line about the file."""
    with pytest.raises(kind) as caught:
        gl.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.isprintable()
    return message


def same(network: gl.Network, name: str, weights: Mapping[str, Array]) -> bool:
    """Whether a recurrence is the LSTM of these weights."""
    rows = np.split(weights["R"][0], 4)
    return np.array_equal(
        network[name].parameters["W_h"], np.concatenate([rows[g] for g in (0, 2, 3, 1)])
    )


def test_order_of_the_gates_is_i_o_f_c_and_z_r_h(build: Builder) -> None:
    """Case H29: recurrent block values 1, 2, 3, 4 in the file's order."""
    lstm = flat("LSTM", R=np.array([[[1], [2], [3], [4]]], np.float32))
    found = build.load([recurrent()], lstm).only().recurrent_matrices()
    assert {gate: W[0, 0] for gate, W in found.items() if gate != "stack"} == {
        "i": 1.0, "f": 3.0, "g": 4.0, "o": 2.0
    }  # fmt: skip
    gru = flat("GRU", R=np.array([[[1], [2], [3]]], np.float32))
    found = build.load([recurrent("GRU")], gru).only().recurrent_matrices()
    assert {gate: W[0, 0] for gate, W in found.items() if gate != "stack"} == {
        "r": 2.0, "z": 1.0, "n": 3.0
    }  # fmt: skip


def test_peepholes_are_in_the_order_i_o_f(build: Builder) -> None:
    """Case H14: c = 2 sigmoid(0.6), h = sigmoid(0.2 c) tanh(c)."""
    stored = flat("LSTM", P=np.array([[0.1, 0.2, 0.3]]))
    node = recurrent(inputs=("X", "W", "R", "B", "", "", "", "P"))
    cell = build.load([node], stored).only()
    run = gl.rollout(cell, np.zeros((1, 1, 1)), initial_state=np.array([0.0, 2.0]))
    np.testing.assert_allclose(run.states[1, 0], [0.4849207822, 1.291312612], rtol=1e-9)
    assert cell.linearize(run)[0].matrix()[0, 1, 1] == pytest.approx(0.7829268505, rel=1e-9)


@pytest.mark.parametrize(
    ("attributes", "h", "slope"),
    [
        ({"linear_before_reset": 1}, 0.5532758328, 0.6070410194),
        ({"linear_before_reset": 0}, 0.7003742663, 0.4520507403),
        ({}, 0.7003742663, 0.4520507403),
    ],
)
def test_reset_is_before_the_product_unless_the_node_says_otherwise(
    build: Builder, attributes: Mapping[str, Any], h: float, slope: float
) -> None:
    """Case H12: W_hn = 1.5, recurrent bias 0.8, r = 0.5, z = 0.25, h = 0.4."""
    stored = flat("GRU", R=np.array([[[0.0], [0.0], [1.5]]]))
    stored["B"] = np.array([[-math.log(3.0), 0.0, 0.0, 0.0, 0.0, 0.8]])
    stored["W"] = stored["W"].astype(np.float64)
    cell = build.load([recurrent("GRU", **attributes)], stored).only()
    run = gl.rollout(cell, np.zeros((1, 1, 1)), initial_state=np.array([0.4]))
    assert run.states[1, 0, 0] == pytest.approx(h, rel=1e-9)
    assert cell.linearize(run)[0].matrix()[0, 0, 0] == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize(
    ("attributes", "part"),
    [
        ({"activations": ["Sigmoid", "Swish", "Tanh"]}, "its activation Swish is none that ONNX"),
        ({"activations": ["Sigmoid", "Affine", "Tanh"]}, "Affine lacks activation_alpha"),
        (
            {"activations": ["Sigmoid", "ScaledTanh", "Tanh"], "activation_alpha": [1.0]},
            "ScaledTanh lacks",
        ),
        ({"activations": ["Sigmoid", "Tanh"]}, "it has 2 activations"),
        (
            {"activations": ["HardSigmoid", "Tanh", "Tanh"], "activation_alpha": [-1.0]},
            "expected finite numbers, alpha > 0",
        ),
        ({"hidden_size": 5}, "hidden_size 5"),
        ({"direction": "bidirectional"}, "direction bidirectional"),
        ({"direction": "sideways"}, "direction sideways"),
        ({"clip": -1.0}, "its clip is -1.0"),
        ({"clip": math.nan}, "its clip is nan"),
    ],
)
def test_node_that_gradlab_cannot_follow_is_refused_by_name_and_reason(
    build: Builder, attributes: Mapping[str, Any], part: str
) -> None:
    path = build.save(build.graph([recurrent(**attributes)], drawn(), ["X"]))
    message = refusal(path)
    assert "): node: it" in message
    assert part in message


def test_numbers_of_activations_are_the_decimals_that_were_meant(build: Builder) -> None:
    """0.2 in 32 bits is 0.20000000298."""
    node = recurrent("RNN", activations=["LeakyRelu"], activation_alpha=[0.2], clip=0.6)
    cell = build.load([node], drawn("RNN")).only()
    assert (cell.activation, cell.clip) == ("leaky_relu(0.2)", 0.6)


def test_projection_cut_to_a_wrong_model_is_refused(build: Builder) -> None:
    """What the newer exporter of PyTorch makes of proj_size: only initial_c tells."""
    inputs = ("X", "W", "R", "B", "", "h0", "c0")
    states = {"h0": np.zeros((1, 1, 4), np.float32), "c0": np.zeros((1, 1, 6), np.float32)}
    path = build.save(build.graph([recurrent(inputs=inputs)], drawn() | states, ["X"]))
    assert "its initial_c has 6 units and its R 4" in refusal(path)
    declared = [value_info("X"), value_info("h0", (1, 1, 4)), value_info("c0", (1, 1, 6))]
    path = build.save(build.graph([recurrent(inputs=inputs)], drawn(), declared))
    assert "proj_size" in refusal(path)
    path = build.save(build.graph([recurrent()], drawn() | {"R": np.array(1.0)}, ["X"]))
    assert "its W has shape" in refusal(path)
    wide = drawn() | {"R": np.ones((1, 24, 4), np.float32)}
    path = build.save(build.graph([recurrent()], wide, ["X"]))
    message = refusal(path)
    assert "(1, 24, 4)" in message
    assert "proj_size" in message


def test_state_cut_from_a_longer_one_is_no_projection(build: Builder) -> None:
    """(h, c) side by side along the last axis, as one input of the model."""
    inputs = ("X", "W", "R", "B", "", "h", "c")
    cuts = [
        H.make_node("Slice", ["S", start, end, "last"], [part])
        for part, start, end in (("h", "0", "4"), ("c", "4", "8"))
    ]
    numbers = {str(n): np.array([n]) for n in (0, 4, 8)} | {"last": np.array([2])}
    graph = build.graph(
        [*cuts, recurrent(inputs=inputs)], drawn() | numbers, [value_info("S", (1, 1, 8)), "X"]
    )
    network = gl.load(build.save(graph))
    assert any("node: the model sets its initial state" in said for said in network.assumptions)


def test_weight_that_depends_on_an_input_is_refused(build: Builder) -> None:
    stored = drawn()
    recurrent_weights = stored.pop("R")
    scaled = H.make_node("Mul", ["V", "S"], ["R"])
    path = build.save(
        build.graph([scaled, recurrent()], stored | {"V": recurrent_weights}, ["X", "S"])
    )
    assert "node: its R is known only when the model runs: it depends on S, an input" in refusal(
        path
    )
    path = build.save(build.graph([recurrent()], stored, ["X"]))
    assert "it depends on R, not in the file" in refusal(path)


def test_value_that_needs_itself_is_refused(build: Builder) -> None:
    stored = drawn()
    del stored["R"]
    loop = [H.make_node("Neg", ["Q"], ["R"]), H.make_node("Neg", ["R"], ["Q"])]
    path = build.save(build.graph([*loop, recurrent()], stored, ["X"]))
    assert "which needs itself" in refusal(path)


def test_default_of_an_input_is_its_value(build: Builder) -> None:
    """Before version 4 every initializer was declared an input too."""
    graph = build.graph([recurrent()], drawn(), ["X", "W", "R", "B"])
    assert same(gl.load(build.save(graph)), "node", drawn())


def test_half_precision_is_cast_as_the_graph_says(build: Builder) -> None:
    stored = {f"{name}16": array.astype(np.float16) for name, array in drawn().items()}
    casts = [H.make_node("Cast", [f"{n}16"], [n], to=FLOAT) for n in "WRB"]
    network = build.load([*casts, recurrent()], stored)
    halves = {name: array.astype(np.float16).astype(np.float32) for name, array in drawn().items()}
    assert same(network, "node", halves)
    assert network.recurrences[0].stored_dtype == "float16"
    assert network.recurrences[0].tensors == ("W16", "R16", "B16")


def test_weights_in_half_precision_are_read_as_they_are(build: Builder) -> None:
    weights = drawn()
    halves = {
        name: (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in weights.items()
    }
    graph = build.graph([recurrent()], {}, ["X"])
    for name, bits in halves.items():
        graph.initializer.append(
            H.make_tensor(name, onnx.TensorProto.BFLOAT16, bits.shape, bits.tobytes(), raw=True)
        )
    network = gl.load(build.save(graph))
    widened = {
        name: (bits.astype(np.uint32) << 16).view(np.float32) for name, bits in halves.items()
    }
    assert same(network, "node", widened)
    lists = build.graph([recurrent()], {}, ["X"])
    for name, bits in halves.items():
        proto = onnx.TensorProto(name=name, data_type=onnx.TensorProto.BFLOAT16, dims=bits.shape)
        proto.int32_data.extend(bits.ravel().tolist())
        lists.initializer.append(proto)
    assert same(gl.load(build.save(lists)), "node", widened)


def test_bytes_are_dequantized_as_the_graph_says(build: Builder) -> None:
    rng = np.random.default_rng(1)
    stored = drawn()
    quantized = np.asarray(rng.integers(-128, 128, stored["R"].shape), np.int8)
    scale = rng.uniform(0.01, 0.1, 16).astype(np.float32)
    zero = rng.integers(-5, 6, 16).astype(np.int8)
    stored |= {"Q": quantized, "scale": scale, "zero": zero}
    del stored["R"]
    node = H.make_node("DequantizeLinear", ["Q", "scale", "zero"], ["R"], axis=1)
    network = build.load([node, recurrent()], stored)
    steps = quantized.astype(int) - zero.astype(int)[:, None]
    exact = (steps * scale.astype(np.float64)[:, None]).astype(np.float32)
    assert same(network, "node", {"R": exact})
    assert network.recurrences[0].stored_dtype == "int8"


@pytest.mark.parametrize("zero", [None, 128])
@pytest.mark.parametrize("per_column", [False, True])
def test_quantized_lstm_has_a_scale_for_each_direction_or_column(
    build: Builder, per_column: bool, zero: int | None
) -> None:
    """Stored as (directions, N, 4N), the transpose of the node it was made of."""
    rng = np.random.default_rng(2)
    columns = 16 if per_column else 1
    scales = np.asarray(rng.uniform(0.01, 0.1, (2, columns)), np.float32)
    kind = np.int8 if zero is None else np.uint8
    stored = {
        name: np.asarray(rng.integers(0, 127, (2, rows, 16)), kind)
        for name, rows in (("W", 3), ("R", 4))
    }
    wide = {"B": np.zeros((2, 32), np.float32), "s": scales if per_column else scales[:, 0]}
    shift = {} if zero is None else {"z": np.full(wide["s"].shape, zero, np.uint8)}
    place = "" if zero is None else "z"
    node = recurrent(
        "DynamicQuantizeLSTM",
        inputs=("X", "W", "R", "B", "", "", "", "", "s", place, "s", place),
        domain="com.microsoft",
        direction="bidirectional",
    )
    network = build.load([node], stored | wide | shift)
    for d, direction in enumerate(("forward", "backward")):
        exact = (stored["R"][d].astype(float) - (zero or 0)) * scales[d].astype(float)
        assert same(network, f"node.{direction}", {"R": exact.T[None]})


def test_branches_and_loops_see_the_names_around_them(build: Builder) -> None:
    """Two branches with one LSTM each; their weights lie in the main graph, or in the branch."""
    other = drawn(seed=1)
    one = build.graph([recurrent(name="one")])
    two = build.graph([recurrent(name="two", inputs=("X", "W", "R2", "B"))], {"R2": other["R"]})
    choice = H.make_node("If", ["C"], ["Y"], then_branch=one, else_branch=two)
    body = build.graph(
        [recurrent(name="three", inputs=("x", "W", "R3", "B"), outputs=("y",))],
        {"R3": drawn(seed=2)["R"]}, ["i", "c", "x"], ("c", "y"),
    )  # fmt: skip
    loop = H.make_node("Loop", ["n", "C", "X"], ["Z"], body=body)
    network = gl.load(build.save(build.graph([choice, loop], drawn(), ["X", "C", "n"])))
    assert list(network) == ["one", "two", "three"]
    assert same(network, "one", drawn())
    assert same(network, "two", other)
    assert same(network, "three", drawn(seed=2))


@pytest.mark.parametrize("condition", [True, False])
def test_weight_out_of_a_branch_is_that_of_a_constant_condition(
    build: Builder, condition: bool
) -> None:
    first, second = drawn(seed=1)["R"], drawn(seed=2)["R"]
    branches = [build.graph([constant(R, "r")], outputs=("r",)) for R in (first, second)]
    choice = H.make_node("If", ["C"], ["R"], then_branch=branches[0], else_branch=branches[1])
    stored = drawn()
    del stored["R"]
    network = build.load([choice, recurrent()], stored | {"C": np.array(condition)})
    assert same(network, "node", {"R": first if condition else second})


def test_copies_in_other_branches_are_one_recurrence_that_names_them(build: Builder) -> None:
    one, two = (build.graph([recurrent(name=name)]) for name in ("one", "two"))
    choice = H.make_node("If", ["C"], ["Y"], then_branch=one, else_branch=two)
    network = gl.load(build.save(build.graph([choice], drawn(), ["X", "C"])))
    assert list(network) == ["one"]
    assert "two: the same weights as one, left out as a copy" in network.assumptions


def test_layers_of_a_stack_may_share_their_weights(build: Builder) -> None:
    """Tied layers are two recurrences: they read different sequences."""
    second = recurrent(name="second", inputs=("S", "W", "R", "B"), outputs=("Z",))
    squeeze = H.make_node("Squeeze", ["Y", "one"], ["S"])
    network = build.load([recurrent(), squeeze, second], drawn(D=4) | {"one": np.array([1])})
    assert [(e.name, e.layer, e.stack) for e in network.recurrences] == [
        ("node", 0, "node"), ("second", 1, "node")
    ]  # fmt: skip


def test_node_that_reads_something_else_in_between_is_no_layer_of_the_stack(build: Builder) -> None:
    nodes = [
        recurrent(),
        H.make_node("Squeeze", ["Y", "one"], ["S"]),
        H.make_node("Relu", ["S"], ["T"]),
        recurrent(name="second", inputs=("T", "W2", "R", "B"), outputs=("Z",)),
    ]
    wide = {"W2": drawn(D=4)["W"], "one": np.array([1])}
    network = build.load(nodes, drawn() | wide)
    assert [(entry.layer, entry.stack) for entry in network.recurrences] == [
        (0, "node"), (0, "second")
    ]  # fmt: skip


def test_nodes_without_names_of_their_own_are_told_apart(build: Builder) -> None:
    nodes = [
        recurrent(name="", inputs=("X", "W", f"R{k}", "B"), outputs=(f"Y{k}",)) for k in range(2)
    ]
    twins = [
        recurrent(name="twin", inputs=("X", "W", f"R{k}", "B"), outputs=(f"Y{k}",)) for k in (2, 3)
    ]
    third = recurrent(name="twin_2", inputs=("X", "W", "R4", "B"), outputs=("Y4",))
    stored = drawn() | {f"R{k}": drawn(seed=k)["R"] for k in range(5)}
    network = build.load([*nodes, twins[0], third, twins[1]], stored)
    assert list(network) == ["Y0", "Y1", "twin", "twin_2", "twin_3"]
    assert same(network, "twin_3", {"R": stored["R3"]})


def test_functions_are_unfolded_with_their_arguments(build: Builder) -> None:
    """A function of the model's own, called twice, one attribute of which is the call's."""
    inner = H.make_node("LSTM", ["x", "w", "r", "b"], ["y"], name="inner")
    direction = onnx.AttributeProto(name="direction", ref_attr_name="way", type=3)
    inner.attribute.append(direction)
    imports = [H.make_opsetid("", 17), H.make_opsetid("own", 17)]
    layer = H.make_function("own", "Layer", ["x", "w", "r", "b"], ["y"], [inner], imports, ["way"])
    calls = [
        H.make_node("Layer", ["X", "W", R, "B"], [out], name=name, domain="own", way=way)
        for name, way, R, out in (("a", "forward", "R", "Y"), ("b", "reverse", "R2", "Z"))
    ]
    stored = drawn() | {"R2": drawn(seed=1)["R"]}
    path = build.save(build.graph(calls, stored, ["X"]), [layer])
    network = gl.load(path)
    assert [(entry.name, entry.direction) for entry in network.recurrences] == [
        ("inner", "forward"), ("b/inner.backward", "backward")
    ]  # fmt: skip
    assert same(network, "inner", drawn())
    assert same(network, "b/inner.backward", drawn(seed=1))


def test_recurrent_operators_of_other_runtimes_are_refused_by_name(build: Builder) -> None:
    node = H.make_node("AttnLSTM", ["X", "W", "R"], ["Y"], name="attention", domain="com.microsoft")
    path = build.save(build.graph([node], drawn(), ["X"]))
    assert "attention is a node com.microsoft.AttnLSTM, of another runtime" in refusal(path)
    network = build.load([node, recurrent(outputs=("Z",))], drawn())
    assert list(network) == ["node"]
    assert any("com.microsoft.AttnLSTM" in said for said in network.assumptions)


def test_recurrence_written_out_is_read_where_names_still_tell_it(build: Builder) -> None:
    rng = np.random.default_rng(3)
    stored = {
        "rnn.weight_ih": rng.normal(size=(16, 3)), "rnn.weight_hh": rng.normal(size=(16, 4)),
        "rnn.bias_ih": rng.normal(size=16), "rnn.bias_hh": rng.normal(size=16),
    }  # fmt: skip
    nodes = [
        H.make_node("Gemm", ["X", "rnn.weight_ih", "rnn.bias_ih"], ["a"], transB=1),
        H.make_node("Sigmoid", ["a"], ["s"]),
        H.make_node("Tanh", ["a"], ["t"]),
        H.make_node("Mul", ["s", "t"], ["Y"]),
    ]
    network = build.load(nodes, stored)
    np.testing.assert_array_equal(network["rnn"].parameters["W_h"], stored["rnn.weight_hh"])
    assert "read by the names of tensors" in network.assumptions[0]
    assert "the graph has no node RNN, LSTM or GRU" in network.assumptions[1]


def test_model_without_a_recurrence_is_said_to_have_none(build: Builder) -> None:
    path = build.save(build.graph([H.make_node("Relu", ["X"], ["Y"])], {}, ["X"]))
    message = refusal(path)
    assert "no node RNN, LSTM or GRU (its nodes: Relu 1)" in message
    assert "unrolled" not in message


def test_lengths_that_are_an_input_are_said(build: Builder) -> None:
    node = recurrent(inputs=("X", "W", "R", "B", "lengths"))
    network = gl.load(build.save(build.graph([node], drawn(), ["X", "lengths"])))
    assert any("takes the sequences' lengths as an input" in said for said in network.assumptions)


def test_weight_that_is_not_finite_is_refused_by_its_name_in_the_file(build: Builder) -> None:
    stored = drawn()
    stored["R"][0, 5, 2] = np.nan
    path = build.save(build.graph([recurrent()], stored, ["X"]))
    assert "R (W_h) holds 1 non-finite entry" in refusal(path, gl.NonFiniteError)


def test_bytes_that_nothing_dequantizes_are_refused(build: Builder) -> None:
    stored = drawn() | {"R": np.ones((1, 16, 4), np.int8)}
    path = build.save(build.graph([recurrent()], stored, ["X"]))
    assert "R (W_h) is int8: expected real floating-point weights" in refusal(path)
