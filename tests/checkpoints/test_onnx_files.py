"""ONNX files of exporters, of the reference helper and of a quantizer, against their oracles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.stack import Network, Recurrence
from gradlab.records.trajectory import Trajectory

pytest.importorskip("onnx")

# Recurrences by name, with the suffix of their oracle's keys.
EXPORTED = {
    "onnx_export_rnn_relu_2l": {"/encoder/RNN": "l0", "/encoder/RNN_1": "l1"},
    "onnx_export_lstm_2l": {"/encoder/LSTM": "l0", "/encoder/LSTM_1": "l1"},
    "onnx_export_gru_1l": {"/encoder/GRU": "l0"},
    "onnx_export_lstm_bi": {
        "/encoder/LSTM.forward": "l0", "/encoder/LSTM.backward": "l0_reverse"
    },
    "onnx_dynamo_gru_1l": {"node_gru__1": "l0"},
    "onnx_dynamo_lstm_1l": {"node_lstm__2": "l0"},
    "onnx_lstm_computed_weights_if": {"/decoder/rnn/LSTM": "l0"},
}  # fmt: skip
BOTH = {"rnn0.forward": "d0", "rnn0.backward": "d1"}
NODES = {
    "onnx_rnn_reverse": {"rnn0.backward": "d0"}, "onnx_rnn_relu_bi": BOTH,
    "onnx_gru_lbr0": {"rnn0": "d0"}, "onnx_gru_lbr1_bi": BOTH,
    "onnx_gru_hardsigmoid": {"rnn0": "d0"}, "onnx_lstm_peephole": {"rnn0": "d0"},
    "onnx_lstm_nobias_noh0": {"rnn0": "d0"}, "onnx_lstm_clip": {"rnn0": "d0"},
    "onnx_lstm_layout1": {"rnn0": "d0"},
}  # fmt: skip
GATES = {"rnn": ("W_hh",), "gru": ("r", "z", "n"), "lstm": ("i", "f", "g", "o")}
VARIANTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "lstm_bi": {
        "rnn0.forward": ("leaky_relu(0.1)", "hard_sigmoid(0.3, 0.4)", "scaled_tanh(0.8, 1.1)"),
        "rnn0.backward": ("softsign", "sigmoid", "affine(0.9, 0.05)"),
    },
    "lstm_coupled": {"rnn0": ("tanh", "sigmoid", "tanh")},
    "gru_bi": {
        "rnn0.forward": ("elu(0.7)", "sigmoid"), "rnn0.backward": ("softsign", "hard_sigmoid")
    },
    "gru_reverse": {"rnn0.backward": ("tanh", "sigmoid")},
    "gru_clip": {"rnn0": ("tanh", "sigmoid")},
    "rnn_bi": {"rnn0.forward": ("thresholded_relu(0.2)",), "rnn0.backward": ("softplus",)},
    "rnn_leaky": {"rnn0": ("leaky_relu",)},
    "rnn_clip": {"rnn0": ("tanh",)},
}  # fmt: skip
ROUNDING = 1e-12


class Run:
    """A file, each recurrence run from its oracle's start."""

    def __init__(self, models: Path, name: str) -> None:
        self.oracle = stored(models, name)
        self.network: Network = gl.load(models / f"{name}.onnx")
        self.suffixes = (EXPORTED | NODES)[name]
        starts = {own: self.of(own, "s")[0][None] for own in self.network}
        x = self.oracle["x"][:, None].astype(np.float64)
        self.runs: Mapping[str, Trajectory] = gl.rollout_network(
            self.network, x, initial_state=starts
        )

    def of(self, name: str, key: str) -> Array:
        """The oracle's value for a recurrence."""
        return self.oracle[f"{key}_{self.suffixes[name]}"]

    def jacobians(self, name: str) -> Array:
        """One-step Jacobians along its run."""
        steps = self.network[name].linearize(self.runs[name])
        return np.stack([step.matrix()[0] for step in steps])


