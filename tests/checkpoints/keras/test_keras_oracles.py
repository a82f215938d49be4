"""Files that Keras wrote, against what Keras computed by automatic differentiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.stack import Recurrence
from gradlab.checkpoints.recognition import read_archive
from gradlab.records.trajectory import Trajectory

pytest.importorskip("h5py")

FILES = {
    "keras_simplernn.keras": ["simple_rnn"],
    "keras_lstm.keras": ["lstm"],
    "keras_lstm.h5": ["lstm"],
    "keras_gru_reset_after.keras": ["gru"],
    "keras_gru_reset_before.keras": ["gru"],
    "keras_gru_hardsigmoid.keras": ["gru"],
    "keras_bilstm.keras": ["bidirectional.forward", "bidirectional.backward"],
    "keras_bilstm.h5": ["bidirectional.forward", "bidirectional.backward"],
    "keras_relu_nobias_backwards.keras": ["simple_rnn"],
    "keras_gru_names.keras": ["front", "gru", "gru_1"],
    "keras_gru_names.h5": ["front", "gru", "gru_1"],
    "keras_gru_names.weights.h5": ["front", "gru", "gru_1"],
    "tfkeras2_lstm.h5": ["lstm"],
    "keras21_cudnnlstm_weights.h5": ["rnn_1"],
}
UNNAMED = ("tfkeras2_lstm", "keras21_cudnnlstm_weights")  # oracles without the layer's name
AGREEMENT = 1e-10
# PyTorch, which differentiated the oracles, takes the slope of its hard sigmoid as the float32
# nearest to 1/6, which is off by 3e-8.
SLOPES = {"keras_gru_hardsigmoid.keras": 1e-7}


class Run:
    """A file, each of its recurrences run on its own real input as the oracle was."""

    def __init__(self, models: Path, file: str) -> None:
        self.path = models / file
        stem = file.partition(".")[0]
        with np.load(models / f"{stem}.oracle.npz", allow_pickle=False) as stored:
            self.oracle: dict[str, Array] = dict(stored)
        self.unnamed = stem in UNNAMED
        self.network = gl.load(self.path)
        self.runs = self.names() if "front" in self.network else self.plain(self.oracle["x"])

    def plain(self, x: Array, *names: str) -> dict[str, Trajectory]:
        """Runs of the recurrences that read the network's input."""
        runs = gl.rollout_network(self.network, x[:, None])
        return {name: run for name, run in runs.items() if name in (names or runs)}

    def names(self) -> dict[str, Trajectory]:
        """front, then a Dense layer that is not recurrent, then gru and gru_1."""
        runs = self.plain(self.oracle["x"], "front")
        tensors = read_archive(self.path).tensors
        kernel, bias = (
            next(tensors[name] for name in tensors if name.endswith(ends))
            for ends in (("mid/kernel", "dense/vars/0"), ("mid/bias", "dense/vars/1"))
        )
        between = runs["front"].states[1:, 0] @ kernel.astype(float) + bias
        return runs | self.plain(between, "gru", "gru_1")

    def of(self, entry: Recurrence, key: str) -> Array:
        """The oracle's value for a recurrence."""
        return self.oracle[key if self.unnamed else f"{entry.name}/{key}"]


@pytest.fixture
def run(models: Path, request: pytest.FixtureRequest) -> Run:
    return Run(models, request.param)


def close(found: Any, expected: Any, tolerance: float = AGREEMENT) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("run", FILES, indirect=True)
def test_recurrences_bear_the_names_of_their_layers_in_the_models_order(run: Run) -> None:
    assert list(run.network) == FILES[run.path.name]


@pytest.mark.parametrize("run", FILES, indirect=True)
def test_states_are_those_of_keras(run: Run) -> None:
    """Those of a backward layer in processing order."""
    for entry in run.network.recurrences:
        close(run.runs[entry.name].states[:, 0], run.of(entry, "s"))


@pytest.mark.parametrize("run", FILES, indirect=True)
def test_jacobians_are_those_of_automatic_differentiation(run: Run) -> None:
    for entry in run.network.recurrences:
        linear = entry.cell.linearize(run.runs[entry.name])
        J = np.stack([step.matrix()[0] for step in linear])
        tolerance = SLOPES.get(run.path.name, AGREEMENT)
        close(J, run.of(entry, "J"), tolerance)
        product, products = np.eye(J.shape[1]), [np.eye(J.shape[1])]
        for step in J[::-1]:
            product = product @ step
            products.append(product)
        close(np.stack(products[::-1]), run.of(entry, "dsT_ds"), tolerance)


@pytest.mark.parametrize("run", FILES, indirect=True)
def test_norms_over_the_lag_are_those_of_automatic_differentiation(run: Run) -> None:
    for entry in run.network.recurrences:
        profile = gl.jacobian_profile(
            entry.cell, run.runs[entry.name], anchors="last", smallest=False
        )
        expected = run.of(entry, "norm2_dsT_dsk")[-2::-1]
        tolerance = SLOPES.get(run.path.name, 1e-9)
        np.testing.assert_allclose(np.exp(profile.log_norm), expected, rtol=tolerance)


@pytest.mark.parametrize("name", ["keras_bilstm.keras", "keras_bilstm.h5"])
def test_two_directions_side_by_side_are_the_layers_output(models: Path, name: str) -> None:
    run = Run(models, name)
    forward, backward = (
        run.network[entry.name].output(run.runs[entry.name].states[1:, 0])
        for entry in run.network.recurrences
    )
    close(np.concatenate([forward, backward[::-1]], axis=1), run.oracle["y"])


