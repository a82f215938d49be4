"""Growth rates of gated cells that hold for every input: right values, and never violated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.analysis.gated_bounds import gamma_gru, gamma_lstm
from gradlab.analysis.majorants import growth, log_norms_of_powers, log_norms_of_products
from gradlab.arrays import Array


def lcg(seed: int, *shape: int) -> Array:
    """x <- (1103515245 x + 12345) mod 2^31 from x = seed; x / 2^30 - 1, row-major."""
    x, values = seed, []
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)


def stacked(seeds: range, *shape: int) -> Array:
    return np.concatenate([lcg(seed, *shape) for seed in seeds])


def lcg_lstm(n: int, seed: int, scale: float = 1.0, **options: Any) -> gl.LSTMCell:
    """Weights of the gates i, f, g, o from the seeds seed + 1..4, seed + 5..8 and seed + 9..12."""
    return gl.LSTMCell(
        W_x=scale * stacked(range(seed + 1, seed + 5), n, 1),
        W_h=scale * stacked(range(seed + 5, seed + 9), n, n),
        b_x=scale * stacked(range(seed + 9, seed + 13), n),
        **options,
    )


def lcg_gru(n: int, seed: int, scale: float = 1.0, **options: Any) -> gl.GRUCell:
    """Weights of r, z, n from the seeds seed + 1..3, seed + 4..6 and seed + 7..9; b_hn from 10."""
    b_h = np.zeros(3 * n)
    b_h[2 * n :] = scale * lcg(seed + 10, n)
    return gl.GRUCell(
        W_x=scale * stacked(range(seed + 1, seed + 4), n, 1),
        W_h=scale * stacked(range(seed + 4, seed + 7), n, n),
        b_x=scale * stacked(range(seed + 7, seed + 10), n),
        b_h=b_h,
        **options,
    )


def products(cell: gl.LSTMCell | gl.GRUCell | gl.MinimalGatedCell, run: gl.Trajectory) -> Array:
    """P_{l,0} for l = 1..T of all sequences."""
    steps = cell.linearize(run)
    product, found = np.eye(cell.state_size), []
    for step in steps:
        product = step.matrix() @ product
        found.append(product)
    return np.stack(found)


def test_an_lstm_that_vanishes_for_all_bounded_inputs_has_its_rate() -> None:
    """Seed 700, scale .25, forget bias -1, |x| <= 1."""
    found = gamma_lstm(lcg_lstm(4, 700, 0.25, forget_bias=-1.0), input_bound=1.0)
    assert found.status == "proven"
    assert found.rate == pytest.approx(0.92004839131132, rel=1e-12)
    assert found.limits["c"] == pytest.approx(1.129255, abs=5e-7)
    assert found.limits["h"] == 1.0


def test_the_rate_is_never_passed_within_its_limits() -> None:
    cell = lcg_lstm(4, 700, 0.25, forget_bias=-1.0)
    found = gamma_lstm(cell, input_bound=1.0)
    assert found.rate is not None
    assert found.constant is not None
    rng = np.random.default_rng(0)
    start = rng.uniform(-1.0, 1.0, (500, 8)) * [[1.0] * 4 + [found.limits["c"]] * 4]
    run = gl.rollout(cell, rng.choice([-1.0, 1.0], (20, 500, 1)), initial_state=start)
    norms = np.linalg.norm(products(cell, run), 2, axis=(2, 3))
    bounds = found.constant * found.rate ** np.arange(1, 21)
    assert (norms <= bounds[:, None]).all()
    assert norms.max() > 0.01  # the bound is tested where it means something


@pytest.mark.parametrize(
    ("reset", "psi"), [("after", 3.7103006601283), ("before", 3.4211379555157)]
)
def test_row_bound_of_a_gru_has_its_value(reset: str, psi: float) -> None:
    cell = lcg_gru(2, 200, reset=reset)
    assert cell.row_bounds(1.0).max() == pytest.approx(psi, rel=1e-12)
    assert gamma_gru(cell).rate == pytest.approx(psi, rel=1e-12)


@pytest.mark.parametrize("reset", ["after", "before"])
def test_a_gru_that_cannot_explode_has_its_row_bound_below_one(reset: str) -> None:
    """Seed 300, scale .15: for unlimited inputs z comes to 1, and the rate with it."""
    cell = lcg_gru(4, 300, 0.15, reset=reset)
    assert cell.row_bounds(1.0).max() == pytest.approx(0.79679583768098, rel=1e-12)
    found = gamma_gru(cell)
    assert found.rate == 1.0
    assert found.constant == pytest.approx(2.0)
    limited = gamma_gru(cell, input_bound=5.0).rate
    assert limited is not None
    assert limited < 1.0


@pytest.mark.parametrize("update", ["keep", "overwrite"])
@pytest.mark.parametrize("reset", ["after", "before"])
def test_a_limited_gru_never_passes_its_rate(reset: str, update: str) -> None:
    cell = lcg_gru(4, 300, 0.15, reset=reset, update=update)
    found = gamma_gru(cell, input_bound=2.0)
    assert found.rate is not None
    rng = np.random.default_rng(1)
    run = gl.rollout(
        cell, rng.uniform(-2.0, 2.0, (30, 400, 1)), initial_state=rng.uniform(-1, 1, (400, 4))
    )
    rows = np.abs(products(cell, run)).sum(axis=3).max(axis=2)
    assert (rows <= (1.0 + 1e-12) * found.rate ** np.arange(1, 31)[:, None]).all()


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "peepholes": {"peepholes": True},
    "projection": {"projection": True},
    "coupled to the input gate": {"coupled": "forget"},
    "coupled to the forget gate": {"coupled": "input"},
    "clipped": {"clip": 1.5},
    "hard gates": {"recurrent_activation": "hard_sigmoid"},
    "all at once": {"peepholes": True, "projection": True, "coupled": "forget", "clip": 2.0},
}


def variant(rng: np.random.Generator, name: str, n: int, scale: float) -> gl.LSTMCell:
    options = dict(VARIANTS[name])
    size = 2 if options.pop("projection", False) else n
    if options.pop("peepholes", False):
        options["peepholes"] = scale * rng.standard_normal((3, n))
    if size != n:
        options["W_hr"] = rng.standard_normal((size, n))
    return gl.LSTMCell(
        W_x=scale * rng.standard_normal((4 * n, 2)),
        W_h=scale * rng.standard_normal((4 * n, size)),
        b_x=scale * rng.standard_normal(4 * n),
        forget_bias=-1.0,
        **options,
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_keeps_within_its_limits_and_its_rate(name: str) -> None:
    rng = np.random.default_rng(list(VARIANTS).index(name))
    proven = 0
    for scale in (0.05, 0.2, 0.6):
        cell = variant(rng, name, 3, scale)
        found = gamma_lstm(cell, input_bound=1.0)
        if found.rate is None:
            assert found.status != "proven"
            continue
        assert found.constant is not None
        proven += 1
        hidden = cell.hidden_size
        limits = np.repeat([found.limits["h"], found.limits["c"]], [hidden, 3])
        start = rng.uniform(-1.0, 1.0, (200, hidden + 3)) * limits
        run = gl.rollout(cell, rng.choice([-1.0, 1.0], (15, 200, 2)), initial_state=start)
        assert (np.abs(run.states) <= limits * (1.0 + 1e-12)).all()
        norms = np.linalg.norm(products(cell, run), 2, axis=(2, 3))
        bounds = found.constant * found.rate ** np.arange(1, 16)
        assert (norms <= (1.0 + 1e-10) * bounds[:, None]).all()
    assert proven >= 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"activation": "gelu"}, "rise and fall"),
        ({"activation": "relu"}, "without limit"),
        ({"recurrent_activation": "relu"}, "without limit"),
        ({"recurrent_activation": "hard_sigmoid", "forget_bias": 9.0}, "forget gate may come to 1"),
    ],
)
def test_an_lstm_without_a_proof_has_no_rate_and_a_reason(
    options: dict[str, Any], words: str
) -> None:
    found = gamma_lstm(lcg_lstm(2, 100, **options), input_bound=1.0)
    assert found.rate is None
    assert found.constant is None
    assert words in found.status


@pytest.mark.parametrize(
    ("options", "words"),
    [({"activation": "relu"}, "without limit"), ({"recurrent_activation": "tanh"}, "z (1 - z)")],
)
def test_a_gru_without_a_proof_has_no_rate_and_a_reason(
    options: dict[str, Any], words: str
) -> None:
    found = gamma_gru(lcg_gru(2, 200, **options))
    assert found.rate is None
    assert words in found.status


def test_a_limit_that_is_none_is_refused() -> None:
    with pytest.raises(gl.SettingError, match="input_bound -1"):
        gamma_lstm(lcg_lstm(2, 100), input_bound=-1.0)
    with pytest.raises(gl.SettingError, match="input_bound inf"):
        gamma_gru(lcg_gru(2, 200), input_bound=math.inf)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.3, 0.2], [0.5, 0.9]],
        [[0.9, 1.0], [0.0, 0.9]],
        [[0.0, 1.0], [0.0, 0.0]],
        [[2.0, 0.0], [0.0, 0.5]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[1e-200, 3e-200], [2e-200, 0.0]],
        [[1e200, 3e200], [2e200, 1e190]],
    ],
)
def test_growth_bounds_all_powers_of_a_matrix(matrix: list[list[float]]) -> None:
    M = np.array(matrix)
    rate, constant = growth(M)
    assert rate == pytest.approx(gl.spectral_radius(M), rel=2e-6, abs=2e-6 * M.max())
    lags = np.arange(1, 200)
    logs = log_norms_of_powers(np.broadcast_to(M, (len(lags), 2, 2)), lags)
    with np.errstate(divide="ignore"):
        assert (logs <= math.log(constant) + lags * np.log(rate) + 1e-9).all()


def test_powers_and_products_of_majorants_agree_far_outside_the_range_of_floats() -> None:
    M = np.array([[1e-3, 2e-4], [5e-4, 1e-5]])
    lags = np.arange(1, 3001)
    powers = log_norms_of_powers(np.broadcast_to(M, (3000, 2, 2)), lags)
    whole = np.broadcast_to(M, (3000, 1, 2, 2))
    np.testing.assert_allclose(
        powers, log_norms_of_products(whole, np.array([3000]))[0, :, 0], rtol=1e-12
    )
    assert powers[0] == pytest.approx(math.log(np.linalg.norm(M, 2)), rel=1e-14)
    slope = math.log(gl.spectral_radius(M))
    assert powers[-1] - powers[-2] == pytest.approx(slope, rel=1e-12)


def test_an_infinite_majorant_bounds_nothing_from_its_step_on() -> None:
    matrices = np.ones((3, 1, 1, 1))
    matrices[1] = np.inf
    table = log_norms_of_products(matrices, np.array([1, 3]))[:, :, 0]
    np.testing.assert_array_equal(table, [[0.0, np.nan, np.nan], [0.0, np.inf, np.inf]])
    assert log_norms_of_powers(matrices[1], np.array([3]))[0] == np.inf
