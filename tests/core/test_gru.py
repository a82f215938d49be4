"""GRU and minimal gated unit: published steps, oracles, differences, both readings of z and r."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.arrays import Array
from tests.core.differences import (
    assert_gradients_are_differences,
    assert_steps_are_differences,
    assert_terms_add_up_to_the_gradient,
    unchecked,
)

MODELS = Path(__file__).parents[1] / "fixtures" / "models"
VARIANTS = [
    {"reset": reset, "update": update, **rest}
    for reset, update in itertools.product(("after", "before"), ("keep", "overwrite"))
    for rest in ({}, {"recurrent_activation": "hard_sigmoid_6", "activation": "erf"})
]


def lcg(seed: int, *shape: int) -> Array:
    """Entries in (-1, 1) of the 31-bit linear congruential generator, row by row."""
    numbers, x = [], seed
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        numbers.append(x / 2.0**30 - 1.0)
    return np.array(numbers).reshape(shape)


def random_gru(
    rng: np.random.Generator, n: int = 3, *, scale: float = 1.0, **options: Any
) -> gl.GRUCell:
    return gl.GRUCell(
        W_x=scale * rng.standard_normal((3 * n, 2)),
        W_h=scale * rng.standard_normal((3 * n, n)),
        b_x=scale * rng.standard_normal(3 * n),
        b_h=scale * rng.standard_normal(3 * n),
        **options,
    )


def random_mgu(
    rng: np.random.Generator, n: int = 3, *, scale: float = 1.0, **options: Any
) -> gl.MinimalGatedCell:
    return gl.MinimalGatedCell(
        W_x=scale * rng.standard_normal((2 * n, 2)),
        W_h=scale * rng.standard_normal((2 * n, n)),
        b_x=scale * rng.standard_normal(2 * n),
        b_h=scale * rng.standard_normal(2 * n),
        **options,
    )


def first_matrix(cell: Any, x: float, state: Array) -> Array:
    run = gl.rollout(cell, np.array([[[x]]]), initial_state=state)
    return np.asarray(cell.linearize(run)[0].matrix()[0])


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        (
            "after",
            [[0.82724471374404, 0.091867461923967], [-0.093435053596929, 0.68617586119185]],
        ),
        (
            "before",
            [[0.78132130346341, 0.058623290306097], [-0.090887756740317, 0.7951313053907]],
        ),
    ],
)
def test_reference_step_has_its_published_jacobian(reset: str, expected: list[list[float]]) -> None:
    b_hn = lcg(210, 2) if reset == "after" else np.zeros(2)
    cell = gl.GRUCell(
        W_x=np.concatenate([lcg(200 + k, 2, 1) for k in (1, 2, 3)]),
        W_h=np.concatenate([lcg(200 + k, 2, 2) for k in (4, 5, 6)]),
        b_x=np.concatenate([lcg(200 + k, 2) for k in (7, 8, 9)]),
        b_h=np.concatenate([np.zeros(4), b_hn]),
        reset=reset,
    )
    found = first_matrix(cell, 0.5, np.array([0.1, -0.2]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("options", VARIANTS)
def test_jacobians_are_differences_of_the_step(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    cell = random_gru(rng, scale=0.5, **options)
    state = 0.5 * rng.standard_normal((2, 3))
    run = gl.rollout(cell, rng.standard_normal((3, 2, 2)), initial_state=state)
    assert_steps_are_differences(cell, run)
    assert_terms_add_up_to_the_gradient(cell, run, "W_h")


@pytest.mark.parametrize("options", VARIANTS)
def test_gradients_are_differences_of_the_loss(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    cell = random_gru(rng, n=2, scale=0.5, **options)
    state = 0.5 * rng.standard_normal((2, 2))
    assert_gradients_are_differences(cell, rng.standard_normal((4, 2, 2)), state)


@pytest.mark.parametrize("options", [{}, {"recurrent_activation": "hard_sigmoid"}])
def test_minimal_gated_unit_agrees_with_differences(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    cell = random_mgu(rng, scale=0.5, **options)
    x, state = rng.standard_normal((4, 2, 2)), 0.5 * rng.standard_normal((2, 3))
    run = gl.rollout(cell, x, initial_state=state)
    assert_steps_are_differences(cell, run)
    assert_terms_add_up_to_the_gradient(cell, run, "W_h")
    assert_gradients_are_differences(cell, x, state)


def test_minimal_gated_unit_is_a_gru_with_one_gate_for_both() -> None:
    """Reset before the product, z overwriting, and r and z with the same weights."""
    rng = np.random.default_rng(4)
    mgu = random_mgu(rng)
    f_n = {name: np.split(array, 2) for name, array in mgu.parameters.items()}
    weights: Any = {name: np.concatenate([f, f, n]) for name, (f, n) in f_n.items()}
    gru = gl.GRUCell(**weights, reset="before", update="overwrite")
    x = rng.standard_normal((5, 2, 2))
    one, other = gl.rollout(mgu, x), gl.rollout(gru, x)
    np.testing.assert_allclose(one.states, other.states, atol=1e-14)
    for left, right in zip(mgu.linearize(one), gru.linearize(other), strict=True):
        np.testing.assert_allclose(left.matrix(), right.matrix(), atol=1e-13)


def test_the_two_senses_of_z_are_one_cell_with_the_gate_turned_round() -> None:
    """s(-a) = 1 - s(a): negating the rows of z exchanges keep and overwrite."""
    rng = np.random.default_rng(5)
    for reset in ("after", "before"):
        keep = random_gru(rng, reset=reset)
        turned: Any = {name: array.copy() for name, array in keep.parameters.items()}
        for array in turned.values():
            array[3:6] *= -1.0
        overwrite = gl.GRUCell(**turned, reset=reset, update="overwrite")
        x = rng.standard_normal((6, 2, 2))
        np.testing.assert_allclose(
            gl.rollout(keep, x).states, gl.rollout(overwrite, x).states, atol=1e-14
        )


@pytest.mark.parametrize(("update", "expected"), [("keep", 0.1215766546), ("overwrite", 1e-20)])
def test_z_keeps_or_overwrites(update: str, expected: float) -> None:
    """Case H11: z = 0.9 over a distance of 20."""
    bias = np.array([0.0, math.log(9.0), 0.0])
    cell = gl.GRUCell(W_x=np.zeros((3, 1)), W_h=np.zeros((3, 1)), b_x=bias, update=update)
    run = gl.rollout(cell, np.zeros((20, 1, 1)))
    profile = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    assert math.exp(profile.log_norm[-1]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("reset", "h", "slope"),
    [("after", 0.5532758328, 0.6070410194), ("before", 0.7003742663, 0.4520507403)],
)
def test_reset_is_after_or_before_the_product(reset: str, h: float, slope: float) -> None:
    """Case H12: r = 0.5 and z = 0.25 fixed, W_hn = 1.5, recurrent bias 0.8, h = 0.4."""
    cell = gl.GRUCell(
        W_x=np.zeros((3, 1)),
        W_h=np.array([[0.0], [0.0], [1.5]]),
        b_x=np.array([0.0, -math.log(3.0), 0.0]),
        b_h=np.array([0.0, 0.0, 0.8]),
        reset=reset,
    )
    run = gl.rollout(cell, np.zeros((1, 1, 1)), initial_state=np.array([0.4]))
    assert run.states[1].item() == pytest.approx(h, rel=1e-9)
    assert first_matrix(cell, 0.0, np.array([0.4])).item() == pytest.approx(slope, rel=1e-9)


def reordered(W: Array, n: int) -> Array:
    """Rows z, r, n to r, z, n."""
    return np.concatenate([W[n : 2 * n], W[:n], W[2 * n :]])


@pytest.mark.parametrize(("name", "gate"), [("lbr0", "sigmoid"), ("hardsigmoid", "hard_sigmoid")])
def test_onnx_variants_agree_with_their_oracles(name: str, gate: str) -> None:
    """linear_before_reset = 0 is the reset before the product; HardSigmoid has slope 1/5."""
    stored = np.load(MODELS / f"onnx_gru_{name}.weights.npz")
    n = stored["R"].shape[2]
    cell = gl.GRUCell(
        W_x=reordered(stored["W"][0], n),
        W_h=reordered(stored["R"][0], n),
        b_x=reordered(stored["B"][0, : 3 * n], n),
        b_h=reordered(stored["B"][0, 3 * n :], n),
        reset="before",
        recurrent_activation=gate,
    )
    assert_agrees(cell, np.load(MODELS / f"onnx_gru_{name}.oracle.npz"), "_d0")


def test_haiku_overwrites_and_resets_before_the_product() -> None:
    """Rows z, r, n; z takes the new state."""
    stored = np.load(MODELS / "haiku_gru.npz")
    n = stored["gru/w_h"].shape[0]
    cell = gl.GRUCell(
        W_x=reordered(stored["gru/w_i"].T, n),
        W_h=reordered(stored["gru/w_h"].T, n),
        b_x=reordered(stored["gru/b"], n),
        reset="before",
        update="overwrite",
    )
    assert_agrees(cell, np.load(MODELS / "haiku_gru.oracle.npz"), "")


def assert_agrees(cell: gl.GRUCell, oracle: Any, suffix: str) -> None:
    expected = oracle[f"s{suffix}"]
    run = gl.rollout(cell, oracle["x"][:, None].astype(float), initial_state=expected[0])
    np.testing.assert_allclose(run.states[:, 0], expected, atol=1e-12)
    J = np.stack([step.matrix()[0] for step in cell.linearize(run)])
    np.testing.assert_allclose(J, oracle[f"J{suffix}"], atol=1e-12)
    product = np.eye(cell.state_size)
    for k in range(len(J) - 1, -1, -1):
        product = product @ J[k]
        np.testing.assert_allclose(product, oracle[f"dsT_ds{suffix}"][k], atol=1e-10)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    options=st.sampled_from([*VARIANTS, None]),
    scale=st.floats(0.1, 3.0),
)
def test_actions_and_determinant_are_those_of_the_matrix(
    seed: int, n: int, options: dict[str, Any] | None, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    cell: Any = (
        random_mgu(rng, n, scale=scale)
        if options is None
        else random_gru(rng, n, scale=scale, **options)
    )
    run = gl.rollout(cell, rng.standard_normal((3, 2, 2)))
    V, U = rng.standard_normal((2, 2, n, 4))
    for step in cell.linearize(run):
        J = step.matrix()
        size = 1e-13 * (1.0 + np.abs(J).max()) * n
        np.testing.assert_allclose(step.apply(V), J @ V, atol=size * 10)
        np.testing.assert_allclose(
            step.apply_transpose(U), J.transpose(0, 2, 1) @ U, atol=size * 10
        )
        np.testing.assert_array_equal(step.log_abs_det(), np.linalg.slogdet(J)[1])


def test_padding_enters_neither_states_nor_gradients() -> None:
    rng = np.random.default_rng(6)
    cells: list[Any] = [random_gru(rng), random_gru(rng, reset="before"), random_mgu(rng)]
    x, lengths = rng.standard_normal((6, 3, 2)), np.array([6, 2, 4])
    for cell in cells:
        run = gl.rollout(cell, x, lengths=lengths)
        upstream = rng.standard_normal((6, 3, 3)) * run.valid[:, :, None]
        together = cell.backward(run, upstream)
        total = {name: np.zeros_like(array) for name, array in cell.parameters.items()}
        for b, length in enumerate(lengths):
            alone = gl.rollout(cell, x[:length, b : b + 1])
            part = cell.backward(alone, upstream[:length, b : b + 1])
            for name, gradient in part.gradients.items():
                total[name] += gradient
        for name, gradient in together.gradients.items():
            np.testing.assert_allclose(gradient, total[name], atol=1e-12)


def test_random_layers_have_the_biases_they_were_asked_for() -> None:
    rng = np.random.default_rng(7)
    plain = gl.GRUCell.initialize(input_size=2, hidden_size=50, rng=rng, forget_bias=2.0)
    r, z, n = np.split(plain.parameters["b_x"], 3)
    assert (set(z), set(np.concatenate([r, n]))) == ({2.0}, {0.0})
    chrono = gl.GRUCell.initialize(input_size=2, hidden_size=50, rng=rng, chrono=30)
    z = np.split(chrono.parameters["b_x"], 3)[1]
    assert 0.0 <= z.min() < z.max() <= math.log(29.0)
    mgu = gl.MinimalGatedCell.initialize(input_size=2, hidden_size=5, rng=rng, forget_bias=2.0)
    kept = mgu.carry(gl.rollout(mgu, np.zeros((1, 1, 2))))["f"]
    np.testing.assert_allclose(kept, 1.0 / (1.0 + math.exp(-2.0)))


@pytest.mark.parametrize(
    ("cell", "changed", "error", "message"),
    [
        (gl.GRUCell, {"W_h": np.ones((7, 2))}, gl.ShapeError, r"expected \(3 N, N\)"),
        (gl.GRUCell, {"W_h": np.ones((4, 2))}, gl.ShapeError, r"expected \(3 N, N\)"),
        (gl.GRUCell, {"b_h": np.ones(2)}, gl.ShapeError, r"b_h has shape \(2,\): expected \(6,\)"),
        (gl.GRUCell, {"reset": "middle"}, gl.UnknownNameError, "reset 'middle'.*after, before"),
        (gl.GRUCell, {"update": "forget"}, gl.UnknownNameError, "keep, overwrite"),
        (gl.GRUCell, {"clip": 0.0}, gl.SettingError, "clip 0.0"),
        (gl.GRUCell, {"W_x": np.full((6, 1), np.inf)}, gl.NonFiniteError, "W_x holds 6"),
        (gl.MinimalGatedCell, {}, gl.ShapeError, r"expected \(2 N, N\)"),
    ],
)
def test_cell_of_unfitting_parts_is_refused(
    cell: type, changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    fitting = {"W_x": np.ones((6, 3)), "W_h": np.ones((6, 2))}
    with pytest.raises(error, match=message):
        unchecked(cell, **(fitting | changed))
