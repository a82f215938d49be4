"""Forward runs: frameworks' states, padding, initial states, stacks, and what is refused."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.kinds import CELLS
from gradlab.cells.stack import Network, Recurrence
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import reverse_sequences, rollout, rollout_network
from gradlab.errors import (
    DivergenceError,
    NonFiniteError,
    SettingError,
    ShapeError,
    UnreachableTargetError,
)

MODELS = Path(__file__).parents[1] / "fixtures" / "models"


@pytest.mark.parametrize(
    ("name", "nonlinearity"),
    [
        ("rnn_tanh_1l", "tanh"), ("rnn_relu_2l", "relu"), ("rnn_tanh_bi_2l", "tanh"),
        ("rnn_tanh_nobias", "tanh"), ("trained_rnn_echo3", "tanh"),
    ],
)  # fmt: skip
def test_states_and_jacobians_agree_with_the_framework(name: str, nonlinearity: str) -> None:
    network = gl.load(MODELS / f"{name}.pt", nonlinearity=nonlinearity)
    oracle = np.load(MODELS / f"{name}.oracle.npz")
    h0 = oracle["h0"] if "h0" in oracle else np.zeros((len(network), network_size(network)))
    starts = {entry.name: h0[i] for i, entry in enumerate(network.recurrences)}
    runs = rollout_network(network, oracle["x"][:, None], initial_state=starts)
    for entry in network.recurrences:
        suffix = f"_l{entry.layer}" + ("_reverse" if entry.direction == "backward" else "")
        run = runs[entry.name]
        np.testing.assert_allclose(run.states[:, 0], oracle[f"s{suffix}"], atol=1e-12)
        if f"J{suffix}" in oracle:
            J = np.stack([step.matrix()[0] for step in entry.cell.linearize(run)])
            np.testing.assert_allclose(J, oracle[f"J{suffix}"], atol=1e-12)
        if f"norm2_dsT_dsk{suffix}" in oracle:
            profile = gl.jacobian_profile(entry.cell, run, anchors="last", smallest=False)
            expected = oracle[f"norm2_dsT_dsk{suffix}"][-2::-1]
            np.testing.assert_allclose(np.exp(profile.log_norm), expected, rtol=1e-10)


def network_size(network: Network) -> int:
    return network.recurrences[0].cell.state_size


@pytest.mark.parametrize("name", ["rnn_tanh_1l"])
def test_float32_on_request_agrees_with_the_framework_in_float32(name: str) -> None:
    network = gl.load(MODELS / f"{name}.pt", dtype="float32")
    oracle = np.load(MODELS / f"{name}.oracle.npz")
    run = rollout(network.only(), oracle["x"][:, None], initial_state=oracle["h0"][0])
    assert run.states.dtype == np.float32
    np.testing.assert_allclose(run.states[1:, 0], oracle["y_f32"], atol=2e-6)


def test_the_digits_network_runs_as_its_framework_ran_it() -> None:
    example = Path(__file__).parents[2] / "examples" / "digits"
    oracle = np.load(MODELS.parent / "digits" / "digits.oracle.npz")
    network = gl.load(example / "digits_rnn.safetensors")
    inputs = gl.read_sequences(example / "digits_test_inputs.npy").inputs[:, :3]
    run = rollout(network.only(), inputs)
    np.testing.assert_allclose(run.states, oracle["s"], atol=1e-10)
    profile = gl.jacobian_profile(network.only(), run, anchors="last", smallest=False)
    measured = profile.log_norm.reshape(3, 64).T[::-1]
    np.testing.assert_allclose(measured, np.log(oracle["norm2_dsT_dsk"][:64]), atol=1e-9)


def test_each_sequence_of_a_batch_runs_as_if_alone() -> None:
    rng = np.random.default_rng(0)
    cell = VanillaCell.initialize(input_size=3, hidden_size=5, bias=0.5, rng=rng)
    inputs, lengths = rng.standard_normal((7, 3, 3)), np.array([7, 2, 5])
    together = rollout(cell, inputs, lengths=lengths)
    for sequence, length in enumerate(lengths):
        alone = rollout(cell, inputs[:length, sequence : sequence + 1])
        np.testing.assert_allclose(
            together.states[: length + 1, sequence], alone.states[:, 0], atol=1e-15
        )
        assert (together.states[length + 1 :, sequence] == 0.0).all()
        np.testing.assert_array_equal(
            together.final_states[sequence], together.states[length, sequence]
        )


def test_reversing_twice_gives_the_sequences_back() -> None:
    inputs, lengths = np.random.default_rng(1).standard_normal((6, 2, 1)), np.array([6, 3])
    once = reverse_sequences(inputs, lengths)
    np.testing.assert_array_equal(once[:3, 1], inputs[2::-1, 1])
    np.testing.assert_array_equal(reverse_sequences(once, lengths), inputs)


def test_layers_read_both_directions_of_the_layer_below() -> None:
    rng = np.random.default_rng(2)

    def cell(features: int) -> VanillaCell:
        return VanillaCell.initialize(input_size=features, hidden_size=2, rng=rng)

    network = Network(
        [
            Recurrence(name="l0", cell=cell(3), stack="s"),
            Recurrence(name="l0.reverse", cell=cell(3), direction="backward", stack="s"),
            Recurrence(name="l1", cell=cell(4), layer=1, stack="s"),
        ]
    )
    inputs, lengths = rng.standard_normal((5, 2, 3)), np.array([5, 4])
    runs = rollout_network(network, inputs, lengths=lengths)
    backward = reverse_sequences(runs["l0.reverse"].states[1:], lengths)
    expected = np.concatenate([runs["l0"].states[1:], backward], axis=2)
    np.testing.assert_array_equal(runs["l1"].inputs, expected)


def test_a_state_that_leaves_the_range_is_named_with_its_step() -> None:
    cell = VanillaCell(W_hh=np.array([[1e100]]), W_xh=np.ones((1, 1)), activation="identity")
    with pytest.raises(DivergenceError, match="sequence 1 leaves the range of float64 at step 5"):
        rollout(cell, np.ones((6, 1, 1)))


def test_padding_that_would_leave_the_range_is_no_error() -> None:
    cell = VanillaCell(W_hh=np.array([[1e100]]), W_xh=np.ones((1, 1)), activation="identity")
    run = rollout(cell, np.ones((9, 2, 1)), lengths=np.array([3, 2]))
    assert not run.states[4:].any()
    assert not run.z[3:].any()
    np.testing.assert_array_equal(
        run.final_states[1], rollout(cell, np.ones((2, 1, 1))).states[2, 0]
    )


@pytest.mark.parametrize(
    ("inputs", "kwargs", "error", "message"),
    [
        (np.zeros((4, 2)), {}, ShapeError, r"shape \(4, 2\)"),
        (np.zeros((4, 1, 2)), {}, ShapeError, "the cell reads 3"),
        (np.zeros((0, 1, 3)), {}, ShapeError, "at least one"),
        (np.full((4, 1, 3), np.nan), {}, NonFiniteError, r"12 non-finite .* \(0, 0, 0\)"),
        (np.zeros((4, 2, 3)), {"lengths": np.array([3, 0])}, SettingError, "sequence 2 has len"),
        (np.zeros((4, 2, 3)), {"lengths": np.array([5, 1])}, SettingError, "sequence 1 has len"),
        (np.zeros((4, 2, 3)), {"lengths": np.array([1])}, ShapeError, "2 integers"),
        (np.zeros((4, 2, 3)), {"initial_state": np.zeros(7)}, ShapeError, r"\(2, 5\) or \(5,\)"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name(
    inputs: Array, kwargs: dict[str, Array], error: type[Exception], message: str
) -> None:
    cell = VanillaCell.initialize(input_size=3, hidden_size=5, rng=np.random.default_rng(0))
    unchecked = inspect.unwrap(rollout)  # as users call it: without the tests' shape checks
    with pytest.raises(error, match=message):
        unchecked(cell, inputs, **kwargs)


@pytest.mark.parametrize("recurrent", ["gaussian", "orthogonal", "identity", "uniform", "sparse"])
def test_targets_are_met_exactly(recurrent: str) -> None:
    rng = np.random.default_rng(3)
    by_norm = VanillaCell.initialize(
        input_size=1, hidden_size=40, recurrent=recurrent, gamma=0.9, rng=rng
    )
    by_radius = VanillaCell.initialize(
        input_size=1, hidden_size=40, recurrent=recurrent, radius=0.9, rng=rng
    )
    assert gl.spectral_norm(by_norm.W_hh) == pytest.approx(0.9, rel=1e-14)
    assert gl.spectral_radius(by_radius.W_hh) == pytest.approx(0.9, rel=1e-12)


def test_gaussian_entries_have_variance_gain_squared_over_n() -> None:
    cell = VanillaCell.initialize(
        input_size=1, hidden_size=400, gain=1.5, rng=np.random.default_rng(4)
    )
    variance = float(np.var(cell.W_hh)) * 400
    assert variance == pytest.approx(1.5**2, rel=4.0 * np.sqrt(2.0) / 400)  # four sd of 160 000


@pytest.mark.parametrize("scale", [gl.scale_to_gamma, gl.scale_to_radius])
def test_a_zero_matrix_cannot_be_scaled(scale: object) -> None:
    assert callable(scale)
    with pytest.raises(UnreachableTargetError, match="is 0"):
        scale(np.zeros((3, 3)), 0.9)


@pytest.mark.parametrize("kind", sorted(CELLS))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_initial_state_serves_all_sequences(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(6)
    own = {"leak": 0.3} if kind == "leaky" else {}
    cell = CELLS[kind].initialize(input_size=2, hidden_size=4, dtype=dtype, rng=rng, **own)
    inputs, start = rng.standard_normal((5, 3, 2)), rng.standard_normal(cell.state_size)
    shared = rollout(cell, inputs, initial_state=start)
    repeated = rollout(cell, inputs, initial_state=np.tile(start, (3, 1)))
    np.testing.assert_array_equal(shared.states, repeated.states)
    assert shared.states.dtype == dtype
