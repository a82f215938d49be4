"""LSTM and GRU files of a real framework, against what it computed by automatic differentiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.stack import Network, Recurrence
from gradlab.engine.bptt import backpropagate
from gradlab.engine.rollout import rollout_network
from gradlab.records.trajectory import Trajectory
from tests.checkpoints.conftest import ModelWriter

FULL = {
    "lstm_1l.pt": "lstm", "lstm_1l.safetensors": "lstm", "lstm_1l.npz": "lstm",
    "lstm_2l_lightning.pt": "lstm", "lstm_bi_1l.pt": "lstm", "lstm_proj_2l.pt": "lstm",
    "gru_1l.pt": "gru", "gru_1l.safetensors": "gru", "gru_1l.npz": "gru",
    "gru_2l_dataparallel.pt": "gru", "gru_bi_1l.pt": "gru",
}  # fmt: skip
PARTIAL = {
    "lstm_1l.bf16.safetensors": "lstm", "lstm_1l_legacy.pt": "lstm",
    "lstm_2l_bi_flatbuf.pt": "lstm", "trained_lstm_echo8.pt": "lstm", "gru_1l.f16.pt": "gru",
    "gru_1l.bf16.pt": "gru", "trained_gru_echo8.pt": "gru", "gru_1l_wholemodule.pt": "gru",
}  # fmt: skip
EVERY = FULL | PARTIAL
STACKED = ("lstm_2l_lightning.pt", "lstm_proj_2l.pt", "gru_2l_dataparallel.pt")
GATES = {"lstm": "ifgo", "gru": "rzn"}
ATTRIBUTES = {
    "weight_ih": "W_x", "weight_hh": "W_h", "bias_ih": "b_x", "bias_hh": "b_h", "weight_hr": "W_hr"
}  # fmt: skip
ROUNDING = 1e-12
AGREEMENT = 1e-10


class Run:
    """A file, run as its oracle was."""

    def __init__(self, models: Path, name: str) -> None:
        stem = name.rpartition(".")[0]
        with np.load(models / f"{stem}.oracle.npz", allow_pickle=False) as stored:
            self.oracle: dict[str, Array] = dict(stored)
        self.network: Network = gl.load(models / name)
        self.kind = EVERY[name]
        states = {entry.name: self.of(entry, "s")[0][None] for entry in self.network.recurrences}
        self.runs = rollout_network(self.network, self.oracle["x"][:, None], initial_state=states)

    def of(self, entry: Recurrence, key: str) -> Array:
        """The oracle's value for a recurrence."""
        reverse = "_reverse" if entry.direction == "backward" else ""
        return self.oracle[f"{key}_l{entry.layer}{reverse}"]

    def has(self, entry: Recurrence, key: str) -> bool:
        """Whether the oracle has it."""
        reverse = "_reverse" if entry.direction == "backward" else ""
        return f"{key}_l{entry.layer}{reverse}" in self.oracle

    def trajectory(self, entry: Recurrence) -> Trajectory:
        """Run of one recurrence."""
        return self.runs[entry.name]


@pytest.fixture
def run(models: Path, request: pytest.FixtureRequest) -> Run:
    return Run(models, request.param)


def close(found: Any, expected: Any, tolerance: float = AGREEMENT) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def jacobians(entry: Recurrence, trajectory: Trajectory) -> Array:
    return np.stack([step.matrix()[0] for step in entry.cell.linearize(trajectory)])


def long_term(J: Array) -> Array:
    """d s[T] / d s[k] for k = 0..T."""
    products = [np.eye(J.shape[1])]
    for j in J[::-1]:
        products.append(products[-1] @ j)
    return np.stack(products[::-1])


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_states_and_outputs_are_those_of_the_framework(run: Run) -> None:
    for entry in run.network.recurrences:
        assert entry.cell.kind == run.kind
        close(run.trajectory(entry).states[:, 0], run.of(entry, "s"), ROUNDING)
    last = run.network.recurrences[-1]
    if last.direction == "forward":
        close(last.cell.output(run.trajectory(last).states[1:, 0]), run.oracle["y"], ROUNDING)


@pytest.mark.parametrize("run", FULL, indirect=True)
def test_jacobians_are_those_of_automatic_differentiation(run: Run) -> None:
    checked = 0
    for entry in run.network.recurrences:
        J = jacobians(entry, run.trajectory(entry))
        close(np.linalg.norm(J, 2, axis=(1, 2)), run.of(entry, "norm2_J"))
        if run.has(entry, "J"):
            close(J, run.of(entry, "J"), ROUNDING)
        if run.has(entry, "dsT_ds"):
            close(long_term(J), run.of(entry, "dsT_ds"))
        if run.has(entry, "dsT_ds0"):
            close(long_term(J)[0], run.of(entry, "dsT_ds0"))
        checked += 1
    assert checked == len(run.network)


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_norms_over_the_lag_are_those_of_automatic_differentiation(run: Run) -> None:
    for entry in run.network.recurrences:
        profile = gl.jacobian_profile(
            entry.cell, run.trajectory(entry), anchors="last", smallest=False
        )
        spectral, frobenius = run.of(entry, "norm2_dsT_dsk"), run.of(entry, "fro_dsT_dsk")
        np.testing.assert_allclose(np.exp(profile.log_norm), spectral[-2::-1], rtol=1e-9)
        np.testing.assert_allclose(np.exp(profile.log_frobenius), frobenius[-2::-1], rtol=1e-9)


