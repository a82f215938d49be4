"""Lyapunov spectra, whole and the first eighth, against floors and a peer."""

from collections.abc import Callable, Sequence

import numpy as np

import gradlab as gl
from benchmarks.timing import Comparison, fastest
from gradlab.arrays import Array

STEPS = {64: 1000, 128: 500, 256: 200, 512: 100}
# Most that the whole spectrum may cost in units of its floor, and the first eighth of its own.
WHOLE = {64: 4.0, 128: 3.0, 256: 2.6, 512: 2.5}
EIGHTH, EIGHTH_FROM = 1.4, 256
ROUNDS = 3
QUICK = 128  # largest size of a quick run


def comparisons(*, quick: bool = False) -> list[Comparison]:
    """One comparison a network size."""
    return [compare(size) for size in STEPS if not quick or size <= QUICK]


def compare(size: int) -> Comparison:
    """Time the candidates on one random network, after checking that they agree."""
    cell, trajectory = network(size)
    linearization = cell.linearize(trajectory)
    frame = np.linalg.qr(np.random.default_rng(3).standard_normal((size, size)))[0]
    eighth = frame[:, : size // 8].copy()
    candidates: dict[str, Callable[[], object]] = {
        "floor": lambda: products_alone(cell.W_hh, frame, len(linearization)),
        "peer": lambda: exponents_by_reflections(cell, trajectory, frame),
        "whole": lambda: gl.lyapunov_spectrum(cell, trajectory, initial_frame=frame),
        "floor of an eighth": lambda: products_alone(cell.W_hh, eighth, len(linearization)),
        "eighth": lambda: gl.lyapunov_spectrum(cell, trajectory, initial_frame=eighth),
    }
    reference = exponents_by_reflections(cell, trajectory, frame)
    whole = gl.lyapunov_spectrum(cell, trajectory, initial_frame=frame).exponents
    first = gl.lyapunov_spectrum(cell, trajectory, initial_frame=eighth).exponents
    errors = [np.abs(whole - reference).max(), np.abs(first - reference[: size // 8]).max()]
    return Comparison(
        problem=f"Lyapunov spectrum, N = {size}, T = {STEPS[size]}",
        seconds=fastest(candidates, ROUNDS),
        difference=float(max(errors)),
    )


def network(size: int) -> tuple[gl.VanillaCell, gl.Trajectory]:
    """A Gaussian tanh cell of gain 1.5, run over random inputs."""
    rng = np.random.default_rng(size)
    cell = gl.VanillaCell.initialize(input_size=16, hidden_size=size, gain=1.5, rng=rng)
    return cell, gl.rollout(cell, 0.5 * rng.standard_normal((STEPS[size], 1, 16)))


def products_alone(W: Array, frame: Array, steps: int) -> None:
    """One matrix product a step and nothing else."""
    target = np.empty_like(frame)
    for _ in range(steps):
        np.matmul(W, frame, out=target)


def exponents_by_reflections(cell: gl.VanillaCell, trajectory: gl.Trajectory, Q: Array) -> Array:
    """The textbook loop: NumPy's QR at every step."""
    slopes = cell.phi.derivative(trajectory.z[:, 0])
    total = np.zeros(Q.shape[1])
    for slope in slopes:
        Q, R = np.linalg.qr(slope[:, None] * (cell.W_hh @ Q))
        total += np.log(np.abs(np.diag(R)))
    return np.asarray(total / len(slopes))


def table(comparisons: Sequence[Comparison]) -> str:
    """Markdown table, a comparison a row."""
    rows = [
        "| problem | floor, ms | peer / floor | whole / floor | target | peer / whole "
        "| eighth / its floor | target | peer / eighth | difference |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for size, c in zip(STEPS, comparisons, strict=False):
        wanted = f"{EIGHTH}" if size >= EIGHTH_FROM else "none"
        rows.append(
            f"| {c.problem} | {1e3 * c.seconds['floor']:.2f} | {c.ratio('peer', 'floor'):.2f} "
            f"| {c.ratio('whole', 'floor'):.2f} | {WHOLE[size]} | {c.ratio('peer', 'whole'):.2f} "
            f"| {c.ratio('eighth', 'floor of an eighth'):.2f} | {wanted} "
            f"| {c.ratio('peer', 'eighth'):.1f} | {c.difference:.1e} |"
        )
    return "\n".join(rows)
