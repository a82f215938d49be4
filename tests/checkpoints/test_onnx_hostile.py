"""ONNX files that are damaged, too large, too deep, or point outside their folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.arrays import Array
from gradlab.checkpoints.onnx import folding, scopes
from gradlab.checkpoints.onnx.archive import recognizes
from gradlab.checkpoints.recognition import read_archive

onnx = pytest.importorskip("onnx")
H, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
FUZZED = (
    "onnx_export_lstm_2l", "onnx_lstm_computed_weights_if", "onnx_lstm_int8_dynamicquant",
    "onnx_gru_lbr1_bi", "onnx_dynamo_rnn_unrolled", "onnx_variant_lstm_bi",
)  # fmt: skip
WEIGHTS = {
    "W": np.ones((1, 16, 3), np.float32), "R": np.full((1, 16, 4), 0.5, np.float32),
    "B": np.zeros((1, 32), np.float32),
}  # fmt: skip


def node(inputs: Sequence[str] = ("X", "W", "R", "B"), name: str = "node") -> Any:
    return H.make_node("LSTM", list(inputs), ["Y"], name=name)


def graph(nodes: Sequence[Any], tensors: Sequence[Any], inputs: Sequence[str] = ("X",)) -> Any:
    given = [H.make_tensor_value_info(name, FLOAT, None) for name in inputs]
    out = [H.make_tensor_value_info("Y", FLOAT, None)]
    return H.make_graph(list(nodes), "graph", given, out, list(tensors))


def stored(**more: Array) -> list[Any]:
    return [onnx.numpy_helper.from_array(array, name) for name, array in (WEIGHTS | more).items()]


def save(folder: Path, described: Any, functions: Sequence[Any] = ()) -> Path:
    domains = [H.make_opsetid(domain, 17) for domain in ("", "own")]
    model = H.make_model(described, functions=list(functions), opset_imports=domains)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def external(location: str, offset: int = 0, length: int | None = None) -> list[Any]:
    """The weights, with R in another file."""
    tensors = [tensor for tensor in stored() if tensor.name != "R"]
    outside = onnx.TensorProto(name="R", data_type=FLOAT, dims=(1, 16, 4), data_location=1)
    fields = {"location": location, "offset": str(offset)}
    fields |= {} if length is None else {"length": str(length)}
    for key, value in fields.items():
        outside.external_data.add(key=key, value=value)
    return [*tensors, outside]


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(gl.ModelFileError) as caught:
        gl.load(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert message.isprintable()
    return message


def test_external_data_beside_the_model_are_read_from_their_place(tmp_path: Path) -> None:
    R = np.random.default_rng(0).normal(size=(1, 16, 4)).astype("<f4")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "all.bin").write_bytes(b"12345678" + R.tobytes() + b"more")
    path = save(tmp_path, graph([node()], external("weights/all.bin", 8, 256)))
    found = gl.load(path).only().parameters["W_h"]
    np.testing.assert_array_equal(found[:4], R[0, :4])
    np.testing.assert_array_equal(read_archive(path).tensors["R"], R)


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "/etc/passwd", "a/../../secret.bin", "..\\secret.bin", "C:\\secret.bin",
     "", ".", "a\x00b", "link.bin"],
)  # fmt: skip
def test_external_data_outside_the_folder_are_refused_and_not_read(
    tmp_path: Path, location: str
) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(256))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    message = refusal(save(folder, graph([node()], external(location))))
    assert "outside the model's folder" in message


def test_external_data_that_are_missing_or_too_short_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path, graph([node()], external("all.bin")))
    assert "is in the file all.bin, which is not beside the model" in refusal(path)
    (tmp_path / "all.bin").write_bytes(bytes(255))
    assert "which has 255" in refusal(path)
    for changed in (
        external("all.bin", 0, 10**15), external("all.bin", 10**15), external("all.bin", -1)
    ):  # fmt: skip
        assert "external data" in refusal(save(tmp_path, graph([node()], changed)))


def test_sizes_are_checked_against_the_limit_before_memory_is_taken(tmp_path: Path) -> None:
    whole = save(tmp_path, graph([node()], stored()))
    size = whole.stat().st_size
    assert f"the model declares {size} bytes: expected at most 100" in refusal(whole, max_bytes=100)
    (tmp_path / "all.bin").write_bytes(bytes(256))
    huge = external("all.bin")
    huge[-1].dims[1] = 2**40
    message = refusal(save(tmp_path, graph([node()], huge)))
    assert f"the tensor R declares {2**44} bytes" in message


@pytest.mark.parametrize(
    ("op", "inputs", "numbers"),
    [
        ("ConstantOfShape", ["shape"], {"shape": np.array([2**20, 2**20])}),
        ("Expand", ["one", "shape"], {"one": np.ones(1), "shape": np.array([2**20, 2**20])}),
        ("Tile", ["one", "shape"], {"one": np.ones(1), "shape": np.array([2**40])}),
        ("Add", ["a", "b"], {"a": np.ones((2**17, 1)), "b": np.ones((1, 2**17))}),
        ("MatMul", ["a", "b"], {"a": np.ones((2**17, 1)), "b": np.ones((1, 2**17))}),
        ("Gather", ["a", "b"], {"a": np.ones(2**17), "b": np.zeros(2**17, np.int64)}),
    ],
)  # fmt: skip
def test_operators_that_blow_up_are_refused_before_they_do(
    tmp_path: Path, op: str, inputs: list[str], numbers: dict[str, Array]
) -> None:
    tensors = [tensor for tensor in stored(**numbers) if tensor.name != "R"]
    path = save(tmp_path, graph([H.make_node(op, inputs, ["R"]), node()], tensors))
    assert "the result R declares" in refusal(path)


def test_values_that_add_up_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    """Each of thirty sums fits, all of them do not."""
    chain = [H.make_node("Add", [f"s{k}", f"s{k}"], [f"s{k + 1}"]) for k in range(30)]
    tensors = [tensor for tensor in stored(s0=np.ones((1, 16, 100))) if tensor.name != "R"]
    path = save(tmp_path, graph([*chain, node(("X", "W", "s30", "B"))], tensors))
    assert "the set of tensors behind the weights declares" in refusal(path, max_bytes=200_000)


def test_nodes_that_share_one_weight_cannot_multiply_it_without_limit(tmp_path: Path) -> None:
    """Each is a layer with arrays of its own, however little is stored."""
    many = [node(name=f"n{k}") for k in range(200)]
    path = save(tmp_path, graph(many, stored()))
    network = gl.load(path, max_bytes=100_000)
    assert list(network) == ["n0"]
    assert any("the set of tensors behind the weights" in said for said in network.assumptions)
    assert list(gl.load(path)) == ["n0"]


def test_graphs_that_nest_too_deeply_are_refused(tmp_path: Path) -> None:
    inner = graph([node()], [])
    for _ in range(25):
        inner = graph([H.make_node("If", ["C"], ["Y"], then_branch=inner)], [])
    assert "nest deeper than 20 levels" in refusal(save(tmp_path, inner))


def test_functions_that_call_themselves_or_each_other_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scopes, "MAX_NODES", 2000)
    imports = [H.make_opsetid("own", 17)]

    def function(name: str, called: str) -> Any:
        calls = [H.make_node(called, ["x"], [f"y{k}"], domain="own") for k in range(3)]
        return H.make_function("own", name, ["x"], ["y0"], calls, imports)

    call = H.make_node("F0", ["X"], ["Y"], domain="own")
    path = save(tmp_path, graph([call], stored()), [function("F0", "F0")])
    assert "nest deeper" in refusal(path)
    tower = [function(f"F{k}", f"F{k + 1}") for k in range(18)]
    path = save(tmp_path, graph([call], stored()), tower)
    assert "unfolds to more than 2000 nodes" in refusal(path)


def test_functions_that_pass_a_value_round_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    imports = [H.make_opsetid("own", 17)]
    through = H.make_function("own", "F", ["x"], ["x"], [], imports)
    circle = H.make_node("F", ["R"], ["R"], domain="own")
    tensors = [tensor for tensor in stored() if tensor.name != "R"]
    path = save(tmp_path, graph([circle, node()], tensors), [through])
    assert "its R is known only when the model runs" in refusal(path)


def test_long_chain_of_nodes_overflows_no_stack_and_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than the interpreter could recurse."""
    monkeypatch.setattr(folding, "MAX_STEPS", 2500)
    chain = [H.make_node("Identity", [f"r{k}"], [f"r{k + 1}"]) for k in range(2600)]
    tensors = stored(r0=WEIGHTS["R"])
    path = save(tmp_path, graph([*chain, node(("X", "W", "r2000", "B"))], tensors))
    np.testing.assert_array_equal(gl.load(path).only().parameters["W_h"], WEIGHTS["R"][0])
    path = save(tmp_path, graph([*chain, node(("X", "W", "r2600", "B"))], tensors))
    assert "r2600 is computed by more than 2500 nodes" in refusal(path)


