"""Layouts that multiply fast hold the same matrix, and runs of any batch the same states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.cells.kernels import multiplicand
from gradlab.cells.stretches import ROWS, entering, stretches

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


@pytest.mark.parametrize("cell", CELLS)
def test_upstream_in_double_precision_enters_a_pass_in_single_precision(cell: Any) -> None:
    rng = np.random.default_rng(3)
    layer = cell.initialize(input_size=2, hidden_size=5, rng=rng, dtype="float32")
    run = gl.rollout(layer, rng.standard_normal((6, 3, 2)))
    upstream = rng.standard_normal((6, 3, layer.state_size))
    upstream[2:4] = 0.0
    found, narrow = layer.backward(run, upstream), layer.backward(run, upstream.astype("float32"))
    for name, gradient in narrow.gradients.items():
        assert found.gradients[name].dtype == np.float32
        np.testing.assert_allclose(found.gradients[name], gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [0, 1, 3, 7, 8, 100])
def test_stretches_hold_every_step_once_and_the_last_first(length: int) -> None:
    steps = [list(range(part.start, part.stop)) for part in stretches(7, length)]
    assert [step for part in reversed(steps) for step in part] == list(range(7))
    assert max(map(len, steps)) == min(max(length, 1), 7) == len(steps[0])
    assert ROWS // 2000 == 0  # a batch larger than a stretch: one step at a time


def test_only_what_is_not_zero_enters_the_adjoints() -> None:
    upstream = np.zeros((4, 2, 3))
    upstream[1, 0, 2], upstream[3, 1, 0] = -1e-300, np.nan
    given = entering(upstream)
    assert [own is None for own in given] == [True, True, False, True, False]
    assert np.shares_memory(given[2], upstream[1])