@pytest.mark.parametrize("run", [*FULL, "trained_lstm_echo8.pt", "trained_gru_echo8.pt"],
                         indirect=True)  # fmt: skip
def test_gates_are_those_of_the_framework(run: Run) -> None:
    for entry in run.network.recurrences:
        parts = entry.cell.nonlinearities(run.trajectory(entry))
        assert "".join(parts) == GATES[run.kind]
        for gate, part in parts.items():
            close(part.value[:, 0], run.of(entry, f"gate_{gate}"), ROUNDING)


@pytest.mark.parametrize("run", EVERY, indirect=True)
def test_norms_and_radii_are_told_gate_by_gate(run: Run) -> None:
    for entry in run.network.recurrences:
        summary = gl.spectral_summary(entry.cell)
        assert "".join(summary.gates) == GATES[run.kind] + "stack"
        assert summary.gamma_w is None
        assert summary.spectral_radius is None
        for index, gate in enumerate(GATES[run.kind]):
            found = summary.gates[gate]
            close(found.sigma_max, run.of(entry, "sigma_gate")[index])
            radius = np.nan if found.spectral_radius is None else found.spectral_radius
            close(radius, run.of(entry, "rho_gate")[index])
        close(summary.gates["stack"].sigma_max, run.of(entry, "sigma_stack"))


@pytest.mark.parametrize("loss", ["last", "sum"])
@pytest.mark.parametrize("run", FULL, indirect=True)
def test_gradients_are_those_of_automatic_differentiation(run: Run, loss: str) -> None:
    upstream = np.zeros((len(run.oracle["x"]), 1, run.oracle["y"].shape[1]))
    if loss == "last":
        upstream[-1, 0] = run.oracle["loss_v"]
    else:
        upstream[:, 0] = run.oracle["loss_u"]
    passes = backpropagate(run.network, run.runs, upstream)
    checked = set()
    for entry in run.network.recurrences:
        for theirs, ours in ATTRIBUTES.items():
            if run.has(entry, f"grad_{loss}/{theirs}"):
                expected = run.of(entry, f"grad_{loss}/{theirs}")
                close(passes[entry.name].gradients[ours], expected)
                checked.add((entry.name, ours))
    parameters = {(name, key) for name, cell in run.network.items() for key in cell.parameters}
    assert checked == parameters


@pytest.mark.parametrize("run", ["lstm_1l.pt", "gru_1l.pt"], indirect=True)
def test_terms_of_the_gradient_are_those_of_automatic_differentiation(run: Run) -> None:
    """dL/dh_t, and what the use of the recurrent weights at each step adds to dL/dW_hh."""
    entry, steps = run.network.recurrences[0], len(run.oracle["x"])
    upstream = np.zeros((steps, 1, entry.cell.state_size))
    upstream[-1, 0, : entry.cell.hidden_size] = run.oracle["loss_v"]
    trajectory = run.trajectory(entry)
    adjoints = entry.cell.backward(trajectory, upstream).adjoints
    close(adjoints[1:, 0, : entry.cell.hidden_size], run.oracle["dLlast_dh"])
    linearization = entry.cell.linearize(trajectory)
    for step in range(steps):
        terms = linearization.recurrent_terms(step, adjoints[step + 1][:, :, None])
        found = np.concatenate([np.outer(left[0, :, 0], right[0]) for left, right in terms])
        close(found, run.oracle["contrib_last/weight_hh_l0"][step])


@pytest.mark.parametrize("run", STACKED, indirect=True)
def test_joint_state_of_a_stack_is_that_of_the_framework(run: Run) -> None:
    cell, oracle = run.network.joint(), run.oracle
    trajectory = gl.rollout(cell, oracle["x"][:, None], initial_state=oracle["s_stack"][0])
    close(trajectory.states[:, 0], oracle["s_stack"], ROUNDING)
    J = np.stack([step.matrix()[0] for step in cell.linearize(trajectory)])
    close(J, oracle["J_stack"], ROUNDING)
    close(long_term(J)[0], oracle["dsT_ds0_stack"])
    profile = gl.jacobian_profile(cell, trajectory, anchors="last", smallest=False)
    np.testing.assert_allclose(
        np.exp(profile.log_norm), oracle["norm2_dsT_dsk_stack"][-2::-1], rtol=1e-9
    )


