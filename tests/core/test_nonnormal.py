"""Powers of matrices that are not normal: Kreiss constants, heights, and Kreiss' theorem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.analysis.spectrum import LARGEST, matrix_spectrum
from gradlab.arrays import Array


def jordan(eigenvalue: float, coupling: float, n: int = 2) -> Array:
    return eigenvalue * np.eye(n) + coupling * np.eye(n, k=1)


@pytest.mark.parametrize("eigenvalue", [0.1, 0.5, 0.9, 0.99, 0.999, -0.7])
@pytest.mark.parametrize("coupling", [0.01, 0.5, 1.0, 3.0, 100.0])
def test_kreiss_constants_of_jordan_blocks_of_two(eigenvalue: float, coupling: float) -> None:
    """kappa/(4(1 - lambda)) + (1 - lambda)/kappa where 2(1 - lambda) < kappa, else 1."""
    gap = 1.0 - abs(eigenvalue)
    exact = coupling / (4.0 * gap) + gap / coupling if 2.0 * gap < coupling else 1.0
    computed = gl.kreiss_constant(jordan(eigenvalue, coupling))
    # The grid is refined to 1e-4; every value of it is a lower one.
    assert exact * (1.0 - 1e-4) <= computed <= exact * (1.0 + 1e-9)


def test_jordan_block_of_the_tables() -> None:
    W = jordan(0.9, 1.0)
    assert gl.kreiss_constant(W) == pytest.approx(2.6, rel=1e-6)
    height, lag = gl.power_transient(W)
    assert math.exp(height) == pytest.approx(3.9125670783767, rel=1e-12)
    assert lag == 9


def test_ring_rises_to_its_largest_weight_in_one_step() -> None:
    ring = np.array([[0.0, 4.0, 0.0], [0.0, 0.0, 0.1], [0.5, 0.0, 0.0]])
    height, lag = gl.power_transient(ring)
    assert height == pytest.approx(math.log(4.0), abs=1e-14)
    assert lag == 1


@pytest.mark.parametrize("n", [2, 3, 8, 40])
def test_nilpotent_chains_rise_until_they_end(n: int) -> None:
    """(c S)^l has norm c^l up to l = n - 1."""
    height, lag = gl.power_transient(jordan(0.0, 10.0, n))
    assert height == pytest.approx((n - 1) * math.log(10.0), rel=1e-13)
    assert lag == n - 1
    assert gl.power_transient(jordan(0.0, 1.0, n)) == (0.0, 0)
    assert gl.kreiss_constant(jordan(0.0, 1.0, n)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_normal_matrices_have_no_transient(n: int) -> None:
    Q = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    for W in (Q, 0.9 * Q, np.zeros((n, n)), 1e-200 * np.ones((n, n))):
        assert gl.kreiss_constant(W) == pytest.approx(1.0, abs=1e-8)
        assert gl.power_transient(W) == (0.0, 0)


def test_matrices_that_grow_for_ever_have_no_bound() -> None:
    W = np.diag([1.01, 0.5])
    assert gl.kreiss_constant(W) == math.inf
    assert gl.power_transient(W) == (math.inf, None)


def test_growth_that_is_slower_than_any_exponential_is_not_resolved() -> None:
    """‖[[1, 1], [0, 1]]^l‖ grows like l."""
    height, lag = gl.power_transient(jordan(1.0, 1.0))
    assert math.isnan(height)
    assert lag is None
    assert gl.kreiss_constant(jordan(1.0, 1.0)) > 1e5


def test_powers_beyond_float64_are_kept_as_logarithms() -> None:
    height, lag = gl.power_transient(jordan(0.0, 1e200, 3))
    assert height == pytest.approx(400.0 * math.log(10.0), rel=1e-14)
    assert lag == 2
    assert gl.kreiss_constant(jordan(0.0, 1e200, 3)) == math.inf
    full = 1e308 * np.triu(np.ones((4, 4)), 1)
    assert gl.power_transient(full)[1] == 3
    assert gl.power_transient(1e-310 * full) == (0.0, 0)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), radius=st.floats(0.05, 0.98))
def test_kreiss_theorem_holds(seed: int, n: int, radius: float) -> None:
    """K <= max ‖W^l‖ <= e n K, and ‖W^l‖ computed one by one agrees with the height."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.standard_normal((n, n)), 1) + np.diag(rng.uniform(-1.0, 1.0, n) * radius)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    W = Q @ W @ Q.T
    height, lag = gl.power_transient(W)
    constant = gl.kreiss_constant(W)
    assert lag is not None
    assert constant <= math.exp(height) * (1.0 + 1e-6)
    assert math.exp(height) <= math.e * n * constant * (1.0 + 1e-3)
    norms = [1.0]
    power = np.eye(n)
    for _ in range(lag + 50):
        power = power @ W
        norms.append(float(np.linalg.norm(power, 2)))
    assert math.exp(height) == pytest.approx(max(norms), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_search_finds_what_a_dense_grid_finds(seed: int) -> None:
    """Resolvents inverted at 40 000 points of the upper half plane."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((5, 5)) + np.triu(3.0 * rng.standard_normal((5, 5)), 1)
    W *= 0.95 / gl.spectral_radius(W)
    distance, angle = np.geomspace(1e-3, 5.0, 200), np.linspace(0.0, math.pi, 200)
    z = (1.0 + distance[:, None]) * np.exp(1j * angle)
    resolvents = np.linalg.inv(z[..., None, None] * np.eye(5) - W)
    largest = float((distance[:, None] * np.linalg.norm(resolvents, 2, axis=(-2, -1))).max())
    computed = gl.kreiss_constant(W)
    assert largest * (1.0 - 1e-6) <= computed <= largest * 1.01


def test_a_not_a_number_is_refused() -> None:
    with pytest.raises(gl.NonFiniteError, match="W holds 1 non-finite entry"):
        gl.kreiss_constant(np.array([[math.nan, 0.0], [0.0, 0.0]]))


def test_summary_of_a_cell_holds_both_numbers_of_the_matrix_that_is_iterated() -> None:
    W = jordan(0.9, 1.0)
    vanilla = gl.VanillaCell(W_hh=W, W_xh=np.ones((2, 1)), activation="identity")
    entry = gl.inspect(vanilla)["recurrences"][0]
    assert entry["kreiss"] == pytest.approx(2.6, rel=1e-6)
    assert entry["power_height"] == pytest.approx(math.log(3.9125670783767), abs=1e-12)
    assert entry["power_lag"] == 9
    leaky = gl.LeakyCell(W_hh=W, W_xh=np.ones((2, 1)), leak=0.5)
    effective = gl.spectral_summary(leaky).iterated
    assert effective is not None
    assert effective.kreiss == gl.kreiss_constant(0.5 * np.eye(2) + 0.5 * W)
    assert gl.spectral_summary(leaky).gates["W_hh"].kreiss is None


def test_gated_cells_have_no_such_number() -> None:
    cell = gl.GRUCell.initialize(input_size=2, hidden_size=3, rng=np.random.default_rng(0))
    entry = gl.inspect(cell)["recurrences"][0]
    assert (entry["kreiss"], entry["power_height"], entry["power_lag"]) == (None, None, None)


def test_large_matrices_are_skipped() -> None:
    spectrum = matrix_spectrum(0.5 * np.eye(LARGEST + 1), powers=True)
    assert spectrum.kreiss is not None
    assert math.isnan(spectrum.kreiss)
    assert spectrum.power_lag is None
