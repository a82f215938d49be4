"""Files with names of their own, read by a mapping; nothing is guessed from shapes alone."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from tests.checkpoints.conftest import ModelWriter

N, D = 4, 3


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def gru_arrays(rng: np.random.Generator) -> dict[str, Array]:
    return {
        "W_x": rng.normal(size=(3 * N, D)), "W_h": rng.normal(size=(3 * N, N)),
        "b_x": rng.normal(size=3 * N), "b_h": rng.normal(size=3 * N),
    }  # fmt: skip


def reordered(array: Array, order: tuple[int, ...]) -> Array:
    blocks = np.split(array, len(order))
    return np.concatenate([blocks[k] for k in order])


def entry(**changes: Any) -> dict[str, Any]:
    whole = {"name": "enc", "cell": "gru", "weights": {"W_x": "x", "W_h": "h"}} | changes
    return {"recurrence": [whole]}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("transposed", [False, True])
def test_gates_in_any_order_and_either_way_around_give_the_same_cell(
    order: tuple[int, ...], transposed: bool, write: ModelWriter, rng: np.random.Generator
) -> None:
    arrays = gru_arrays(rng)
    stored = {f"my_{name}": reordered(array, order) for name, array in arrays.items()}
    if transposed:
        stored = {name: array.T for name, array in stored.items()}
    mapping = entry(
        gates=["rzn"[k] for k in order],
        transposed=transposed,
        weights={name: f"my_{name}" for name in arrays},
    )
    cell = gl.load(write.npz(stored), map=mapping).only()
    for name, array in arrays.items():
        np.testing.assert_array_equal(cell.parameters[name], array)


def test_gates_in_arrays_of_their_own_are_put_together(
    write: ModelWriter, rng: np.random.Generator
) -> None:
    arrays = gru_arrays(rng)
    stored = {
        f"{name}{gate}": block
        for name, array in arrays.items()
        for gate, block in zip("rzn", np.split(array, 3), strict=True)
    }
    mapping = entry(
        gates=["z", "n", "r"],
        weights={name: [f"{name}{gate}" for gate in "znr"] for name in arrays},
    )
    cell = gl.load(write.npz(stored), map=mapping).only()
    np.testing.assert_array_equal(cell.parameters["W_h"], arrays["W_h"])


def test_settings_reach_the_cell(write: ModelWriter, rng: np.random.Generator) -> None:
    mapping = entry(
        reset="before", update="overwrite", recurrent_activation="hard_sigmoid", clip=2.0
    )
    stored = {"x": rng.normal(size=(3 * N, D)), "h": rng.normal(size=(3 * N, N))}
    cell = gl.load(write.npz(stored), map=mapping).only()
    assert isinstance(cell, gl.GRUCell)
    assert (cell.reset, cell.update, cell.recurrent_activation, cell.clip) == (
        "before", "overwrite", "hard_sigmoid", 2.0,
    )  # fmt: skip


def test_several_biases_of_a_vanilla_cell_add_up(
    write: ModelWriter, rng: np.random.Generator
) -> None:
    stored = {"x": rng.normal(size=(N, D)), "h": rng.normal(size=(N, N)),
              "p": rng.normal(size=N), "q": rng.normal(size=N)}  # fmt: skip
    weights = {"W_xh": "x", "W_hh": "h", "b_h": ["p", "q"]}
    cell = gl.load(
        write.npz(stored), map=entry(cell="rnn", activation="relu", weights=weights)
    ).only()
    np.testing.assert_array_equal(cell.parameters["b_h"], stored["p"] + stored["q"])


def test_layers_of_one_stack_feed_each_other(write: ModelWriter, rng: np.random.Generator) -> None:
    stored = {"x0": rng.normal(size=(N, D)), "h0": rng.normal(size=(N, N)),
              "x1": rng.normal(size=(N, N)), "h1": rng.normal(size=(N, N))}  # fmt: skip
    layers = [
        {"name": f"l{k}", "cell": "rnn", "stack": "deep", "layer": k,
         "weights": {"W_xh": f"x{k}", "W_hh": f"h{k}"}}
        for k in (0, 1)
    ]  # fmt: skip
    network = gl.load(write.npz(stored), map={"recurrence": layers})
    assert [(e.name, e.stack, e.layer) for e in network.recurrences] == [
        ("l0", "deep", 0), ("l1", "deep", 1),
    ]  # fmt: skip
    assert network.joint().state_size == 2 * N


def test_mapping_that_was_used_is_among_the_assumptions(
    write: ModelWriter, rng: np.random.Generator
) -> None:
    stored = {"x": rng.normal(size=(3 * N, D)), "h": rng.normal(size=(3 * N, N))}
    network = gl.load(write.npz(stored), map=entry())
    assert "enc: read as the mapping says (option map)" in network.assumptions
    assert network.recurrences[0].tensors == ("x", "h")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "no table"),
        ({"recurrences": []}, "did you mean 'recurrence'"),
        ({"recurrence": [3]}, "recurrence 1 is no table"),
        (entry(cell="gruu"), "did you mean 'gru'"),
        (entry(cell=None), "cell of recurrence 1 of the mapping is missing"),
        (entry(gates=["r", "z"]), "expected the order of the blocks, r, z, n"),
        (entry(weights={"W_h": "h"}), "has no W_x"),
        (entry(weights={"W_h": "h", "W_x": []}), "expected the name of an array"),
        (entry(weights={"W_h": "h", "W_x": "x", "b": "c"}), "unknown weight of a gru cell 'b'"),
        (entry(weights={"W_h": "hh", "W_x": "x"}), "unknown array 'hh'"),
        (entry(weights={"W_h": "c", "W_x": "x"}), "recurrence enc of the mapping: W_h has 7 rows"),
        (entry(reste="after"), "did you mean 'reset'"),
        (entry(reset="sideways"), "sideways"),
        (entry(reset=True), "reset of recurrence 1 of the mapping is True"),
        (entry(layer="0"), "expected a whole number"),
        (entry(direction="up"), "up"),
        (entry(transposed=1), "expected true or false"),
    ],
)
def test_mapping_that_does_not_fit_is_one_clear_error(
    document: Mapping[str, Any], message: str, write: ModelWriter
) -> None:
    stored = {"x": np.ones((3 * N, D)), "h": np.ones((3 * N, N)), "c": np.ones((7, N))}
    with pytest.raises(gl.GradlabError) as refusal:
        gl.load(write.npz(stored), map=document)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_file_that_is_not_toml_is_named(write: ModelWriter, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text("[[recurrence]\n")
    with pytest.raises(gl.SettingError, match=r"mapping\.toml is not TOML"):
        gl.load(write.npz({"x": np.ones((3, 3))}), map=mapping)


def test_names_that_say_nothing_are_refused_with_the_candidates(write: ModelWriter) -> None:
    stored = {"a": np.ones((12, 4)), "b": np.ones((12, 3)), "c": np.ones(12)}
    with pytest.raises(gl.AmbiguousModelError, match=r"a beside b .*--propose-map"):
        gl.load(write.npz(stored))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("kind", "gates"), [("rnn", 1), ("mgu", 2), ("gru", 3), ("lstm", 4)])
def test_proposal_is_a_mapping_that_loads(
    kind: str, gates: int, transposed: bool, write: ModelWriter, tmp_path: Path
) -> None:
    arrays = {"a": np.ones((gates * N, N)), "b": np.ones((gates * N, D)), "c": np.ones(gates * N)}
    if transposed and kind == "rnn":
        pytest.skip("a square matrix is its own transpose in shape")
    file = write.npz({name: array.T if transposed else array for name, array in arrays.items()})
    text = gl.propose_mapping(file)
    assert "#   c" in text
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(text)
    assert tomllib.loads(text)["recurrence"][0]["transposed"] is transposed
    cell = gl.load(file, map=mapping).only()
    assert (cell.kind, cell.hidden_size, cell.input_size) == (kind, N, D)


def test_proposal_survives_hostile_names(write: ModelWriter) -> None:
    name = 'a"]\\n[evil'
    stored = {name: np.ones((12, 4)), "b": np.ones((12, 3))}
    document = tomllib.loads(gl.propose_mapping(write.npz(stored)))
    assert document.keys() == {"recurrence"}
    assert document["recurrence"][0]["weights"]["W_h"] == name


def test_list_has_every_array_and_the_reason_for_one_that_cannot_be_read(
    write: ModelWriter,
) -> None:
    listed = gl.list_tensors(write.npz({"a": np.ones((2, 3)), "b": np.array([None])}))
    assert [(e.name, e.shape, e.dtype) for e in listed] == [("a", (2, 3), "float64"), ("b", (), "")]
    assert "Python objects" in listed[1].problem


def test_short_names_of_pytorch_are_read_as_pytorch_and_it_is_said(
    write: ModelWriter, rng: np.random.Generator
) -> None:
    arrays = gru_arrays(rng)
    names = {"W_x": "enc_w_ih", "W_h": "enc_w_hh", "b_x": "enc_b_ih", "b_h": "enc_b_hh"}
    network = gl.load(write.npz({names[k]: array for k, array in arrays.items()}))
    assert list(network) == ["enc"]
    np.testing.assert_array_equal(network.only().parameters["b_h"], arrays["b_h"])
    assert any("read as PyTorch's GRU" in said for said in network.assumptions)
