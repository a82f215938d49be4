"""Derivatives by central differences of fourth order: an independent method for every cell."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import gradlab as gl
from gradlab.arrays import Array

STEP = 1e-3  # the error is of the order of STEP**4, and rounding of 1e-16 / STEP
TOLERANCE = 2e-10


def derivative(function: Callable[[Array], Array], x: Array) -> Array:
    """Change of a function's value with every entry of its argument, last axes."""
    parts = []
    for place in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[place] = STEP
        far = function(x - 2.0 * shift) - function(x + 2.0 * shift)
        near = function(x + shift) - function(x - shift)
        parts.append((8.0 * near + far) / (12.0 * STEP))
    return np.stack(parts, axis=-1).reshape(*np.shape(parts[0]), *x.shape)


def step_jacobian(cell: Any, x: Array, state: Array) -> Array:
    """d s' / d s of one step of one sequence."""
    return derivative(lambda s: cell.step(x[None], s[None])[0], state)


def input_jacobian(cell: Any, x: Array, state: Array) -> Array:
    """d s' / d x of one step of one sequence."""
    return derivative(lambda u: cell.step(u[None], state[None])[0], x)


def assert_steps_are_differences(cell: Any, run: gl.Trajectory) -> None:
    """Every action of every step of a run, against differences of the step itself."""
    for t, step in enumerate(cell.linearize(run)):
        expected = np.stack(
            [step_jacobian(cell, run.inputs[t, b], run.states[t, b]) for b in range(run.batch)]
        )
        by_input = np.stack(
            [input_jacobian(cell, run.inputs[t, b], run.states[t, b]) for b in range(run.batch)]
        )
        np.testing.assert_allclose(step.matrix(), expected, atol=TOLERANCE)
        eye = np.broadcast_to(np.eye(cell.input_size), (run.batch,) + 2 * (cell.input_size,))
        np.testing.assert_allclose(step.apply_input(eye), by_input, atol=TOLERANCE)
        assert_actions_are_those_of_the_matrices(step, step.matrix(), step.apply_input(eye), t)


def assert_actions_are_those_of_the_matrices(step: Any, J: Array, B: Array, seed: int) -> None:
    """J·V, Jᵀ·U and their counterparts for the input, against dense products."""
    rng = np.random.default_rng(seed)
    batch, n, features = B.shape
    V, U = rng.standard_normal((2, batch, n, 3))
    x = rng.standard_normal((batch, features, 2))
    np.testing.assert_allclose(step.apply(V), J @ V, atol=1e-13)
    np.testing.assert_allclose(step.apply_transpose(U), J.transpose(0, 2, 1) @ U, atol=1e-13)
    np.testing.assert_allclose(step.apply_input(x), B @ x, atol=1e-13)
    pulled = step.apply_input_transpose(U)
    np.testing.assert_allclose(pulled, B.transpose(0, 2, 1) @ U, atol=1e-13)


def assert_gradients_are_differences(cell: Any, inputs: Array, state: Array) -> None:
    """Gradients by weights, inputs and initial state, of a random linear loss on all states."""
    rng = np.random.default_rng(7)
    upstream = rng.standard_normal((*inputs.shape[:2], cell.state_size))

    def loss(of: Any, x: Array, s: Array) -> Array:
        return np.asarray(np.sum(gl.rollout(of, x, initial_state=s).states[1:] * upstream))

    def with_weight(name: str) -> Callable[[Array], Array]:
        return lambda W: loss(replace(cell, **{name: W}), inputs, state)

    found = cell.backward(gl.rollout(cell, inputs, initial_state=state), upstream)
    assert set(found.gradients) == set(cell.parameters)
    for name, weight in cell.parameters.items():
        expected = derivative(with_weight(name), np.array(weight))
        np.testing.assert_allclose(found.gradients[name], expected, atol=20 * TOLERANCE)
    by_input = derivative(lambda x: loss(cell, x, state), inputs)
    np.testing.assert_allclose(found.inputs, by_input, atol=20 * TOLERANCE)
    by_state = derivative(lambda s: loss(cell, inputs, s), state)
    np.testing.assert_allclose(found.initial_state, by_state, atol=20 * TOLERANCE)
    np.testing.assert_array_equal(found.adjoints[0], found.initial_state)


def assert_terms_add_up_to_the_gradient(cell: Any, run: gl.Trajectory, name: str) -> None:
    """Rank-one terms of all steps, against the gradient of the recurrent weights."""
    upstream = np.random.default_rng(8).standard_normal((run.steps, run.batch, cell.state_size))
    found, linearization = cell.backward(run, upstream), cell.linearize(run)
    total = np.zeros_like(cell.parameters[name])
    for step in range(run.steps):
        terms = linearization.recurrent_terms(step, found.adjoints[step + 1][:, :, None])
        total += np.concatenate([np.einsum("brm,bc->rc", left, right) for left, right in terms])
    np.testing.assert_allclose(total, found.gradients[name], atol=1e-12)


def unchecked(cell: type, **parts: Any) -> Any:
    """A cell as users build it: without the tests' own checks of shapes."""
    built: Any = object.__new__(cell)
    inspect.unwrap(cell.__init__)(built, **parts)  # type: ignore[misc]
    return built