def test_tensor_that_does_not_fill_its_shape_is_refused(tmp_path: Path) -> None:
    for dims, part in (([1, 16, 5], "320 bytes, and holds 256"), ([-1, 16, 4], "damaged")):
        tensors = stored()
        tensors[1].dims[:] = dims
        assert part in refusal(save(tmp_path, graph([node()], tensors)))
    tensors = stored()
    tensors[1].data_type = onnx.TensorProto.STRING
    assert "the tensor R has elements of type 8" in refusal(
        save(tmp_path, graph([node()], tensors))
    )


def test_names_from_the_file_cannot_break_a_line(tmp_path: Path) -> None:
    tensors = [*stored(), onnx.numpy_helper.from_array(np.ones(1), "odd\nname")]
    network = gl.load(save(tmp_path, graph([node(name="a\x1b[31m\nb")], tensors)))
    assert all(name.isprintable() for name in network)
    assert all(sentence.isprintable() for sentence in network.assumptions)
    assert any("unprintable name" in sentence for sentence in network.assumptions)


def test_model_without_a_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.ModelProto(ir_version=8, producer_name="nobody").SerializeToString())
    assert "holds no graph" in refusal(path)


def test_missing_package_is_one_line_that_names_the_extra(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(gl.MissingExtraError, match=r"pip install 'gradlab-rnn\[onnx\]'"):
        gl.load(models / "onnx_lstm_clip.onnx")


def test_tensors_of_all_graphs_are_listed_and_read(models: Path) -> None:
    tensors = read_archive(models / "onnx_lstm_computed_weights_if.onnx").tensors
    assert {"decoder.rnn.weight_hh", "sr16", "ax0"} <= set(tensors)
    assert tensors["decoder.rnn.weight_hh"].shape == (16, 4)
    assert read_archive(models / "onnx_gru_lbr1_bi.onnx").tensors["R"].shape == (2, 12, 4)


@pytest.mark.parametrize(
    ("head", "ours"),
    [
        (b"\x08\x0a\x12\x07pytorch\x1a\x0a2.13.0", True),
        (b"\x08\x08:\x88\x13\x0a*\x12", True),
        (b"\x08\x08\x12\x04spox2\x00:", True),
        (b"\x08\x01\x12\x30\x0a\x10\x0a\x05image", False),  # Core ML: a description
        (b"\x08\x01\x12\x90\x02\x0a\x20\x0a\x05serve", False),  # TensorFlow: a meta graph
        (b"\x08\x05\x12\x30\x0a\x10\x0a\x05image", False),  # Core ML of a later version
        (b"\x0a\x1f\x0a\x05input", False),  # a TensorFlow graph
        (b"\x08\x00\x00\x00\x00\x00\x00\x00{}", False),  # an empty safetensors file
        (b"\x80\x02}q\x00.", False),
        (b"\x08", False),
        (b"", False),
    ],
)
def test_files_of_this_format_are_told_by_their_first_fields(head: bytes, ours: bool) -> None:
    assert recognizes(head, []) == ours


EDITS = st.lists(st.tuples(st.integers(2, 2**16), st.integers(1, 255)), min_size=1, max_size=3)


@pytest.mark.parametrize("name", FUZZED)
@settings(max_examples=40, deadline=None)
@given(edits=EDITS)
def test_changed_bytes_give_clear_errors_only(
    models: Path, tmp_path_factory: pytest.TempPathFactory, name: str, edits: list[tuple[int, int]]
) -> None:
    changed = bytearray((models / f"{name}.onnx").read_bytes())
    for place, bits in edits:
        changed[place % len(changed)] ^= bits
    path = tmp_path_factory.getbasetemp() / "changed.onnx"
    path.write_bytes(bytes(changed))
    message = complaint(path)
    assert message is None or (str(path) in message and message.isprintable())


def complaint(path: Path) -> str | None:
    """Message of gradlab's refusal; any other exception passes through."""
    try:
        gl.load(path)
        dict(read_archive(path).tensors)
    except gl.GradlabError as error:
        return str(error)
    return None
