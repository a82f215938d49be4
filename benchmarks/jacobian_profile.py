"""The norms of one trajectory's Jacobian products at every lag."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, Target, faster, share
from benchmarks.networks import chain, tanh_network
from benchmarks.peers import (
    autograd,
    installed,
    jacobian_by_torch,
    jacrev,
    log_norms_by_jax,
    log_norms_by_svd,
)
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

STEPS = 200
GAINS = {"gaussian": (0.9, 1.2), "orthogonal": (1.2,)}
# Most that the norms may cost in units of the floor, by recurrent weights and size.
MOST: dict[str, dict[int, float | None]] = {
    "gaussian": {64: 5.0, 128: 1.4, 256: 0.75, 512: 0.5, 1024: 0.4},
    "orthogonal": {64: None, 128: 2.5, 256: 1.4, 512: 1.1},
}
MOST_COMPILED = {64: 2.5}  # the same for machine code, at the sizes that it is for
WITH_PEERS = ("gaussian", 1.2)  # the peers cost the same whatever the weights are
COMPILED = "norms, compiled"
SVD, JAX = "product and SVD", "JAX scan of product and SVD"
JACREV, AUTOGRAD = "torch.func.jacrev", "torch.autograd.functional.jacobian"
SVD_LAGS = {1024: 10}  # lags that stand for all
QUICK = 128  # largest size of a quick run
TOLERANCE = 1e-10


def problems() -> list[Problem]:
    """A problem a kind, gain and size of network."""
    return [
        Problem(
            name=f"profile, {kind} g = {gain:g}, N = {size}, T = {STEPS}",
            targets=targets(kind, gain, size),
            measure=partial(measure, kind, gain, size),
            tolerance=TOLERANCE,
            quick=size <= QUICK and (kind, gain) == WITH_PEERS,
        )
        for kind, sizes in MOST.items()
        for gain in GAINS[kind]
        for size in sizes
    ]


def targets(kind: str, gain: float, size: int) -> list[Target]:
    """Against the floor, and where there are peers against these, in either kernel."""
    compiled = kind == "gaussian" and size in MOST_COMPILED
    found = [
        share("norms", "floor", MOST[kind][size]),
        share("norms and smallest", "floor"),
        *([share(COMPILED, "floor", MOST_COMPILED[size])] if compiled else []),
    ]
    if (kind, gain) != WITH_PEERS:
        return found
    decompositions = 3.0 if size == 64 else 10.0 if size >= 256 else None
    faster_than = {SVD: decompositions, JAX: decompositions, JACREV: 140.0, AUTOGRAD: 1000.0}
    kernels = ("norms", COMPILED) if compiled else ("norms",)
    found += [faster(each, peer, times) for each in kernels for peer, times in faster_than.items()]
    return found


def measure(kind: str, gain: float, size: int) -> Costs:
    """Race the candidates on one random network."""
    cell, trajectory = tanh_network(kind, size, gain=gain, steps=STEPS)
    lags = SVD_LAGS.get(size, STEPS)
    candidates: dict[str, Candidate | None] = {
        "floor": chain(cell.W_hh, STEPS, most=STEPS if size <= 512 else 50),
        "norms": Candidate(run=partial(log_norms, cell, trajectory), patience=20.0),
        **({COMPILED: compiled_norms(cell, trajectory)} if size in MOST_COMPILED else {}),
        "norms and smallest": Candidate(
            run=lambda: gl.jacobian_profile(cell, trajectory, anchors="last", kernel="numpy")
        ),
        SVD: Candidate(run=partial(log_norms_by_svd, cell, trajectory, lags), times=STEPS / lags),
    }
    if (kind, gain) == WITH_PEERS:
        compiled = log_norms_by_jax(cell, trajectory, lags)
        candidates |= {
            JAX: None if compiled is None else Candidate(run=compiled, times=STEPS / lags),
            JACREV: jacobian_by_torch(jacrev, cell, trajectory, STEPS // 2),
            AUTOGRAD: jacobian_by_torch(autograd, cell, trajectory, STEPS // 2),
        }
    return raced(candidates, rounds=7 if size <= QUICK else 2, difference=largest_difference)


def compiled_norms(cell: Any, trajectory: gl.Trajectory) -> Candidate | None:
    """The same in machine code, compiled before it is timed; None where Numba is not installed."""
    if not installed("numba"):
        return None
    return Candidate(run=partial(log_norms, cell, trajectory, kernel="numba"), patience=20.0)


def log_norms(cell: Any, trajectory: gl.Trajectory, kernel: str = "numpy") -> Array:
    """The natural logarithm of the spectral norm at lags 1 to T from the last time."""
    profile = gl.jacobian_profile(cell, trajectory, anchors="last", smallest=False, kernel=kernel)
    return np.asarray(profile.log_norm[np.argsort(profile.lag, kind="stable")])


def largest_difference(results: Mapping[str, Any]) -> float:
    """Between gradlab's logarithms and those of every peer that was run."""
    differences = []
    for norms in (results[name] for name in ("norms", COMPILED) if name in results):
        whole = [results[name] for name in (SVD, JAX) if name in results]
        single = [results[name] for name in (JACREV, AUTOGRAD) if name in results]
        differences += [np.abs(norms[: len(each)] - each).max() for each in whole]
        differences += [abs(norms[STEPS // 2 - 1] - each) for each in single]
    return float(max(differences))