def stored(models: Path, name: str) -> dict[str, Array]:
    with np.load(models / f"{name}.oracle.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def outputs(entry: Recurrence, run: Trajectory) -> Array:
    """What the recurrence gives, in the order of time."""
    given = entry.cell.output(run.states[1:])
    return given[::-1] if entry.direction == "backward" else given


@pytest.fixture
def run(models: Path, request: pytest.FixtureRequest) -> Run:
    return Run(models, request.param)


def close(found: Any, expected: Any, tolerance: float = ROUNDING) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("run", [*EXPORTED, *NODES], indirect=True)
def test_states_are_those_of_the_text_of_the_format(run: Run) -> None:
    assert list(run.network) == list(run.suffixes)
    for name, trajectory in run.runs.items():
        close(trajectory.states[:, 0], run.of(name, "s"))


@pytest.mark.parametrize("run", NODES, indirect=True)
def test_jacobians_are_those_of_automatic_differentiation(run: Run) -> None:
    for name in run.network:
        J = run.jacobians(name)
        close(J, run.of(name, "J"))
        close(np.linalg.norm(J, 2, axis=(1, 2)), run.of(name, "norm2_J"))
        product = np.eye(J.shape[1])
        for j, expected in zip(J[::-1], run.of(name, "dsT_ds")[-2::-1], strict=True):
            product = product @ j
            close(product, expected, 1e-10)


@pytest.mark.parametrize("name", [*EXPORTED, *NODES])
def test_outputs_in_float32_are_those_of_the_runtime(models: Path, name: str) -> None:
    """But for a clip, which onnxruntime leaves out before the output and the format's text not."""
    oracle, suffixes = stored(models, name), (EXPORTED | NODES)[name]
    network = gl.load(models / f"{name}.onnx", dtype="float32")
    starts = {own: oracle[f"s_{suffix}"][0][None] for own, suffix in suffixes.items()}
    runs = gl.rollout_network(
        network, oracle["x"][:, None].astype(np.float32), initial_state=starts
    )
    last = [e for e in network.recurrences if e.layer == network.recurrences[-1].layer]
    found = np.concatenate([outputs(entry, runs[entry.name])[:, 0] for entry in last], axis=1)
    off = np.abs(found - oracle["y_f32"].reshape(found.shape)).max()
    assert found.dtype == np.float32
    if name == "onnx_lstm_clip":
        assert off == pytest.approx(float(oracle["spec_vs_runtime_d0"]), abs=2e-6)
        assert off > 0.1
    else:
        assert off <= 2e-6


@pytest.mark.parametrize("run", [*EXPORTED, *NODES], indirect=True)
def test_norms_over_the_lag_are_those_of_automatic_differentiation(run: Run) -> None:
    for name, cell in run.network.items():
        profile = gl.jacobian_profile(cell, run.runs[name], anchors="last", smallest=False)
        for found, key in ((profile.log_norm, "norm2"), (profile.log_frobenius, "fro")):
            expected = run.of(name, f"{key}_dsT_dsk")[-2::-1]
            np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9)


@pytest.mark.parametrize("run", EXPORTED, indirect=True)
def test_norms_and_radii_are_told_gate_by_gate_and_for_the_stack(run: Run) -> None:
    """The gates' order within the stack does not change its norm; that of the rows inside would."""
    for name, cell in run.network.items():
        matrices = cell.recurrent_matrices()
        gates = [matrices[gate] for gate in GATES[cell.kind]]
        close([np.linalg.norm(W, 2) for W in gates], run.of(name, "sigma_gate"))
        radii = [np.abs(np.linalg.eigvals(W)).max() for W in gates]
        close(radii, run.of(name, "rho_gate"), 1e-10)
        close(np.linalg.norm(np.concatenate(gates), 2), run.of(name, "sigma_stack"))


@pytest.mark.parametrize("run", [name for name in EXPORTED if name != "onnx_export_rnn_relu_2l"],
                         indirect=True)  # fmt: skip
