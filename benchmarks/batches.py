"""The norms of many sequences' Jacobian products at every lag."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, faster, share
from benchmarks.jacobian_profile import STEPS, TOLERANCE
from benchmarks.networks import chain, tanh_network
from benchmarks.peers import batched_norms_by_torch
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

SIZE, BATCH = 128, 64
TORCH = "torch bmm and matrix_norm"
TORCH_LAGS = 4  # that stand for all


def problems() -> list[Problem]:
    """One problem."""
    return [
        Problem(
            name=f"profiles of {BATCH} sequences, gaussian g = 1.2, N = {SIZE}, T = {STEPS}",
            targets=[share("norms", "floor", 1.4), faster("norms", TORCH, 8.0)],
            measure=measure,
            tolerance=TOLERANCE,
        )
    ]


def measure() -> Costs:
    """Race the norms against the floor and batched products."""
    cell, trajectory = tanh_network("gaussian", SIZE, gain=1.2, steps=STEPS, batch=BATCH)
    candidates: dict[str, Candidate | None] = {
        "floor": chain(cell.W_hh, BATCH * STEPS),
        "norms": Candidate(run=partial(log_norms, cell, trajectory)),
        TORCH: batched_norms_by_torch(cell, trajectory, TORCH_LAGS),
    }
    return raced(candidates, rounds=2, difference=difference)


def log_norms(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> Array:
    """Natural logarithm of the spectral norms; lags from the last time down, sequences across."""
    profile = gl.jacobian_profile(cell, trajectory, anchors="last", smallest=False, kernel="numpy")
    order = np.lexsort((profile.sequence, profile.lag))
    return np.asarray(profile.log_norm[order].reshape(STEPS, BATCH))


def difference(results: Mapping[str, Any]) -> float:
    """Between the logarithms at the lags that the peer was run for."""
    if TORCH not in results:
        return np.nan
    return float(np.abs(results["norms"][:TORCH_LAGS] - results[TORCH]).max())
