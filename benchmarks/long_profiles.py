"""The norms at every lag of long trajectories, far beyond the range of floats."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, Target, share
from benchmarks.jacobian_profile import (
    COMPILED,
    MOST_COMPILED,
    TOLERANCE,
    compiled_norms,
    log_norms,
)
from benchmarks.networks import chain, slopes, tanh_network
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

STEPS = {256: 10_000, 64: 100_000}
MOST = {256: 0.09, 64: 1.2}
SAMPLES = 20  # lags at which the norms are checked


def problems() -> list[Problem]:
    """A problem a network."""
    return [
        Problem(
            name=f"long profile, gaussian g = 1.2, N = {size}, T = {steps}",
            targets=targets(size),
            measure=partial(measure, size, steps),
            tolerance=TOLERANCE,
        )
        for size, steps in STEPS.items()
    ]


def targets(size: int) -> list[Target]:
    """Against the floor, in either kernel."""
    kernels = ("norms", COMPILED) if size in MOST_COMPILED else ("norms",)
    return [share(kernel, "floor", MOST[size]) for kernel in kernels]


def measure(size: int, steps: int) -> Costs:
    """Race the norms against the floor, and check some of them by whole products."""
    cell, trajectory = tanh_network("gaussian", size, gain=1.2, steps=steps)
    lags = np.unique(np.geomspace(1, steps, SAMPLES).astype(int))

    def difference(results: Mapping[str, Any]) -> float:
        exact = log_norms_at(cell, slopes(cell, trajectory)[:, 0], lags)
        found = [results[name] for name in ("norms", COMPILED) if name in results]
        return float(max(np.abs(norms[lags - 1] - exact).max() for norms in found))

    candidates: dict[str, Candidate | None] = {
        "floor": chain(cell.W_hh, steps, most=steps // 10),
        "norms": Candidate(run=partial(log_norms, cell, trajectory)),
    }
    if size in MOST_COMPILED:
        candidates[COMPILED] = compiled_norms(cell, trajectory)
    return raced(candidates, rounds=3, difference=difference)


def log_norms_at(cell: gl.VanillaCell, of_steps: Array, lags: Array) -> Array:
    """ln of the spectral norm at some lags: all products whole, a full SVD at those lags."""
    log_norms = np.full(len(of_steps), np.nan)
    product, log_scale = np.eye(cell.state_size), 0.0
    for index, slope in enumerate(of_steps[::-1]):
        product = (product * slope) @ cell.W_hh
        scale = float(np.abs(product).max())
        product /= scale
        log_scale += np.log(scale)
        if index + 1 in lags:
            log_norms[index] = log_scale + np.log(np.linalg.norm(product, ord=2))
    return np.asarray(log_norms[lags - 1])
