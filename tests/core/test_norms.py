"""Spectral norm and spectral radius of one matrix, by every path and against dense solves."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest

from gradlab import norms
from gradlab.arrays import Array
from gradlab.linalg import sign_fixed_qr, singular_values
from gradlab.norms import spectral_norm, spectral_radius

N = 208  # units: Lanczos steps from 192 on


def gaussian(rng: np.random.Generator, n: int = N) -> Array:
    return np.asarray(rng.standard_normal((n, n)) / np.sqrt(n))


def orthogonal(rng: np.random.Generator, n: int = N) -> Array:
    return sign_fixed_qr(rng.standard_normal((n, n)))[0]


def stored_in_single_precision(rng: np.random.Generator) -> Array:
    """All singular values within 1e-7 of one."""
    return orthogonal(rng).astype(np.float32)


def with_values(rng: np.random.Generator, values: Array) -> Array:
    return orthogonal(rng, len(values)) * values @ orthogonal(rng, len(values))


def clustered(rng: np.random.Generator) -> Array:
    """Half of the values near one, closer to each other than a Ritz value's error, half below."""
    near = 1.0 + 1e-7 * rng.random(N // 2)
    return with_values(rng, np.concatenate([near, np.full(N - N // 2, 0.5)]))


def overtaking(rng: np.random.Generator) -> Array:
    W = np.zeros((N, N))
    half = N // 2
    W[:half, :half], W[half:, half:] = orthogonal(rng, half), 1.000001 * orthogonal(rng, N - half)
    return W


def of_rank_three(rng: np.random.Generator) -> Array:
    return rng.standard_normal((N, 3)) @ rng.standard_normal((3, N))


def graded(rng: np.random.Generator) -> Array:
    return with_values(rng, 10.0 ** -np.linspace(0.0, 300.0, N))


def wide(rng: np.random.Generator) -> Array:
    return rng.standard_normal((N, 2 * N))


def tall(rng: np.random.Generator) -> Array:
    return rng.standard_normal((2 * N, N))


def shift(rng: np.random.Generator) -> Array:
    return np.eye(N, k=1)


def zero(rng: np.random.Generator) -> Array:
    return np.zeros((N, N))


KINDS = (
    gaussian, orthogonal, stored_in_single_precision, clustered, overtaking, of_rank_three, graded,
    wide, tall, shift, zero,
)  # fmt: skip


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_norm_of_a_large_matrix_equals_the_svd(
    kind: Callable[[np.random.Generator], Array], certify: bool
) -> None:
    W = kind(np.random.default_rng(5))
    exact = singular_values(W)[0]
    assert spectral_norm(W, certify=certify) == pytest.approx(exact, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("n", [1, 2, 23, 24, 100, 191, 192])
def test_norm_equals_the_svd_at_every_size(n: int) -> None:
    W = gaussian(np.random.default_rng(n), n)
    assert spectral_norm(W) == pytest.approx(singular_values(W)[0], rel=1e-12)


@pytest.mark.parametrize("n", [8, 100, N])
@pytest.mark.parametrize("exponent", [-1000, -660, 660, 1000])
def test_norm_scales_to_the_last_bit_with_powers_of_two(n: int, exponent: int) -> None:
    W = gaussian(np.random.default_rng(0), n)
    assert spectral_norm(np.ldexp(W, exponent)) == np.ldexp(spectral_norm(W), exponent)


@pytest.mark.parametrize("n", [60, N])
def test_entries_of_any_range_beside_each_other_lose_no_norm(n: int) -> None:
    W = gaussian(np.random.default_rng(0), n)
    W[0, 0], W[1, 1] = 1e200, 1e-200
    assert spectral_norm(W) == pytest.approx(1e200, rel=1e-14)


def test_steps_that_do_not_settle_leave_the_answer_to_all_eigenvalues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    W = gaussian(np.random.default_rng(0))
    monkeypatch.setattr(norms, "MOST_STEPS", 20)
    assert norms._by_lanczos(W) is None
    assert spectral_norm(W) == pytest.approx(singular_values(W)[0], rel=1e-13)


def test_certificate_refuses_a_norm_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    W = gaussian(np.random.default_rng(0))
    exact = float(singular_values(W)[0])
    monkeypatch.setattr(norms, "_by_lanczos", lambda W: exact * (1.0 - 2e-10))
    assert spectral_norm(W) != pytest.approx(exact, rel=1e-10)
    assert spectral_norm(W, certify=True) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_radius_found_by_two_searches_equals_the_dense_solve(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    W = gaussian(np.random.default_rng(seed), 256)
    exact = np.abs(np.linalg.eigvals(W)).max()
    monkeypatch.setattr(norms, "SMALLEST_FOR_ARNOLDI", 256)
    monkeypatch.setattr(np.linalg, "eigvals", None)  # not called
    assert spectral_radius(W) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("kind", [shift, orthogonal, of_rank_three], ids=lambda kind: kind.__name__)
def test_radius_of_a_hard_matrix_equals_the_dense_solve(
    kind: Callable[[np.random.Generator], Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    W = kind(np.random.default_rng(1))
    exact = np.abs(np.linalg.eigvals(W)).max()
    monkeypatch.setattr(norms, "SMALLEST_FOR_ARNOLDI", N)
    assert spectral_radius(W) == pytest.approx(exact, rel=1e-10, abs=1e-14)


def test_searches_that_disagree_are_told_and_decide_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = iter([0.98, 1.0])
    monkeypatch.setattr(norms, "SMALLEST_FOR_ARNOLDI", 2)
    monkeypatch.setattr(norms, "_by_arnoldi", lambda W, seed: next(found))
    with caplog.at_level(logging.INFO, logger="gradlab.norms"):
        assert spectral_radius(np.diag([-1.5, 1.0])) == 1.5
    assert "0.98 and 1.0" in caplog.text


def test_equal_calls_give_equal_bits() -> None:
    W = gaussian(np.random.default_rng(0), 256)
    assert len({spectral_norm(W) for _ in range(3)}) == 1