def test_weights_are_those_of_the_network_before_its_export(run: Run) -> None:
    """The exporters write the gates in another order, and the recurrence must put them back."""
    keys = {"W_x": "weight_ih", "W_h": "weight_hh", "b_x": "bias_ih", "b_h": "bias_hh"}
    for name, cell in run.network.items():
        for ours, theirs in keys.items():
            expected = run.oracle[f"torch/{theirs}_{run.suffixes[name]}"]
            np.testing.assert_array_equal(cell.parameters[ours], expected)


@pytest.mark.parametrize("name", ["onnx_export_rnn_relu_2l", "onnx_export_lstm_2l"])
def test_layers_that_feed_each_other_are_one_stack(models: Path, name: str) -> None:
    run = Run(models, name)
    layers = [(entry.layer, entry.stack) for entry in run.network.recurrences]
    first = run.network.recurrences[0].name
    assert layers == [(0, first), (1, first)]
    joint = run.network.joint()
    start = run.oracle["s_stack"][0]
    whole = gl.rollout(joint, run.oracle["x"][:, None], initial_state=start)
    close(whole.states[:, 0], run.oracle["s_stack"])
    profile = gl.jacobian_profile(joint, whole, anchors="last", smallest=False)
    expected = run.oracle["norm2_dsT_dsk_stack"][-2::-1]
    np.testing.assert_allclose(np.exp(profile.log_norm), expected, rtol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_activations_coupling_and_clip_are_those_of_the_runtime(models: Path, name: str) -> None:
    """Outputs that onnxruntime 1.32 computed in float32 from these very files."""
    oracle = stored(models, "onnx_variants")
    network = gl.load(models / f"onnx_variant_{name}.onnx")
    assert list(network) == list(VARIANTS[name])
    runs = gl.rollout_network(network, oracle[f"{name}/x"].astype(np.float64))
    roles = ("activation", "recurrent_activation", "output_activation")
    for d, entry in enumerate(network.recurrences):
        expected = VARIANTS[name][entry.name]
        assert tuple(getattr(entry.cell, role) for role in roles[: len(expected)]) == expected
        close(outputs(entry, runs[entry.name]), oracle[f"{name}/y"][:, d], 2e-6)


def test_each_sequence_of_a_batch_is_read_to_its_own_end(models: Path) -> None:
    """The backward direction starts there, and outputs beyond it are 0 in the file's runtime."""
    oracle, lengths = stored(models, "onnx_gru_seqlens"), np.array([10, 6, 3])
    network = gl.load(models / "onnx_gru_seqlens.onnx")
    starts = dict(zip(network, oracle["H0"].astype(np.float64), strict=True))
    runs = gl.rollout_network(
        network, oracle["x"].astype(np.float64), initial_state=starts, lengths=lengths
    )
    for d, entry in enumerate(network.recurrences):
        states = entry.cell.output(runs[entry.name].states[1:])
        for b, length in enumerate(lengths):
            own = states[:length, b]
            given = own[::-1] if entry.direction == "backward" else own
            close(given, oracle["y_f32"][:length, d, b], 2e-6)
    said = "\n".join(network.assumptions)
    assert "fixes the sequences' lengths to 10, 6, 3: give them with the sequences" in said


def test_quantized_weights_are_numbers_again_and_said_to_be(models: Path) -> None:
    network = gl.load(models / "onnx_lstm_int8_dynamicquant.onnx")
    oracle = stored(models, "onnx_lstm_int8_dynamicquant")
    [entry] = network.recurrences
    assert entry.stored_dtype == "int8"
    for ours, theirs in (("W_x", "weight_ih"), ("W_h", "weight_hh")):
        exact = oracle[f"torch/{theirs}_l0"].astype(np.float64)
        # Symmetric bytes: a step of the scale is the largest entry over 127, half of it the error.
        step = np.abs(exact).max() / 127.0
        off = np.abs(entry.cell.parameters[ours] - exact).max()
        assert 0.0 < off <= 0.51 * step
    np.testing.assert_array_equal(entry.cell.parameters["b_x"], oracle["torch/bias_ih_l0"])
    assert any(
        sentence.startswith("/LSTM_quant: weights dequantized") for sentence in network.assumptions
    )


def test_unrolled_recurrence_is_refused_as_such(models: Path) -> None:
    path = models / "onnx_dynamo_rnn_unrolled.onnx"
    with pytest.raises(gl.ModelFileError) as refusal:
        gl.load(path)
    message = str(refusal.value)
    assert message.startswith(f"{path} holds no recurrent layer")
    assert "unrolled or written out" in message
    assert "the product with val_31, 3 times over" in message
    assert "encoder.bias_hh_l0" in message
    assert "dynamo=False" in message


def test_unrolled_recurrence_is_read_by_a_mapping(models: Path) -> None:
    """Its products are x W, with the weights transposed."""
    biases = ["encoder.bias_ih_l0", "encoder.bias_hh_l0"]
    layer = {
        "name": "encoder",
        "cell": "rnn",
        "transposed": True,
        "weights": {"W_xh": "val_11", "W_hh": "val_31", "b_h": biases},
    }
    path = models / "onnx_dynamo_rnn_unrolled.onnx"
    cell = gl.load(path, map={"recurrence": [layer]}).only()
    oracle = stored(models, "onnx_dynamo_rnn_unrolled")
    run = gl.rollout(cell, oracle["x"][:, None], initial_state=oracle["s_l0"][0])
    close(run.states[:, 0], oracle["s_l0"])
    close(np.linalg.norm(cell.recurrent_matrices()["W_hh"], 2), oracle["sigma_stack_l0"])


def test_axis_of_the_batch_is_said_and_not_assumed(models: Path) -> None:
    for name, said in (
        ("onnx_lstm_layout1", "X is (batch, time, features), as the node says (layout 1)"),
        ("onnx_lstm_clip", "X is (time, batch, features), as the node says (layout 0)"),
    ):
        sentences = gl.load(models / f"{name}.onnx").assumptions
        assert any(sentence.startswith(f"rnn0: {said}") for sentence in sentences)
        assert not any("assumed" in sentence for sentence in sentences)


def test_state_that_the_model_starts_from_is_said_unless_it_is_zero(models: Path) -> None:
    for name, expected in (
        ("onnx_lstm_clip", True),
        ("onnx_lstm_nobias_noh0", False),
        ("onnx_export_lstm_2l", False),
        ("onnx_dynamo_lstm_1l", False),
        ("onnx_lstm_int8_dynamicquant", False),
    ):
        sentences = gl.load(models / f"{name}.onnx").assumptions
        assert any("sets its initial state" in said for said in sentences) == expected


def test_reading_of_a_clip_is_said(models: Path) -> None:
    for name, expected in (("onnx_lstm_clip", True), ("onnx_lstm_peephole", False)):
        sentences = gl.load(models / f"{name}.onnx").assumptions
        assert (
            any("clip 0.6 limits the argument of every" in said for said in sentences) == expected
        )


def test_options_have_nothing_to_act_on_in_a_file_that_says_everything(models: Path) -> None:
    network = gl.load(models / "onnx_rnn_reverse.onnx", nonlinearity="relu")
    assert network.only().activation == "tanh"  # type: ignore[attr-defined]
    assert any("the option nonlinearity = relu has no" in said for said in network.assumptions)


def test_tensors_are_those_stored_behind_the_weights(models: Path) -> None:
    [entry] = gl.load(models / "onnx_lstm_computed_weights_if.onnx").recurrences
    assert entry.tensors == (
        "decoder.rnn.weight_ih", "decoder.rnn.weight_hh", "decoder.rnn.bias_ih",
        "decoder.rnn.bias_hh",
    )  # fmt: skip
    assert entry.stored_dtype == "float32"
