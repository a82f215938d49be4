"""A stack as one cell: its Jacobian, its gradients, and the stacks that have no joint state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.engine.bptt import backpropagate
from tests.core.differences import derivative


def layers(rng: np.random.Generator, direction: str = "forward") -> gl.Network:
    """An LSTM below a GRU below a vanilla layer, of 2 to 4 units."""
    cells: list[Any] = [
        gl.LSTMCell.initialize(input_size=2, hidden_size=3, rng=rng),
        gl.GRUCell.initialize(input_size=3, hidden_size=2, rng=rng, reset="before"),
        gl.VanillaCell.initialize(input_size=2, hidden_size=4, rng=rng),
    ]
    directions = ["forward", "forward", direction]
    return gl.Network(
        [
            gl.Recurrence(name=f"net.l{i}", cell=cell, layer=i, direction=way, stack="net")
            for i, (cell, way) in enumerate(zip(cells, directions, strict=True))
        ]
    )


@pytest.fixture
def network() -> gl.Network:
    return layers(np.random.default_rng(0))


@pytest.fixture
def inputs() -> Array:
    return np.random.default_rng(1).standard_normal((5, 2, 2))


def test_joint_run_is_that_of_the_layers_one_by_one(network: gl.Network, inputs: Array) -> None:
    joint = network.joint()
    run, each = gl.rollout(joint, inputs), gl.rollout_network(network, inputs)
    expected = np.concatenate([own.states for own in each.values()], axis=2)
    np.testing.assert_allclose(run.states, expected, atol=1e-15)
    np.testing.assert_allclose(joint.output(run.states), each["net.l2"].states, atol=1e-15)
    assert (joint.state_size, joint.hidden_size, joint.input_size) == (12, 4, 2)
    for own, part in zip(each.values(), joint.runs(run), strict=True):
        np.testing.assert_allclose(part.inputs, own.inputs, atol=1e-15)
        np.testing.assert_allclose(part.z, own.z, atol=1e-14)


def test_joint_jacobian_is_the_difference_of_the_joint_step(
    network: gl.Network, inputs: Array
) -> None:
    joint = network.joint()
    run = gl.rollout(joint, inputs)
    rng = np.random.default_rng(2)
    V, U = rng.standard_normal((2, 2, 12, 3))
    x = rng.standard_normal((2, 2, 3))
    for t, step in enumerate(joint.linearize(run)):
        J = np.stack(
            [
                derivative(lambda s: joint.step(inputs[t, b, None], s[None])[0], run.states[t, b])  # noqa: B023
                for b in range(2)
            ]
        )
        B = np.stack(
            [
                derivative(lambda u: joint.step(u[None], run.states[t, b, None])[0], inputs[t, b])  # noqa: B023
                for b in range(2)
            ]
        )
        np.testing.assert_allclose(step.matrix(), J, atol=1e-9)
        np.testing.assert_allclose(step.apply(V), step.matrix() @ V, atol=1e-13)
        transposed = step.matrix().transpose(0, 2, 1)
        np.testing.assert_allclose(step.apply_transpose(U), transposed @ U, atol=1e-13)
        np.testing.assert_allclose(step.apply_input(x), B @ x, atol=1e-9)
        pulled = step.apply_input_transpose(U)
        np.testing.assert_allclose(pulled, B.transpose(0, 2, 1) @ U, atol=1e-9)
        np.testing.assert_allclose(step.log_abs_det(), np.linalg.slogdet(J)[1], atol=1e-6)


def test_layers_above_do_not_reach_those_below_in_one_step(
    network: gl.Network, inputs: Array
) -> None:
    joint = network.joint()
    J = joint.linearize(gl.rollout(joint, inputs))[0].matrix()
    assert not J[:, :6, 6:].any()
    assert not J[:, 6:8, 8:].any()
    assert J[:, 8:, :6].any()


def test_joint_gradients_are_those_of_the_network(network: gl.Network, inputs: Array) -> None:
    joint = network.joint()
    upstream = np.random.default_rng(3).standard_normal((5, 2, 4))
    passes = backpropagate(network, gl.rollout_network(network, inputs), upstream)
    own = np.concatenate([np.zeros((5, 2, 8)), upstream], axis=2)
    found = joint.backward(gl.rollout(joint, inputs), own)
    assert set(found.gradients) == set(joint.parameters)
    for name, each in passes.items():
        for attribute, gradient in each.gradients.items():
            np.testing.assert_allclose(found.gradients[f"{name}.{attribute}"], gradient, atol=1e-13)
    np.testing.assert_allclose(found.inputs, passes["net.l0"].inputs, atol=1e-13)


def test_joint_initial_state_has_the_gradient_of_differences(
    network: gl.Network, inputs: Array
) -> None:
    """A loss on all states of all layers, which no readout has."""
    joint = network.joint()
    upstream = np.random.default_rng(4).standard_normal((5, 2, 12))
    start = np.random.default_rng(5).standard_normal((2, 12))
    found = joint.backward(gl.rollout(joint, inputs, initial_state=start), upstream)

    def loss(s: Array) -> Array:
        return np.asarray(np.sum(gl.rollout(joint, inputs, initial_state=s).states[1:] * upstream))

    expected = derivative(loss, start)
    np.testing.assert_allclose(found.initial_state, expected, atol=1e-8)


def test_a_window_counts_steps_through_all_layers(network: gl.Network, inputs: Array) -> None:
    joint = network.joint()
    run = gl.rollout(joint, inputs)
    upstream = np.zeros((5, 2, 12))
    upstream[-1] = 1.0
    cut = joint.backward(run, upstream, window=2)
    assert not cut.adjoints[:4].any()
    np.testing.assert_allclose(
        cut.adjoints[4:], joint.backward(run, upstream).adjoints[4:], atol=1e-14
    )


def test_parts_carry_the_name_of_their_layer(network: gl.Network, inputs: Array) -> None:
    joint = network.joint()
    run = gl.rollout(joint, inputs)
    assert list(joint.nonlinearities(run)) == [
        "net.l0.i", "net.l0.f", "net.l0.g", "net.l0.o",
        "net.l1.r", "net.l1.z", "net.l1.n", "net.l2.tanh",
    ]  # fmt: skip
    assert set(joint.carry(run)) == {"net.l0.f", "net.l1.z"}
    assert {name.rpartition(".")[2] for name in joint.recurrent_matrices()} == set("ifgorzn") | {
        "stack", "W_hh"
    }  # fmt: skip
    slices = joint.state_parts
    assert [slices[name] for name in ("net.l0.h", "net.l0.c", "net.l1.h", "net.l2.h")] == [
        slice(0, 3), slice(3, 6), slice(6, 8), slice(8, 12),
    ]  # fmt: skip


def test_a_joint_cell_is_analyzed_like_any_other(network: gl.Network) -> None:
    x = np.random.default_rng(6).standard_normal((12, 2, 2))
    dynamics = gl.analyze(network.joint(), x)
    entry = dynamics.summary()["recurrences"][0]
    assert (entry["cell"], entry["state_size"], entry["gamma_w"]) == ("joint", 12, None)
    lower = {"radius", "determinant", "sigma_min"}
    assert set(dynamics.only().ladder.rungs) == {"onestep", "blocks", "exact"} | lower


def test_one_layer_joined_is_that_layer(inputs: Array) -> None:
    cell = gl.LSTMCell.initialize(input_size=2, hidden_size=3, rng=np.random.default_rng(7))
    joint = gl.Network.of(cell).joint()
    run, alone = gl.rollout(joint, inputs), gl.rollout(cell, inputs)
    np.testing.assert_allclose(run.states, alone.states, atol=1e-15)
    for left, right in zip(joint.linearize(run), cell.linearize(alone), strict=True):
        np.testing.assert_allclose(left.matrix(), right.matrix(), atol=1e-14)


def test_stack_with_a_backward_layer_has_no_joint_state() -> None:
    network = layers(np.random.default_rng(8), "backward")
    with pytest.raises(gl.SettingError, match=r"backward layer net\.l2.*one by one"):
        network.joint()


def test_two_stacks_have_no_joint_state() -> None:
    cell = gl.VanillaCell(W_hh=np.eye(2), W_xh=np.eye(2))
    network = gl.Network(
        [gl.Recurrence(name=name, cell=cell, stack=name) for name in ("enc", "dec")]
    )
    with pytest.raises(gl.SettingError, match="enc, dec: expected one stack"):
        network.joint()


def test_layers_that_do_not_fit_are_refused() -> None:
    cell = gl.VanillaCell(W_hh=np.eye(2), W_xh=np.ones((2, 3)))
    with pytest.raises(gl.SettingError, match="b reads 3 features and a gives 2"):
        gl.JointCell({"a": cell, "b": cell})
    with pytest.raises(gl.SettingError, match="no layer"):
        gl.JointCell({})


def test_terms_of_a_joint_gradient_are_refused(network: gl.Network, inputs: Array) -> None:
    joint = network.joint()
    steps = joint.linearize(gl.rollout(joint, inputs))
    with pytest.raises(gl.SettingError, match="its layers one by one"):
        steps.recurrent_terms(0, np.ones((2, 12, 1)))
