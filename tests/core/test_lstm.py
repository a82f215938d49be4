"""LSTM: published steps, frameworks' oracles, differences, identities, and what is refused."""

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
    {"coupled": coupled, "peepholes": peepholes, "projected": projected, **rest}
    for coupled, peepholes, projected in itertools.product(
        (None, "forget", "input"), (False, True), (False, True)
    )
    for rest in (
        {},
        {"recurrent_activation": "hard_sigmoid(0.3, 0.45)", "output_activation": "erf"},
    )
]


def lcg(seed: int, *shape: int) -> Array:
    """Entries in (-1, 1) of the 31-bit linear congruential generator, row by row."""
    numbers, x = [], seed
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        numbers.append(x / 2.0**30 - 1.0)
    return np.array(numbers).reshape(shape)


def random_lstm(
    rng: np.random.Generator,
    n: int = 3,
    *,
    peepholes: bool = False,
    projected: bool = False,
    scale: float = 1.0,
    **options: Any,
) -> gl.LSTMCell:
    hidden = max(1, n - 1) if projected else n
    return gl.LSTMCell(
        W_x=scale * rng.standard_normal((4 * n, 2)),
        W_h=scale * rng.standard_normal((4 * n, hidden)),
        b_x=scale * rng.standard_normal(4 * n),
        b_h=scale * rng.standard_normal(4 * n),
        W_hr=rng.standard_normal((hidden, n)) if projected else None,
        peepholes=rng.standard_normal((3, n)) if peepholes else None,
        **options,
    )


def single(stored: float, **options: Any) -> gl.LSTMCell:
    """N = 1 without recurrent weights: c is kept by σ(bias)."""
    bias = np.array([0.0, stored, 0.0, 0.0])
    return gl.LSTMCell(W_x=np.zeros((4, 1)), W_h=np.zeros((4, 1)), b_x=bias, **options)


def cell_path(cell: gl.LSTMCell, distance: int) -> float:
    """dc_T/dc_0 over a distance at rest."""
    run = gl.rollout(cell, np.zeros((distance, 1, 1)))
    product = np.eye(2)
    for step in cell.linearize(run):
        product = step.matrix()[0] @ product
    return float(product[1, 1])


def at_rest(cell: gl.LSTMCell, steps: int) -> gl.Trajectory:
    return gl.rollout(cell, np.zeros((steps, 1, 1)))


def test_reference_step_has_its_published_values() -> None:
    cell = gl.LSTMCell(
        W_x=np.concatenate([lcg(100 + k, 2, 1) for k in (1, 2, 3, 4)]),
        W_h=np.concatenate([lcg(100 + k, 2, 2) for k in (5, 6, 7, 8)]),
        b_x=np.concatenate([lcg(100 + k, 2) for k in (9, 10, 11, 12)]),
    )
    start = np.array([0.1, -0.2, 0.3, -0.4])
    run = gl.rollout(cell, np.array([[[0.5]]]), initial_state=start)
    expected = [0.0029218258731768, -0.30692088276478, 0.0061653999242139, -0.41667007917943]
    np.testing.assert_allclose(run.states[1, 0], expected, rtol=2e-13)
    step = cell.linearize(run)[0]
    assert np.linalg.norm(step.matrix()[0], 2) == pytest.approx(0.88328701019175, rel=1e-12)
    assert step.log_abs_det()[0] == pytest.approx(-11.362894610489, abs=1e-11)
    np.testing.assert_allclose(step.matrix()[0], by_the_book(cell, start, 0.5), rtol=1e-12)


def by_the_book(cell: gl.LSTMCell, state: Array, x: float) -> Array:
    """[[P + S A, S F], [A, F]] written out, with slopes s(1 - s) and 1 - tanh²."""
    h, c = np.split(state, 2)
    a = np.split(cell.W_x[:, 0] * x + cell.W_h @ h + cell.b_x, 4)
    i, f, o = (1.0 / (1.0 + np.exp(-a[gate])) for gate in (0, 1, 3))
    g = np.tanh(a[2])
    tau = np.tanh(f * c + i * g)
    U_i, U_f, U_g, U_o = np.split(cell.W_h, 4)
    A = np.diag(g * i * (1 - i)) @ U_i + np.diag(c * f * (1 - f)) @ U_f
    A = A + np.diag(i * (1 - g**2)) @ U_g
    P, S = np.diag(tau * o * (1 - o)) @ U_o, np.diag(o * (1 - tau**2))
    return np.block([[P + S @ A, S @ np.diag(f)], [A, np.diag(f)]])


