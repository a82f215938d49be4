"""Spectra: closed forms, the chain of radii, and matrices at the edge of float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.spectrum import matrix_spectrum
from gradlab.arrays import Array
from gradlab.linalg import sign_fixed_qr


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8), scale=st.sampled_from([1e-200, 1, 1e150])
)
def test_radii_and_norms_keep_their_order(seed: int, n: int, scale: float) -> None:
    W = scale * np.random.default_rng(seed).standard_normal((n, n))
    spectrum = matrix_spectrum(W)
    assert spectrum.numerical_radius is not None
    assert spectrum.spectral_radius is not None
    rounding = 1.0 + 1e-9
    assert spectrum.spectral_radius <= spectrum.numerical_radius * rounding
    assert spectrum.numerical_radius <= spectrum.sigma_max * rounding
    assert spectrum.sigma_max <= 2.0 * spectrum.numerical_radius * rounding


def test_numerical_range_of_a_jordan_block_is_a_disk_of_known_radius() -> None:
    """The nilpotent Jordan block of order n has numerical radius cos(pi/(n + 1))."""
    for n in (2, 3, 6, 80):
        spectrum = matrix_spectrum(np.eye(n, k=1))
        assert spectrum.numerical_radius == pytest.approx(np.cos(np.pi / (n + 1)), rel=1e-9)
        assert spectrum.spectral_radius == 0.0
        assert spectrum.henrici == pytest.approx(np.sqrt(n - 1))
        assert spectrum.condition_number == np.inf


@pytest.mark.parametrize("count", [8, 60])
def test_the_radii_of_a_normal_matrix_agree_between_the_angles_of_any_grid(count: int) -> None:
    angles = [*np.linspace(0.1, 3.0, count - 1), 1.2345]
    blocks = np.zeros((2 * count, 2 * count))
    for i, angle in enumerate(angles):
        radius = 1.00025 if i == count - 1 else 1.0
        c, s = radius * np.cos(angle), radius * np.sin(angle)
        blocks[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
    spectrum = matrix_spectrum(blocks)
    assert spectrum.spectral_radius == pytest.approx(1.00025, rel=1e-12)
    assert spectrum.numerical_radius == pytest.approx(1.00025, rel=1e-9)
    assert spectrum.henrici == pytest.approx(0.0, abs=1e-6)


def radius_on_a_fine_grid(W: Array) -> float:
    """Largest height of 400 support lines of the numerical range."""
    turns = np.exp(1j * np.linspace(0.0, np.pi, 400))[:, None, None]
    return max(
        float(np.linalg.eigvalsh(0.5 * (part * W + part.conj() * W.T)).max())
        for part in np.array_split(turns, 8)
    )


@pytest.mark.parametrize("kind", ["gaussian", "rank one", "triangular", "skew", "positive"])
def test_large_matrix_has_the_radius_of_all_its_support_lines(kind: str) -> None:
    """Beyond 64 units few lines are looked at; a gap of h between lines hides h²/8 at the most."""
    n, rng = 66, np.random.default_rng(5)
    G = rng.standard_normal((n, n)) / np.sqrt(n)
    W = {
        "gaussian": G,
        "rank one": np.outer(G[0], G[1]),
        "triangular": np.triu(G),
        "skew": G - G.T,
        "positive": np.abs(G),
    }[kind]
    found = matrix_spectrum(W).numerical_radius
    assert found is not None
    seen = radius_on_a_fine_grid(W)
    rounding = 1e-12
    assert seen * (1.0 - rounding) <= found <= seen * (1.0 + rounding) / np.cos(0.5 * np.pi / 399)


def test_radius_of_a_matrix_of_many_units_is_not_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradlab.analysis.spectrum.LARGEST_RANGE", 4)
    assert matrix_spectrum(np.eye(4)).numerical_radius == 1.0
    assert matrix_spectrum(np.eye(5)).numerical_radius is None


@pytest.mark.parametrize("scale", [1e308, 1e-310])
def test_entries_at_the_edge_of_float64_pass_without_a_warning(scale: float) -> None:
    spectrum = matrix_spectrum(scale * np.array([[0.5, 0.0], [0.0, 0.25]]))
    assert spectrum.sigma_max == pytest.approx(0.5 * scale, rel=1e-10)
    assert spectrum.condition_number == pytest.approx(2.0)


def test_a_norm_beyond_float64_is_infinite_and_warns_of_nothing() -> None:
    assert gl.spectral_norm(np.full((3, 3), 1e308)) == np.inf


def test_a_singular_matrix_has_no_finite_condition_number() -> None:
    W = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    assert matrix_spectrum(W).condition_number == np.inf


def test_the_zero_matrix_has_ordinary_numbers() -> None:
    spectrum = matrix_spectrum(np.zeros((3, 3)))
    assert str(spectrum.numerical_radius) == "0.0"
    assert (spectrum.sigma_max, spectrum.spectral_radius, spectrum.henrici) == (0.0, 0.0, 0.0)


def test_orthogonal_matrices_have_eigenvalues_on_the_unit_circle() -> None:
    Q = sign_fixed_qr(np.random.default_rng(0).standard_normal((9, 9)))[0]
    spectrum = matrix_spectrum(Q)
    np.testing.assert_allclose(np.abs(spectrum.eigenvalues), 1.0, rtol=1e-13)
    np.testing.assert_allclose(spectrum.singular_values, 1.0, rtol=1e-13)
