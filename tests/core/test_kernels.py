"""Layouts that multiply fast hold the same matrix, and runs of any batch the same states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.cells.kernels import multiplicand

CELLS: list[Any] = [gl.VanillaCell, gl.LSTMCell, gl.GRUCell, gl.MinimalGatedCell]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch", [1, 5])
def test_multiplicand_is_the_matrix_in_a_layout_of_its_own(dtype: str, batch: int) -> None:
    W = np.arange(12, dtype=dtype).reshape(3, 4)
    for given in (W, W[:, ::2], W.T):
        laid_out = multiplicand(given, batch)
        np.testing.assert_array_equal(laid_out, given)
        assert laid_out.dtype == given.dtype
        columns = dtype == "float64" and batch > 1
        assert laid_out.flags.f_contiguous if columns else laid_out.flags.c_contiguous


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_whole_runs_are_steps_one_after_the_other(cell: Any, dtype: str) -> None:
    """In place or not, few numbers a step or many."""
    rng = np.random.default_rng(0)
    for hidden, batch in ((3, 1), (40, 30)):
        layer = cell.initialize(input_size=2, hidden_size=hidden, rng=rng, dtype=dtype)
        x = rng.standard_normal((4, batch, 2)).astype(dtype)
        run = gl.rollout(layer, x)
        assert run.states.dtype == run.z.dtype == np.dtype(dtype)
        state = run.states[0]
        for t in range(4):
            z, state = layer.advance(layer.drive(x[t]), state)
            size = 1e-14 if dtype == "float64" else 1e-5
            np.testing.assert_allclose(run.z[t], z, atol=size)
            np.testing.assert_allclose(run.states[t + 1], state, atol=size)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_in_float32_are_those_in_float64_but_for_rounding(cell: Any) -> None:
    rng = np.random.default_rng(1)
    layer = cell.initialize(input_size=2, hidden_size=20, rng=rng)
    weights: Any = {name: array.astype("float32") for name, array in layer.parameters.items()}
    narrow = cell(**weights, dtype="float32")
    x = rng.standard_normal((30, 17, 2))
    upstream = rng.standard_normal((30, 17, layer.state_size))
    wide = layer.backward(gl.rollout(layer, x), upstream)
    found = narrow.backward(gl.rollout(narrow, x.astype("float32")), upstream.astype("float32"))
    for name, gradient in found.gradients.items():
        assert gradient.dtype == np.float32
        scale = np.abs(wide.gradients[name]).max()
        np.testing.assert_allclose(gradient, wide.gradients[name], atol=1e-5 * scale)
    assert found.adjoints.dtype == found.inputs.dtype == np.dtype("float32")


@pytest.mark.parametrize("cell", CELLS)
def test_runs_longer_than_a_block_have_the_gradient_of_two_runs_joined(cell: Any) -> None:
    """The factors are computed in blocks of steps: their seams leave no trace."""
    rng = np.random.default_rng(2)
    layer = cell.initialize(input_size=2, hidden_size=32, rng=rng)
    x, upstream = rng.standard_normal((40, 64, 2)), rng.standard_normal((40, 64, layer.state_size))
    whole = gl.rollout(layer, x)
    second = gl.rollout(layer, x[17:], initial_state=whole.states[17])
    late = layer.backward(second, upstream[17:])
    carried = upstream[:17].copy()
    carried[-1] += late.initial_state
    early = layer.backward(gl.rollout(layer, x[:17]), carried)
    for name, gradient in layer.backward(whole, upstream).gradients.items():
        joined = early.gradients[name] + late.gradients[name]
        np.testing.assert_allclose(gradient, joined, atol=1e-10 * np.abs(joined).max())
