"""The largest singular value and the spectral radius of one matrix."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, faster, share
from benchmarks.timing import Candidate, raced, repeated
from gradlab.arrays import Array

NORM, SVDS, BEST = "np.linalg.norm(ord=2)", "scipy svds", "the faster of these"
# Least number of times that the largest singular value is found faster than by a full SVD.
NORM_FASTER = {64: 1.5, 128: 1.5, 256: 2.0, 512: 8.0, 1024: 12.0, 2048: 12.0}
EIGVALS = "np.linalg.eigvals"
RADIUS_FASTER = {256: None, 512: None, 1024: 2.0, 2048: None}
REPEATS = {64: 50, 128: 20, 256: 5}  # of short calls
TOLERANCE = 1e-10
QUICK = 512  # largest size of a quick run
ROUNDS = 5


def problems() -> list[Problem]:
    """Singular values, then radii."""
    norms = [
        Problem(
            name=f"σ_max, gaussian, N = {size}",
            targets=[
                faster("spectral_norm", NORM, times),
                faster("spectral_norm", SVDS, 1.5),
                share("spectral_norm", BEST, 1.0),
            ],
            measure=partial(measure_norm, size),
            tolerance=TOLERANCE,
            quick=size <= QUICK,
        )
        for size, times in NORM_FASTER.items()
    ]
    radii = [
        Problem(
            name=f"spectral radius, gaussian, N = {size}",
            targets=[faster("spectral_radius", EIGVALS, times)],
            measure=partial(measure_radius, size),
            tolerance=TOLERANCE,
            quick=size < QUICK,
        )
        for size, times in RADIUS_FASTER.items()
    ]
    return [*norms, *radii]


def measure_norm(size: int) -> Costs:
    """Race `gl.spectral_norm` against a full SVD and against ARPACK."""
    W = gaussian(size)
    costs = race(
        size,
        {
            "spectral_norm": partial(gl.spectral_norm, W),
            NORM: partial(np.linalg.norm, W, ord=2),
            SVDS: partial(largest_by_arpack, W),
        },
    )
    best = min(costs.values[NORM], costs.values[SVDS])
    return replace(costs, values={**costs.values, BEST: best})


def measure_radius(size: int) -> Costs:
    """Race `gl.spectral_radius` against all eigenvalues."""
    W = gaussian(size)
    return race(
        size,
        {
            "spectral_radius": partial(gl.spectral_radius, W),
            EIGVALS: lambda: float(np.abs(np.linalg.eigvals(W)).max()),
        },
    )


def race(size: int, functions: Mapping[str, Callable[[], Any]]) -> Costs:
    """Race functions that return the same number."""
    count = REPEATS.get(size, 1)
    candidates: dict[str, Candidate | None] = {
        name: repeated(function, count) for name, function in functions.items()
    }
    return raced(candidates, rounds=ROUNDS, difference=relative_difference)


def gaussian(size: int) -> Array:
    """A random matrix of gain 1: no singular value stands out."""
    return np.asarray(np.random.default_rng(size).standard_normal((size, size)) / np.sqrt(size))


def largest_by_arpack(W: Array) -> float:
    """One singular value by SciPy's sparse solver."""
    from scipy.sparse.linalg import svds

    return float(svds(W, k=1, return_singular_vectors=False, rng=np.random.default_rng(0))[0])


def relative_difference(results: Mapping[str, float]) -> float:
    """Spread of the results in units of the largest."""
    return (max(results.values()) - min(results.values())) / max(results.values())
