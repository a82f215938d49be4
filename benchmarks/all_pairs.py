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

# Most of the floor that the norms may cost, by size and steps.
SPECTRAL = {(64, 200): 3.0, (128, 200): 1.3, (256, 200): 1.0, (128, 400): 0.8, (256, 400): 0.6}
FROBENIUS = {(64, 200): 0.6, (128, 200): 0.45, (256, 200): 0.4}
COMPILED = "spectral, compiled"
NUMPY, TORCH = "NumPy, batched", "torch, batched"
# End times of the peers that stand for all, by the norm's order and the size.
ENDS = {2: {64: 40, 128: 16, 256: 8}, "fro": {64: 100, 128: 60, 256: 30}}
FASTER = {2: 6.0, "fro": 2.5}
TOLERANCE = {2: 1e-10, "fro": 1e-12}
NAMES = {2: "spectral", "fro": "Frobenius"}
MEMORY = (128, 200)
QUICK = 64
ROUNDS = 2

Order = int | str


def problems() -> list[Problem]:
    """Both norms, and the memory that they take."""
    norms = [
        Problem(
            name=f"all pairs, {NAMES[order]}, gaussian g = 1.2, N = {size}, T = {steps}",
            targets=targets(order, size, steps, most),
            measure=partial(measure, order, size, steps),
            tolerance=TOLERANCE[order],
            quick=size <= QUICK,
        )
        for order, limits in ((2, SPECTRAL), ("fro", FROBENIUS))
        for (size, steps), most in limits.items()
    ]
    return [*norms, memory_problem(*MEMORY)]


def targets(order: Order, size: int, steps: int, most: float) -> list[Target]:
    """Against the floor; at 200 steps against batched products too."""
    name = NAMES[order]
    found = [share(name, "floor", most)]
    if order == 2 and size in MOST_COMPILED:
        found.append(share(COMPILED, "floor", most))
    if steps <= 200:
        times = FASTER[order] if order == "fro" or size >= 128 else None
        found += [faster(name, peer, times) for peer in (NUMPY, TORCH)]
    return found


def measure(order: Order, size: int, steps: int) -> Costs:
    """Race all norms against the floor and batched products with the norm of each."""
    cell, trajectory = tanh_network("gaussian", size, gain=1.2, steps=steps)
    ends = ENDS[order][size]
    candidates: dict[str, Candidate | None] = {
        "floor": chain(cell.W_hh, pairs(steps)),
        NAMES[order]: Candidate(run=partial(log_norms, cell, trajectory, order)),
        NUMPY: all_norms_by_numpy(cell, trajectory, ends, order),
    }
    if steps <= 200:
        candidates[TORCH] = all_norms_by_torch(cell, trajectory, ends, order)
    if order == 2 and size in MOST_COMPILED:
        run = partial(log_norms, cell, trajectory, order, kernel="numba")
        candidates[COMPILED] = Candidate(run=run) if installed("numba") else None
    return raced(candidates, rounds=ROUNDS, difference=partial(difference, ends))


def log_norms(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, order: Order = 2, kernel: str = "numpy"
) -> Array:
    """Natural logarithm of all norms, t and then k ascending."""
    profile = gl.jacobian_profile(
        cell, trajectory, anchors="all", smallest=False, spectral=order == 2, kernel=kernel
    )
    norms = profile.log_norm if order == 2 else profile.log_frobenius
    return np.asarray(norms[np.lexsort((profile.k, profile.t))])


def difference(ends: int, results: Mapping[str, Any]) -> float:
    """Between all logarithms of the end times that the peer was run for."""
    exact = np.log(np.concatenate(results[NUMPY]))
    found = [results[name] for name in (*NAMES.values(), COMPILED) if name in results]
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
