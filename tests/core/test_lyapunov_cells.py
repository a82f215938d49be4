"""Lyapunov spectra of cells: saturation, lost ranks, gated states, padding, and the large-N law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.arrays import Array
from gradlab.cells.base import Cell


def linear(W: Array, activation: str = "identity") -> gl.VanillaCell:
    return gl.VanillaCell(W_hh=W, W_xh=np.zeros((len(W), 1)), activation=activation)


def at_rest(cell: Cell, steps: int, start: float = 0.0) -> gl.Trajectory:
    state = np.full(cell.state_size, start)
    return gl.rollout(cell, np.zeros((steps, 1, cell.input_size)), initial_state=state)


def driven(
    n: int, gain: float, steps: int, *, std: float = 0.0, batch: int = 1, **more: Any
) -> tuple[gl.VanillaCell, gl.Trajectory]:
    """A random tanh cell after a hundred steps, with noise of its own for each unit."""
    rng = np.random.default_rng(n)
    random = gl.VanillaCell.initialize(input_size=n, hidden_size=n, gain=gain, rng=rng, **more)
    cell = gl.VanillaCell(W_hh=random.W_hh, W_xh=np.eye(n), activation=random.activation)
    noise = std * rng.standard_normal((steps + 100, batch, n))
    start = gl.rollout(cell, noise[:100], initial_state=rng.standard_normal((batch, n)))
    return cell, gl.rollout(cell, noise[100:], initial_state=start.final_states)


def mean_log_det(cell: Cell, trajectory: gl.Trajectory) -> float:
    steps = cell.linearize(trajectory)
    return float(np.mean([np.linalg.slogdet(step.matrix())[1] for step in steps]))


def textbook(cell: Cell, trajectory: gl.Trajectory) -> Array:
    Q, total = np.eye(cell.state_size), np.zeros(cell.state_size)
    for step in cell.linearize(trajectory):
        Q, R = np.linalg.qr(step.matrix()[0] @ Q)
        total += np.log(np.abs(np.diag(R)))
    return total / trajectory.steps


def test_saturated_units_do_not_spoil_the_small_exponents() -> None:
    """The trap: rows of D W Q span many orders of magnitude, and plain QR loses the small ones."""
    cell, trajectory = driven(100, 10.0, 200)
    spectrum = gl.lyapunov_spectrum(cell, trajectory)
    log_det = mean_log_det(cell, trajectory)
    assert spectrum.exponents.sum() == pytest.approx(log_det, abs=1e-9 * 100)
    assert spectrum.sum_rule_residual < 1e-9 * 100
    assert textbook(cell, trajectory).mean() - log_det / 100 > 0.05


def test_zero_matrix_has_no_finite_exponent() -> None:
    """Case H3."""
    cell = linear(np.zeros((3, 3)), "tanh")
    spectrum = gl.lyapunov_spectrum(cell, at_rest(cell, 4))
    assert np.isneginf(spectrum.exponents).all()
    assert np.isnan(spectrum.standard_errors).all()
    assert (spectrum.leading, spectrum.sum_rule_residual) == (-math.inf, 0.0)
    assert (spectrum.kaplan_yorke, spectrum.entropy_rate) == (0.0, 0.0)


def test_nilpotent_matrix_loses_one_direction_a_step() -> None:
    cell = linear(np.eye(6, k=1))
    for steps in range(1, 8):
        spectrum = gl.lyapunov_spectrum(cell, at_rest(cell, steps))
        assert np.isneginf(spectrum.exponents).sum() == min(steps, 6)


def test_rank_one_matrix_has_one_exponent() -> None:
    cell = linear(np.outer([1.0, 2.0, 2.0], [0.3, 0.1, 0.2]))
    spectrum = gl.lyapunov_spectrum(cell, at_rest(cell, 30), transient=10)
    assert spectrum.exponents[0] == pytest.approx(math.log(0.9), abs=1e-14)
    assert np.isneginf(spectrum.exponents[1:]).all()


@pytest.mark.parametrize("rank", [1, 5, 19])
def test_random_matrix_of_low_rank_has_as_many_exponents(rank: int) -> None:
    rng = np.random.default_rng(rank)
    left, right = rng.standard_normal((2, 20, rank)) / math.sqrt(20)
    cell = linear(left @ right.T)
    spectrum = gl.lyapunov_spectrum(cell, at_rest(cell, 60), transient=1)
    inner = gl.lyapunov_from_jacobians(
        np.broadcast_to(right.T @ left, (59, rank, rank)), initial_frame=np.eye(rank)
    )
    assert np.isneginf(spectrum.exponents[rank:]).all()
    log_det = float(np.linalg.slogdet(right.T @ left)[1])
    assert inner.exponents.sum() == pytest.approx(log_det, abs=1e-10)
    # Volumes of images in the range of the left factor are seen at an angle that averages out.
    assert spectrum.exponents[:rank].sum() == pytest.approx(log_det, abs=0.5 * rank / 59 + 1e-9)


def test_dead_units_take_their_directions_with_them() -> None:
    """A unit that never fires again has phi' = 0; the others go on as if it were not there."""
    rng = np.random.default_rng(2)
    W = rng.standard_normal((6, 6)) / 2.0
    alive = W[:4, :4]
    jacobians = np.broadcast_to(np.diag([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]) @ W, (400, 6, 6))
    spectrum = gl.lyapunov_from_jacobians(jacobians, transient=100)
    expected = gl.lyapunov_from_jacobians(np.broadcast_to(alive, (400, 4, 4)), transient=100)
    assert np.isneginf(spectrum.exponents[4:]).all()
    np.testing.assert_allclose(spectrum.exponents[:4], expected.exponents, atol=0.02)
    assert spectrum.sum_rule_residual == 0.0


