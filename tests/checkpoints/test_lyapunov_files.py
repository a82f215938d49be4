"""Lyapunov exponents of real files, against a QR a step of automatic differentiation's Jacobians.

The oracles begin with the identity, factor at every step, and do not sort.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.stack import Recurrence

FILES = [
    "dyn_chaotic.npz", "dyn_explode.npz", "dyn_nonnormal.npz", "dyn_orthogonal.npz",
    "dyn_vanish.npz", "rnn_tanh_1l.pt", "rnn_tanh_nobias.pt", "rnn_relu_2l.pt", "rnn_tanh_bi_2l.pt",
    "trained_rnn_echo3.pt", "lstm_1l.pt", "lstm_2l_lightning.pt",
    "lstm_2l_bi_flatbuf.pt", "lstm_proj_2l.pt", "trained_lstm_echo8.pt", "gru_1l.pt",
    "gru_2l_dataparallel.pt", "gru_bi_1l.pt", "trained_gru_echo8.pt",
]  # fmt: skip
# Rounding of the oracle's own small exponents, and of weights read in another order.
AGREEMENT = 1e-9


def oracle_of(models: Path, name: str) -> dict[str, Array]:
    with np.load(models / f"{name.rpartition('.')[0]}.oracle.npz", allow_pickle=False) as stored:
        return dict(stored)


def start_of(oracle: dict[str, Array], entry: Recurrence, key: str) -> Array:
    """State before the first step: zeros where the oracle has none."""
    if f"s_{key}" in oracle:
        return oracle[f"s_{key}"][:1]
    if "h0" in oracle:
        return np.asarray(oracle["h0"][entry.layer])[None]
    return np.zeros((1, entry.cell.state_size))


@pytest.mark.parametrize("name", FILES)
def test_exponents_of_a_file_are_those_of_its_framework(models: Path, name: str) -> None:
    oracle = oracle_of(models, name)
    network = gl.load(models / name, nonlinearity="relu" if "relu" in name else None)
    keys = {
        entry.name: f"l{entry.layer}" + "_reverse" * (entry.direction == "backward")
        for entry in network.recurrences
    }
    starts = {e.name: start_of(oracle, e, keys[e.name]) for e in network.recurrences}
    runs = gl.rollout_network(network, oracle["x"][:, None], initial_state=starts)
    for entry in network.recurrences:
        spectrum = gl.lyapunov_spectrum(
            entry.cell, runs[entry.name], initial_frame=np.eye(entry.cell.state_size)
        )
        expected = oracle[f"lyap_qr_{keys[entry.name]}"]
        np.testing.assert_allclose(
            spectrum.exponents, expected, rtol=AGREEMENT, atol=AGREEMENT, err_msg=entry.name
        )
        assert spectrum.sum_rule_residual < 1e-9 * len(expected)


def test_stack_whose_lower_layer_died_keeps_the_exponents_of_the_upper_one(models: Path) -> None:
    """A QR that puts arbitrary vectors in the place of the lost ones gives -4.8, -16 and -27."""
    oracle = oracle_of(models, "rnn_relu_2l.pt")
    joint = gl.load(models / "rnn_relu_2l.pt", nonlinearity="relu").joint()
    start = np.concatenate(list(oracle["h0"]))[None]
    run = gl.rollout(joint, oracle["x"][:, None], initial_state=start)
    spectrum = gl.lyapunov_spectrum(joint, run, initial_frame=np.eye(10))
    expected = np.concatenate([oracle["lyap_qr_l0"], oracle["lyap_qr_l1"]])
    np.testing.assert_allclose(spectrum.exponents, expected, atol=AGREEMENT)
    assert oracle["lyap_qr_stack"][5] < -4.8


def test_saturated_file_keeps_the_exponents_that_plain_factors_lose(models: Path) -> None:
    """Its oracle misses the smallest exponent by 0.9, as the determinants show."""
    oracle = oracle_of(models, "dyn_saturated.npz")
    network = gl.load(models / "dyn_saturated.npz")
    cell = network.only()
    run = gl.rollout(cell, oracle["x"][:, None], initial_state=oracle["h0"][0][None])
    spectrum = gl.lyapunov_spectrum(cell, run, initial_frame=np.eye(8))
    expected = oracle["lyap_qr_l0"]
    np.testing.assert_allclose(spectrum.exponents[:6], expected[:6], atol=1e-7)
    log_det = float(cell.linearize(run).log_abs_det().mean())
    assert spectrum.exponents.sum() == pytest.approx(log_det, abs=8e-9)
    assert expected.sum() - log_det > 0.8
