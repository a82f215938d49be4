"""LSTM and GRU: one step's Jacobian, its determinant, the carousel, and rates for all inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from gradlab.analysis.gated_bounds import gamma_lstm
from gradlab.analysis.gates import half_life_of_forget_bias
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.arrays import Array
from gradlab.cells.gru import GRUCell
from gradlab.cells.lstm import LSTMCell
from gradlab.engine.rollout import rollout
from gradlab.verification.expectations import Expectation, Group, lcg

GRU_JACOBIANS = {
    "after": (0.82724471374404, 0.091867461923967, -0.093435053596929, 0.68617586119185),
    "before": (0.78132130346341, 0.058623290306097, -0.090887756740317, 0.7951313053907),
}
CAROUSEL = {  # forget bias: product over 100 steps, half-life
    0.0: (7.8886090522e-31, 1.0),
    1.0: (2.484378555724e-14, 2.2126777968),
    3.0: (0.0077602932358636, 14.2660004736),
    5.0: (0.51092378485612, 103.2183484868),
    10.0: (0.99547039980127, 15267.929234),
}


def expectations() -> Sequence[Expectation]:
    """Values at weights that any language can rebuild."""
    return (*_lstm_step(), *_gru_steps(), *_carousel(), *_rates())


def _lstm_step() -> list[Expectation]:
    cases = (
        ("h'_1", 0.0029218258731768, 1e-12),
        ("h'_2", -0.30692088276478, 1e-12),
        ("c'_1", 0.0061653999242139, 1e-12),
        ("c'_2", -0.41667007917943, 1e-12),
        ("|J|", 0.88328701019175, 1e-12),
        ("ln |det J|", -11.362894610489, 1e-12),
    )
    return [
        Expectation(
            name=f"LSTM, one step: {name}",
            compute=partial(_lstm_value, index),
            expected=value,
            relative=relative,
        )
        for index, (name, value, relative) in enumerate(cases)
    ]


def _gru_steps() -> list[Expectation]:
    return [
        Expectation(
            name=f"GRU, reset {reset} the product: J[{index // 2}, {index % 2}]",
            compute=partial(_gru_value, reset, index),
            expected=value,
            relative=1e-12,
        )
        for reset, entries in GRU_JACOBIANS.items()
        for index, value in enumerate(entries)
    ]


def _carousel() -> list[Expectation]:
    products = [
        Expectation(
            name=f"LSTM without weights, forget bias {bias:g}: dc_100/dc_0",
            compute=partial(_carried, bias),
            expected=product,
            relative=1e-10,
        )
        for bias, (product, _) in CAROUSEL.items()
    ]
    half_lives = [
        Expectation(
            name=f"forget bias {bias:g}: half-life in steps",
            compute=partial(half_life_of_forget_bias, bias),
            expected=half_life,
            relative=1e-10,
        )
        for bias, (_, half_life) in CAROUSEL.items()
    ]
    return [*products, *half_lives]


def _rates() -> list[Expectation]:
    lstm = Expectation(
        name="LSTM, |x| <= 1: rate for all inputs",
        compute=lambda: _rate(gamma_lstm(_small_lstm(), input_bound=1.0).rate),
        expected=0.92004839131132,
        relative=1e-4,  # ranges settle from above: what is proven may lie a little higher
    )
    gru = [
        Expectation(
            name=f"GRU, reset {reset} the product: largest psi, below which it vanishes",
            compute=partial(_largest_psi, reset),
            expected=0.79679583768098,
            relative=1e-12,
        )
        for reset in ("after", "before")
    ]
    return [lstm, *gru]


def _rate(rate: float | None) -> float:
    return math.nan if rate is None else rate


def _gates(seed: int, numbers: Sequence[int], *shape: int) -> Array:
    return np.concatenate([lcg(seed + k, *shape) for k in numbers])


def _lstm() -> LSTMCell:
    return LSTMCell(
        W_x=_gates(100, (1, 2, 3, 4), 2, 1),
        W_h=_gates(100, (5, 6, 7, 8), 2, 2),
        b_x=_gates(100, (9, 10, 11, 12), 2),
    )  # the reference's blocks are i, f, g, o


def _lstm_value(index: int) -> float:
    cell = _lstm()
    start = np.array([0.1, -0.2, 0.3, -0.4])
    trajectory = rollout(cell, np.full((1, 1, 1), 0.5), initial_state=start)
    step = cell.linearize(trajectory)[0]
    norm = float(np.linalg.norm(step.matrix()[0], 2))
    values = (*trajectory.states[1, 0], norm, step.log_abs_det()[0])
    return float(values[index])


def _gru_value(reset: str, index: int) -> float:
    after = reset == "after"
    cell = GRUCell(
        W_x=_gates(200, (1, 2, 3), 2, 1),
        W_h=_gates(200, (4, 5, 6), 2, 2),
        b_x=_gates(200, (7, 8, 9), 2),
        b_h=np.concatenate([np.zeros(4), lcg(210, 2) if after else np.zeros(2)]),
        reset=reset,
    )
    trajectory = rollout(cell, np.full((1, 1, 1), 0.5), initial_state=np.array([0.1, -0.2]))
    return float(cell.linearize(trajectory)[0].matrix()[0].ravel()[index])


def _carried(bias: float) -> float:
    b = np.array([0.0, bias, 0.0, 0.0])
    cell = LSTMCell(W_x=np.zeros((4, 1)), W_h=np.zeros((4, 1)), b_x=b)
    start = np.array([0.0, 0.0])
    trajectory = rollout(cell, np.zeros((100, 1, 1)), initial_state=start)
    profile = jacobian_profile(cell, trajectory, anchors="last", smallest=False)
    share = float(np.linalg.norm([1.0, _read_out(cell, trajectory.states[-1, 0])]))
    return math.exp(float(profile.log_norm[-1])) / share


def _read_out(cell: LSTMCell, state: Array) -> float:
    """dh/dc of the last step, by which the norm of the whole state is larger than that of c."""
    return 0.5 * (1.0 - math.tanh(float(state[1])) ** 2)


def _small_lstm() -> LSTMCell:
    n = 4
    forget = np.zeros(4 * n)
    forget[n : 2 * n] = -1.0
    return LSTMCell(
        W_x=0.25 * _gates(700, (1, 2, 3, 4), n, 1),
        W_h=0.25 * _gates(700, (5, 6, 7, 8), n, n),
        b_x=0.25 * _gates(700, (9, 10, 11, 12), n) + forget,
    )


def _largest_psi(reset: str) -> float:
    n = 4
    inner = 0.15 * lcg(310, n) if reset == "after" else np.zeros(n)
    cell = GRUCell(
        W_x=0.15 * _gates(300, (1, 2, 3), n, 1),
        W_h=0.15 * _gates(300, (4, 5, 6), n, n),
        b_x=0.15 * _gates(300, (7, 8, 9), n),
        b_h=np.concatenate([np.zeros(2 * n), inner]),
        reset=reset,
    )
    return float(cell.row_bounds(1.0).max())


GATED = Group(title="gated cells", expectations=expectations)
