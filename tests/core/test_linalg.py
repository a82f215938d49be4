"""Norms against the exact SVD and closed forms, in and beyond the range of float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradlab.arrays import Array
from gradlab.errors import NonFiniteError
from gradlab.linalg import (
    log_euclidean_norm,
    rescale,
    sign_fixed_qr,
    singular_values,
    spectral_norms,
)
from gradlab.norms import spectral_norm, spectral_radius

LOG_2 = float(np.log(2.0))


def hard_stack(rng: np.random.Generator, n: int) -> Array:
    """Matrices on which a careless power method fails."""
    Q = sign_fixed_qr(rng.standard_normal((n, n)))[0]
    graded = Q @ np.diag(2.0 ** -np.arange(n)) @ Q.T
    blocks = np.zeros((n, n))
    blocks[: n // 2, : n // 2] = np.eye(n // 2)
    blocks[n // 2 :, n // 2 :] = (
        0.999999 * sign_fixed_qr(rng.standard_normal((n - n // 2, n - n // 2)))[0]
    )
    rank_one = np.outer(rng.standard_normal(n), rng.standard_normal(n))
    gaussian = rng.standard_normal((n, n))
    stack = np.stack([Q, graded, blocks, rank_one, gaussian, np.zeros((n, n))])
    return rescale(stack)[0]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12))
def test_certified_norms_equal_the_exact_svd(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    stack = hard_stack(rng, n)
    exact = np.linalg.svd(stack, compute_uv=False)[:, 0]
    start = np.linalg.qr(rng.standard_normal((n, n)))[0][:1].repeat(len(stack), axis=0)
    norms, right = spectral_norms(stack, start)
    np.testing.assert_allclose(norms, exact, rtol=1e-12, atol=0.0)
    np.testing.assert_allclose(np.linalg.norm(right, axis=1), 1.0, rtol=1e-12)


def test_a_start_orthogonal_to_the_leading_direction_does_no_harm() -> None:
    stack = np.diag([1.0, 0.5, 0.25])[None]
    norms, _ = spectral_norms(stack, np.array([[0.0, 1.0, 0.0]]))
    assert norms[0] == 1.0


def test_rescaling_is_exact_to_the_last_bit() -> None:
    stack = (
        np.random.default_rng(0).standard_normal((5, 3, 3))
        * 10.0 ** np.arange(-300, 200, 100)[:, None, None]
    )
    scaled, exponent = rescale(stack)
    np.testing.assert_array_equal(np.ldexp(scaled, exponent[:, None, None]), stack)
    largest = np.abs(scaled).max(axis=(1, 2))
    assert ((largest >= 0.5) & (largest < 1.0)).all()


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e200])
def test_spectral_norm_scales_with_the_matrix(scale: float) -> None:
    W = np.array([[0.5, 10.0], [0.0, 0.5]])
    assert spectral_norm(scale * W) == pytest.approx(
        scale * (10.0 + np.sqrt(101.0)) / 2.0, rel=1e-14
    )


def test_euclidean_norm_neither_overflows_nor_underflows() -> None:
    for x, expected in (([1e200, 1e200], 1.414213562373095e200), ([3e-200, 4e-200], 5e-200)):
        assert np.exp(log_euclidean_norm(np.array(x))) == pytest.approx(expected, rel=1e-12)
    assert log_euclidean_norm(np.zeros(3)) == -np.inf


def test_singular_values_of_an_orthogonal_matrix_are_one() -> None:
    Q = sign_fixed_qr(np.random.default_rng(1).standard_normal((7, 7)))[0]
    np.testing.assert_allclose(singular_values(Q), 1.0, rtol=1e-14)


def test_qr_has_a_non_negative_diagonal_and_rebuilds_the_matrix() -> None:
    A = np.random.default_rng(2).standard_normal((6, 4))
    Q, R = sign_fixed_qr(A)
    assert (np.diag(R) >= 0.0).all()
    np.testing.assert_allclose(Q @ R, A, atol=1e-14)


def test_non_finite_entries_never_reach_a_solver() -> None:
    W = 0.5 * np.eye(3)
    W[1, 2] = np.nan
    for function in (spectral_norm, spectral_radius):
        with pytest.raises(NonFiniteError, match=r"1 non-finite entry .* \(1, 2\)"):
            function(W)


def test_rescaling_reaches_every_number_of_float64() -> None:
    smallest, largest = 5e-324, np.finfo(np.float64).max
    for x in (smallest, 1e-307, 1.0, 1e307, largest):
        scaled, exponent = rescale(np.array([[x, 0.0]]))
        assert 0.5 <= scaled[0, 0] < 1.0
        assert math.ldexp(scaled[0, 0], int(exponent)) == x
