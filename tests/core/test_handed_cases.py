"""Mistakes that users of other tools reported: norms, radii, Jacobians, bounds and their range.

Each test holds the smallest input that shows the mistake, the right value, and where a wrong value
is known, that it is another number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from jaxtyping import Float

import gradlab as gl
from gradlab.arrays import Array
from gradlab.records.ladder import BoundLadder

R = np.array([[0.0, -1.2], [1.2, 0.0]])
SHIFT = np.array([[0.0, 1.0], [0.0, 0.0]])


def at_rest(cell: gl.VanillaCell, steps: int, start: float | list[float] = 0.0) -> gl.Trajectory:
    """Run without input."""
    state = np.broadcast_to(np.asarray(start, dtype=float), (cell.state_size,))
    return gl.rollout(cell, np.zeros((steps, 1, cell.input_size)), initial_state=state)


def linear(W: Array, activation: str = "identity") -> gl.VanillaCell:
    return gl.VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation=activation)


def driven_to(
    W: Array, states: Float[Array, "time batch n"]
) -> tuple[gl.VanillaCell, gl.Trajectory]:
    """A tanh cell and inputs that lead it through the given states, from h = 0."""
    before = np.concatenate([np.zeros_like(states[:1]), states[:-1]])
    inputs = np.arctanh(states) - before @ W.T
    cell = gl.VanillaCell(W_hh=W, W_xh=np.eye(len(W)))
    return cell, gl.rollout(cell, inputs)


def lag_norms(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> dict[int, float]:
    """Log norm by lag, for the last end time of the first sequence."""
    profile = gl.jacobian_profile(cell, trajectory, anchors="last")
    first = profile.sequence == 0
    return dict(zip(profile.lag[first].tolist(), profile.log_norm[first].tolist(), strict=True))


def rung(ladder: BoundLadder, name: str, lag: int) -> float:
    return float(ladder.rungs[name][ladder.lag == lag][0])


def test_norm_is_not_the_largest_eigenvalue() -> None:
    """Case H1: a power method on W itself gives 0.5, half of nothing that bounds the gradient."""
    cell = linear(np.array([[0.5, 10.0], [0.0, 0.5]]))
    summary = gl.spectral_summary(cell)
    assert summary.gamma_w == pytest.approx((10.0 + math.sqrt(101.0)) / 2.0, rel=1e-14)
    assert summary.spectral_radius == pytest.approx(0.5, rel=1e-14)
    norms = lag_norms(cell, trajectory := at_rest(cell, 20))
    expected = {1: 10.024938, 2: 10.006246, 5: 3.1253125, 10: 0.19531738, 20: 0.00038147211}
    for lag, norm in expected.items():
        assert math.exp(norms[lag]) == pytest.approx(norm, rel=1e-7)
    ladder = gl.bound_ladder(cell, trajectory)
    for lag, bound in {1: 10.0249, 2: 100.499, 5: 101253, 10: 1.02522e10, 20: 1.05108e20}.items():
        assert math.exp(rung(ladder, "gamma", lag)) == pytest.approx(bound, rel=1e-5)


def test_powers_are_matrix_powers() -> None:
    """Case H2: entry by entry, 0.6^10 = 0.006 seems to decay."""
    cell = linear(np.array([[0.6, 0.5], [0.5, 0.6]]))
    assert math.exp(lag_norms(cell, at_rest(cell, 10))[10]) == pytest.approx(1.1**10, rel=1e-13)


def test_zero_recurrent_matrix_is_an_ordinary_input() -> None:
    """Case H3: every number is defined and nothing warns; only rescaling is refused."""
    W = np.zeros((3, 3))
    cell = gl.VanillaCell(W_hh=W, W_xh=np.ones((3, 2)))
    inputs = np.random.default_rng(0).standard_normal((4, 2, 2))
    trajectory = gl.rollout(cell, inputs)
    summary = gl.spectral_summary(cell)
    assert (summary.gamma_w, summary.spectral_radius) == (0.0, 0.0)
    assert (gl.spectral_norm(W), gl.spectral_radius(W)) == (0.0, 0.0)
    profile = gl.jacobian_profile(cell, trajectory, anchors="all")
    assert len(profile.lag) == 2 * (4 + 3 + 2 + 1)
    for log in (profile.log_norm, profile.log_frobenius, profile.log_sigma_min):
        assert np.all(np.isneginf(log))
    ladder = gl.bound_ladder(cell, trajectory)
    for values in ladder.rungs.values():
        assert np.all(np.isneginf(values))
    assert gl.regime(profile, ladder).name == "vanishing"
    for rescale in (gl.scale_to_gamma, gl.scale_to_radius):
        with pytest.raises(gl.UnreachableTargetError, match=r"W_hh is 0.* rescaling"):
            rescale(W, 0.9)


def test_radius_of_a_rotation_is_its_modulus() -> None:
    """Case H4: no real vector settles, and every Rayleigh quotient is 0."""
    assert gl.spectral_radius(R) == pytest.approx(1.2, rel=1e-15)
    assert gl.spectral_norm(R) == pytest.approx(1.2, rel=1e-15)


def test_radius_of_two_leading_eigenvalues_of_opposite_sign_is_positive() -> None:
    """Case H4."""
    D = np.diag([0.9, -0.9])
    assert gl.spectral_radius(D) == pytest.approx(0.9, rel=1e-15)
    assert gl.spectral_norm(D) == pytest.approx(0.9, rel=1e-15)


def test_nan_in_a_weight_is_named_and_reaches_no_solver() -> None:
    """Case H5: solvers would say that the SVD did not converge."""
    W = 0.5 * np.eye(3)
    W[1, 2] = math.nan
    with pytest.raises(gl.NonFiniteError) as caught:
        gl.VanillaCell(W_hh=W, W_xh=np.zeros((3, 1)))
    for part in ("W_hh", "(1, 2)", "1 non-finite"):
        assert part in str(caught.value)
    for solve in (gl.spectral_norm, gl.spectral_radius):
        with pytest.raises(gl.NonFiniteError, match=r"1 non-finite .*\(1, 2\)"):
            solve(W)


def test_jacobian_has_outputs_as_rows_and_the_later_step_on_the_left() -> None:
    """Case H6: one step hides a transposed or reversed product, two do not."""
    W = np.array([[0.4, -1.1], [0.9, 0.2]])
    cell, trajectory = driven_to(W, np.array([[[0.6, -0.3]], [[-0.8, 0.1]]]))
    first, second = (step.matrix()[0] for step in cell.linearize(trajectory))
    np.testing.assert_allclose(first, [[0.256, -0.704], [0.819, 0.182]], rtol=1e-14)
    product = [[-0.28746, -0.173448], [0.390258, -0.591228]]
    np.testing.assert_allclose(second @ first, product, rtol=1e-13)
    assert gl.spectral_norm(first) == pytest.approx(0.8607414036, rel=1e-9)
    norm = math.exp(lag_norms(cell, trajectory)[2])
    assert norm == pytest.approx(0.7085833287, rel=1e-9)
    for wrong in (0.6630639456, 0.7635174089):
        assert norm != pytest.approx(wrong, rel=0.01)


def test_linear_steps_apply_their_own_matrix_and_its_transpose() -> None:
    """Case H6, for the two actions that every analysis uses."""
    W = np.array([[0.4, -1.1], [0.9, 0.2]])
    cell, trajectory = driven_to(W, np.array([[[0.6, -0.3], [0.1, 0.2]]]))
    step = cell.linearize(trajectory)[0]
    V = np.random.default_rng(0).standard_normal((2, 2, 3))
    np.testing.assert_allclose(step.apply(V), step.matrix() @ V, rtol=1e-14)
    transposed = np.swapaxes(step.matrix(), 1, 2)
    np.testing.assert_allclose(step.apply_transpose(V), transposed @ V, rtol=1e-14)


def test_derivative_of_tanh_is_taken_from_the_state_after_the_step() -> None:
    """Case H7: not 1/(1 - h^2), 1 + h^2 or (1 - h)^2."""
    cell, trajectory = driven_to(np.array([[1.0]]), np.array([[[0.9]]]))
    assert cell.linearize(trajectory)[0].matrix() == pytest.approx(0.19, rel=1e-14)


def test_every_sequence_has_its_own_jacobian() -> None:
    """Case H8: the batch is no state axis, and a norm is never that of an average."""
    W = np.array([[0.5, 0.3], [-0.2, 0.8]])
    cell, trajectory = driven_to(W, np.array([[[0.0, 0.5], [0.9, -0.9]]]))
    J = cell.linearize(trajectory)[0].matrix()
    assert J.shape == (2, 2, 2)
    profile = gl.jacobian_profile(cell, trajectory, anchors="last")
    assert profile.sequence.tolist() == [0, 1]
    norms = np.exp(profile.log_norm)
    np.testing.assert_allclose(norms, [0.6843819981, 0.1623613264], rtol=1e-9)
    assert norms.mean() == pytest.approx(0.4233716622, rel=1e-9)
    assert gl.spectral_norm(J.mean(axis=0)) == pytest.approx(0.4209375881, rel=1e-9)


def test_relu_has_slope_zero_at_zero_and_kinks_are_counted() -> None:
    """Case H9: a central difference would give 0.5."""
    cell = linear(np.eye(2), "relu")
    trajectory = at_rest(cell, 1, [0.0, 2.0])
    np.testing.assert_array_equal(trajectory.z[0, 0], [0.0, 2.0])
    J = cell.linearize(trajectory)[0].matrix()[0]
    np.testing.assert_array_equal(J, [[0.0, 0.0], [0.0, 1.0]])
    assert lag_norms(cell, trajectory)[1] == 0.0
    (gate,) = gl.saturation(cell, trajectory).gates.values()
    assert gate.kink_count == 1


@pytest.mark.parametrize(
    ("values", "norm"),
    [
        (np.array([1e200, 1e200]), 1.414213562373095e200),
        (np.array([600, 800], dtype=np.float16), 1000.0),
        (np.array([1e-300, 1e-300]), 1.414213562373095e-300),
    ],
)
def test_norm_is_right_wherever_it_can_be_written(values: Array, norm: float) -> None:
    """Case H15: a sum of squares leaves the range in half of every format."""
    assert gl.spectral_norm(values[:, None]) == pytest.approx(norm, rel=1e-15)
    assert gl.spectral_norm(values[None, :]) == pytest.approx(norm, rel=1e-15)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_products_of_extreme_matrices_have_finite_logs(scale: float) -> None:
    """Case H15, in the products: 50 steps reach 1e10000 and 1e-10000."""
    cell = linear(scale * np.array([[0.6, 0.5], [0.5, 0.6]]))
    profile = gl.jacobian_profile(cell, at_rest(cell, 50), anchors="last")
    expected = np.arange(1, 51) * (math.log(scale) + math.log(1.1))
    np.testing.assert_allclose(profile.log_norm, expected, rtol=1e-14)


def test_products_below_the_smallest_number_keep_their_size() -> None:
    """Case H16: as a plain float64, 2^-1075 is 0."""
    cell = linear(0.5 * np.eye(4), "tanh")
    log_norm = lag_norms(cell, at_rest(cell, 1075))[1075]
    assert log_norm / math.log(2.0) == pytest.approx(-1075.0, rel=1e-15)
    assert log_norm / math.log(10.0) == pytest.approx(-323.607245339, abs=1e-9)


def preimage(h: float) -> float:
    """A z whose computed tanh is exactly h: several floats are, since the slope is below 1."""
    center = math.atanh(h)
    candidates = [center + i * math.ulp(center) / 2 for i in range(-64, 65)]
    return next(z for z in candidates if np.tanh(z) == h)


def test_saturated_share_follows_the_stated_rule() -> None:
    """Case H23: strictly above, or at or above; the mean derivative needs no rule."""
    h = [-0.995, -0.97, -0.5, 0.0, 0.5, 0.96, 0.97, 0.991]
    cell = gl.VanillaCell(W_hh=np.zeros((8, 8)), W_xh=np.eye(8))
    trajectory = gl.rollout(cell, np.array([[[preimage(value) for value in h]]]))
    np.testing.assert_array_equal(trajectory.states[1, 0], h)
    strict = gl.saturation(cell, trajectory, threshold=0.97, strict=True)
    loose = gl.saturation(cell, trajectory, threshold=0.97, strict=False)
    assert (strict.saturated_share, loose.saturated_share) == (0.25, 0.5)
    assert strict.mean_derivative == pytest.approx(0.34056175, rel=1e-12)
    rules = [gate.rule for profile in (strict, loose) for gate in profile.gates.values()]
    assert rules == ["|h| > 0.97", "|h| >= 0.97"]


def test_matrix_of_radius_zero_is_not_rescaled_to_a_radius() -> None:
    """Case H40: dividing by the radius gives nan weights."""
    assert gl.spectral_radius(SHIFT) == 0.0
    assert gl.spectral_norm(SHIFT) == 1.0
    with pytest.raises(gl.UnreachableTargetError, match="spectral radius"):
        gl.scale_to_radius(SHIFT, 0.9)
    np.testing.assert_array_equal(gl.scale_to_gamma(SHIFT, 0.9), 0.9 * SHIFT)


def test_equal_matrices_have_equal_radii_to_the_last_bit() -> None:
    """Case H42: all 50 eigenvalues of the ring have the same modulus, so iterations wander."""
    ring = 0.8 * np.roll(np.eye(50), 1, axis=1)
    summaries = [gl.spectral_summary(linear(ring)) for _ in range(20)]
    assert len({(summary.gamma_w, summary.spectral_radius) for summary in summaries}) == 1
    assert summaries[0].gamma_w == pytest.approx(0.8, rel=1e-13)
    assert summaries[0].spectral_radius == pytest.approx(0.8, rel=1e-13)


def test_norm_above_one_does_not_mean_explosion() -> None:
    """Case H46: the bound grows to 58 while the gradient falls to 5e-32."""
    fixed_point = 3.0
    for _ in range(100):
        fixed_point = math.tanh(1.5 * fixed_point + 3.0)
    cell = gl.VanillaCell(W_hh=np.array([[1.5]]), W_xh=np.zeros((1, 1)), b_h=np.array([3.0]))
    trajectory = at_rest(cell, 10, fixed_point)
    assert trajectory.states[-1, 0, 0] == pytest.approx(0.999753027953, abs=1e-12)
    J = cell.linearize(trajectory)[0].matrix()
    assert J == pytest.approx(0.0007408246488, rel=1e-9)
    profile = gl.jacobian_profile(cell, trajectory, anchors="last")
    ladder = gl.bound_ladder(cell, trajectory)
    log_norm = float(profile.log_norm[profile.lag == 10][0])
    assert log_norm / math.log(10.0) == pytest.approx(-31.30284576, abs=1e-8)
    assert math.exp(rung(ladder, "gamma", 10)) == pytest.approx(57.66503906, rel=1e-9)
    verdict = gl.regime(profile, ladder)
    assert verdict.name == "vanishing"
    assert verdict.rate == pytest.approx(math.log(0.0007408246488), rel=1e-9)
    assert verdict.contradicts is not None
    assert "1.5" in verdict.contradicts
