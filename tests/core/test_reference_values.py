"""Right values of linear and nearly linear networks: closed forms, and how close they must be met.

The linear networks are cells with the identity as activation, run without input: every Jacobian is
W, and the product over l steps is its l-th power.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array

JORDAN = np.array([[0.9, 1.0], [0.0, 0.9]])
RING = np.array([[0.0, 4.0, 0.0], [0.0, 0.0, 0.1], [0.5, 0.0, 0.0]])
SHIFT = np.eye(6, k=1)


def cell_of(W: Array, activation: str = "identity", dtype: str = "float64") -> gl.VanillaCell:
    return gl.VanillaCell(
        W_hh=W, W_xh=np.zeros((len(W), 1)), activation=activation, dtype=dtype
    )  # fmt: skip


def at_rest(cell: gl.VanillaCell, steps: int, start: float = 0.0) -> gl.Trajectory:
    state = np.full(cell.state_size, start)
    return gl.rollout(cell, np.zeros((steps, 1, 1)), initial_state=state)


def powers(W: Array, steps: int, activation: str = "identity") -> gl.JacobianProfile:
    """Profile of the last end time; entry l - 1 is W to the power l."""
    cell = cell_of(W, activation)
    profile = gl.jacobian_profile(cell, at_rest(cell, steps), anchors="last")
    np.testing.assert_array_equal(profile.lag, np.arange(1, steps + 1))
    return profile


def jordan_norm(lag: Array, value: float = 0.9, coupling: float = 1.0) -> Array:
    """Spectral norm of [[a, b], [0, a]], a = value^l, b = l coupling value^(l-1)."""
    a, b = value**lag, lag * coupling * value ** (lag - 1.0)
    return np.asarray((b + np.sqrt(b**2 + 4.0 * a**2)) / 2.0)


@pytest.mark.parametrize(
    ("gamma", "log_norm"), [(0.95, -2.5646647193775), (1.0, 0.0), (1.05, 2.4395082084716)]
)
def test_scaled_orthogonal_weights_attain_the_bound(gamma: float, log_norm: float) -> None:
    v = np.array([1.0, 2.0, 3.0, -1.0, 2.0])
    W = gamma * (np.eye(5) - 2.0 * np.outer(v, v) / (v @ v))
    profile = powers(W, 50)
    assert profile.log_norm[-1] == pytest.approx(log_norm, abs=1e-12)
    expected = profile.lag * math.log(gamma)
    np.testing.assert_allclose(profile.log_norm, expected, atol=1e-12)
    np.testing.assert_allclose(profile.log_sigma_min, expected, atol=1e-12)
    np.testing.assert_allclose(profile.log_frobenius, expected + 0.5 * math.log(5.0), atol=1e-12)
    cell = cell_of(W)
    for rung, values in gl.bound_ladder(cell, at_rest(cell, 50)).rungs.items():
        np.testing.assert_allclose(values, expected, atol=1e-12, err_msg=rung)


FIXED_POINTS = [  # w, h*, multiplier
    (1.31303528549933, 0.76159415595576, 0.55144112954357),
    (1.1, 0.50294057494464, 0.82175585588179),
    (1.5, 0.85855963664011, 0.3943130254986),
    (2.0, 0.95750402407727, 0.16637208775167),
]


@pytest.mark.parametrize(("w", "h", "multiplier"), FIXED_POINTS)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["fixed-point", "period-2"])
def test_scalar_tanh_decays_at_the_multiplier_of_its_orbit(
    w: float, h: float, multiplier: float, sign: float
) -> None:
    """For w < -1 the orbit is ±h*, with the same modulus at every step."""
    cell = cell_of(np.array([[sign * w]]), "tanh")
    settled = at_rest(cell, 300, 1.0)
    assert abs(settled.states[-1, 0, 0]) == pytest.approx(h, rel=1e-12)
    trajectory = at_rest(cell, 5, float(settled.states[-1, 0, 0]))
    profile = gl.jacobian_profile(cell, trajectory, anchors="last")
    np.testing.assert_allclose(np.exp(profile.log_norm), multiplier**profile.lag, rtol=1e-11)
    step = np.array([step.matrix()[0, 0, 0] for step in cell.linearize(trajectory)])
    np.testing.assert_allclose(step, sign * multiplier, rtol=1e-12)


def test_scalar_tanh_of_weight_five_has_the_multiplier_of_its_fixed_point() -> None:
    cell = cell_of(np.array([[5.0]]), "tanh")
    J = cell.linearize(at_rest(cell, 50, 1.0))[-1].matrix()
    assert J == pytest.approx(9.0874155336e-4, rel=1e-10)


def test_marginal_scalar_tanh_decays_as_a_power_of_the_lag() -> None:
    """w = 1 from h = 0.5: the product falls like l^(-3/2), not exponentially."""
    cell = cell_of(np.array([[1.0]]), "tanh")
    trajectory = at_rest(cell, 10_000, 0.5)
    profile = gl.jacobian_profile(
        cell, trajectory, anchors=[100, 1000, 10_000], smallest=False
    )  # fmt: skip
    products = np.exp(profile.log_norm[profile.k == 0])
    expected = [0.013062255666521, 4.4842946475802e-4, 1.4307663467725e-5]
    np.testing.assert_allclose(products, expected, rtol=1e-10)


def test_jordan_block_grows_before_it_decays() -> None:
    profile = powers(JORDAN, 200)
    norms = np.exp(profile.log_norm)
    np.testing.assert_allclose(norms, jordan_norm(profile.lag), rtol=1e-12)
    assert norms[0] == pytest.approx(1.5295630140987, rel=1e-12)
    assert profile.lag[np.argmax(norms)] == 9
    assert norms.max() == pytest.approx(3.9125670783767, rel=1e-12)
    assert profile.lag[np.flatnonzero(norms >= 1.0)[-1]] == 34
    assert norms[99] == pytest.approx(0.0029515055762951, rel=1e-12)
    # The Kreiss constant, 2.6, and e N times it.
    assert 2.6 <= norms.max() <= 2.0 * math.e * 2.6


def test_jordan_block_of_five_follows_the_binomial_entries() -> None:
    norms = np.exp(powers(0.5 * np.eye(5) + np.eye(5, k=1), 32).log_norm)
    assert norms[7] == pytest.approx(5.0777070533772, rel=1e-12)
    assert norms[15] == pytest.approx(0.45489756695288, rel=1e-12)
    assert norms[31] == pytest.approx(1.345993503913e-4, rel=1e-12)


def test_rank_one_powers_shrink_by_the_overlap() -> None:
    u, v = np.array([1.0, 2.0, 2.0]), np.array([0.3, 0.1, 0.2])
    W = np.outer(u, v)
    assert gl.spectral_norm(W) == pytest.approx(1.1224972160322, rel=1e-12)
    assert gl.spectral_radius(W) == pytest.approx(0.9, rel=1e-12)
    profile = powers(W, 50)
    expected = np.log(1.1224972160322) + (profile.lag - 1) * math.log(0.9)
    np.testing.assert_allclose(profile.log_norm, expected, atol=1e-11)
    assert math.exp(profile.log_norm[-1]) == pytest.approx(0.0064278870247472, rel=1e-12)
    np.testing.assert_allclose(profile.log_frobenius, profile.log_norm, atol=1e-12)


def test_nilpotent_shift_is_one_and_then_exactly_zero() -> None:
    profile = powers(SHIFT, 8)
    assert profile.log_norm.tolist() == [0.0] * 5 + [-math.inf] * 3
    assert np.all(np.isneginf(profile.log_sigma_min))


def test_zero_and_identity_are_exact() -> None:
    assert np.all(np.isneginf(powers(np.zeros((3, 3)), 5).log_norm))
    assert np.all(powers(np.eye(3), 5).log_norm == 0.0)


def test_ring_decays_in_spite_of_a_large_norm() -> None:
    """W^3 = 0.2 I: three steps shrink, although one of them stretches fourfold."""
    assert gl.spectral_norm(RING) == pytest.approx(4.0, rel=1e-14)
    assert gl.spectral_radius(RING) == pytest.approx(0.58480354764257, rel=1e-13)
    profile = powers(RING, 30)
    assert math.exp(profile.log_norm[-1]) == pytest.approx(1.024e-7, rel=1e-12)
    thirds = profile.log_norm[2::3]
    np.testing.assert_allclose(thirds, np.arange(1, 11) * math.log(0.2), rtol=1e-13)


def test_tanh_at_rest_is_linear() -> None:
    """From h = 0 without input and bias the slopes are 1."""
    profile = powers(np.array([[0.5, 1.0], [0.0, 0.5]]), 40, "tanh")
    norms = np.exp(profile.log_norm)
    np.testing.assert_allclose(norms, jordan_norm(profile.lag, 0.5), rtol=1e-12)
    assert norms[9] == pytest.approx(0.019579956661251, rel=1e-12)
    assert norms[39] == pytest.approx(7.2770943049804e-11, rel=1e-12)


def test_relu_at_rest_passes_nothing() -> None:
    """Every pre-activation is at the kink, where the slope is 0 by convention."""
    assert np.all(np.isneginf(powers(np.array([[0.5, 1.0], [0.0, 0.5]]), 4, "relu").log_norm))


def test_sigmoid_at_rest_is_not_linear() -> None:
    W = np.array([[0.5, 1.0], [0.0, 0.5]])
    log_norm = powers(W, 10, "sigmoid").log_norm
    assert log_norm[-1] < math.log(0.019579956661251) + 10 * math.log(0.25)


# activation, floating-point type, z below and above which the formula from h is exactly 0
FORMULA_LIMITS = [
    ("tanh", "float64", 19.06155),
    ("tanh", "float32", 9.01091),
    ("sigmoid", "float64", 37.42995),
    ("sigmoid", "float32", 17.32868),
]


@pytest.mark.parametrize(("activation", "dtype", "limit"), FORMULA_LIMITS)
def test_slopes_do_not_cancel_where_the_formula_from_h_does(
    activation: str, dtype: str, limit: float
) -> None:
    """What backpropagation computes is 0 from the limit on; the derivative is not."""
    # NumPy's functions err by a few units in the last place, so stay clear of the limit itself.
    z = np.array([[[-limit - 1.5, limit - 1.5, limit + 1.5, 0.0]]])
    cell = gl.VanillaCell(
        W_hh=np.eye(4), W_xh=np.eye(4), activation=activation, dtype=dtype
    )  # fmt: skip
    trajectory = gl.rollout(cell, z)
    slopes = np.diag(cell.linearize(trajectory)[0].matrix()[0])
    x = np.asarray(trajectory.z[0, 0], dtype=float)
    half = 0.5 * x if activation == "sigmoid" else x
    expected = np.cosh(half) ** -2.0 * (0.25 if activation == "sigmoid" else 1.0)
    np.testing.assert_allclose(slopes, expected, rtol=1e-13)
    # The logistic function reaches 1 but never 0, so only its positive side cancels.
    cancelled = 0.5 if activation == "tanh" else 0.25
    (gate,) = gl.saturation(cell, trajectory).gates.values()
    assert (gate.autodiff_zero_share, gate.zero_share) == (cancelled, 0.0)


def test_slope_of_tanh_far_out_keeps_all_its_digits() -> None:
    cell = gl.VanillaCell(W_hh=np.eye(1), W_xh=np.eye(1))
    trajectory = gl.rollout(cell, np.array([[[19.1]]]))
    assert trajectory.states[1, 0, 0] == 1.0
    J = cell.linearize(trajectory)[0].matrix()
    assert J == pytest.approx(1.0280418219381e-16, rel=1e-12)


SUPREMA = {
    "tanh": 1.0,
    "relu": 1.0,
    "hard_tanh": 1.0,
    "softplus": 1.0,
    "softsign": 1.0,
    "identity": 1.0,
    "sigmoid": 0.25,
    "erf": 1.1283791671,
    "gelu": 1.1289041452,
    "silu": 1.0998393201,
    "selu": 1.7580993408,
}


@pytest.mark.parametrize(("activation", "supremum"), SUPREMA.items())
def test_bound_starts_from_the_supremum_of_the_slope(activation: str, supremum: float) -> None:
    cell = cell_of(0.7 * np.eye(2), activation)
    ladder = gl.bound_ladder(cell, at_rest(cell, 1, 0.1))
    assert math.exp(ladder.rungs["gamma"][0]) == pytest.approx(0.7 * supremum, rel=1e-9)