@pytest.mark.parametrize("options", VARIANTS)
def test_jacobians_are_differences_of_the_step(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    cell = random_lstm(rng, scale=0.4, forget_bias=0.3, **options)
    state = 0.5 * rng.standard_normal((2, cell.state_size))
    run = gl.rollout(cell, rng.standard_normal((3, 2, 2)), initial_state=state)
    assert_steps_are_differences(cell, run)
    assert_terms_add_up_to_the_gradient(cell, run, "W_h")


@pytest.mark.parametrize("options", VARIANTS)
def test_gradients_are_differences_of_the_loss(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    cell = random_lstm(rng, n=2, scale=0.4, **options)
    state = 0.5 * rng.standard_normal((2, cell.state_size))
    assert_gradients_are_differences(cell, rng.standard_normal((4, 2, 2)), state)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    coupled=st.sampled_from([None, "forget", "input"]),
    peepholes=st.booleans(),
    projected=st.booleans(),
    scale=st.floats(0.1, 3.0),
)
def test_determinant_from_its_factors_is_that_of_the_matrix(
    seed: int, n: int, coupled: str | None, peepholes: bool, projected: bool, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    cell = random_lstm(
        rng, n, coupled=coupled, peepholes=peepholes, projected=projected, scale=scale
    )
    run = gl.rollout(cell, rng.standard_normal((3, 2, 2)))
    for step in cell.linearize(run):
        sign, expected = np.linalg.slogdet(step.matrix())
        regular = np.linalg.cond(step.matrix()) < 1e9
        assert (sign[regular] != 0.0).all()
        np.testing.assert_allclose(step.log_abs_det()[regular], expected[regular], atol=1e-6)


def test_singular_recurrent_block_of_the_output_gate_has_no_determinant() -> None:
    cell = gl.LSTMCell(W_x=np.ones((8, 1)), W_h=np.ones((8, 2)))
    run = gl.rollout(cell, np.ones((2, 1, 1)))
    assert cell.linearize(run)[1].log_abs_det()[0] == -math.inf


def permuted(W: Array, n: int) -> Array:
    """Rows i, o, f, g of ONNX to i, f, g, o."""
    return np.concatenate([W[gate * n : (gate + 1) * n] for gate in (0, 2, 3, 1)])


@pytest.mark.parametrize(("name", "clip"), [("peephole", None), ("clip", 0.6)])
def test_onnx_variants_agree_with_their_oracles(name: str, clip: float | None) -> None:
    stored = np.load(MODELS / f"onnx_lstm_{name}.weights.npz")
    oracle = np.load(MODELS / f"onnx_lstm_{name}.oracle.npz")
    n = stored["R"].shape[2]
    p_i, p_o, p_f = stored["P"].reshape(3, n) if "P" in stored else np.zeros((3, n))
    cell = gl.LSTMCell(
        W_x=permuted(stored["W"][0], n),
        W_h=permuted(stored["R"][0], n),
        b_x=permuted(stored["B"][0, : 4 * n], n),
        b_h=permuted(stored["B"][0, 4 * n :], n),
        peepholes=np.stack([p_i, p_f, p_o]),
        clip=clip,
    )
    assert_agrees(cell, oracle, "_d0")


def test_hidden_forget_bias_of_haiku_is_inside_the_sigmoid() -> None:
    """Rows i, g, f, o in one matrix for x and h; the cell adds 1 to f when it runs."""
    stored, oracle = np.load(MODELS / "haiku_lstm.npz"), np.load(MODELS / "haiku_lstm.oracle.npz")
    W, b = stored["lstm/linear/w"].T, stored["lstm/linear/b"]
    n = len(b) // 4
    order = [gate * n + unit for gate in (0, 2, 1, 3) for unit in range(n)]
    features = oracle["x"].shape[1]
    cell = gl.LSTMCell(
        W_x=W[order, :features], W_h=W[order, features:], b_x=b[order], forget_bias=1.0
    )
    assert_agrees(cell, oracle, "")


def assert_agrees(cell: gl.LSTMCell, oracle: Any, suffix: str) -> None:
    expected = oracle[f"s{suffix}"]
    run = gl.rollout(cell, oracle["x"][:, None].astype(float), initial_state=expected[0])
    np.testing.assert_allclose(run.states[:, 0], expected, atol=1e-12)
    J = np.stack([step.matrix()[0] for step in cell.linearize(run)])
    np.testing.assert_allclose(J, oracle[f"J{suffix}"], atol=1e-12)
    product = np.eye(cell.state_size)
    for k in range(len(J) - 1, -1, -1):
        product = product @ J[k]
        np.testing.assert_allclose(product, oracle[f"dsT_ds{suffix}"][k], atol=1e-10)


def test_carousel_keeps_what_the_forget_bias_says() -> None:
    """Case H10: 20 steps with bias 1, and the half-lives of other biases by the closed form."""
    assert cell_path(single(1.0), 20) == pytest.approx(0.001901268944, rel=1e-9)
    kept = {0: 7.8886090522e-31, 1: 2.484378555724e-14, 2: 3.0731695436808e-6,
            3: 0.0077602932358636, 5: 0.51092378485612, 10: 0.99547039980127}  # fmt: skip
    for bias, expected in kept.items():
        assert cell_path(single(bias), 100) == pytest.approx(expected, rel=1e-11)


def test_straight_line_gates_keep_less() -> None:
    """Case H13: f = 0.7 in place of 0.731, and a slope of exactly 0 from |z| = 2.5 on."""
    hard = single(1.0, recurrent_activation="hard_sigmoid")
    assert cell_path(hard, 20) == pytest.approx(0.00079792266, rel=1e-8)
    beyond = single(2.6, recurrent_activation="hard_sigmoid")
    assert cell_path(beyond, 20) == 1.0
    shares = gl.saturation(beyond, at_rest(beyond, 3)).gates
    assert (shares["f"].high_share, shares["f"].mean_derivative) == (1.0, 0.0)


def test_forget_biases_stored_twice_count_twice() -> None:
    """Case H24: σ(2) when both vectors hold 1."""
    bias = np.array([0.0, 1.0, 0.0, 0.0])
    cell = gl.LSTMCell(W_x=np.zeros((4, 1)), W_h=np.zeros((4, 1)), b_x=bias, b_h=bias)
    assert cell_path(cell, 50) == pytest.approx(0.0017530458, rel=1e-7)
    assert cell_path(single(1.0), 50) == pytest.approx(1.57619e-07, rel=1e-5)


def test_forget_bias_of_the_cell_is_added_inside_the_sigmoid() -> None:
    """Case H30: 0 in the file and 1 from the cell."""
    cell = single(0.0, forget_bias=1.0)
    assert cell.carry(at_rest(cell, 1))["f"].item() == pytest.approx(0.7310585786, rel=1e-9)
    assert cell_path(cell, 20) == pytest.approx(0.0019012689, rel=1e-7)
    assert cell_path(single(0.0), 20) == pytest.approx(9.53674e-07, rel=1e-5)


def test_peepholes_enter_by_name_and_not_by_place() -> None:
    """Case H14: P = 0.1, 0.2, 0.3 in the order i, o, f; o sees the new cell state."""
    zeros: dict[str, Any] = {"W_x": np.zeros((4, 1)), "W_h": np.zeros((4, 1))}
    cell = gl.LSTMCell(**zeros, peepholes=np.array([[0.1], [0.3], [0.2]]))
    run = gl.rollout(cell, np.zeros((1, 1, 1)), initial_state=np.array([0.0, 2.0]))
    h, c = run.states[1, 0]
    assert (c, h) == pytest.approx((1.291312612, 0.4849207822), rel=1e-9)
    assert cell.linearize(run)[0].matrix()[0, 1, 1] == pytest.approx(0.7829268505, rel=1e-9)


def test_norms_are_told_gate_by_gate_and_the_stack_under_its_own_name() -> None:
    """Case H31."""
    blocks = [0.5 * np.eye(2), 0.9 * np.eye(2), np.array([[0.0, 2.0], [0.0, 0.0]]), 0.1 * np.eye(2)]
    cell = gl.LSTMCell(W_x=np.zeros((8, 1)), W_h=np.concatenate(blocks))
    summary = gl.inspect(cell)["recurrences"][0]
    assert summary["gamma_w"] is None
    assert summary["spectral_radius"] is None
    sigma = {name: gate["sigma_max"] for name, gate in summary["gates"].items()}
    radius = {name: gate["spectral_radius"] for name, gate in summary["gates"].items()}
    assert sigma == pytest.approx(
        {"i": 0.5, "f": 0.9, "g": 2.0, "o": 0.1, "stack": 2.25166604984}, rel=1e-10
    )
    assert radius == {"i": 0.5, "f": 0.9, "g": 0.0, "o": 0.1, "stack": None}
    assert summary["gates"]["stack"]["note"] == "not a bound for gated cells"


def test_without_recurrent_weights_the_norm_has_a_closed_form() -> None:
    """U = 0: ‖P‖ = max over units of ∏f √(1 + s²), and dc/dc = ∏F exactly."""
    rng = np.random.default_rng(3)
    cell = gl.LSTMCell(W_x=rng.standard_normal((12, 1)), W_h=np.zeros((12, 3)))
    run = gl.rollout(cell, rng.standard_normal((30, 1, 1)))
    f = cell.carry(run)["f"][:, 0]
    o = 1.0 / (1.0 + np.exp(-run.z[-1, 0, 9:]))
    s = o / np.cosh(run.states[-1, 0, 3:]) ** 2
    expected = np.log(np.max(f.prod(axis=0) * np.sqrt(1.0 + s**2)))
    profile = gl.jacobian_profile(cell, run, anchors="last", smallest=False)
    assert profile.log_norm[-1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("dtype", "edge"), [("float64", 37.42995), ("float32", 17.32868)])
def test_a_forget_gate_that_rounds_to_one_is_lossless(dtype: str, edge: float) -> None:
    for bias, lossless in ((edge - 1e-3, False), (edge + 1e-3, True)):
        cell = single(bias, dtype=dtype)
        kept = cell.carry(at_rest(cell, 1))["f"].astype(dtype).item()
        assert (kept == 1.0) == lossless


def test_variants_without_effect_change_nothing() -> None:
    rng = np.random.default_rng(4)
    plain = random_lstm(rng)
    weights: dict[str, Any] = dict(plain.parameters)
    x = rng.standard_normal((6, 2, 2))
    states = gl.rollout(plain, x).states
    for options in (
        {"peepholes": np.zeros((3, 3))}, {"W_hr": np.eye(3)}, {"clip": 1e3},
        {"output_activation": "tanh"},
    ):  # fmt: skip
        other = gl.LSTMCell(**(weights | options))
        np.testing.assert_allclose(gl.rollout(other, x).states, states, atol=1e-15)


def test_coupled_gates_add_up_to_one_and_leave_the_other_rows_idle() -> None:
    rng = np.random.default_rng(5)
    for coupled, derived, rows in (("forget", "f", slice(3, 6)), ("input", "i", slice(0, 3))):
        cell = random_lstm(rng, coupled=coupled)
        run = gl.rollout(cell, rng.standard_normal((4, 2, 2)))
        assert set(cell.nonlinearities(run)) == {"i", "f", "g", "o"} - {derived}
        assert derived not in cell.recurrent_matrices()
        kept = cell.carry(run)["f"]
        c, g = run.states[:, :, 3:], np.tanh(run.z[:, :, 6:9])
        np.testing.assert_allclose(c[1:], kept * c[:-1] + (1.0 - kept) * g, atol=1e-14)
        found = cell.backward(run, np.ones((4, 2, 6)))
        assert not found.gradients["W_h"][rows].any()


def test_window_cuts_the_gradient_and_not_the_jacobian() -> None:
    """Case H28 for a cell with gates: beyond the window nothing arrives."""
    rng = np.random.default_rng(6)
    cell = random_lstm(rng)
    run = gl.rollout(cell, rng.standard_normal((9, 1, 2)))
    upstream = np.zeros((9, 1, 6))
    upstream[-1] = 1.0
    whole, cut = cell.backward(run, upstream), cell.backward(run, upstream, window=4)
    np.testing.assert_allclose(cut.adjoints[6:], whole.adjoints[6:], atol=1e-14)
    assert not cut.adjoints[:6].any()
    assert whole.adjoints[:6].any()


def test_padding_enters_neither_states_nor_gradients() -> None:
    rng = np.random.default_rng(7)
    cell = random_lstm(rng, peepholes=True, projected=True)
    x, lengths = rng.standard_normal((6, 3, 2)), np.array([6, 2, 4])
    run = gl.rollout(cell, x, lengths=lengths)
    upstream = rng.standard_normal((6, 3, cell.state_size)) * run.valid[:, :, None]
    together = cell.backward(run, upstream)
    total = {name: np.zeros_like(array) for name, array in cell.parameters.items()}
    for b, length in enumerate(lengths):
        alone = gl.rollout(cell, x[:length, b : b + 1])
        part = cell.backward(alone, upstream[:length, b : b + 1])
        np.testing.assert_allclose(run.states[: length + 1, b], alone.states[:, 0], atol=1e-15)
        for name, gradient in part.gradients.items():
            total[name] += gradient
    for name, gradient in together.gradients.items():
        np.testing.assert_allclose(gradient, total[name], atol=1e-12)


def test_random_layers_have_the_biases_they_were_asked_for() -> None:
    rng = np.random.default_rng(8)
    cell = gl.LSTMCell.initialize(input_size=3, hidden_size=200, rng=rng, forget_bias=1.5)
    i, f, g, o = np.split(cell.parameters["b_x"], 4)
    assert (set(f), set(np.concatenate([i, g, o]))) == ({1.5}, {0.0})
    for block in list(cell.recurrent_matrices().values())[:4]:
        np.testing.assert_allclose(block @ block.T, np.eye(200), atol=1e-12)
    chrono = gl.LSTMCell.initialize(input_size=3, hidden_size=200, rng=rng, chrono=100)
    i, f, _, _ = np.split(chrono.parameters["b_x"], 4)
    np.testing.assert_array_equal(i, -f)
    assert 0.0 <= f.min() < math.log(10.0)
    assert math.log(80.0) < f.max() <= math.log(99.0)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"W_h": np.ones((7, 2))}, gl.ShapeError, r"W_h has shape \(7, 2\): expected \(4 N, N\)"),
        ({"W_h": np.ones(8)}, gl.ShapeError, r"W_h has shape \(8,\)"),
        ({"W_x": np.ones((6, 3))}, gl.ShapeError, r"W_x has shape \(6, 3\): expected \(8, any\)"),
        ({"b_h": np.ones(4)}, gl.ShapeError, r"b_h has shape \(4,\): expected \(8,\)"),
        ({"peepholes": np.ones((4, 2))}, gl.ShapeError, r"peepholes has shape \(4, 2\)"),
        ({"W_hr": np.ones((3, 2))}, gl.ShapeError, r"expected \(4 N, 3\)"),
        ({"b_x": np.full(8, np.nan)}, gl.NonFiniteError, "b_x holds 8 non-finite"),
        ({"activation": "thanh"}, gl.UnknownNameError, "did you mean 'tanh'"),
        ({"coupled": "both"}, gl.UnknownNameError, "coupling 'both'"),
        ({"dtype": "float16"}, gl.UnknownNameError, "float64, float32"),
        ({"clip": -1.0}, gl.SettingError, "clip -1.0"),
        ({"forget_bias": math.inf}, gl.SettingError, "forget_bias inf"),
    ],
)
def test_cell_of_unfitting_parts_is_refused(
    changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    fitting = {"W_x": np.ones((8, 3)), "W_h": np.ones((8, 2))}
    with pytest.raises(error, match=message):
        unchecked(gl.LSTMCell, **(fitting | changed))
