"""Files written by the real frameworks, against what those frameworks computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.checkpoints.recognition import read_archive
from gradlab.records.trajectory import Trajectory

VANILLA = {
    "rnn_tanh_1l.pt": "tanh",
    "rnn_tanh_1l.npz": "tanh",
    "rnn_tanh_1l.safetensors": "tanh",
    "rnn_relu_2l.pt": "relu",
    "rnn_tanh_bi_2l.pt": "tanh",
    "rnn_tanh_nobias.pt": "tanh",
    "trained_rnn_echo3.pt": "tanh",
}
PARAMETRIZED = ("weightnorm", "weightnorm_old", "spectralnorm", "spectralnorm_old", "orthogonal")


def oracle(models: Path, name: str) -> dict[str, Array]:
    with np.load(models / f"{name.partition('.')[0]}.oracle.npz", allow_pickle=False) as stored:
        return dict(stored)


def jacobians(cell: Cell, run: Trajectory) -> Array:
    """One-step Jacobians of a single sequence."""
    return np.stack([step.matrix()[0] for step in cell.linearize(run)])


def long_term(J: Array) -> Array:
    """d s[T] / d s[k] for k = 0..T."""
    products = [np.eye(J.shape[1])]
    for step in J[::-1]:
        products.append(products[-1] @ step)
    return np.stack(products[::-1])


def norm(W: Array) -> float:
    return float(np.linalg.norm(W.astype(np.float64), 2))


def test_one_network_in_three_containers_is_the_same_to_the_last_bit(models: Path) -> None:
    networks = [
        gl.load(models / f"rnn_tanh_1l{suffix}") for suffix in (".pt", ".safetensors", ".npz")
    ]
    for network in networks:
        assert list(network) == ["l0"]
        for name, array in networks[0]["l0"].parameters.items():
            assert network["l0"].parameters[name].tobytes() == array.tobytes()
    with np.load(models / "rnn_tanh_1l.npz") as stored:
        exact = {name: stored[name].astype(np.float64) for name in stored}
    cell = networks[0].only().parameters
    np.testing.assert_array_equal(cell["W_hh"], exact["weight_hh_l0"])
    np.testing.assert_array_equal(cell["W_xh"], exact["weight_ih_l0"])
    np.testing.assert_array_equal(cell["b_h"], exact["bias_ih_l0"] + exact["bias_hh_l0"])


@pytest.mark.parametrize("name", VANILLA)
def test_loaded_network_runs_through_the_states_of_the_framework(models: Path, name: str) -> None:
    expected = oracle(models, name)
    network = gl.load(models / name, nonlinearity=VANILLA[name])
    keys = [f"s_l{entry.layer}{'_reverse' if entry.direction == 'backward' else ''}"
            for entry in network.recurrences]  # fmt: skip
    initial = {name: expected[key][0] for name, key in zip(network, keys, strict=True)}
    runs = gl.rollout_network(network, expected["x"][:, None, :], initial_state=initial)
    for run, key in zip(runs.values(), keys, strict=True):
        np.testing.assert_allclose(run.states[:, 0], expected[key], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["rnn_tanh_1l.pt", "rnn_tanh_nobias.pt"])
def test_long_term_jacobians_are_those_of_automatic_differentiation(
    models: Path, name: str
) -> None:
    expected = oracle(models, name)
    cell = gl.load(models / name).only()
    run = gl.rollout(cell, expected["x"][:, None], initial_state=expected["s_l0"][0])
    products = long_term(jacobians(cell, run))
    np.testing.assert_allclose(products, expected["dsT_ds_l0"], rtol=0, atol=1e-10)


def test_two_relu_layers_are_one_state_whose_jacobians_are_the_frameworks(models: Path) -> None:
    expected = oracle(models, "rnn_relu_2l")
    cell = gl.load(models / "rnn_relu_2l.pt", nonlinearity="relu").joint()
    run = gl.rollout(cell, expected["x"][:, None], initial_state=expected["s_stack"][0])
    np.testing.assert_allclose(run.states[:, 0], expected["s_stack"], rtol=0, atol=1e-12)
    J = jacobians(cell, run)
    np.testing.assert_allclose(J, expected["J_stack"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(long_term(J)[0], expected["dsT_ds0_stack"], rtol=0, atol=1e-10)


def test_bidirectional_stack_lists_its_four_recurrences_in_order(models: Path) -> None:
    network = gl.load(models / "rnn_tanh_bi_2l.pt")
    expected = oracle(models, "rnn_tanh_bi_2l")
    assert list(network) == ["l0", "l0.reverse", "l1", "l1.reverse"]
    assert [entry.layer for entry in network.recurrences] == [0, 0, 1, 1]
    assert [entry.direction for entry in network.recurrences] == ["forward", "backward"] * 2
    assert network.stacks == ("",)
    for entry, key in zip(
        network.recurrences, ("l0", "l0_reverse", "l1", "l1_reverse"), strict=True
    ):
        sigma = norm(entry.cell.parameters["W_hh"])
        assert sigma == pytest.approx(float(expected[f"sigma_stack_{key}"]), rel=1e-12)


@pytest.mark.parametrize("kind", PARAMETRIZED)
def test_weight_in_use_is_rebuilt_from_its_parts(models: Path, kind: str) -> None:
    network = gl.load(models / f"rnn_{kind}.pt")
    expected = oracle(models, f"rnn_{kind}")
    # The framework rebuilt it in float32: 5 sums and a square root of numbers near 1.
    W_hh = network.only().parameters["W_hh"]
    np.testing.assert_allclose(W_hh, expected["weight_hh_l0"], rtol=0, atol=1e-6)
    run = gl.rollout(network.only(), expected["x"][:, None, :].astype(np.float64))
    np.testing.assert_allclose(run.states[1:, 0], expected["y_f32"], rtol=0, atol=2e-6)
    assert any("weight_hh_l0 is rebuilt" in sentence for sentence in network.assumptions)


def test_cells_without_layers_are_networks_of_their_own(models: Path) -> None:
    network = gl.load(models / "cells.pt")
    expected = oracle(models, "cells")
    assert [(name, cell.kind) for name, cell in network.items()] == [
        ("enc", "rnn"), ("mid", "lstm"), ("dec", "gru"),
    ]  # fmt: skip
    assert network.stacks == ("enc", "mid", "dec")
    for name, cell in network.items():
        run = gl.rollout(
            cell, expected[f"{name}.x"][:, None], initial_state=expected[f"{name}.s"][0]
        )
        np.testing.assert_allclose(run.states[:, 0], expected[f"{name}.s"], rtol=0, atol=1e-12)
        J = jacobians(cell, run)
        np.testing.assert_allclose(J, expected[f"{name}.J"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(long_term(J), expected[f"{name}.dsT_ds"], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "key", "sigma"),
    [
        ("lstm_1l_legacy", "weight_hh_l0", "sigma_stack_l0"),
        ("lstm_2l_bi_flatbuf", "rnn.weight_hh_l1_reverse", "sigma_stack_l1_reverse"),
        ("lstm_2l_lightning", "model.encoder.weight_hh_l1", "sigma_stack_l1"),
    ],
)
def test_tensor_of_any_torch_layout_has_the_norm_of_the_framework(
    models: Path, name: str, key: str, sigma: str
) -> None:
    """The legacy stream, views into one flat buffer, and a checkpoint with optimizer moments."""
    tensor = read_archive(models / f"{name}.pt").tensors[key]
    assert norm(tensor) == pytest.approx(float(oracle(models, name)[sigma]), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("lstm_1l.bf16.safetensors", "lstm_1l.npz"),
        ("gru_1l.bf16.pt", None),
        ("gru_1l.f16.pt", None),
    ],
)
def test_half_precision_is_widened_without_change(
    models: Path, name: str, exact: str | None
) -> None:
    tensor = read_archive(models / name).tensors["weight_hh_l0"]
    with np.load(models / f"{name.rpartition('.')[0]}.oracle.npz") as stored:
        assert norm(tensor) == pytest.approx(float(stored["sigma_stack_l0"]), rel=1e-6)
    if exact is not None:
        whole = read_archive(models / exact).tensors["weight_hh_l0"]
        np.testing.assert_allclose(tensor, whole, rtol=2.0**-8)
        assert np.all(tensor.view(np.uint32) & 0xFFFF == 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lstm_1l.bf16.safetensors", "bfloat16"),
        ("gru_1l.bf16.pt", "bfloat16"),
        ("gru_1l.f16.pt", "float16"),
        ("lstm_1l.pt", "float32"),
        ("lstm_1l.npz", "float32"),
        ("lstm_1l_legacy.pt", "float32"),
        ("lstm_export.pt2", "float32"),
    ],
)
def test_type_of_the_weights_is_told_as_it_is_stored(models: Path, name: str, kind: str) -> None:
    assert {entry.stored_dtype for entry in gl.load(models / name).recurrences} == {kind}


def test_rebuilt_weight_names_the_parts_that_the_file_holds(models: Path) -> None:
    [entry] = gl.load(models / "rnn_weightnorm.pt").recurrences
    stored = read_archive(models / "rnn_weightnorm.pt").tensors
    assert set(entry.tensors) == set(stored)
    assert entry.stored_dtype == "float32"
