"""Profiles of all pairs by halves: the full SVD of the rescaled product decides, pair by pair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.all_pairs import rows as profile_rows
from gradlab.analysis.all_pairs.chains import InverseChain, JacobianChain
from gradlab.analysis.all_pairs.halving import all_pairs
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.linalg import sign_fixed_qr
from gradlab.records.trajectory import Trajectory


class MatrixChain:
    """A chain of given matrices."""

    def __init__(self, matrices: Array) -> None:
        self.matrices = matrices
        self.size = matrices.shape[1]
        self.log_scales = np.zeros(len(matrices))

    def matrix(self, j: int) -> Array:
        return np.asarray(self.matrices[j])

    def push(self, j: int, X: Array) -> Array:
        return np.asarray(self.matrices[j] @ X)

    def pull(self, j: int, X: Array) -> Array:
        return np.asarray(X @ self.matrices[j])


def orthogonal(n: int, rng: np.random.Generator) -> Array:
    return np.asarray(sign_fixed_qr(rng.standard_normal((n, n)))[0])


def gaussian(n: int, rng: np.random.Generator) -> Array:
    return np.asarray(rng.standard_normal((n, n)) / np.sqrt(n))


def with_values(values: Array, rng: np.random.Generator) -> Array:
    left, right = (orthogonal(len(values), rng) for _ in range(2))
    return np.asarray((left * values) @ right)


def blocks(n: int, rng: np.random.Generator) -> Array:
    W = np.zeros((n, n))
    W[: n // 2, : n // 2] = 1.2 * orthogonal(n // 2, rng)
    W[n // 2 :, n // 2 :] = 0.5 * orthogonal(n - n // 2, rng)
    return W


FAMILIES: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "gaussian": gaussian,
    "orthogonal": orthogonal,
    "contracting": lambda n, rng: 0.1 * gaussian(n, rng),
    "expanding": lambda n, rng: 4.0 * gaussian(n, rng),
    "blocks": blocks,
    "rank three": lambda n, rng: gaussian(n, rng)[:, :3] @ gaussian(n, rng)[:3],
    "clustered": lambda n, rng: with_values(
        np.r_[1.0, 1.0 - 1e-9, 1.0 - 1e-7, np.full(n - 3, 0.9)], rng
    ),
    "repeated": lambda n, rng: with_values(np.r_[np.ones(n // 2), np.full(n - n // 2, 0.5)], rng),
    "saturated": lambda n, rng: gaussian(n, rng) * (np.arange(n) % 5 > 0)[:, None],
}


def by_svd(matrices: Array, reach: int) -> tuple[Array, Array]:
    """ln of the spectral and the Frobenius norm by end time and lag, each product rescaled."""
    length = len(matrices)
    norms = np.full((2, length + 1, reach + 1), np.nan)
    for k in range(length):
        product, scale = np.eye(matrices.shape[1]), 0.0
        for t in range(k + 1, min(length, k + reach) + 1):
            product = matrices[t - 1] @ product
            size = np.linalg.norm(product)
            product, scale = product / size, scale + np.log(size)
            norms[0, t, t - k] = scale + np.log(np.linalg.svd(product, compute_uv=False)[0])
            norms[1, t, t - k] = scale
    return norms[0], norms[1]


def assert_right(matrices: Array, reach: int) -> None:
    tables = all_pairs(MatrixChain(matrices), len(matrices), reach, spectral=True)
    spectral, frobenius = by_svd(matrices, reach)
    there = ~np.isnan(frobenius)
    assert not tables.doubtful[there].any()
    np.testing.assert_allclose(tables.log_norm[there], spectral[there], rtol=1e-14, atol=1e-10)
    np.testing.assert_allclose(
        tables.log_frobenius[there], frobenius[there], rtol=1e-14, atol=2e-12
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fixed", [True, False], ids=["one matrix", "a new one each step"])
def test_every_pair_is_as_the_svd_says(family: str, fixed: bool) -> None:
    rng = np.random.default_rng(11)
    if fixed:
        matrices = np.repeat(FAMILIES[family](24, rng)[None], 26, axis=0)
    else:
        matrices = np.stack([FAMILIES[family](24, rng) for _ in range(26)])
    assert_right(matrices, 26)


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 9),
    length=st.integers(1, 30),
    reach=st.integers(1, 30),
)
def test_small_matrices_and_short_reaches(seed: int, n: int, length: int, reach: int) -> None:
    rng = np.random.default_rng(seed)
    matrices = (
        rng.standard_normal((length, n, n))
        * np.exp(3.0 * rng.standard_normal(length))[:, None, None]
    )
    reach = min(reach, length)
    tables = all_pairs(MatrixChain(matrices), length, reach, spectral=True)
    spectral, frobenius = by_svd(matrices, reach)
    sure = ~np.isnan(frobenius) & ~tables.doubtful
    np.testing.assert_allclose(tables.log_norm[sure], spectral[sure], rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(tables.log_frobenius[sure], frobenius[sure], rtol=1e-12, atol=1e-10)


def test_a_cluster_at_lag_one_is_not_mistaken() -> None:
    """All singular values of each step are equal: no direction leads."""
    rng = np.random.default_rng(3)
    matrices = np.stack([1.3 * orthogonal(32, rng) for _ in range(34)])
    tables = all_pairs(MatrixChain(matrices), 34, 34, spectral=True)
    t, lag = np.nonzero(np.tri(35, 35))
    np.testing.assert_allclose(tables.log_norm[t, lag], lag * np.log(1.3), atol=1e-10)
    np.testing.assert_allclose(
        tables.log_frobenius[t, lag][lag > 0],
        (lag * np.log(1.3) + 0.5 * np.log(32.0))[lag > 0],
        atol=1e-12,
    )


def test_norms_beyond_floating_point_stay_right() -> None:
    """A symmetric matrix: c^l at lags where float64 has no number for it."""
    n, steps, gain = 8, 320, 10.0
    Q = orthogonal(n, np.random.default_rng(5))
    W = gain * (Q * 0.5 ** np.arange(n)) @ Q.T
    tables = all_pairs(MatrixChain(np.repeat(W[None], steps, axis=0)), steps, steps, spectral=True)
    expected = np.arange(steps + 1) * np.log(gain)
    np.testing.assert_allclose(tables.log_norm[steps], expected, rtol=1e-13, atol=1e-10)
    assert not tables.doubtful[steps, 1:].any()


def test_a_contracting_network_is_right_far_below_floating_point() -> None:
    """Norms below 1e-1000, against an SVD of each rescaled product that ends in the last step."""
    n, steps = 8, 520
    W = 0.01 * gaussian(n, np.random.default_rng(6))
    tables = all_pairs(MatrixChain(np.repeat(W[None], steps, axis=0)), steps, steps, spectral=True)
    product, scale, expected = np.eye(n), 0.0, np.zeros(steps + 1)
    for lag in range(1, steps + 1):
        product = product @ W
        size = np.linalg.norm(product)
        product, scale = product / size, scale + np.log(size)
        expected[lag] = scale + np.log(np.linalg.svd(product, compute_uv=False)[0])
    np.testing.assert_allclose(tables.log_norm[steps], expected, rtol=1e-13, atol=1e-10)
    assert scale < -1000 * np.log(10.0)
    assert not tables.doubtful[steps, 1:].any()


def overtaking(steps: int) -> tuple[Cell, Trajectory]:
    """Two groups of units apart: one is flat for the first half, the other for the second."""
    n = 16
    inputs = np.ones((steps, 1, 2))
    inputs[: steps // 2, 0, 0] = -1.0
    inputs[steps // 2 :, 0, 1] = -1e3  # more than has gathered by then
    W_xh = np.zeros((n, 2))
    W_xh[:8, 0] = W_xh[8:, 1] = 1e3
    cell = gl.VanillaCell(W_hh=np.eye(n), W_xh=W_xh, b_h=np.zeros(n), activation="leaky_relu")
    return cell, gl.rollout(cell, inputs)


def one_by_one(
    monkeypatch: pytest.MonkeyPatch, cell: Cell, run: Trajectory, **settings: int
) -> gl.JacobianProfile:
    """The profile by products carried end time by end time."""
    with monkeypatch.context() as patched:
        patched.setattr(profile_rows, "LEAST_SIZE", 10**9)
        return gl.jacobian_profile(cell, run, **settings)  # type: ignore[arg-type]


def assert_same(found: gl.JacobianProfile, expected: gl.JacobianProfile) -> None:
    for name in ("sequence", "t", "k", "lag"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name, atol in (("log_norm", 1e-10), ("log_frobenius", 2e-12), ("log_sigma_min", 1e-9)):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-13, atol=atol
        )


def test_paths_that_overtake_each_other_are_left_to_products_by_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell, run = overtaking(80)
    tables = all_pairs(JacobianChain(cell.linearize(run), 80), 80, 80, spectral=True)
    assert tables.doubtful[80, 80]
    profile = gl.jacobian_profile(cell, run)
    assert_same(profile, one_by_one(monkeypatch, cell, run))
    slope = 0.01
    last = profile.log_norm[(profile.t == 80) & (profile.k == 0)]
    assert last[0] == pytest.approx(40 * np.log(slope), rel=1e-12)


@pytest.mark.parametrize("name", ["shift", "zero", "triangle"])
def test_products_that_end_are_minus_infinity(name: str) -> None:
    n = 20
    rng = np.random.default_rng(0)
    W = {
        "shift": np.eye(n, k=-1),
        "zero": np.zeros((n, n)),
        "triangle": np.triu(rng.standard_normal((n, n)), 1),
    }[name]
    cell = gl.VanillaCell(W_hh=W, W_xh=np.zeros((n, 1)), activation="identity")
    profile = gl.jacobian_profile(cell, gl.rollout(cell, np.zeros((26, 1, 1))))
    ended = profile.lag >= (1 if name == "zero" else n)
    np.testing.assert_array_equal(profile.log_norm == -np.inf, ended)
    np.testing.assert_array_equal(profile.log_frobenius == -np.inf, ended)
    assert (profile.log_sigma_min == -np.inf).all()


EXTREMES: dict[str, Callable[[Array], Array]] = {
    "huge": lambda W: W * 1e306,
    "tiny": lambda W: W * 1e-306,
    "rows apart": lambda W: W * np.r_[np.full(8, 1e200), np.full(8, 1e-200)][:, None],
    "opposite": lambda W: np.kron(np.eye(8), np.array([[0.0, 1e200], [1e-200, 0.0]])),
    "blocks apart": lambda W: np.kron(np.diag([1e200, 1e-200]), W[:8, :8]),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_weights_at_the_ends_of_floating_point_are_the_same_by_halves(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    W = EXTREMES[name](np.random.default_rng(0).standard_normal((16, 16)))
    cell = gl.VanillaCell(W_hh=W, W_xh=np.zeros((16, 1)), activation="identity")
    run = gl.rollout(cell, np.zeros((18, 1, 1)))
    assert_same(gl.jacobian_profile(cell, run), one_by_one(monkeypatch, cell, run))


CELLS: dict[str, Callable[[np.random.Generator], Cell]] = {
    "rnn": lambda rng: gl.VanillaCell.initialize(input_size=3, hidden_size=32, gain=1.2, rng=rng),
    "relu": lambda rng: gl.VanillaCell.initialize(
        input_size=3, hidden_size=20, gain=1.4, activation="relu", rng=rng
    ),
    "leaky": lambda rng: gl.LeakyCell.initialize(input_size=3, hidden_size=18, leak=0.3, rng=rng),
    "lstm": lambda rng: gl.LSTMCell.initialize(input_size=3, hidden_size=10, rng=rng),
    "gru": lambda rng: gl.GRUCell.initialize(input_size=3, hidden_size=18, rng=rng),
    "gru before": lambda rng: gl.GRUCell.initialize(
        input_size=3, hidden_size=18, reset="before", rng=rng
    ),
}


@pytest.mark.parametrize("kind", CELLS)
def test_a_profile_is_the_same_by_halves_and_one_by_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    cell = CELLS[kind](rng)
    run = gl.rollout(cell, rng.standard_normal((30, 2, 3)), lengths=np.array([30, 21]))
    assert_same(gl.jacobian_profile(cell, run), one_by_one(monkeypatch, cell, run))


@pytest.mark.parametrize(
    "settings", [{"max_lag": 18}, {"anchors": 20}, {"anchors": [3, *range(5, 30)]}]
)
def test_chosen_pairs_are_the_same_by_halves_and_one_by_one(
    settings: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    cell = CELLS["rnn"](rng)
    run = gl.rollout(cell, rng.standard_normal((31, 1, 3)))
    found = gl.jacobian_profile(cell, run, **settings)  # type: ignore[arg-type]
    assert_same(found, one_by_one(monkeypatch, cell, run, **settings))


@pytest.mark.parametrize("size", [8, 24])
def test_frobenius_norms_alone_are_the_same(size: int) -> None:
    rng = np.random.default_rng(9)
    cell = gl.VanillaCell.initialize(input_size=3, hidden_size=size, gain=1.2, rng=rng)
    run = gl.rollout(cell, rng.standard_normal((40, 1, 3)))
    alone = gl.jacobian_profile(cell, run, spectral=False)
    both = gl.jacobian_profile(cell, run)
    np.testing.assert_allclose(alone.log_frobenius, both.log_frobenius, rtol=0.0, atol=2e-12)
    assert np.isnan(alone.log_norm).all()
    assert np.isnan(alone.log_sigma_min).all()


def test_every_way_to_a_norm_is_taken() -> None:
    rng = np.random.default_rng(10)
    matrices = np.stack([gaussian(24, rng) for _ in range(50)])
    counts = all_pairs(MatrixChain(matrices), 50, 50, spectral=True).counts
    assert sum(counts.values()) == 50 * 51 // 2
    assert all(counts[way] > 0 for way in ("short", "halves", "formed"))
    # Most of what crosses a cut is never formed: this is what halves are for.
    assert counts["halves"] > 2 * counts["formed"]


def test_an_inverse_chain_tells_exact_rank_losses_and_what_is_unresolved() -> None:
    n = 4
    W = np.diag([1.0, 2.0, 3.0, 4.0])
    cell = gl.VanillaCell(W_hh=W, W_xh=np.eye(n), b_h=np.zeros(n), activation="relu")
    inputs = np.ones((4, 1, n))
    inputs[1, 0, 0] = -9.0  # the second step loses its first unit
    chain = InverseChain(cell.linearize(gl.rollout(cell, inputs)), 4)
    verdict = chain.verdict(4)
    assert verdict[1, 1] == 0.0
    assert verdict[2, 1] == verdict[4, 4] == verdict[4, 3] == -np.inf
    assert verdict[4, 2] == 0.0
    nearly = W.copy()
    nearly[0, 0] = nearly[0, 1] = nearly[1, 0] = nearly[1, 1] = 1.0
    nearly[0, 0] += 1e-12
    cell = gl.VanillaCell(W_hh=nearly, W_xh=np.eye(n), activation="identity")
    chain = InverseChain(cell.linearize(gl.rollout(cell, inputs)), 4)
    assert np.isnan(chain.verdict(4)[4, 1:]).all()


def test_halves_are_left_where_they_would_not_fit_or_not_pay() -> None:
    every = np.arange(1, 201)
    assert profile_rows.pays(64, 200, every)
    assert profile_rows.pays(64, 200, every[::2])
    assert not profile_rows.pays(64, 200, every[::3])
    assert not profile_rows.pays(8, 200, every)
    assert not profile_rows.pays(64, 8, every)
    assert not profile_rows.pays(2048, 200, every)
    assert profile_rows.pays(2048, 20, every)
