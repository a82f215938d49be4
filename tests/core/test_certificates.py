"""Certificates for every input: right values, and what they never exceed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradlab as gl
from gradlab.arrays import Array

NAMES = ("sigma_max", "norm_1", "norm_inf", "perron", "diagonal", "lmi")


def lcg(seed: int, *shape: int) -> Array:
    """x <- (1103515245 x + 12345) mod 2^31 from x = seed; x / 2^30 - 1, row-major."""
    x, values = seed, []
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)


def gaussian(n: int) -> Array:
    return np.asarray(np.random.default_rng(0).normal(size=(n, n)) / np.sqrt(n))


def vanilla(W: Array, activation: str = "tanh") -> gl.VanillaCell:
    return gl.VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation=activation)


def leaky(W: Array, leak: float, activation: str = "tanh") -> gl.LeakyCell:
    return gl.LeakyCell(W_hh=W, W_xh=np.zeros((len(W), 1)), leak=leak, activation=activation)


def rate(found: gl.Certificates, name: str) -> float:
    value = found[name].rate
    assert value is not None, found[name].status
    return value


JORDAN = np.array([[0.9, 1.0], [0.0, 0.9]])
RANK_ONE = np.outer([1.0, 2.0, 2.0], [0.3, 0.1, -0.2])
RING = np.roll(np.diag([4.0, 0.1, 0.5]), 1, axis=0)
ROTATING = np.array([[0.6, 0.9], [-0.9, -0.9]])

# W, sigma_max, perron, diagonal with its tolerance from above, lmi (1 %), floor
TABLE = {
    "jordan": (JORDAN, 1.52956, 0.9, 0.9, 1e-6, 0.9, 0.9),
    "rank one": (RANK_ONE, 1.12250, 0.9, 0.9, 1e-6, 0.5021, 0.5),
    "ring": (RING, 4.0, 0.58480354764257, 0.58480354764257, 1e-6, 0.58480, 0.58480354764257),
    "rotating": (ROTATING, 1.66241, 1.66241, 1.66241, 1e-4, 0.940, 0.9),
    "N = 3": (0.9 * lcg(21, 3, 3), 1.30563, 1.38925, 1.05850, 1e-4, 1.0032, 0.99555),
    "N = 6": (0.7 * lcg(22, 6, 6), 1.60083, 2.45566, 1.55229, 1e-4, 1.180, 1.12124),
    "N = 10": (0.5 * lcg(23, 10, 10), 1.48544, 2.49701, 1.37650, 1e-4, 1.112, 1.08346),
    "Gaussian N = 10": (gaussian(10), 1.7105, 2.56, 1.4877, 1e-4, 1.136, 0.8673),
    "Gaussian N = 20": (gaussian(20), 1.7705, 3.55, 1.5441, 1e-4, 1.235, 0.9950),
    "Gaussian N = 50": (gaussian(50), 1.8727, 5.67, 1.7313, 1e-4, 1.35, 1.0354),
    "Gaussian N = 100": (gaussian(100), 1.9603, 7.99, 1.7995, 1e-4, 1.35, 1.0365),
}


@pytest.mark.parametrize("name", TABLE)
def test_rates_are_those_of_the_table_or_lower(name: str) -> None:
    """Any scaling or metric is a proof: found rates may lie below published ones, not above."""
    W, sigma_max, perron, diagonal, tolerance, lmi, floor = TABLE[name]
    found = gl.certificates(vanilla(W))
    assert rate(found, "sigma_max") == pytest.approx(sigma_max, rel=2e-5)
    assert rate(found, "perron") == pytest.approx(perron, rel=2e-3 if perron > 2.5 else 5e-6)
    # The last digit printed is worth 5e-5 in the table's Gaussian rows.
    assert rate(found, "diagonal") <= diagonal * (1.0 + tolerance)
    assert rate(found, "diagonal") >= diagonal * (1.0 - 1e-3)
    assert rate(found, "lmi") <= lmi * 1.01
    assert found.floor is not None
    assert found.floor.rate >= floor * (1.0 - 1e-5)
    assert max(found.floor.rate, floor * (1.0 - 1e-4)) <= rate(found, "lmi")


@pytest.mark.parametrize("name", ["jordan", "rank one", "ring"])
def test_closed_forms_are_met_from_above(name: str) -> None:
    W, _, perron, diagonal, _, _, floor = TABLE[name]
    found = gl.certificates(vanilla(W))
    for certificate, value in (("perron", perron), ("diagonal", diagonal)):
        assert value <= rate(found, certificate) <= value * (1.0 + 1e-6)
    assert found.floor is not None
    assert found.floor.rate == pytest.approx(floor, rel=1e-10)


def test_the_example_of_a_norm_of_1_66_is_certified_to_vanish() -> None:
    found = gl.certificates(vanilla(ROTATING))
    assert found.strongest == "lmi"
    assert rate(found, "lmi") <= 0.95
    assert found["lmi"].vanishing
    assert not found["diagonal"].vanishing


@pytest.mark.parametrize("seed", range(3))
def test_rank_one_infimum_is_the_sum_of_moduli(seed: int) -> None:
    u, v = lcg(40 + seed, 4), lcg(50 + seed, 4)
    found = gl.certificates(vanilla(np.outer(u, v)))
    value = float(np.abs(u * v).sum())
    assert value <= rate(found, "diagonal") <= value * (1.0 + 1e-6)
    assert rate(found, "lmi") <= value * (1.0 + 1e-6)


def test_nonnegative_weights_are_certified_at_their_radius() -> None:
    W = np.abs(lcg(60, 7, 7))
    found = gl.certificates(vanilla(W))
    for name in ("perron", "diagonal", "lmi"):
        assert rate(found, name) == pytest.approx(gl.spectral_radius(W), rel=1e-6)


def test_triangular_infimum_is_the_largest_diagonal_entry_and_its_constant_grows() -> None:
    W = np.triu(lcg(61, 5, 5), 1) + np.diag([0.5, -0.7, 0.3, 0.6, 0.1])
    found = gl.certificates(vanilla(W))
    for name in ("perron", "diagonal", "lmi"):
        assert 0.7 <= rate(found, name) <= 0.7 * (1.0 + 1e-6)
        assert (found[name].constant or 0.0) > 1e6


def test_long_chain_of_units_is_certified_as_far_as_the_constant_allows() -> None:
    """40 units, each driven by all before it: the constant ends near 1e130, the rate above .5."""
    W = np.tril(np.ones((40, 40)), -1) + 0.5 * np.eye(40)
    found = gl.certificates(vanilla(W))
    for name in ("perron", "diagonal", "lmi"):
        assert 0.5 <= rate(found, name) <= 0.51
        assert 1e100 <= (found[name].constant or 0.0) <= 1e140
        assert found[name].status == "proven"


def test_block_triangular_weights_have_the_larger_rate_of_their_blocks() -> None:
    A, B = 0.9 * lcg(21, 3, 3), ROTATING
    W = np.block([[A, np.ones((3, 2))], [np.zeros((2, 3)), B]])
    whole, upper, lower = (gl.certificates(vanilla(M)) for M in (W, A, B))
    for name in ("perron", "diagonal", "lmi"):
        larger = max(rate(upper, name), rate(lower, name))
        assert rate(whole, name) == pytest.approx(larger, rel=2e-6)


def test_zero_weights_have_rate_zero() -> None:
    found = gl.certificates(vanilla(np.zeros((3, 3))))
    assert [found[name].rate for name in NAMES] == [0.0] * 6
    assert found.floor is not None
    assert found.floor.rate == 0.0


def test_nilpotent_weights_are_certified_near_zero_with_a_true_constant() -> None:
    found = gl.certificates(vanilla(np.eye(6, k=1)))
    for name in ("perron", "diagonal", "lmi"):
        r, K = rate(found, name), found[name].constant or 0.0
        assert r <= 0.0011
        # ‖S^5‖ = 1, ‖S^6‖ = 0
        assert K * r**5 >= 1.0


@pytest.mark.parametrize("w", [-1.5, 0.4, 0.0])
def test_a_single_unit_has_its_own_weight(w: float) -> None:
    found = gl.certificates(vanilla(np.array([[w]])))
    for name in NAMES:
        assert rate(found, name) == pytest.approx(abs(w), rel=1e-8)
    assert found.floor is not None
    assert found.floor.rate == pytest.approx(abs(w), rel=1e-12)


def test_orthogonal_weights_gain_nothing_over_their_norm() -> None:
    """All singular values are equal, and D = I attains the bound."""
    Q = np.linalg.qr(lcg(5, 6, 6))[0]
    found = gl.certificates(vanilla(0.95 * Q))
    for name in ("sigma_max", "diagonal", "lmi"):
        assert rate(found, name) == pytest.approx(0.95, rel=1e-8)
    assert found.floor is not None
    assert found.floor.rate == pytest.approx(0.95, rel=1e-12)


def test_defective_weights_have_no_false_floor() -> None:
    """Rounding splits the fivefold eigenvalue .5 by 1e-3; the floor must not believe it."""
    found = gl.certificates(vanilla(0.5 * np.eye(5) + np.eye(5, k=1)))
    assert found.floor is not None
    assert found.floor.rate <= 0.5
    assert rate(found, "diagonal") <= 0.5 * (1.0 + 1e-6)


@pytest.mark.parametrize("exponent", [664, -664])
@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_certificates_scale_with_the_weights(exponent: int, activation: str) -> None:
    """2^664 is about 1e200: the products of entries leave the range, the certificates do not."""
    W = 0.9 * lcg(21, 3, 3)
    plain = gl.certificates(vanilla(W, activation))
    scaled = gl.certificates(vanilla(np.ldexp(W, exponent), activation))
    for name in NAMES:
        assert rate(scaled, name) == math.ldexp(rate(plain, name), exponent)
        assert scaled[name].constant == plain[name].constant


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_huge_and_tiny_weights_of_leaky_units_are_ordinary(factor: float) -> None:
    found = gl.certificates(leaky(factor * lcg(21, 3, 3), 0.3))
    for name in NAMES:
        assert found[name].status == "proven"
        if factor < 1.0:
            assert rate(found, name) == pytest.approx(0.7, rel=1e-8)


def test_weights_three_hundred_decades_apart_are_bounded_all_the_same() -> None:
    """Only the product of the couplings, 1e-10, counts in the end: ρ = .200000001."""
    found = gl.certificates(vanilla(np.array([[0.1, 1e150], [1e-160, 0.2]])))
    for name in NAMES:
        assert rate(found, name) >= 0.15 + math.sqrt(0.05**2 + 1e-10)
        # ‖W‖ = 1e150
        assert (found[name].constant or 0.0) * rate(found, name) >= 1e150


def test_rates_of_the_smallest_numbers_are_rounded_up() -> None:
    """All entries are the smallest float there is: ‖W‖ = 3 of it, and no bound may be less."""
    least = math.ulp(0.0)
    found = gl.certificates(vanilla(np.full((3, 3), least)))
    for name in NAMES:
        assert 3 * least <= rate(found, name) <= 4 * least
    assert found.floor is not None
    assert found.floor.rate == 0.0


def test_rates_order_themselves_as_theory_says() -> None:
    for seed in range(4):
        found = gl.certificates(vanilla(lcg(70 + seed, 4, 4)))
        room = 1.0 + 1e-6
        assert rate(found, "lmi") <= rate(found, "diagonal") * room
        assert rate(found, "diagonal") <= rate(found, "sigma_max") * room
        assert rate(found, "diagonal") <= rate(found, "perron") * (1.0 + 1e-4)
        assert rate(found, "perron") <= rate(found, "norm_1") * room
        assert rate(found, "perron") <= rate(found, "norm_inf") * room


def test_gamma_a_enters_every_rate() -> None:
    """Slopes of the logistic function end at 1/4: every rate is a quarter of that of tanh."""
    W = 0.9 * lcg(21, 3, 3)
    quarter, whole = gl.certificates(vanilla(W, "sigmoid")), gl.certificates(vanilla(W))
    for name in NAMES:
        assert 4.0 * rate(quarter, name) == pytest.approx(rate(whole, name), rel=1e-9)


def test_linear_units_are_certified_at_the_spectral_radius() -> None:
    """Their slope is 1, always: the products are powers of W."""
    found = gl.certificates(vanilla(ROTATING, "identity"))
    assert rate(found, "lmi") == pytest.approx(gl.spectral_radius(ROTATING), rel=1e-4)


@pytest.mark.parametrize(("w", "factor"), [(1.5, 1.15), (-1.5, 0.25)])
def test_a_leaky_linear_unit_has_its_effective_factor(w: float, factor: float) -> None:
    found = gl.certificates(leaky(np.array([[w]]), 0.3, "identity"))
    for name in NAMES:
        assert rate(found, name) == pytest.approx(factor, rel=1e-8)


def test_leak_one_is_the_vanilla_cell() -> None:
    W = 0.9 * lcg(21, 3, 3)
    assert dict(gl.certificates(leaky(W, 1.0))) == dict(gl.certificates(vanilla(W)))


def test_leaky_norms_never_exceed_the_triangle_inequality() -> None:
    for leak in (0.1, 0.5, 0.9):
        W = 0.9 * lcg(21, 3, 3)
        found = gl.certificates(leaky(W, leak))
        triangle = 1.0 - leak + leak * gl.spectral_norm(W)
        assert rate(found, "sigma_max") <= triangle * (1.0 + 1e-9)


def slopes(activation: str) -> tuple[float, float]:
    phi = gl.activation(activation)
    return phi.inf_derivative, phi.sup_derivative


def log_norm_of_products(
    draw: Callable[[], Array], W: Array, leak: float, steps: int
) -> list[float]:
    """ln ‖J_l ... J_1‖ for l = 1..steps, rescaled in every step."""
    product, scale = np.eye(len(W)), 0.0
    norms: list[float] = []
    for _ in range(steps):
        product = ((1.0 - leak) * np.eye(len(W)) + leak * draw()[:, None] * W) @ product
        size = float(np.linalg.norm(product, 2))
        if size == 0.0:
            return norms
        product, scale = product / size, scale + math.log(size)
        norms.append(scale)
    return norms


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    gain=st.floats(0.1, 3.0),
    leak=st.sampled_from([1.0, 1.0, 0.7, 0.2]),
    activation=st.sampled_from(["tanh", "gelu", "silu", "leaky_relu", "selu", "sigmoid", "erf"]),
    density=st.sampled_from([1.0, 0.4]),
)
def test_no_product_of_possible_jacobians_exceeds_its_certificate(
    n: int, seed: int, gain: float, leak: float, activation: str, density: float
) -> None:
    rng = np.random.default_rng(seed)
    W = gain * rng.standard_normal((n, n)) * (rng.random((n, n)) < density)
    found = gl.certificates(leaky(W, leak, activation))
    low, high = slopes(activation)
    draws: list[Callable[[], Array]] = [
        lambda: rng.uniform(low, high, n),
        lambda: rng.choice([low, high], n),
        lambda: np.full(n, high),
    ]
    for draw in draws:
        norms = np.array(log_norm_of_products(draw, W, leak, 25))
        lag = np.arange(1, len(norms) + 1)
        for name in NAMES:
            r, K = found[name].rate, found[name].constant
            assert r is not None
            assert K is not None
            assert r > 0.0 or len(norms) == 0
            bound = math.log(K) + lag * (math.log(r) if r else -math.inf)
            assert np.all(norms <= bound + 1e-9)
        if found.floor is not None:
            least = min(rate(found, name) for name in NAMES)
            assert found.floor.rate <= least * (1.0 + 1e-9)


@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_slopes_below_zero_are_certified_too(activation: str) -> None:
    """Slopes of both signs in turn grow faster than any slopes in [0, γ_a]: here by 7 % and 5 %.

    A multiplier for slopes in [0, γ_a] would certify less than that.
    """
    low, high = slopes(activation)
    W = np.array([[0.9, 0.9], [0.9, -0.9]])
    vertices = [np.array(d) for d in itertools.product([low, high], repeat=2)]
    pairs = itertools.product(vertices, repeat=2)
    worst = max(gl.spectral_radius((a[:, None] * W) @ (b[:, None] * W)) ** 0.5 for a, b in pairs)
    found = gl.certificates(vanilla(W, activation))
    assert worst <= rate(found, "lmi") * (1.0 + 1e-9)


def test_floor_is_the_largest_radius_of_all_choices_of_slopes() -> None:
    for seed in range(10):
        W = lcg(80 + seed, 4, 4)
        every = max(
            gl.spectral_radius(W[np.ix_(chosen, chosen)])
            for size in range(1, 5)
            for chosen in itertools.combinations(range(4), size)
        )
        floor = gl.certificates(vanilla(W), search=False).floor
        assert floor is not None
        assert floor.rate <= every * (1.0 + 1e-12)
        own = gl.spectral_radius(W[np.ix_(floor.units, floor.units)])
        assert floor.rate == pytest.approx(own, rel=1e-9)


def test_a_pair_that_grows_refutes_every_certificate() -> None:
    W = np.diag([0.1, 0.2, 0.3])
    W[0, 2], W[2, 0], W[2, 1] = 1.3, 1.0, -5.0
    floor = gl.certificates(vanilla(W), search=False).floor
    assert floor is not None
    assert floor.refutes
    assert {0, 2} <= set(floor.units)
    # Both roots of x² - .4 x + .03 - 1.3
    assert floor.rate == pytest.approx(0.2 + math.sqrt(0.04 - 0.03 + 1.3), rel=1e-9)


def test_without_a_search_the_searched_ones_are_skipped_and_say_so() -> None:
    found = gl.certificates(vanilla(ROTATING), search=False)
    for name in ("diagonal", "lmi"):
        assert (found[name].rate, found[name].constant, found[name].status) == (
            None,
            None,
            "skipped",
        )
    assert found.strongest == "sigma_max"


def test_no_time_is_no_search() -> None:
    assert gl.certificates(vanilla(ROTATING), budget=0)["lmi"].status == "skipped"


@pytest.mark.parametrize("budget", [-1.0, math.inf, math.nan])
def test_a_budget_that_is_no_time_is_refused(budget: float) -> None:
    with pytest.raises(gl.SettingError, match="expected seconds"):
        gl.certificates(vanilla(ROTATING), budget=budget)


def test_equal_weights_give_equal_certificates() -> None:
    cell = vanilla(gaussian(12))
    assert dict(gl.certificates(cell)) == dict(gl.certificates(cell))


def test_time_that_runs_out_leaves_the_best_that_is_proven() -> None:
    """A search that may not take a step still has its start: the scaling S = I."""
    found = gl.certificates(vanilla(gaussian(150)), budget=0.08)
    for name in ("diagonal", "lmi"):
        assert found[name].status in ("proven, search stopped", "skipped")
        assert (found[name].rate or 0.0) <= rate(found, "sigma_max") * (1.0 + 1e-6)


def test_of_equal_rates_the_one_with_the_smaller_constant_is_strongest() -> None:
    found = gl.certificates(vanilla(np.diag([0.9, 0.5])))
    strongest = found.strongest
    assert strongest is not None
    assert found[strongest].constant == 1.0


def test_a_missing_certificate_is_named_with_the_nearest() -> None:
    with pytest.raises(gl.UnknownNameError, match="did you mean 'lmi'"):
        gl.certificates(vanilla(ROTATING))["lmu"]


def test_the_table_has_a_row_a_certificate() -> None:
    table = gl.certificates(vanilla(ROTATING), search=False).to_frame()
    assert list(table.certificate) == list(NAMES)
    assert list(table.columns) == ["certificate", "rate", "constant", "status", "holds_for"]
    assert np.isnan(table.rate.iloc[-1])


def gated(cell: str, seed: int, scale: float, **options: Any) -> gl.LSTMCell | gl.GRUCell:
    """Weights of each gate from seeds of their own, as the reference values have them."""
    gates, kind = (4, gl.LSTMCell) if cell == "lstm" else (3, gl.GRUCell)

    def stacked(first: int, *shape: int) -> Array:
        blocks = [lcg(seed + first + gate, *shape) for gate in range(gates)]
        return np.asarray(scale * np.concatenate(blocks))

    return kind(
        W_x=stacked(1, 4, 1),
        W_h=stacked(1 + gates, 4, 4),
        b_x=stacked(1 + 2 * gates, 4),
        **options,
    )


def test_an_lstm_is_certified_for_bounded_inputs() -> None:
    found = gl.certificates(gated("lstm", 700, 0.25, forget_bias=-1.0), input_bound=1.0)
    assert list(found) == ["gamma_lstm"]
    assert rate(found, "gamma_lstm") == pytest.approx(0.92004839131132, rel=1e-9)
    assert found["gamma_lstm"].holds_for == (
        "every input with |x| <= 1, from |h_0| <= 1 and |c_0| <= 1.12925 on"
    )


@pytest.mark.parametrize(
    ("bound", "told"), [(0.1, "0.1"), (2.3141599, "2.31415"), (0.0, "0"), (12.34567, "12.3456")]
)
def test_limits_are_told_rounded_down(bound: float, told: str) -> None:
    found = gl.certificates(gated("lstm", 700, 0.25, forget_bias=-1.0), input_bound=bound)
    assert found["gamma_lstm"].holds_for.startswith(f"every input with |x| <= {told}, from ")


def test_a_gru_is_certified_for_bounded_inputs_only() -> None:
    """Where z comes to 1 the state is kept: without a limit the rate is 1."""
    cell = gated("gru", 300, 0.15)
    small, large = (gl.certificates(cell, input_bound=X) for X in (1.0, 1e9))
    assert rate(small, "gamma_gru") < rate(large, "gamma_gru")
    assert rate(large, "gamma_gru") == pytest.approx(1.0, rel=1e-9)
    assert "|x| <= 1," in small["gamma_gru"].holds_for
    assert large["gamma_gru"].holds_for == "every input, from |h_0| <= 1 on"


def test_a_cell_that_no_certificate_covers_has_none() -> None:
    layer = vanilla(ROTATING)
    found = gl.certificates(gl.JointCell({"a": layer}))
    assert dict(found) == {}
    assert found.strongest is None
    assert found.floor is None


def test_an_lstm_without_a_limit_of_its_cell_says_why() -> None:
    cell = gl.LSTMCell(W_x=np.zeros((4, 1)), W_h=np.zeros((4, 1)), forget_bias=60.0)
    found = gl.certificates(cell)["gamma_lstm"]
    assert found.rate is None
    assert found.status.startswith("not found: ")


def test_a_run_holds_the_cheap_certificates_and_all_on_request() -> None:
    cell = gl.VanillaCell(W_hh=ROTATING, W_xh=np.eye(2))
    inputs = np.random.default_rng(0).standard_normal((12, 2, 2))
    cheap = gl.analyze(cell, inputs).only().certificates
    assert cheap["lmi"].status == "skipped"
    assert cheap["perron"].found
    whole = gl.analyze(cell, inputs, certificates="all")
    assert dict(whole.only().certificates) == dict(gl.certificates(cell))
    summary = whole.summary()["recurrences"][0]
    assert summary["certificates"]["lmi"]["rate"] == whole.only().certificates["lmi"].rate
    assert summary["strongest_certificate"] == "lmi"
    with pytest.raises(gl.UnknownNameError, match="did you mean 'all'"):
        gl.analyze(cell, inputs, certificates="alle")


def test_a_saved_run_keeps_its_certificates(tmp_path: Path) -> None:
    cell = gl.VanillaCell(W_hh=ROTATING, W_xh=np.eye(2))
    inputs = np.random.default_rng(0).standard_normal((12, 2, 2))
    measured = gl.analyze(cell, inputs, certificates="all")
    read = gl.load_run(gl.save(measured, tmp_path / "run")).only().certificates
    assert dict(read) == dict(measured.only().certificates)
    assert read.floor == measured.only().certificates.floor
