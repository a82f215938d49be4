"""Weights at the edge of everything are ordinary inputs: numbers or named statuses, no warning."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.records import certificates as status

RANDOM = np.random.default_rng(0).standard_normal((5, 5))
WEIGHTS = {
    "zero": np.zeros((3, 3)),
    "nilpotent": np.eye(5, k=1),
    "rank one": np.outer([1.0, 2.0, 2.0], [0.3, 0.1, -0.2]),
    "one unit": np.array([[1.5]]),
    "one unit of weight 0": np.array([[0.0]]),
    "one unit of weight below -1": np.array([[-2.0]]),
    "defective": np.array([[0.9, 1.0], [0.0, 0.9]]),
    "huge": 1e200 * RANDOM,
    "tiny": 1e-200 * RANDOM,
    "very huge": np.full((3, 3), 1e300),
    "near the smallest number": np.full((3, 3), 1e-307),
    "orthogonal": np.linalg.qr(RANDOM)[0],
    "identity": np.eye(4),
    "repeated singular values": np.diag([0.5, -0.5, 0.5, 0.2]),
    "four hundred decades": np.diag([1e200, 1e-200, 1.0]),
    "coupled over four hundred decades": np.array([[0.0, 1e200], [1e-200, 0.0]]),
}
STATUSES = {status.PROVEN, status.STOPPED, status.UNVERIFIED, status.SKIPPED, status.NOT_FOUND}
VERDICTS = {"vanishing", "near-critical", "exploding", "undecided"}
every_kind = pytest.mark.parametrize("name", WEIGHTS)


def cell_of(W: Array, activation: str = "tanh") -> gl.VanillaCell:
    return gl.VanillaCell(W_hh=W, W_xh=np.ones((len(W), 1)), activation=activation)


def product_norms(run: gl.Trajectory, cell: gl.VanillaCell) -> Array:
    """ln of the norm of the product over the run, a QR a step; -inf where it is 0."""
    Q, log_R = np.eye(len(cell.W_hh)), 0.0
    for step in cell.linearize(run):
        P = step.matrix()[0] @ Q
        largest = np.abs(P).max()
        if largest == 0.0:
            return np.array(-math.inf)
        Q, log_R = P / largest, log_R + math.log(largest)
    return np.array(log_R + math.log(np.linalg.norm(Q, 2)))


@every_kind
def test_weights_are_inspected(name: str) -> None:
    W = WEIGHTS[name]
    document = gl.inspect(cell_of(W))
    (entry,) = document["recurrences"]
    json.dumps(document, allow_nan=False)
    assert set(entry["certificates"]) == {
        "sigma_max", "norm_1", "norm_inf", "perron", "diagonal", "lmi",
    }  # fmt: skip
    for certificate in entry["certificates"].values():
        assert certificate["status"] in STATUSES
        assert (certificate["rate"] is None) == (certificate["constant"] is None)
    assert entry["strongest_certificate"] is not None
    assert entry["gamma_w"] is not None
    assert entry["spectral_radius"] is not None


@every_kind
def test_certificates_bound_the_powers(name: str) -> None:
    """At h = 0 the product over l steps is W^l: no constant and rate may be passed by it."""
    W = WEIGHTS[name]
    resting = gl.rollout(cell_of(W), np.zeros((6, 1, 1)))
    profile = gl.jacobian_profile(cell_of(W), resting, anchors="last", smallest=False)
    found = gl.certificates(cell_of(W))
    assert any(certificate.found for certificate in found.values())
    for certificate in found.values():
        if certificate.rate == 0.0:
            assert np.isneginf(profile.log_norm).all()
        elif certificate.rate is not None:
            assert certificate.constant is not None
            bound = math.log(certificate.constant) + profile.lag * math.log(certificate.rate)
            assert np.all(profile.log_norm <= bound + 1e-9 * (1.0 + np.abs(bound)))


@every_kind
def test_runs_are_analyzed(name: str) -> None:
    cell = cell_of(WEIGHTS[name])
    dynamics = gl.analyze(cell, np.full((6, 2, 1), 0.1)).only()
    assert dynamics.regime.name in VERDICTS
    assert not math.isnan(dynamics.regime.rate)
    run = gl.rollout(cell, np.full((6, 2, 1), 0.1))
    longest = dynamics.jacobians.log_norm[dynamics.jacobians.lag == 6][0]
    assert longest == pytest.approx(float(product_norms(run, cell)), abs=1e-6)
    ladder = dynamics.ladder
    for rung in ("gamma", "saturation", "onestep", "blocks"):
        assert np.all(ladder.rungs[rung] >= ladder.rungs["exact"] - 1e-6)


@every_kind
def test_lyapunov_spectra_lose_no_finite_exponent(name: str) -> None:
    """The largest is that of the product, and the number of finite ones the rank it keeps."""
    cell = cell_of(WEIGHTS[name])
    run = gl.rollout(cell, np.full((40, 1, 1), 0.1))
    spectrum = gl.lyapunov_spectrum(cell, run)
    assert not np.isnan(spectrum.exponents).any()
    log_norm = float(product_norms(run, cell))
    if math.isinf(log_norm):
        assert spectrum.leading == -math.inf
    else:  # a random frame sees it up to the angle between them
        assert spectrum.leading == pytest.approx(log_norm / 40.0, abs=0.2)


@every_kind
def test_kreiss_constants_are_at_least_one_and_below_the_largest_power(name: str) -> None:
    W = WEIGHTS[name]
    constant, (height, _) = gl.kreiss_constant(W), gl.power_transient(W)
    assert constant >= 1.0
    if not math.isnan(height):
        assert math.log(constant) <= height + 1e-6