def test_lost_direction_leaves_those_behind_it_alone() -> None:
    """An arbitrary vector in its place would take from their growth."""
    first, rotation = np.diag([1.0, 0.0, 3.0]), np.linalg.qr(np.vander([1.0, 2.0, 3.0]))[0]
    jacobians = np.array([first, 2.0 * rotation])
    spectrum = gl.lyapunov_from_jacobians(jacobians, initial_frame=np.eye(3))
    expected = [0.5 * math.log(2.0), -math.inf, 0.5 * math.log(6.0)]
    np.testing.assert_allclose(spectrum.exponents, expected, atol=1e-14)


def test_single_unit_has_its_mean_log_slope() -> None:
    cell = gl.VanillaCell(W_hh=np.array([[-2.0]]), W_xh=np.ones((1, 1)))
    trajectory = gl.rollout(cell, np.random.default_rng(0).standard_normal((50, 1, 1)))
    slopes = 1.0 / np.cosh(trajectory.z) ** 2
    spectrum = gl.lyapunov_spectrum(cell, trajectory)
    assert spectrum.exponents[0] == pytest.approx(math.log(2.0) + np.log(slopes).mean(), abs=1e-12)


def test_lstm_spectrum_spans_output_and_cell_state() -> None:
    """Sum rule by the factorization: ln f + ln(o (1 - o) |tanh c'|) + ln|det U_o|, no QR."""
    rng = np.random.default_rng(4)
    cell = gl.LSTMCell(
        W_x=rng.standard_normal((20, 3)),
        W_h=0.5 * rng.standard_normal((20, 5)),
        b_x=rng.standard_normal(20),
        b_h=np.zeros(20),
    )
    trajectory = gl.rollout(cell, rng.standard_normal((40, 1, 3)))
    f, o = (1.0 / (1.0 + np.exp(-trajectory.z[:, 0, 5 * i : 5 * i + 5])) for i in (1, 3))
    tau = np.tanh(trajectory.states[1:, 0, 5:])
    log_det = (
        np.log(f * o * (1.0 - o) * np.abs(tau)).sum(axis=1).mean()
        + np.linalg.slogdet(cell.W_h[15:])[1]
    )
    spectrum = gl.lyapunov_spectrum(cell, trajectory)
    assert spectrum.state_size == len(spectrum.exponents) == 10
    assert spectrum.exponents.sum() == pytest.approx(log_det, abs=1e-11)
    assert spectrum.sum_rule_residual < 1e-11


@pytest.mark.parametrize("kind", ["lstm", "gru", "leaky"])
def test_every_cell_fulfills_the_sum_rule(kind: str) -> None:
    cells: dict[str, type[Any]] = {"lstm": gl.LSTMCell, "gru": gl.GRUCell, "leaky": gl.LeakyCell}
    rng = np.random.default_rng(9)
    leak = {"leak": 0.3} if kind == "leaky" else {}
    cell = cells[kind].initialize(input_size=2, hidden_size=8, rng=rng, **leak)
    trajectory = gl.rollout(cell, rng.standard_normal((30, 3, 2)))
    spectrum = gl.lyapunov_spectrum(cell, trajectory)
    log_det = mean_log_det(cell, trajectory)
    assert spectrum.exponents.sum() == pytest.approx(log_det, abs=1e-9)


