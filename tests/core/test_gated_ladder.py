"""The rungs of gated cells: right values, and never below the truth in ten thousand products."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.majorants import log_norms_of_maxima, log_norms_of_products
from gradlab.arrays import Array

ROUNDING = 1e-9
LSTM_RUNGS = ("lstm_weights", "lstm_gates", "lstm_data")


def lcg(seed: int, *shape: int) -> Array:
    """x <- (1103515245 x + 12345) mod 2^31 from x = seed; x / 2^30 - 1, row-major."""
    x, values = seed, []
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)


@pytest.mark.parametrize(
    ("rung", "bound"),
    [
        ("exact", 0.88328701019175),
        ("onestep", 0.88328701019175),
        ("lstm_data", 0.93052075253215),
        ("lstm_gates", 1.1027281288583),
        ("lstm_weights", 2.5600582587724),
    ],
)
def test_one_step_of_an_lstm_has_its_three_bounds(rung: str, bound: float) -> None:
    """Seeds 101..112; h = (.1, -.2), c = (.3, -.4), x = .5."""
    cell = gl.LSTMCell(
        W_x=np.concatenate([lcg(100 + k, 2, 1) for k in range(1, 5)]),
        W_h=np.concatenate([lcg(100 + k, 2, 2) for k in range(5, 9)]),
        b_x=np.concatenate([lcg(100 + k, 2) for k in range(9, 13)]),
    )
    run = gl.rollout(cell, np.array([[[0.5]]]), initial_state=np.array([0.1, -0.2, 0.3, -0.4]))
    ladder = gl.bound_ladder(cell, run)
    assert math.exp(ladder.rungs[rung][0]) == pytest.approx(bound, rel=1e-12)
    assert "gamma" not in ladder.rungs
    assert "no single norm" in ladder.absent["gamma"]


def random_lstms(rng: np.random.Generator) -> Iterator[tuple[str, gl.LSTMCell]]:
    """Thirty cells of every size and scale, with each variant in turn."""
    variants: list[dict[str, Any]] = [
        {},
        {"peepholes": True},
        {"projection": True},
        {"coupled": "forget"},
        {"coupled": "input"},
        {"clip": 0.8},
        {"recurrent_activation": "hard_sigmoid", "activation": "hard_tanh"},
        {"activation": "softsign", "output_activation": "erf"},
        {"peepholes": True, "projection": True, "coupled": "input", "clip": 2.0},
        {"output_activation": "sigmoid", "recurrent_activation": "tanh"},
    ]
    for index in range(30):
        options = dict(variants[index % len(variants)])
        name = ", ".join(options) or "plain"
        n, scale = int(rng.integers(1, 7)), float(rng.choice([0.1, 0.5, 1.0, 2.0]))
        hidden = 2 if options.pop("projection", False) else n
        if hidden != n:
            options["W_hr"] = rng.standard_normal((hidden, n))
        if options.pop("peepholes", False):
            options["peepholes"] = scale * rng.standard_normal((3, n))
        gain = float(rng.choice([0.3, 1.0, 3.0])) / math.sqrt(n)
        yield (
            name,
            gl.LSTMCell(
                W_x=scale * rng.standard_normal((4 * n, 2)),
                W_h=scale * gain * rng.standard_normal((4 * n, hidden)),
                b_x=scale * rng.standard_normal(4 * n),
                **options,
            ),
        )


def exact_log_norms(cell: Any, run: gl.Trajectory) -> Array:
    """ln‖P_{T,T-l}‖ for l = 1..T, by plain products; they stay within the range of floats here."""
    product, norms = np.eye(cell.state_size), []
    for step in list(cell.linearize(run))[::-1]:
        product = product @ step.matrix()
        norms.append(np.linalg.norm(product, 2, axis=(1, 2)))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.stack(norms)))


def bounds_of(cell: Any, run: gl.Trajectory) -> dict[str, Array]:
    ends, found = np.array([run.steps]), {}
    for name, make in cell.linearize(run).majorants.items():
        majorant = make()
        norms = log_norms_of_maxima if majorant.constant else log_norms_of_products
        found[name] = norms(majorant.matrices, ends)[0] + majorant.log_factor
    return found


def test_no_lstm_bound_is_violated_in_ten_thousand_products() -> None:
    rng = np.random.default_rng(0)
    products, tightest = 0, math.inf
    for name, cell in random_lstms(rng):
        h, c = cell.hidden_size, cell.cell_size
        spread = float(rng.choice([0.1, 1.0, 5.0]))
        start = np.hstack([rng.uniform(-1, 1, (400, h)), spread * rng.standard_normal((400, c))])
        run = gl.rollout(cell, 2.0 * rng.standard_normal((8, 400, 2)), initial_state=start)
        exact, bounds = exact_log_norms(cell, run), bounds_of(cell, run)
        assert tuple(bounds) == LSTM_RUNGS
        chain = [*(bounds[rung] for rung in LSTM_RUNGS), exact]
        for upper, lower in itertools.pairwise(chain):
            assert (upper >= lower - ROUNDING * (1.0 + np.abs(lower))).all(), name
        products += exact.shape[1]
        tightest = min(tightest, float((bounds["lstm_data"] - exact).min()))
    assert products >= 10_000
    assert tightest < 0.02  # the bound is nearly attained: it could not be much smaller


def random_grus(rng: np.random.Generator) -> Iterator[Any]:
    for index in range(32):
        n, scale = int(rng.integers(1, 7)), float(rng.choice([0.1, 0.5, 1.0, 2.0]))
        gain = float(rng.choice([0.3, 1.0, 3.0])) / math.sqrt(n)
        activation = ("tanh", "tanh", "softsign", "sigmoid")[index % 4]
        gates = 2 if index % 8 == 7 else 3
        weights: dict[str, Any] = {
            "W_x": scale * rng.standard_normal((gates * n, 2)),
            "W_h": scale * gain * rng.standard_normal((gates * n, n)),
            "b_x": scale * rng.standard_normal(gates * n),
            "b_h": scale * rng.standard_normal(gates * n),
        }
        if gates == 2:
            yield gl.MinimalGatedCell(**weights, activation=activation)
            continue
        yield gl.GRUCell(
            **weights,
            activation=activation,
            reset=("after", "before")[index % 2],
            update=("keep", "overwrite")[index // 2 % 2],
            clip=1.0 if index % 5 == 4 else None,
        )


def test_no_gru_bound_is_violated_in_ten_thousand_products() -> None:
    """In the infinity norm, where the constant is 1, and in the spectral norm."""
    rng = np.random.default_rng(1)
    products, tightest = 0, math.inf
    for index, cell in enumerate(random_grus(rng)):
        n = cell.hidden_size
        start = rng.uniform(-1, 1, (400, n)) if index % 3 else rng.choice([-1.0, 1.0], (400, n))
        start *= 3.0 if index % 4 == 1 else 1.0  # starts beyond 1 count too
        run = gl.rollout(cell, 2.0 * rng.standard_normal((8, 400, 2)), initial_state=start)
        exact, bound = exact_log_norms(cell, run), bounds_of(cell, run)["gru_rows"]
        assert (bound >= exact - ROUNDING * (1.0 + np.abs(exact))).all()
        rows = [np.abs(step.matrix()).sum(axis=2).max(axis=1) for step in cell.linearize(run)]
        majorant = cell.linearize(run).majorants["gru_rows"]()
        room = np.log(majorant.matrices[:, :, 0, 0]) - np.log(np.stack(rows))
        assert (room >= -ROUNDING).all()
        assert majorant.log_factor == pytest.approx(0.5 * math.log(n))
        products += exact.shape[1]
        tightest = min(tightest, float(room.min()))
    assert products >= 10_000
    assert tightest < 0.02


@pytest.mark.parametrize("kind", ["lstm", "gru", "mgu"])
def test_the_truth_lies_between_the_proven_curves(kind: str) -> None:
    rng = np.random.default_rng(2)
    cell = gl.CELLS[kind].initialize(input_size=2, hidden_size=4, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((20, 2, 2)), lengths=np.array([20, 13]))
    ladder = gl.bound_ladder(cell, run, profile=gl.jacobian_profile(cell, run))
    frame = ladder.to_frame().pivot_table(index="lag", columns="rung", values="log_bound")
    upper = ladder.to_frame().query("kind == 'upper'")["rung"].unique()
    lower = ladder.to_frame().query("kind == 'lower'")["rung"].unique()
    assert set(lower) == {"radius", "determinant", "sigma_min"}
    assert {"onestep", "blocks"} < set(upper)
    exact = ladder.rungs["exact"]
    for rung in upper:
        assert (ladder.rungs[rung] >= exact - ROUNDING).all()
    for rung in lower:
        told = ~np.isnan(ladder.rungs[rung])
        assert (ladder.rungs[rung][told] <= exact[told] + ROUNDING).all()
    assert (frame["determinant"] >= frame["sigma_min"]).all()


def test_without_recurrent_weights_the_lstm_bounds_grow_as_the_truth_does() -> None:
    """The carousel: the rate is ln max f, for the data and for the gates alike."""
    cell = gl.LSTMCell(
        W_x=np.concatenate([lcg(500 + k, 3, 1) for k in range(1, 5)]),
        W_h=np.zeros((12, 3)),
        b_x=np.concatenate([lcg(500 + k, 3) for k in range(9, 13)]),
    )
    run = gl.rollout(cell, np.zeros((60, 1, 1)))
    f = 1.0 / (1.0 + np.exp(-lcg(510, 3).max()))
    rungs = gl.bound_ladder(cell, run).rungs
    for rung in ("lstm_data", "lstm_gates", "exact"):
        assert np.diff(rungs[rung])[30:] == pytest.approx(np.log(f), rel=1e-9)


def test_a_rung_that_is_not_proven_is_absent_with_the_reason() -> None:
    rng = np.random.default_rng(3)
    lstm = gl.LSTMCell.initialize(input_size=1, hidden_size=2, activation="relu", rng=rng)
    ladder = gl.bound_ladder(lstm, gl.rollout(lstm, np.ones((4, 1, 1))))
    assert "lstm_weights" not in ladder.rungs
    assert "candidate (relu) can grow without limit" in ladder.absent["lstm_weights"]
    assert {"lstm_gates", "lstm_data"} <= set(ladder.rungs)
    gru = gl.GRUCell(W_x=np.ones((6, 1)), W_h=np.eye(6)[:, :2], recurrent_activation="hard_sigmoid")
    ladder = gl.bound_ladder(gru, gl.rollout(gru, np.ones((4, 1, 1))))
    assert "gru_rows" not in ladder.rungs
    assert "z (1 - z)" in ladder.absent["gru_rows"]


def test_without_blocks_only_bounds_that_need_no_norm_of_every_step_remain() -> None:
    rng = np.random.default_rng(4)
    cell = gl.LSTMCell.initialize(input_size=1, hidden_size=2, rng=rng)
    ladder = gl.bound_ladder(cell, gl.rollout(cell, np.ones((4, 1, 1))), block=None)
    assert list(ladder.rungs) == ["lstm_weights", "lstm_gates", "exact"]


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-200, 1e200])
@pytest.mark.parametrize("kind", ["plain", "peepholes", "gru", "mgu"])
def test_bounds_hold_for_weights_of_any_size(kind: str, scale: float) -> None:
    """What overflows on the way bounds nothing, and says so by inf; nothing tiny is lost."""
    rng = np.random.default_rng(7)
    W_h = scale * rng.standard_normal((12, 3))
    makers: dict[str, Callable[[], Any]] = {
        "plain": lambda: gl.LSTMCell(W_x=np.ones((12, 2)), W_h=W_h),
        "peepholes": lambda: gl.LSTMCell(
            W_x=np.ones((12, 2)), W_h=W_h, peepholes=scale * np.ones((3, 3))
        ),
        "gru": lambda: gl.GRUCell(W_x=np.ones((9, 2)), W_h=W_h[:9]),
        "mgu": lambda: gl.MinimalGatedCell(
            W_x=np.ones((6, 2)), W_h=W_h[:6] if scale < 1.0 else 1e90 * np.ones((6, 3))
        ),
    }
    cell = makers[kind]()
    run = gl.rollout(cell, rng.standard_normal((7, 3, 2)))
    ladder = gl.bound_ladder(cell, run)
    exact = ladder.rungs["exact"]
    for rung in set(ladder.rungs) - {"exact", "radius", "determinant", "sigma_min"}:
        assert (ladder.rungs[rung] >= exact - ROUNDING * (1.0 + np.abs(exact))).all(), rung
    profile = gl.directions(cell, run)
    largest, found = exact[np.isin(ladder.lag, profile.lag)], profile.log_singular_values[:, 0]
    told = ~np.isnan(found)
    np.testing.assert_allclose(found[told], largest[told], atol=1e-8)
    assert (largest[~told] <= profile.log_ceiling[~told]).all()
