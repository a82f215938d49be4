"""Files of Flax and Haiku, against states and Jacobians that JAX computed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from tests.checkpoints.conftest import ModelWriter

FLAX = {
    "flax_simplecell": "rnn", "flax_lstmcell": "lstm",
    "flax_optimizedlstmcell": "lstm", "flax_grucell": "gru",
}  # fmt: skip
HAIKU = {"haiku_vanillarnn": "rnn", "haiku_lstm": "lstm", "haiku_gru": "gru"}
ROUNDING = 1e-12


@pytest.fixture(params=[f"{name}.msgpack" for name in FLAX] + [f"{name}.npz" for name in HAIKU])
def file(models: Path, request: pytest.FixtureRequest) -> Path:
    name: str = request.param
    if name.endswith(".msgpack"):
        pytest.importorskip("msgpack")
    return models / name


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def oracle(file: Path) -> Mapping[str, Array]:
    with np.load(file.with_suffix(".oracle.npz"), allow_pickle=False) as stored:
        return dict(stored)


def linen_lstm(rng: np.random.Generator, D: int = 3, N: int = 4) -> dict[str, dict[str, Array]]:
    """Parameters of a linen LSTMCell."""
    inputs = {f"i{gate}": {"kernel": rng.normal(size=(D, N))} for gate in "ifgo"}
    states = {
        f"h{gate}": {"kernel": rng.normal(size=(N, N)), "bias": rng.normal(size=N)}
        for gate in "ifgo"
    }
    return inputs | states


def stacked(cell: Mapping[str, Mapping[str, Array]], side: str) -> Array:
    return np.concatenate([cell[side + gate]["kernel"].T for gate in "ifgo"])


def test_states_are_those_of_the_framework(file: Path, oracle: Mapping[str, Array]) -> None:
    cell = gl.load(file).only()
    assert cell.kind == (FLAX | HAIKU)[file.stem]
    run = gl.rollout(cell, oracle["x"][:, None], initial_state=oracle["s"][0])
    np.testing.assert_allclose(run.states[:, 0], oracle["s"], rtol=ROUNDING, atol=ROUNDING)


def test_jacobians_are_those_of_automatic_differentiation(
    file: Path, oracle: Mapping[str, Array]
) -> None:
    cell = gl.load(file).only()
    run = gl.rollout(cell, oracle["x"][:, None], initial_state=oracle["s"][0])
    J = [step.matrix()[0] for step in cell.linearize(run)]
    np.testing.assert_allclose(J, oracle["J"], rtol=ROUNDING, atol=ROUNDING)
    product = np.eye(cell.state_size)
    for j, expected in zip(J[::-1], oracle["dsT_ds"][-2::-1], strict=True):
        product = product @ j
        np.testing.assert_allclose(product, expected, rtol=1e-10, atol=1e-12)


def test_recurrence_names_the_tensors_it_came_from(models: Path) -> None:
    pytest.importorskip("msgpack")
    [entry] = gl.load(models / "flax_simplecell.msgpack").recurrences
    assert entry.name == entry.stack == "encoder"
    assert set(entry.tensors) == {
        "params/encoder/cell/i/kernel",
        "params/encoder/cell/i/bias",
        "params/encoder/cell/h/kernel",
    }


def test_activation_of_a_simple_cell_is_an_option_and_otherwise_assumed_aloud(models: Path) -> None:
    pytest.importorskip("msgpack")
    file = models / "flax_simplecell.msgpack"
    assumed = gl.load(file)
    assert any("tanh assumed (option nonlinearity)" in said for said in assumed.assumptions)
    stated = gl.load(file, nonlinearity="relu")
    cell = stated.only()
    assert isinstance(cell, gl.VanillaCell)
    assert cell.activation == "relu"
    assert not any("assumed (option nonlinearity)" in said for said in stated.assumptions)


def test_nonlinearity_has_nothing_to_act_on_in_a_gated_flax_file(models: Path) -> None:
    pytest.importorskip("msgpack")
    said = gl.load(models / "flax_grucell.msgpack", nonlinearity="relu").assumptions
    assert any("nonlinearity = relu has no vanilla layer" in sentence for sentence in said)


def test_live_parameters_give_the_cells_of_their_file(models: Path) -> None:
    msgpack = pytest.importorskip("msgpack")
    file = models / "flax_lstmcell.msgpack"

    def array(_: int, data: bytes) -> Array:
        shape, kind, raw = msgpack.unpackb(data)
        return np.frombuffer(raw, kind).reshape(shape)

    tree = msgpack.unpackb(file.read_bytes(), ext_hook=array, raw=False)
    live, stored = gl.from_flax(tree).only(), gl.load(file).only()
    for name, weight in stored.parameters.items():
        np.testing.assert_array_equal(live.parameters[name], weight)


def test_bidirectional_layer_is_two_recurrences_of_one_stack(rng: np.random.Generator) -> None:
    forward, backward = linen_lstm(rng), linen_lstm(rng)
    tree = {"bi": {"forward_rnn": {"cell": forward}, "backward_rnn": {"cell": backward}}}
    network = gl.from_flax({"params": tree})
    assert [(e.name, e.direction, e.stack) for e in network.recurrences] == [
        ("bi.forward", "forward", "bi"),
        ("bi.backward", "backward", "bi"),
    ]
    np.testing.assert_array_equal(network["bi.backward"].parameters["W_h"], stacked(backward, "h"))


def test_numbered_layers_that_fit_are_one_stack_and_it_is_said(rng: np.random.Generator) -> None:
    tree = {f"RNN_{k}": {"cell": linen_lstm(rng, D)} for k, D in enumerate((3, 4, 4))}
    network = gl.from_flax({"params": tree})
    assert [(e.name, e.layer, e.stack) for e in network.recurrences] == [
        ("RNN_0", 0, "RNN_0"),
        ("RNN_1", 1, "RNN_0"),
        ("RNN_2", 2, "RNN_0"),
    ]
    assert any("RNN_0 -> RNN_1 -> RNN_2 assumed" in said for said in network.assumptions)


def test_numbered_layers_that_do_not_fit_stay_apart(rng: np.random.Generator) -> None:
    tree = {f"RNN_{k}": {"cell": linen_lstm(rng, D)} for k, D in enumerate((3, 5))}
    network = gl.from_flax(tree)
    assert [e.stack for e in network.recurrences] == ["RNN_0", "RNN_1"]


def test_fused_cells_of_nnx_are_read_in_the_same_order(rng: np.random.Generator) -> None:
    cell = linen_lstm(rng)
    fused = {
        "dense_i": {"kernel": {"value": stacked(cell, "i").T}},
        "dense_h": {
            "kernel": {"value": stacked(cell, "h").T},
            "bias": {"value": np.concatenate([cell[f"h{gate}"]["bias"] for gate in "ifgo"])},
        },
    }
    found, expected = gl.from_flax({"rnn": {"cell": fused}}).only(), gl.from_flax(cell).only()
    for name, weight in expected.parameters.items():
        np.testing.assert_array_equal(found.parameters[name], weight)


def test_minimal_gated_cell_of_flax_is_refused_by_name(rng: np.random.Generator) -> None:
    kernels = {name: {"kernel": rng.normal(size=(3, 3))} for name in ("if", "in", "hf", "hn")}
    with pytest.raises(gl.ModelFileError, match="MGUCell"):
        gl.from_flax({"params": {"cell": kernels}})


def test_haiku_gru_equals_its_own_equations(write: ModelWriter, rng: np.random.Generator) -> None:
    """h' = (1 - z) h + z a, with blocks z, r, a and the reset before the product."""
    D, N = 2, 3
    arrays = {"w_i": rng.normal(size=(D, 3 * N)), "w_h": rng.normal(size=(N, 3 * N)),
              "b": rng.normal(size=3 * N)}  # fmt: skip
    cell = gl.load(write.npz({f"net/~/gru/{k}": v for k, v in arrays.items()})).only()
    x, h = rng.normal(size=(1, D)), rng.normal(size=(1, N))
    z, r = (1 / (1 + np.exp(-part)) for part in np.split(
        x @ arrays["w_i"][:, : 2 * N] + h @ arrays["w_h"][:, : 2 * N] + arrays["b"][: 2 * N], 2, 1
    ))  # fmt: skip
    a = np.tanh(
        x @ arrays["w_i"][:, 2 * N :] + (r * h) @ arrays["w_h"][:, 2 * N :] + arrays["b"][2 * N :]
    )
    np.testing.assert_allclose(cell.step(x, h), (1 - z) * h + z * a, rtol=1e-13)


