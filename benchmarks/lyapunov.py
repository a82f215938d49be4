"""Lyapunov spectra, whole and the first eighth, against floors and the textbook loop."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks import peers
from benchmarks.comparing import Costs, Problem, Target, faster, share
from benchmarks.networks import chain, slopes, tanh_network
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

STEPS = {64: 1000, 128: 500, 256: 200, 512: 100, 1024: 40}
# Most that the whole spectrum may cost in units of its floor, and the first eighth of its own.
WHOLE = {64: 4.0, 128: 3.0, 256: 2.6, 512: 2.5, 1024: 2.4}
EIGHTH, EIGHTH_FROM = 1.4, 256
NUMPY, TORCH = "np.linalg.qr loop", "torch.linalg.qr loop"
TOLERANCE = 1e-10
QUICK = 128  # largest size of a quick run


def problems() -> list[Problem]:
    """A problem a network size."""
    return [
        Problem(
            name=f"Lyapunov spectrum, gaussian g = 1.5, N = {size}, T = {steps}",
            targets=targets(size),
            measure=partial(measure, size, steps),
            tolerance=TOLERANCE,
            quick=size <= QUICK,
        )
        for size, steps in STEPS.items()
    ]


def targets(size: int) -> list[Target]:
    """All exponents and the first eighth, each against its floor and the loop."""
    return [
        share("all", "floor", WHOLE[size]),
        faster("all", NUMPY, 2.4 if size <= 128 else 1.8),
        faster("all", TORCH),
        share("first eighth", "its floor", EIGHTH if size >= EIGHTH_FROM else None),
        faster("first eighth", NUMPY, 20.0 if size >= EIGHTH_FROM else None),
    ]


def measure(size: int, steps: int) -> Costs:
    """Race the candidates on one random network."""
    cell, trajectory = tanh_network("gaussian", size, gain=1.5, steps=steps)
    frame = np.linalg.qr(np.random.default_rng(3).standard_normal((size, size)))[0]
    eighth = frame[:, : size // 8].copy()
    candidates: dict[str, Candidate | None] = {
        "floor": chain(cell.W_hh, steps),
        NUMPY: Candidate(run=partial(exponents_by_numpy, cell, trajectory, frame)),
        TORCH: exponents_by_torch(cell, trajectory, frame),
        "all": Candidate(run=partial(exponents, cell, trajectory, frame)),
        "its floor": chain(cell.W_hh, steps, columns=size // 8),
        "first eighth": Candidate(run=partial(exponents, cell, trajectory, eighth)),
    }
    return raced(candidates, rounds=3, difference=largest_difference)


def exponents(cell: gl.VanillaCell, trajectory: gl.Trajectory, frame: Array) -> Array:
    """As many exponents as the frame has columns; with errors, history and sum rule."""
    return np.asarray(gl.lyapunov_spectrum(cell, trajectory, initial_frame=frame).exponents)


def exponents_by_numpy(cell: gl.VanillaCell, trajectory: gl.Trajectory, Q: Array) -> Array:
    """The textbook loop: NumPy's QR at every step."""
    of_steps, total = slopes(cell, trajectory)[:, 0], np.zeros(Q.shape[1])
    for slope in of_steps:
        Q, R = np.linalg.qr(slope[:, None] * (cell.W_hh @ Q))
        total += np.log(np.abs(np.diag(R)))
    return np.asarray(total / len(of_steps))


def exponents_by_torch(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, frame: Array
) -> Candidate | None:
    """The same loop with PyTorch's QR."""
    if (torch := peers.torch()) is None:
        return None
    W, Q0 = (torch.from_numpy(np.array(each)) for each in (cell.W_hh, frame))
    of_steps = torch.from_numpy(slopes(cell, trajectory)[:, 0].copy())

    def run() -> Array:
        Q, total = Q0, torch.zeros(Q0.shape[1], dtype=Q0.dtype)
        for slope in of_steps:
            Q, R = torch.linalg.qr(slope[:, None] * (W @ Q))
            total += torch.log(torch.abs(torch.diag(R)))
        return np.asarray(total.numpy() / len(of_steps))

    return Candidate(run=run)


def largest_difference(results: Mapping[str, Any]) -> float:
    """Of any exponent, to the textbook loop."""
    reference, first = results[NUMPY], results["first eighth"]
    errors = [np.abs(results["all"] - reference), np.abs(first - reference[: len(first)])]
    return float(max(each.max() for each in errors))
