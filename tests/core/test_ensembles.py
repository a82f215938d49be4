"""Which matrices could be random, and the theory that a run of such a network carries along."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gradlab as gl
from gradlab.analysis.ensembles import random_ensemble
from gradlab.arrays import Array
from gradlab.cells.initializers import recurrent_weights

SIZES = (16, 40, 100)


def draw(kind: str, n: int, seed: int) -> Array:
    return recurrent_weights(kind, n, rng=np.random.default_rng(seed), gain=1.7)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("kind", "ensemble"),
    [("gaussian", "gaussian"), ("uniform", "gaussian"), ("orthogonal", "orthogonal")],
)
def test_random_matrices_are_recognized_at_any_scale(kind: str, ensemble: str, n: int) -> None:
    found = {random_ensemble(10.0**seed * draw(kind, n, seed)) for seed in range(20)}
    assert found == {ensemble}


def structured(name: str, n: int) -> Array:
    rng = np.random.default_rng(1)
    W = draw("gaussian", n, 1)
    u, v = rng.standard_normal((2, n)) / math.sqrt(n)
    return {
        "identity": np.eye(n),
        "permutation": np.eye(n)[rng.permutation(n)],
        "shift": np.eye(n, k=1),
        "zero": np.zeros((n, n)),
        "symmetric": W + W.T,
        "antisymmetric": W - W.T,
        "triangular": np.triu(W),
        "self-coupled": W + 2.0 * np.eye(n),
        "one direction": W + 10.0 * np.outer(u, v),
        "excitatory": np.abs(W),
        "low rank": W[:, : n // 2] @ W[: n // 2] / math.sqrt(n),
        "sparse": W * (rng.random((n, n)) < 0.05),
        "diagonal": np.diag(rng.standard_normal(n)),
        "scaled rows": np.exp(rng.standard_normal(n))[:, None] * W,
    }[name]


@pytest.mark.parametrize("n", [40, 100])
@pytest.mark.parametrize("name", [
    "identity", "permutation", "shift", "zero", "symmetric", "antisymmetric", "triangular",
    "self-coupled", "one direction", "excitatory", "low rank", "sparse", "diagonal", "scaled rows",
])  # fmt: skip
def test_matrices_with_structure_are_not_taken_for_random(name: str, n: int) -> None:
    assert random_ensemble(structured(name, n)) is None


def test_of_few_units_nothing_is_said() -> None:
    assert random_ensemble(draw("gaussian", 15, 0)) is None


def network(**settings: Any) -> gl.VanillaCell:
    given = {"input_size": 6, "hidden_size": 64, "gain": 1.5} | settings
    return gl.VanillaCell.initialize(rng=np.random.default_rng(3), **given)


def run(cell: gl.VanillaCell, std: float = 0.5) -> gl.Trajectory:
    inputs = std * np.random.default_rng(4).standard_normal((200, 3, 6))
    return gl.rollout(cell, inputs, lengths=np.array([200, 150, 100]))


def test_gain_input_and_bias_are_measured() -> None:
    cell = network(gain=1.2, bias_std=0.4)
    theory = gl.mean_field_of(cell, run(cell))
    assert theory is not None
    assert theory.gain == pytest.approx(np.linalg.norm(cell.W_hh) / 8.0, rel=1e-12)
    # Sums of 64 * 6 squared weights, and of 64 squared biases.
    assert theory.input_std == pytest.approx(0.5, rel=0.12)
    assert theory.bias_std == pytest.approx(0.4, rel=0.25)
    assert (theory.activation, theory.ensemble) == ("tanh", "gaussian")


def test_a_constant_input_counts_as_a_bias() -> None:
    cell = network()
    constant = np.broadcast_to(np.random.default_rng(5).standard_normal(6), (30, 1, 6))
    theory = gl.mean_field_of(cell, gl.rollout(cell, constant))
    assert theory is not None
    drive = cell.W_xh @ constant[0, 0]
    assert theory.input_std == pytest.approx(0.0, abs=1e-12)
    assert theory.bias_std == pytest.approx(math.sqrt(np.mean(drive**2)), rel=1e-12)


def test_padding_does_not_count() -> None:
    cell = network()
    inputs = np.random.default_rng(4).standard_normal((200, 3, 6))
    lengths = np.array([200, 150, 100])
    padded = inputs.copy()
    padded[np.arange(200)[:, None] >= lengths] = 1e3
    one, other = (
        gl.mean_field_of(cell, gl.rollout(cell, x, lengths=lengths)) for x in (inputs, padded)
    )
    assert one is not None
    assert other is not None
    assert one.input_std == other.input_std


def test_measured_exponent_lies_in_the_band_of_the_theory_of_its_run() -> None:
    """N = 300 with as many inputs as units, so that each has noise of its own."""
    rng = np.random.default_rng(8)
    cell = gl.VanillaCell.initialize(input_size=300, hidden_size=300, gain=2.5, rng=rng)
    trajectory = gl.rollout(cell, 0.5 * rng.standard_normal((300, 1, 300)))
    theory = gl.mean_field_of(cell, trajectory)
    assert theory is not None
    v, growth = rng.standard_normal((1, 300, 1)), 0.0
    for step in cell.linearize(trajectory)[50:]:
        v = step.apply(v)
        growth += math.log(np.linalg.norm(v))
        v /= np.linalg.norm(v)
    low, high = theory.band(300, 250)
    assert low <= growth / 250 <= high


@pytest.mark.parametrize("activation", ["tanh", "identity", "gelu"])
def test_at_the_fixed_point_theory_is_that_of_powers(activation: str) -> None:
    """Newman's law and the Fuss-Catalan edge at the slope of 0: chaos never starts."""
    cell = network(gain=3.0, activation=activation)
    resting = gl.rollout(cell, np.zeros((20, 2, 6)))
    theory = gl.mean_field_of(cell, resting)
    assert theory is not None
    log_gain = math.log(np.linalg.norm(cell.W_hh) / 8.0)
    log_slope = math.log(0.5) if activation == "gelu" else 0.0
    assert theory.q == 0.0
    assert theory.kappa == pytest.approx(1.0, rel=1e-12)
    assert theory.lambda_1 == pytest.approx(log_gain + log_slope, abs=1e-12)
    for p in (0.1, 0.5, 0.9):
        newman = log_gain + log_slope + 0.5 * math.log(1.0 - p)
        assert float(theory.spectrum(p)) == pytest.approx(newman, abs=1e-9)
    for lag in (1, 5, 20):
        expected = theory.log_power_norm(lag) + lag * log_slope
        assert theory.log_norm(lag) == pytest.approx(expected, abs=1e-9)
    # The matrix's own radius is what the run has: above that of the limit, by some per cent.
    own = math.log(gl.spectral_radius(cell.W_hh)) + log_slope
    assert theory.lambda_1 - 0.05 <= own <= theory.lambda_1 + 0.2