def test_haiku_weights_of_impossible_shapes_are_named(write: ModelWriter) -> None:
    file = write.npz({"lstm/linear/w": np.ones((3, 15)), "lstm/linear/b": np.ones(15)})
    with pytest.raises(gl.ShapeError, match=r"lstm/linear/w \(3, 15\)"):
        gl.load(file)


def test_missing_extra_is_named_with_the_command(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(gl.MissingExtraError, match=r"pip install 'gradlab-rnn\[flax\]'"):
        gl.load(models / "flax_grucell.msgpack")


def packed(tree: Any) -> bytes:
    """Tree as Flax writes it."""
    msgpack = pytest.importorskip("msgpack")

    def extension(leaf: Any) -> Any:
        if isinstance(leaf, np.generic):
            return msgpack.ExtType(3, msgpack.packb(((), leaf.dtype.name, leaf.tobytes())))
        return msgpack.ExtType(1, msgpack.packb((leaf.shape, leaf.dtype.name, leaf.tobytes())))

    data: bytes = msgpack.packb(tree, default=extension)
    return data


def test_pieces_of_a_large_array_are_joined(write: ModelWriter, rng: np.random.Generator) -> None:
    cell: dict[str, Any] = {k: dict(v) for k, v in linen_lstm(rng).items()}
    whole = gl.from_flax(cell).only()
    flat = cell["hf"]["kernel"].ravel()
    cell["hf"]["kernel"] = {
        "__msgpack_chunked_array__": True,
        "shape": {"0": 4, "1": 4},
        "chunks": {"1": flat[10:], "0": flat[:10]},
    }
    found = gl.load(write.bytes(packed({"cell": cell}), "model.msgpack")).only()
    np.testing.assert_array_equal(found.parameters["W_h"], whole.parameters["W_h"])


def test_step_counts_and_moments_do_not_disturb(
    write: ModelWriter, rng: np.random.Generator
) -> None:
    cell = {k: dict(v) for k, v in linen_lstm(rng).items()}
    tree = {"params": {"cell": cell}, "step": 7, "count": np.int64(3)}
    network = gl.load(write.bytes(packed(tree), "model.msgpack"))
    assert list(network) == ["cell"]


def test_declared_shape_that_the_bytes_do_not_fill_is_refused(write: ModelWriter) -> None:
    msgpack = pytest.importorskip("msgpack")
    lie = msgpack.ExtType(1, msgpack.packb(((4, 4), "float32", b"\0" * 8)))
    tree = {f"{side}": {"kernel": lie} for side in "ih"}
    with pytest.raises(gl.ModelFileError, match=r"declares shape \(4, 4\)"):
        gl.load(write.bytes(msgpack.packb({"cell": tree}), "model.msgpack"))


def test_truncated_file_is_one_clear_error(models: Path, write: ModelWriter) -> None:
    pytest.importorskip("msgpack")
    data = (models / "flax_grucell.msgpack").read_bytes()
    with pytest.raises(gl.ModelFileError, match="Flax msgpack file"):
        gl.load(write.bytes(data[: len(data) // 2], "model.msgpack"))
