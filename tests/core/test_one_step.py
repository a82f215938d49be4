"""Norms of single steps from one Gram matrix against those of products, and what is done once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.one_step import one_step_profile
from gradlab.arrays import Array
from gradlab.records.jacobians import COLUMNS, JacobianProfile

Make = Callable[[np.random.Generator, int], Array]


def gaussian(rng: np.random.Generator, n: int) -> Array:
    return np.asarray(rng.standard_normal((n, n)) / np.sqrt(n))


def with_extreme_rows(rng: np.random.Generator, n: int) -> Array:
    return np.asarray(gaussian(rng, n) * 10.0 ** np.linspace(-250.0, 20.0, n)[:, None])


def with_a_zero_row(rng: np.random.Generator, n: int) -> Array:
    W = gaussian(rng, n)
    W[n // 2] = 0.0
    return W


def singular(rng: np.random.Generator, n: int) -> Array:
    W = gaussian(rng, n)
    W[-1] = W[0]
    return W


def ring(rng: np.random.Generator, n: int) -> Array:
    return np.asarray(0.8 * np.roll(np.eye(n), 1, axis=1))


def zero(rng: np.random.Generator, n: int) -> Array:
    return np.zeros((n, n))


def profiles(
    cell: gl.VanillaCell, rng: np.random.Generator
) -> tuple[JacobianProfile, JacobianProfile]:
    inputs = rng.standard_normal((7, 3, cell.input_size))
    run = gl.rollout(cell, inputs, lengths=np.array([7, 3, 5]))
    return one_step_profile(cell, run), gl.jacobian_profile(cell, run, max_lag=1)


@pytest.mark.parametrize("activation", ["tanh", "relu", "identity"])
@pytest.mark.parametrize("n", [1, 2, 60])
@pytest.mark.parametrize(
    "make",
    [gaussian, with_extreme_rows, with_a_zero_row, singular, ring, zero],
    ids=lambda make: make.__name__,
)
def test_norms_of_single_steps_are_those_of_products_of_one(
    make: Make, n: int, activation: str
) -> None:
    rng = np.random.default_rng(n)
    cell = gl.VanillaCell(
        W_hh=make(rng, n), W_xh=rng.standard_normal((n, 2)), activation=activation
    )
    with np.errstate(over="ignore"):
        found, expected = profiles(cell, rng)
    for name in COLUMNS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10, err_msg=name)


def test_saturated_units_hide_nothing_of_the_others() -> None:
    """The first unit's slope is below 1e-300, the second's row of the weights is."""
    W = np.array([[1e150, 0.0], [0.0, 1e-160]])
    cell = gl.VanillaCell(W_hh=W, W_xh=np.array([[360.0], [0.0]]))
    run = gl.rollout(cell, np.ones((1, 1, 1)))
    slope = cell.linearize(run)[0].matrix()[0, 0, 0] / 1e150
    found = one_step_profile(cell, run)
    exact = sorted([np.log(1e-160), np.log(slope) + np.log(1e150)])
    assert found.log_sigma_min[0] == pytest.approx(exact[0], abs=1e-12)
    assert found.log_norm[0] == pytest.approx(exact[1], abs=1e-12)


def test_gated_cells_go_through_the_products() -> None:
    rng = np.random.default_rng(0)
    cell = gl.GRUCell.initialize(input_size=2, hidden_size=5, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((4, 2, 2)))
    expected = gl.jacobian_profile(cell, run, max_lag=1)
    np.testing.assert_array_equal(one_step_profile(cell, run).log_norm, expected.log_norm)
