"""Processor milliseconds of the units that `gradlab.estimates` counts: prints its table anew.

Run as ``python -m benchmarks.unit_costs``; takes some minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.timing import Candidate, raced
from gradlab.analysis.one_step import one_step_profile
from gradlab.cells.base import Cell
from gradlab.linalg import single_threaded_blas
from gradlab.records.trajectory import Trajectory

SIZES = (32, 64, 128, 256)
NEAR, FAR, ENDS, HALVED = 60, 300, 4, 120


def cell_of(family: str, n: int, rng: np.random.Generator) -> Cell:
    """A cell with a state of n numbers."""
    made: Any = {"scaled": gl.VanillaCell, "general": gl.GRUCell}[family]
    cell: Cell = made.initialize(input_size=8, hidden_size=n, rng=rng)
    return cell


def run_of(cell: Cell, steps: int, rng: np.random.Generator) -> Trajectory:
    """One sequence of so many steps."""
    return gl.rollout(cell, 0.5 * rng.standard_normal((steps, 1, 8)))


def milliseconds(deed: Callable[[], object], rounds: int = 2) -> float:
    """Fastest of some rounds."""
    return 1e3 * raced({"": Candidate(run=deed)}, rounds).values[""]


def costs(cell: Cell, rng: np.random.Generator) -> dict[str, float]:
    """Milliseconds a unit."""
    near, far = run_of(cell, NEAR, rng), run_of(cell, FAR, rng)
    starts = list(range(4, NEAR, 4))

    def profile(run: Trajectory, anchors: int) -> float:
        return milliseconds(lambda: gl.jacobian_profile(cell, run, anchors=anchors))

    def graded(lags: list[int]) -> float:
        return milliseconds(lambda: gl.directions(cell, near, lags=lags))

    one, several = profile(near, 1), profile(near, ENDS)
    pairs = NEAR * (ENDS + 1) / 2
    first, whole, both = graded([1]), graded([NEAR]), graded([NEAR // 2, NEAR])
    blocks = milliseconds(
        lambda: gl.jacobian_profile(cell, near, max_lag=4, anchors=starts, smallest=False)
    )
    every = run_of(cell, HALVED, rng)
    halves = milliseconds(lambda: gl.jacobian_profile(cell, every, kernel="numpy"))
    return {
        "pair": several / pairs,
        "single pair": one / NEAR,
        "far pair": (profile(far, 1) - one) / (FAR - NEAR),
        "halved step": halves / (HALVED * np.log2(HALVED)),
        "step": milliseconds(lambda: one_step_profile(cell, near)) / NEAR,
        "block pair": blocks / (4 * len(starts)),
        "graded step": (whole - first) / (NEAR - 1),
        "spectrum": both - whole,
        "exponents": milliseconds(lambda: gl.lyapunov_spectrum(cell, near)) / NEAR,
        "weights": milliseconds(
            lambda: (gl.spectral_summary(cell), gl.certificates(cell, search=False))
        ),
    }


def main() -> None:
    """Print the table."""
    with single_threaded_blas():
        for family in ("scaled", "general"):
            rng = np.random.default_rng(0)
            rows = [costs(cell_of(family, n, rng), rng) for n in (16, *SIZES)][1:]
            for unit in rows[0]:
                values = ", ".join(f"{row[unit]:.3g}" for row in rows)
                print(f'    ("{family}", "{unit}"): ({values}),')


if __name__ == "__main__":
    main()