def test_stack_has_the_exponents_of_its_layers() -> None:
    """The Jacobian of the whole stack is block triangular."""
    rng = np.random.default_rng(6)
    lower = gl.VanillaCell.initialize(input_size=2, hidden_size=4, gain=0.5, rng=rng)
    upper = gl.VanillaCell.initialize(input_size=4, hidden_size=3, gain=1.2, rng=rng)
    entries = [
        gl.Recurrence(name=f"l{i}", cell=cell, layer=i, direction="forward")
        for i, cell in enumerate((lower, upper))
    ]
    network = gl.Network(recurrences=tuple(entries))
    inputs = rng.standard_normal((400, 1, 2))
    runs = gl.rollout_network(network, inputs)
    parts = [gl.lyapunov_spectrum(entry.cell, runs[entry.name]).exponents for entry in entries]
    # Here a pivot of the Gram matrix can be mere rounding, unless blocks are cut in time.
    for entry in entries:
        assert gl.lyapunov_spectrum(entry.cell, runs[entry.name]).sum_rule_residual < 1e-10
    joint = network.joint()
    whole = gl.lyapunov_spectrum(joint, gl.rollout(joint, inputs))
    assert whole.exponents.sum() == pytest.approx(float(np.sum(np.concatenate(parts))), abs=1e-9)
    expected = np.sort(np.concatenate(parts))[::-1]
    np.testing.assert_allclose(whole.exponents, expected, atol=0.03)


def test_sequences_are_averaged_step_by_step_and_padding_does_not_count() -> None:
    cell, _ = driven(5, 1.2, 1)
    inputs = np.random.default_rng(1).standard_normal((30, 3, 5))
    lengths = np.array([30, 4, 17])
    batch = gl.rollout(cell, inputs, lengths=lengths)
    spectrum = gl.lyapunov_spectrum(cell, batch, transient=5)
    assert spectrum.steps == 25 + 12
    alone = []
    for sequence, length in ((0, 30), (2, 17)):
        run = gl.rollout(cell, inputs[:length, sequence : sequence + 1])
        alone.append(gl.lyapunov_spectrum(cell, run, transient=5))
    np.testing.assert_allclose(
        spectrum.by_sequence, np.stack([each.exponents for each in alone]), atol=1e-12
    )
    weighted = (25 * alone[0].exponents + 12 * alone[1].exponents) / 37
    np.testing.assert_allclose(spectrum.exponents, weighted, atol=1e-12)
    np.testing.assert_allclose(spectrum.history[-1], weighted, atol=1e-12)
    assert spectrum.history_steps[-1] == 25
    with pytest.raises(gl.SettingError, match="transient 30: expected fewer"):
        gl.lyapunov_spectrum(cell, batch, transient=30)


def test_spectrum_says_whether_inputs_drive_the_network() -> None:
    cell = gl.VanillaCell(W_hh=0.5 * np.eye(2), W_xh=np.ones((2, 1)))
    steady = np.ones((6, 2, 1))
    assert gl.lyapunov_spectrum(cell, gl.rollout(cell, steady)).dynamics == "autonomous"
    changing = steady.copy()
    changing[3, 1] = 2.0
    assert gl.lyapunov_spectrum(cell, gl.rollout(cell, changing)).dynamics == "driven by inputs"
    # What is behind a sequence's end drives nothing.
    lengths = np.array([6, 3])
    short = gl.rollout(cell, changing, lengths=lengths)
    assert gl.lyapunov_spectrum(cell, short).dynamics == "autonomous"


def test_equal_seeds_give_equal_bits() -> None:
    cell, trajectory = driven(8, 1.5, 40, std=0.5)
    first, again = (
        gl.lyapunov_spectrum(cell, trajectory, k=3, rng=np.random.default_rng(1)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.exponents, again.exponents)
    other = gl.lyapunov_spectrum(cell, trajectory, k=3, rng=np.random.default_rng(2))
    assert not np.array_equal(first.exponents, other.exponents)


@pytest.mark.parametrize(("gain", "std"), [(0.9, 0.5), (1.5, 0.5), (3.0, 0.5), (2.0, 0.0)])
def test_leading_exponent_of_a_large_random_network_is_the_mean_field_one(
    gain: float, std: float
) -> None:
    n, steps = 250, 400
    cell, trajectory = driven(n, gain, steps, std=std)
    theory = gl.mean_field("tanh", gain=gain, input_std=std)
    spectrum = gl.lyapunov_spectrum(cell, trajectory, k=1, transient=50)
    tolerance = 2.0 / n + 3.0 * theory.deviation(n, steps - 50)
    assert abs(spectrum.leading - theory.lambda_1 - theory.bias(n)) < tolerance


def test_whole_spectrum_of_a_random_network_is_the_predicted_one() -> None:
    """Gaussian W, g = 3, N = 100, within the finite-size tolerances of the closed form."""
    n = 100
    cell, trajectory = driven(n, 3.0, 500)
    spectrum = gl.lyapunov_spectrum(cell, trajectory, transient=100)
    dimension, entropy, positive = 0.287719, 0.0251964, 0.152892
    assert -16.0 / n < spectrum.kaplan_yorke / n / dimension - 1.0 < 4.0 / n
    assert -30.0 / n < spectrum.entropy_rate / n / entropy - 1.0 < 8.0 / n
    share = float((spectrum.exponents > 0.0).mean())
    assert abs(share - positive) < 1.0 / n + 20.0 / n * positive
    assert spectrum.exponents.mean() == pytest.approx(-2.27281, abs=0.06)
