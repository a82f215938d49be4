"""How time and memory grow with the size, the steps and the sequences: curves and exponents."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.networks import tanh_network
from benchmarks.timing import Candidate, peak_bytes, raced

AXES = ("N", "T", "B")  # units, steps, sequences
GAIN, CLASSES = 1.2, 10
ROUNDS = 3
MARGIN = 0.25  # a fit over few small sizes may lie so far above the exponent that is expected

Run = Callable[[gl.VanillaCell, gl.Trajectory], object]


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A measurement, where it is measured, and the exponents that its algorithm has at most."""

    name: str
    run: Run
    at: Mapping[str, int]  # one value an axis, which the others' curves keep
    along: Mapping[str, Sequence[int]]
    time: Mapping[str, float]
    memory: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Time and peak memory of an analysis along one axis."""

    analysis: Analysis
    axis: str
    values: Sequence[int]
    seconds: Sequence[float]
    bytes: Sequence[float]

    @property
    def exponents(self) -> tuple[float, float]:
        """Of the time and of the memory, by least squares in logarithms."""
        return fitted_exponent(self.values, self.seconds), fitted_exponent(self.values, self.bytes)


def fitted_exponent(values: Sequence[int], costs: Sequence[float]) -> float:
    """The p of costs ∝ valuesᵖ that is nearest in logarithms."""
    return float(np.polyfit(np.log(values), np.log(costs), 1)[0])


def profile(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> object:
    """Norms at every lag from the last time."""
    return gl.jacobian_profile(cell, trajectory, anchors="last", smallest=False, kernel="numpy")


def all_pairs(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> object:
    """Norms of every pair of times."""
    return gl.jacobian_profile(cell, trajectory, anchors="all", smallest=False, kernel="numpy")


def lyapunov(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> object:
    """All exponents."""
    return gl.lyapunov_spectrum(cell, trajectory, rng=np.random.default_rng(0))


def gradient(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> object:
    """Forward pass and full gradient."""
    rng = np.random.default_rng(0)
    readout = gl.Readout.initialize(hidden_size=cell.state_size, output_size=CLASSES, rng=rng)
    classes = rng.integers(0, CLASSES, trajectory.inputs.shape[1])
    return gl.bptt(cell, readout, np.asarray(trajectory.inputs), classes, at="last")


ANALYSES = (
    Analysis(
        name="profile",
        run=profile,
        at={"N": 128, "T": 200, "B": 1},
        along={"N": (64, 128, 256, 512), "T": (100, 200, 400, 800), "B": (1, 2, 4)},
        time={"N": 3.0, "T": 1.0, "B": 1.0},
        memory={"N": 2.0, "T": 1.0, "B": 1.0},
    ),
    Analysis(
        name="all pairs",
        run=all_pairs,
        at={"N": 64, "T": 50, "B": 1},
        along={"N": (32, 64, 128), "T": (25, 50, 100), "B": (1, 2, 4)},
        time={"N": 3.0, "T": 2.0, "B": 1.0},
        memory={"N": 2.0, "T": 2.0, "B": 1.0},
    ),
    Analysis(
        name="Lyapunov spectrum",
        run=lyapunov,
        at={"N": 64, "T": 200, "B": 1},
        along={"N": (64, 128, 256), "T": (100, 200, 400, 800), "B": (1, 2, 4)},
        time={"N": 3.0, "T": 1.0, "B": 1.0},
        memory={"N": 2.0, "T": 1.0, "B": 1.0},
    ),
    Analysis(
        name="gradient",
        run=gradient,
        at={"N": 128, "T": 100, "B": 32},
        along={"N": (64, 128, 256, 512), "T": (50, 100, 200, 400), "B": (8, 16, 32, 64)},
        time={"N": 2.0, "T": 1.0, "B": 1.0},
        memory={"N": 2.0, "T": 1.0, "B": 1.0},
    ),
)


def curves(*, quick: bool) -> list[Curve]:
    """Every analysis along every axis; the largest value of each only where there is time."""
    found = []
    for analysis in ANALYSES:
        for axis in AXES:
            found.append(curve(analysis, axis, quick=quick))
            print(f"growth of {analysis.name} with {axis}", file=sys.stderr, flush=True)
    return found


def curve(analysis: Analysis, axis: str, *, quick: bool = False) -> Curve:
    """Measure one axis; the sizes take turns."""
    values = analysis.along[axis][: -1 if quick else None]
    works = {str(value): work(analysis, {**analysis.at, axis: value}) for value in values}
    candidates: dict[str, Candidate | None] = {
        name: Candidate(run=run) for name, run in works.items()
    }
    return Curve(
        analysis=analysis,
        axis=axis,
        values=values,
        seconds=list(raced(candidates, rounds=ROUNDS).values.values()),
        bytes=[peak_bytes(run) for run in works.values()],
    )


def work(analysis: Analysis, sizes: Mapping[str, int]) -> Callable[[], Any]:
    """The analysis of a random network of some sizes; network and trajectory are made before."""
    cell, trajectory = tanh_network(
        "gaussian", sizes["N"], gain=GAIN, steps=sizes["T"], batch=sizes["B"]
    )
    return lambda: analysis.run(cell, trajectory)