def test_two_biases_are_kept_apart(models: Path) -> None:
    """They add up in an LSTM; in a GRU the candidate's recurrent one is inside the reset."""
    for name in ("lstm_1l.npz", "gru_1l.npz"):
        cell = gl.load(models / name).only()
        with np.load(models / name) as stored:
            np.testing.assert_array_equal(cell.parameters["b_x"], stored["bias_ih_l0"])
            np.testing.assert_array_equal(cell.parameters["b_h"], stored["bias_hh_l0"])


def test_what_the_file_does_not_say_of_its_gates_is_said(models: Path) -> None:
    said = "\n".join(gl.load(models / "gru_2l_dataparallel.pt").assumptions)
    assert "module.rnn.l0, module.rnn.l1: read as PyTorch's GRU" in said
    assert "reset after the product, z keeping the old state" in said
    assert "gates i, f, g, o in this order" in "\n".join(gl.load(models / "lstm_1l.pt").assumptions)
    relu = gl.load(models / "lstm_1l.pt", nonlinearity="relu")
    assert relu.only().parameters["W_h"].shape == (20, 5)
    assert any("nonlinearity = relu has no vanilla layer" in said for said in relu.assumptions)


def test_float32_on_request_agrees_with_the_framework_in_float32(models: Path) -> None:
    for name in ("lstm_1l", "gru_1l"):
        with np.load(models / f"{name}.oracle.npz") as oracle:
            cell = gl.load(models / f"{name}.pt", dtype="float32").only()
            run = gl.rollout(cell, oracle["x"][:, None], initial_state=oracle["s_l0"][0])
            assert run.states.dtype == np.float32
            close(cell.output(run.states[1:, 0]), oracle["y_f32"], 2e-6)


def test_gated_layer_without_biases_is_read_and_said(write: ModelWriter) -> None:
    tensors = {"weight_hh_l0": np.eye(8, 2), "weight_ih_l0": np.ones((8, 3))}
    network = gl.load(write.npz(tensors))
    assert network.only().kind == "lstm"
    assert not network.only().parameters["b_x"].any()
    assert "l0 has no bias in the file: zeros used" in network.assumptions


def test_weights_under_the_attribute_names_are_read(write: ModelWriter, models: Path) -> None:
    lstm = gl.load(models / "lstm_proj_2l.pt")["l0"].parameters
    peepholes = np.arange(18.0).reshape(3, 6)
    arrays = {f"core.{name}_l0": array for name, array in lstm.items()}
    cell = gl.load(write.npz(arrays | {"core.peepholes_l0": peepholes}))["core.l0"]
    assert cell.kind == "lstm"
    for name, array in {**lstm, "peepholes": peepholes}.items():
        np.testing.assert_array_equal(cell.parameters[name], array)


def test_weight_of_a_common_name_is_no_layer_without_its_input_weight(write: ModelWriter) -> None:
    layer = write.layer(np.eye(2))
    network = gl.load(write.npz({**layer, "attention.W_h": np.ones((4, 2))}))
    assert list(network) == ["l0"]


def test_gates_under_a_key_without_an_order_are_not_guessed(write: ModelWriter) -> None:
    tensors = {"W_hh": np.eye(8, 2), "W_xh": np.ones((8, 3)), "b_h": np.zeros(8)}
    with pytest.raises(gl.ModelFileError, match="does not tell the gates' order"):
        gl.load(write.npz(tensors))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weight_hr_l0": np.ones((3, 2))}, r"weight_hr_l0 has shape \(3, 2\)"),
        ({"weight_hr_l0": np.ones(6)}, r"weight_hr_l0 has shape \(6,\)"),
        ({"bias_hh_l0": np.ones(7)}, r"bias_hh_l0 has shape \(7,\)"),
        ({"weight_ih_l0": np.ones((6, 3))}, r"weight_ih_l0 \(6, 3\)"),
    ],
)
def test_tensors_of_a_gated_layer_that_do_not_fit_are_refused_by_name(
    write: ModelWriter, changed: dict[str, Array], message: str
) -> None:
    layer = write.layer(np.ones((8, 2))) | changed
    with pytest.raises(gl.ShapeError, match=message):
        gl.load(write.npz(layer))


def test_layer_that_reads_another_size_than_the_projection_gives_is_refused(
    write: ModelWriter,
) -> None:
    first = {**write.layer(np.ones((8, 1))), "weight_hr_l0": np.ones((1, 2))}
    second = write.layer(np.ones((8, 2)), suffix="_l1", D=2)
    with pytest.raises(gl.ShapeError, match=r"layer 0 gives 1 features: expected \(8, 1\)"):
        gl.load(write.npz({**first, **second}))