def test_chaos_that_has_not_begun_has_no_theory_and_that_which_has_does() -> None:
    cell = network(gain=3.0)
    rng = np.random.default_rng(6)
    faint, plain = (
        gl.rollout(cell, np.zeros((5, 1, 6)), initial_state=scale * rng.standard_normal((1, 64)))
        for scale in (1e-9, 0.5)
    )
    assert gl.mean_field_of(cell, faint) is None
    theory = gl.mean_field_of(cell, plain)
    assert theory is not None
    assert theory.q > 5.0


def test_below_the_critical_gain_the_fixed_point_is_the_theory_anyway() -> None:
    cell = network(gain=0.8)
    theory = gl.mean_field_of(cell, gl.rollout(cell, np.zeros((20, 2, 6))))
    assert theory is not None
    plain = gl.mean_field("tanh", gain=theory.gain)
    assert theory.to_summary(64, 40) == plain.to_summary(64, 40)


def test_there_is_no_theory_of_a_state_at_a_kink() -> None:
    cell = network(gain=1.2, activation="relu")
    assert gl.mean_field_of(cell, gl.rollout(cell, np.zeros((20, 2, 6)))) is None


@pytest.mark.parametrize("bias", [0.3, -2.0])
def test_there_is_no_theory_of_units_that_are_driven_off_zero(bias: float) -> None:
    cell = network(bias=bias)
    assert gl.mean_field_of(cell, run(cell)) is None


def test_there_is_no_theory_of_other_cells() -> None:
    rng = np.random.default_rng(0)
    gru = gl.GRUCell.initialize(input_size=6, hidden_size=64, rng=rng)
    assert gl.mean_field_of(gru, gl.rollout(gru, rng.standard_normal((5, 1, 6)))) is None
    plain = network()
    clipped = gl.VanillaCell(W_hh=plain.W_hh, W_xh=plain.W_xh, clip=1.0)
    assert gl.mean_field_of(clipped, run(clipped)) is None


def test_a_run_keeps_the_theory_and_its_spectrum(tmp_path: Path) -> None:
    cell = network(recurrent="orthogonal", activation="hard_tanh")
    dynamics = gl.analyze(cell, np.random.default_rng(4).standard_normal((40, 2, 6)))
    folder = gl.save(dynamics, tmp_path / "run")
    theory = dynamics.only().mean_field
    assert theory is not None
    summary = json.loads((folder / "summary.json").read_text())["recurrences"][0]["mean_field"]
    assert summary["ensemble"] == "orthogonal"
    assert summary["lambda_1"] == theory.lambda_1
    assert (summary["lambda_1_low"], summary["lambda_1_high"]) == theory.band(64, 80)
    assert summary["mean_exponent"] == "-inf"
    table = pd.read_csv(folder / "mean_field.csv")
    assert list(table.columns) == ["recurrence", "index", "p", "exponent"]
    assert table["p"].tolist() == [(i + 0.5) / 64 for i in range(64)]
    np.testing.assert_array_equal(table["exponent"], theory.spectrum(table["p"].to_numpy()))
    profile = pd.read_csv(folder / "mean_field_profile.csv")
    assert list(profile.columns) == ["recurrence", "lag", "log_norm"]
    assert profile["lag"].tolist() == list(range(1, 41))
    np.testing.assert_array_equal(profile["log_norm"], theory.log_norms(np.arange(1, 41), 64))
    again = gl.load_run(folder).only().mean_field
    assert again is not None
    assert again.spectrum(0.2) == theory.spectrum(0.2)
    assert again.to_summary(64, 80) == theory.to_summary(64, 80)


def test_theory_is_read_back_to_the_last_bit(tmp_path: Path) -> None:
    dynamics = gl.analyze(network(), np.random.default_rng(4).standard_normal((12, 2, 6)))
    theory = dynamics.only().mean_field
    again = gl.load_run(gl.save(dynamics, tmp_path / "run")).only().mean_field
    assert theory is not None
    assert again is not None
    np.testing.assert_array_equal(again.slopes.weight, theory.slopes.weight)
    assert again.to_summary(64, 24) == theory.to_summary(64, 24)


def test_a_run_without_a_theory_says_so(tmp_path: Path) -> None:
    cell = network(recurrent="identity")
    folder = gl.save(gl.analyze(cell, np.ones((9, 1, 6))), tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())["recurrences"][0]
    assert summary["mean_field"] is None
    assert not (folder / "mean_field.csv").exists()