def test_backward_layer_alone_gives_its_sequence_in_processing_order(models: Path) -> None:
    run = Run(models, "keras_relu_nobias_backwards.keras")
    entry = run.network.recurrences[0]
    assert entry.direction == "backward"
    assert not entry.cell.parameters["b_h"].any()
    close(run.runs["simple_rnn"].states[1:, 0], run.oracle["y"])


@pytest.mark.parametrize("file", [name for name in FILES if name.startswith("keras_")])
def test_float32_on_request_agrees_with_keras_in_float32(models: Path, file: str) -> None:
    with np.load(models / f"{file.partition('.')[0]}.oracle.npz") as oracle:
        x, expected = oracle["x"], oracle["y_f32"]
    network = gl.load(models / file, dtype="float32")
    if len(network) == 1:
        run = gl.rollout(network.only(), (x[::-1] if "backwards" in file else x)[:, None])
        close(network.only().output(run.states[1:, 0]), expected, 2e-6)


def test_group_of_a_path_is_not_taken_for_the_layer_of_that_name(models: Path) -> None:
    """In this file the path gru_1 is the layer named gru, which has three units and not four."""
    for name in ("keras_gru_names.keras", "keras_gru_names.weights.h5"):
        network = gl.load(models / name)
        assert {key: cell.hidden_size for key, cell in network.items()} == {
            "front": 4, "gru": 3, "gru_1": 4,
        }  # fmt: skip
        assert network.recurrences[1].tensors[1] == "layers/gru_1/cell/vars/1"


def test_three_containers_hold_the_same_network_to_the_last_bit(models: Path) -> None:
    networks = [gl.load(models / f"keras_gru_names.{e}") for e in ("keras", "h5", "weights.h5")]
    for network in networks:
        for name, cell in networks[0].items():
            for key, array in cell.parameters.items():
                assert network[name].parameters[key].tobytes() == array.tobytes()
        assert [entry.stack for entry in network.recurrences] == ["front", "gru", "gru"]


@pytest.mark.parametrize("run", ["tfkeras2_lstm.h5", "keras21_cudnnlstm_weights.h5"], indirect=True)
def test_stack_of_gates_has_the_norm_of_the_plain_layout(run: Run) -> None:
    """Transposed blocks have the same norms gate by gate; only the stack tells."""
    plain = run.oracle["recurrent_kernel_plain"].astype(float)
    summary = gl.spectral_summary(run.network.only())
    close(summary.gates["stack"].sigma_max, np.linalg.norm(plain, 2))
    for index, gate in enumerate("ifgo"):
        block = plain[:, 4 * index : 4 * index + 4]
        close(summary.gates[gate].sigma_max, np.linalg.norm(block, 2))
    cell = run.network.only().parameters
    np.testing.assert_array_equal(cell["W_h"], plain.T)
    np.testing.assert_array_equal(cell["W_x"], run.oracle["kernel_plain"].T.astype(float))
    np.testing.assert_array_equal(cell["b_x"], run.oracle["bias_plain"].astype(float))
    assert not cell["b_h"].any()


def test_blocks_of_cudnn_are_not_taken_as_they_stand(models: Path) -> None:
    path = models / "keras21_cudnnlstm_weights.h5"
    raw = read_archive(path).tensors["rnn_1/rnn_1/recurrent_kernel:0"].astype(float)
    stack = gl.spectral_summary(gl.load(path).only()).gates["stack"].sigma_max
    assert abs(float(np.linalg.norm(raw, 2)) - stack) > 0.05


def test_hard_sigmoid_of_keras_3_has_the_slope_one_sixth(models: Path) -> None:
    cell = gl.load(models / "keras_gru_hardsigmoid.keras").only()
    assert getattr(cell, "recurrent_activation", "") == "hard_sigmoid_6"


def test_batch_axis_of_keras_is_told(models: Path) -> None:
    told = "Keras reads (batch, time, features)"
    assert told in gl.load(models / "keras_lstm.keras").assumptions[-1]
    assert gl.load(models / "keras_lstm.keras", batch_first=True).assumptions == ()


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("tfkeras215_nested.keras", ["encoder.inner", "lstm", "bidirectional.forward",
                                     "bidirectional.backward"]),
        ("tfkeras215_nested.h5", ["encoder.inner", "lstm", "bidirectional.forward",
                                  "bidirectional.backward"]),
        ("tfkeras215_stacked.keras", ["st.lstm_cell", "st.gru_cell", "z", "a"]),
        ("tfkeras215_stacked.h5", ["st.lstm_cell", "st.gru_cell", "z", "a"]),
        ("tfkeras215_cudnnlstm.h5", ["cu_dnnlstm"]),
    ],
)  # fmt: skip
def test_files_of_keras_2_on_tensorflow_give_its_outputs(
    models: Path, file: str, names: list[str]
) -> None:
    """The last outputs are those of the LSTM layer into which Keras loads cuDNN's weights."""
    with np.load(models / f"{file.partition('.')[0]}.oracle.npz") as oracle:
        x, expected = oracle["x"].transpose(1, 0, 2).astype(float), oracle["y"].transpose(1, 0, 2)
    network = gl.load(models / file)
    assert list(network) == names
    assert len(network.stacks) == 1
    runs = gl.rollout_network(network, x)
    top = network.recurrences[-1].layer
    outputs = [
        entry.cell.output(runs[entry.name].states[1:])[:: -1 if "backward" in entry.name else 1]
        for entry in network.recurrences
        if entry.layer == top
    ]
    np.testing.assert_allclose(np.concatenate(outputs, axis=2), expected, rtol=2e-6, atol=2e-6)
