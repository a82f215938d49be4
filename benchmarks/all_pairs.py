"""The norms of all products of one trajectory: every pair of times."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, Target, faster, share
from benchmarks.jacobian_profile import MOST_COMPILED
from benchmarks.networks import chain, tanh_network
from benchmarks.peers import all_norms_by_numpy, all_norms_by_torch, installed, pairs
from benchmarks.timing import Candidate, peak_bytes, raced
from gradlab.arrays import Array

# Most of the floor that the certified spectral norms may cost, by size and steps.
SPECTRAL = {(64, 200): 3.0, (128, 200): 1.3, (256, 200): 1.0, (128, 400): 0.8, (256, 400): 0.6}
COMPILED = "spectral, compiled"
NUMPY, TORCH = "NumPy, batched", "torch, batched"
ENDS = {64: 40, 128: 16, 256: 8}  # end times of the peers that stand for all
TOLERANCE = 1e-10
MEMORY = (128, 200)
QUICK = 64
ROUNDS = 2


def problems() -> list[Problem]:
    """Spectral norms of every size, and the memory that they take."""
    spectral = [
        Problem(
            name=f"all pairs, spectral, gaussian g = 1.2, N = {size}, T = {steps}",
            targets=targets(size, steps, most),
            measure=partial(measure, size, steps),
            tolerance=TOLERANCE,
            quick=size <= QUICK,
        )
        for (size, steps), most in SPECTRAL.items()
    ]
    return [*spectral, memory_problem(*MEMORY)]


def targets(size: int, steps: int, most: float) -> list[Target]:
    """Against the floor; at 200 steps against batched products too."""
    floor = [share("spectral", "floor", most)]
    if size in MOST_COMPILED:
        floor.append(share(COMPILED, "floor", most))
    if steps > 200:
        return floor
    times = 6.0 if size >= 128 else None
    return [*floor, faster("spectral", NUMPY, times), faster("spectral", TORCH, times)]


def measure(size: int, steps: int) -> Costs:
    """Race all norms against the floor and batched products with a full SVD of each."""
    cell, trajectory = tanh_network("gaussian", size, gain=1.2, steps=steps)
    peers: dict[str, Candidate | None] = {
        NUMPY: all_norms_by_numpy(cell, trajectory, ENDS[size], 2),
        TORCH: all_norms_by_torch(cell, trajectory, ENDS[size], 2),
    }
    candidates: dict[str, Candidate | None] = {
        "floor": chain(cell.W_hh, pairs(steps)),
        "spectral": Candidate(run=partial(log_norms, cell, trajectory)),
        **compiled(cell, trajectory),
        **(peers if steps <= 200 else {NUMPY: peers[NUMPY]}),
    }
    return raced(candidates, rounds=ROUNDS, difference=partial(difference, ENDS[size]))


def compiled(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> dict[str, Candidate | None]:
    """The same in machine code at the sizes that it is for; None where Numba is not installed."""
    if cell.state_size not in MOST_COMPILED:
        return {}
    run = partial(log_norms, cell, trajectory, kernel="numba")
    return {COMPILED: Candidate(run=run) if installed("numba") else None}


def log_norms(cell: gl.VanillaCell, trajectory: gl.Trajectory, kernel: str = "numpy") -> Array:
    """Natural logarithm of all spectral norms, t and then k ascending."""
    profile = gl.jacobian_profile(cell, trajectory, anchors="all", smallest=False, kernel=kernel)
    return np.asarray(profile.log_norm[np.lexsort((profile.k, profile.t))])


def difference(ends: int, results: Mapping[str, Any]) -> float:
    """Between all logarithms of the end times that the peer was run for."""
    exact = np.log(np.concatenate(results[NUMPY]))
    found = [results[name] for name in ("spectral", COMPILED) if name in results]
    return float(max(np.abs(norms[: pairs(ends)] - exact).max() for norms in found))


def memory_problem(size: int, steps: int) -> Problem:
    """Peak memory of all pairs against the T Jacobians and 16 MiB."""
    allowed = f"{steps} Jacobians and 16 MiB"
    return Problem(
        name=f"all pairs, peak memory, N = {size}, T = {steps}",
        targets=[share("spectral", allowed, 1.0)],
        measure=partial(peak_memory, size, steps, allowed),
        quick=size <= QUICK,
    )


def peak_memory(size: int, steps: int, allowed: str) -> Costs:
    """Largest sum of what is allocated at a time while the norms are taken."""
    cell, trajectory = tanh_network("gaussian", size, gain=1.2, steps=steps)
    values = {
        "spectral": peak_bytes(partial(log_norms, cell, trajectory)),
        allowed: 8.0 * steps * size**2 + (16 << 20),
    }
    return Costs(values=values, unit="bytes")
