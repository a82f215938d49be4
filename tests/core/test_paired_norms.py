"""Norms of products from the Gram matrices of their factors: nothing wrong is ever proven."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.analysis.all_pairs.crossing import norms_across
from gradlab.analysis.all_pairs.half_products import HalfProducts
from gradlab.analysis.all_pairs.paired_norms import PROVEN, PairedNorms, paired_norms
from gradlab.analysis.all_pairs.tridiagonal import all_below, largest_eigenvalue, leading_vector
from gradlab.arrays import Array
from gradlab.linalg import sign_fixed_qr


def paired(A: Array, B: Array, start: Array | None = None) -> PairedNorms:
    G, H = A.transpose(0, 2, 1) @ A, B @ B.transpose(0, 2, 1)
    flat = [X.reshape(len(X), -1) for X in (H, G)]
    sizes = [np.linalg.norm(X, axis=1) for X in flat]
    n = A.shape[-1]
    directions = np.full((len(B), n), 1.0 / np.sqrt(n)) if start is None else start
    return paired_norms(G, H, flat[0] @ flat[1].T, np.outer(*sizes), directions)


def exact(A: Array, B: Array) -> Array:
    return np.asarray(np.linalg.norm(A[None] @ B[:, None], ord=2, axis=(2, 3)))


def decaying(count: int, n: int, share: float, rng: np.random.Generator) -> Array:
    """Matrices with singular values 1, share, share², ..."""
    left, right = (
        np.stack([sign_fixed_qr(rng.standard_normal((n, n)))[0] for _ in range(count)])
        for _ in range(2)
    )
    return np.asarray((left * share ** np.arange(n)) @ right)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), share=st.floats(0.2, 1.0))
def test_what_is_proven_is_right_and_nothing_is_above_the_norm(
    seed: int, n: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    A, B = decaying(3, n, share, rng), decaying(4, n, share, rng)
    found, expected = paired(A, B), exact(A, B)
    proven = found.certified
    np.testing.assert_allclose(found.norms[proven], expected[proven], rtol=2.0 * PROVEN)
    assert (found.norms <= expected * (1.0 + PROVEN)).all()


def test_products_with_a_leading_direction_are_proven() -> None:
    rng = np.random.default_rng(0)
    A, B = decaying(5, 32, 0.7, rng), decaying(6, 32, 0.7, rng)
    assert paired(A, B).certified.all()


def test_a_start_without_any_part_of_the_leading_direction_proves_nothing() -> None:
    """Two blocks that do not meet: the start lies in the smaller one."""
    n = 24
    A = np.diag(np.r_[np.full(1, 1.0), 0.5 * 0.3 ** np.arange(n - 1)])[None]
    start = np.zeros((1, n))
    start[0, 1] = 1.0
    found = paired(A, A, start)
    assert not found.certified.any()
    assert found.norms[0, 0] <= 0.25 * (1.0 + 1e-12)


@pytest.mark.parametrize("gap", [0.0, 1e-13, 1e-9, 1e-6])
def test_two_values_near_each_other_do_not_fool_the_proof(gap: float) -> None:
    rng = np.random.default_rng(1)
    values = np.r_[1.0, 1.0 - gap, 0.1 * 0.5 ** np.arange(30)]
    left, right = (sign_fixed_qr(rng.standard_normal((32, 32)))[0] for _ in range(2))
    A, B = np.eye(32)[None], ((left * values) @ right)[None]
    found = paired(A, B)
    if found.certified.all():
        assert found.norms[0, 0] == pytest.approx(1.0, rel=2.0 * PROVEN)


def test_nearly_orthogonal_halves_are_left_to_be_formed() -> None:
    """The leading direction of A misses that of B: the Gram matrices hide the product."""
    n, rng = 24, np.random.default_rng(2)
    Q = sign_fixed_qr(rng.standard_normal((n, n)))[0]
    small = 1e-9 * np.arange(1.0, n + 1.0)
    A = (Q * np.r_[1.0, small[1:]] @ Q.T)[None]
    B = (Q * np.r_[small[0], 1.0, small[2:]] @ Q.T)[None]
    assert not paired(A, B).certified.any()


def tridiagonal(seed: int, rows: int) -> tuple[Array, Array, Array]:
    """Entries of six positive semidefinite matrices, and these."""
    rng = np.random.default_rng(seed)
    diagonal, beside = np.zeros((rows, 6)), np.zeros((rows - 1, 6))
    whole = np.zeros((6, rows, rows))
    for i in range(6):
        factor = np.diag(rng.uniform(0.1, 1.0, rows) * 0.5 ** np.arange(rows))
        factor += np.diag(rng.uniform(0.0, 0.2, rows - 1) * 0.5 ** np.arange(rows - 1), k=1)
        whole[i] = factor.T @ factor
        diagonal[:, i], beside[:, i] = np.diag(whole[i]), np.diag(whole[i], k=1)
    return diagonal, beside, whole


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 12), known=st.integers(1, 12))
def test_the_largest_eigenvalue_is_that_of_a_full_solve(seed: int, rows: int, known: int) -> None:
    diagonal, beside, whole = tridiagonal(seed, rows)
    value = largest_eigenvalue(diagonal, beside)
    if known < rows:
        first = largest_eigenvalue(diagonal[:known], beside[: known - 1])
        again = largest_eigenvalue(diagonal, beside, known, first)
        assert (again >= np.linalg.eigvalsh(whole)[:, -1] * (1.0 - 1e-13)).all()
    exact_values = np.linalg.eigvalsh(whole)
    assert (value >= exact_values[:, -1] * (1.0 - 1e-13)).all()
    second = exact_values[:, -2] if rows > 1 else np.zeros(6)
    apart = second < 0.5 * exact_values[:, -1]
    np.testing.assert_allclose(value[apart], exact_values[apart, -1], rtol=1e-12)
    vector = leading_vector(diagonal, beside, value)
    residual = np.einsum("kij,jk->ik", whole, vector) - value * vector
    leading = apart & (np.abs(vector[0]) >= 0.5 * np.abs(vector).max(axis=0))
    assert (np.abs(residual[:, leading]) <= 1e-9 * value[leading]).all()


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 12), share=st.floats(0.5, 1.5))
def test_a_limit_is_above_all_eigenvalues_or_it_is_not(seed: int, rows: int, share: float) -> None:
    diagonal, beside, whole = tridiagonal(seed, rows)
    largest = np.linalg.eigvalsh(whole)[:, -1]
    clear = abs(share - 1.0) > 1e-9
    if clear:
        assert (all_below(diagonal, beside, share * largest) == (share > 1.0)).all()


@pytest.mark.parametrize("spectral", [False, True])
def test_norms_that_gram_matrices_hide_are_taken_from_the_product(spectral: bool) -> None:
    """tr(GH) is 1e-10 of ‖G‖ ‖H‖: its last six digits are noise."""
    n, rng = 24, np.random.default_rng(4)
    Q, U = (sign_fixed_qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    shares = 1e-5 * rng.uniform(0.5, 1.0, (2, n))
    shares[0, 0] = shares[1, 1] = 1.0
    A, B = (U * shares[0]) @ Q.T, (Q * shares[1]) @ U.T
    after = HalfProducts(products=A[None], grams=(A.T @ A)[None], log_scale=np.array([3.0]))
    before = HalfProducts(products=B[None], grams=(B @ B.T)[None], log_scale=np.array([-1.0]))
    start = Q[:, 3].copy() if spectral else None
    found = norms_across(after, before, np.ones((1, 1), dtype=bool), start)
    assert found.formed.all()
    product = A @ B
    expected = 2.0 + np.log(np.linalg.norm(product))
    assert found.log_frobenius[0, 0] == pytest.approx(expected, abs=1e-10)
    if spectral:
        expected = 2.0 + np.log(np.linalg.norm(product, ord=2))
        assert found.log_norm[0, 0] == pytest.approx(expected, abs=1e-10)
