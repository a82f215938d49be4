"""Norms of long products against the exact SVD of the rescaled product, by every path of proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.products.scaled import ScaledProducts
from gradlab.arrays import Array
from gradlab.lanczos import leading_values
from gradlab.linalg import PATHS, CertifiedNorms, certified_norms

STEPS = 25


def gaussian(rng: np.random.Generator, n: int, gain: float = 1.0) -> Array:
    return np.asarray(rng.standard_normal((n, n)) * (gain / np.sqrt(n)))


def orthogonal(rng: np.random.Generator, n: int) -> Array:
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def blocks(rng: np.random.Generator, n: int) -> Array:
    W, half = np.zeros((n, n)), n // 2
    W[:half, :half] = gaussian(rng, max(half, 1), 1.3)[:half, :half]
    W[half:, half:] = gaussian(rng, n - half, 1.3)
    return W


def clustered(rng: np.random.Generator, n: int) -> Array:
    values = np.where(np.arange(n) < (n + 1) // 2, 1.0 - 1e-9 * np.arange(n), 0.5)
    return orthogonal(rng, n) * values


KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "gaussian": lambda rng, n: gaussian(rng, n, 1.2),
    "strong": lambda rng, n: gaussian(rng, n, 4.0),
    "weak": lambda rng, n: gaussian(rng, n, 0.1),
    "orthogonal": orthogonal,
    "blocks": blocks,
    "clustered": clustered,
    "rank three": lambda rng, n: np.asarray(
        rng.standard_normal((n, 3)) @ rng.standard_normal((3, n)) / n
    ),
    "nilpotent": lambda rng, n: np.triu(gaussian(rng, n), 1),
    "zero": lambda rng, n: np.zeros((n, n)),
}


def exact_logs(jacobians: Array) -> tuple[Array, Array]:
    """ln of both norms of the product at lags 1, 2, ..., rescaled by its norm at each."""
    product, log_scale, logs = np.eye(jacobians.shape[-1]), 0.0, []
    for J in jacobians[::-1]:
        product = product @ J
        values = np.linalg.svd(product, compute_uv=False)
        if values[0] == 0.0:
            logs.append((-np.inf, -np.inf))
            continue
        logs.append((np.log(values[0]), 0.5 * np.log(np.sum(values**2))))
        logs[-1] = (logs[-1][0] + log_scale, logs[-1][1] + log_scale)
        product, log_scale = product / values[0], log_scale + np.log(values[0])
    return tuple(np.array(logs).T)


def run_of(cell: Any, steps: int, seed: int, size: float = 0.5) -> gl.Trajectory:
    rng = np.random.default_rng(seed)
    return gl.rollout(cell, size * rng.standard_normal((steps, 1, cell.input_size)))


def assert_exact(cell: Any, run: gl.Trajectory) -> None:
    profile = jacobian_profile(cell, run, anchors="last", smallest=False)
    order = np.argsort(profile.lag)
    jacobians = np.stack([step.matrix()[0] for step in cell.linearize(run)])
    log_norm, log_frobenius = exact_logs(jacobians)
    # Where factors cancel, what is left of their product is rounding, in any order of products.
    held = (log_norm == -np.inf) | (lost_digits(jacobians, log_norm) < 1e-10)
    for found, exact in ((profile.log_norm, log_norm), (profile.log_frobenius, log_frobenius)):
        np.testing.assert_allclose(found[order][held], exact[held], rtol=0.0, atol=1e-10)


def lost_digits(jacobians: Array, log_norm: Array) -> Array:
    """Relative rounding of products of lags 1, 2, ..., from the norms of their factors."""
    lag, n = np.arange(1, len(jacobians) + 1), jacobians.shape[-1]
    norms = np.linalg.norm(jacobians[::-1], ord=2, axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):  # nan of zeros
        return np.asarray(lag * n * 2.2e-16 * np.exp(np.cumsum(np.log(norms)) - log_norm))


def vanilla(W: Array, activation: str, rng: np.random.Generator) -> gl.VanillaCell:
    inputs = rng.standard_normal((len(W), 2)) * (activation != "identity")
    return gl.VanillaCell(W_hh=W, W_xh=inputs, activation=activation)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 2, 3, 10, 24, 33]),
    activation=st.sampled_from(["tanh", "identity", "relu"]),
)
def test_norms_equal_the_exact_svd_of_the_rescaled_product(
    kind: str, seed: int, n: int, activation: str
) -> None:
    rng = np.random.default_rng(seed)
    cell = vanilla(KINDS[kind](rng, n), activation, rng)
    assert_exact(cell, run_of(cell, STEPS, seed))


@pytest.mark.parametrize(("gain", "activation"), [(0.1, "tanh"), (4.0, "identity")])
def test_norms_stay_exact_beyond_the_range_of_float64(gain: float, activation: str) -> None:
    rng = np.random.default_rng(3)
    cell = vanilla(gaussian(rng, 24, gain), activation, rng)
    run = run_of(cell, 700 if gain > 1.0 else 1000, 3, 0.0 if gain > 1.0 else 0.5)
    assert_exact(cell, run)
    profile = jacobian_profile(cell, run, anchors="last", smallest=False)
    assert np.abs(profile.log_norm).max() > 800.0


@pytest.mark.parametrize("cell", [gl.LSTMCell, gl.GRUCell, gl.MinimalGatedCell])
def test_norms_of_gated_cells_equal_the_exact_svd(cell: Any) -> None:
    layer = cell.initialize(input_size=2, hidden_size=14, rng=np.random.default_rng(0))
    assert_exact(layer, run_of(layer, 60, 0))


def test_units_in_saturation_leave_the_others_exact() -> None:
    rng = np.random.default_rng(0)
    cell = vanilla(gaussian(rng, 30, 3.0), "tanh", rng)
    assert_exact(cell, run_of(cell, 60, 0, size=30.0))


def paths_of(stack: Array, start: Array) -> dict[str, int]:
    """Counts by path, of norms that are right."""
    certified = certified_norms(stack, start)
    exact = np.linalg.svd(stack, compute_uv=False)[:, 0]
    np.testing.assert_allclose(certified.norms, exact, rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(np.linalg.norm(certified.right, axis=1), 1.0, rtol=1e-12)
    return certified.counts


def test_every_path_of_proof_is_taken_where_it_is_meant_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, n = np.random.default_rng(1), 96
    U, V = orthogonal(rng, n), orthogonal(rng, n)
    start = np.full((1, n), n**-0.5)
    isolated = U * 0.5 ** np.arange(n) @ V
    close = U * np.linspace(1.0, 0.1, n) ** 0.3 @ V
    crowded = np.diag(np.linspace(1.0, 0.999, 130))
    assert paths_of(isolated[None], V[:1])["power"] == 1
    heavy_tail = U * np.arange(1.0, n + 1.0) ** -0.7 @ V
    assert paths_of(heavy_tail[None], start)["lanczos"] == 1
    assert paths_of(U[None], start)["cholesky"] == 1
    assert paths_of(heavy_tail[None, :, :20], start[:, :20])["exact"] == 1  # small
    assert sum(paths_of(np.stack([isolated, close, U]), start.repeat(3, 0)).values()) == 3
    monkeypatch.setattr("gradlab.lanczos.MOST_STEPS", 12)  # too few to tell them apart
    assert paths_of(crowded[None], np.full((1, 130), 130**-0.5))["exact"] == 1


def test_a_chain_counts_each_of_its_norms_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()

    def counted(*arguments: Array) -> tuple[Array, Array]:
        certified = certified_norms(*arguments)
        counts.update(certified.counts)
        return certified.norms, certified.right

    monkeypatch.setattr("gradlab.analysis.products.scaled.spectral_norms", counted)
    rng = np.random.default_rng(0)
    cell = vanilla(gaussian(rng, 64, 1.2), "tanh", rng)
    jacobian_profile(cell, run_of(cell, 60, 0), anchors="last", smallest=False)
    assert counts.total() == 60
    assert counts["power"] > 10
    assert counts["lanczos"] > 10
    assert counts["exact"] == 0


def test_a_compressed_chain_takes_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()

    def counted(*arguments: Array, **named: Any) -> CertifiedNorms:
        certified = certified_norms(*arguments, **named)
        counts.update(certified.counts)
        return certified

    monkeypatch.setattr("gradlab.analysis.products.compressed.certified_norms", counted)
    rng = np.random.default_rng(0)
    cell = vanilla(gaussian(rng, 128, 1.2), "tanh", rng)
    assert_exact(cell, run_of(cell, 300, 0))
    assert counts.total() == 300
    assert min(counts[path] for path in PATHS) > 0


def test_a_start_on_another_singular_vector_certifies_nothing_wrong() -> None:
    """Two decoupled blocks: from within one of them the other is invisible to products alone."""
    P = np.diag(np.r_[1.0, np.linspace(0.9, 0.5, 23), 1.01, np.linspace(0.8, 0.4, 23)])
    start = np.zeros((1, 48))
    start[0, 0] = 1.0
    found = leading_values((P @ P)[None], start)
    assert found.values[0] == pytest.approx(1.0, rel=1e-12)
    assert not found.certified[0]
    assert certified_norms(P[None], start).norms[0] == pytest.approx(1.01, rel=1e-10)


@pytest.mark.parametrize("seen", [1e-320, 1e-157, 1e-120, 1e-70, 1e-50, 1e-30, 1e-9])
@pytest.mark.parametrize("n", [2, 20, 60])
def test_a_start_that_is_hardly_seen_certifies_nothing_wrong(n: int, seen: float) -> None:
    """The squared length of P w may leave the range of floats, and its inverse too."""
    P = np.zeros((n, n))
    P[0, :2] = seen, 1.0
    P[1:, 2:] = 0.3 * np.eye(n - 1, n - 2)
    certified = certified_norms(P[None], np.eye(1, n))
    assert certified.norms[0] == pytest.approx(1.0, rel=1e-10)
    assert np.linalg.norm(certified.right[0]) == pytest.approx(1.0, rel=1e-12)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(24, 60), spread=st.floats(0.0, 3.0))
def test_what_is_certified_is_within_the_certificate(seed: int, n: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.exp(-spread * np.sort(rng.random((4, n)), axis=1))
    stack = np.stack([orthogonal(rng, n) * v @ orthogonal(rng, n) for v in values])
    start = rng.standard_normal((4, n))
    found = leading_values(stack.transpose(0, 2, 1) @ stack, start)
    exact, norms = np.linalg.svd(stack, compute_uv=False)[:, 0], np.sqrt(found.values)
    assert (norms <= exact * (1.0 + 1e-13)).all()
    np.testing.assert_array_less(exact[found.certified], norms[found.certified] * (1 + 1e-10))


def test_squares_certify_what_the_trace_does_not() -> None:
    """Many values of middle size: their sum is large, the root of the sum of their squares not."""
    rng, n = np.random.default_rng(2), 100
    values = np.r_[1.0, np.full(n - 1, 0.3)]
    Q = orthogonal(rng, n)
    G = Q * values**2 @ Q.T
    start = Q[:, 0] + 1e-3 * rng.standard_normal(n)
    found = leading_values(G[None], start[None])
    assert np.trace(G) - np.sum(np.sort(values**2)[-found.steps :]) > 5.0
    assert found.certified[0]
    assert found.values[0] == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_rows_far_apart_keep_their_own_digits(size: float) -> None:
    """Products of diagonal matrices are known exactly; rows drift apart, back, and overtake."""
    factors = np.array([[size, 1e-150], [1e-150, size], [1e-120, 1e120], [2.0**-70, 3.0]])
    products = ScaledProducts(1, 2)
    products.renew(np.zeros(0, dtype=bool), begin=True)
    total = np.zeros(2)
    for factor in factors:
        cell = gl.VanillaCell(W_hh=np.diag(factor), W_xh=np.zeros((2, 1)), activation="identity")
        products.extend(cell.linearize(run_of(cell, 1, 0, 0.0))[0])
        total += np.log(factor)
        whole, log_scale = products.assembled()
        absolute = np.log(np.diag(products.rows[0, 0])) + products.exponent[0, 0] * np.log(2.0)
        np.testing.assert_allclose(absolute, total, rtol=1e-13, atol=1e-11)
        largest = np.log(whole[0, 0].max()) + log_scale[0, 0]
        assert largest == pytest.approx(total.max(), rel=1e-13, abs=1e-11)
