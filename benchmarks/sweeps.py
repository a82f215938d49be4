"""A sweep over two processes against the same sweep in one, by the clock on the wall."""

import math
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, faster, share

PROCESSES = 2
GAMMAS, SEEDS = (20, 200), 10  # what starting processes costs tells between them
SIZES: dict[str, Any] = {"hidden_size": 64, "length": 100}
ONE, TWO, SPAWNED = "one process", "two processes", "two spawned processes"
DISPATCH, ALLOWED = "dispatch, a point", "a millisecond"
ROUNDS = 2


def problems() -> list[Problem]:
    """A problem a number of points; the tables must not differ by a byte."""
    return [
        Problem(
            name=f"sweep of {gammas * SEEDS} points, N = 64, T = 100",
            targets=[
                faster(TWO, ONE, 1.9),
                faster(SPAWNED, ONE, 1.75),
                share(DISPATCH, ALLOWED, 1.0),
            ],
            measure=partial(measure, gammas),
            tolerance=0.0,
            quick=gammas == min(GAMMAS),
        )
        for gammas in GAMMAS
    ]


def measure(gammas: int) -> Costs:
    """Time the candidates on one grid; the difference counts the tables that are not the first."""
    points = gl.grid(gamma=np.linspace(0.5, 1.5, gammas), seed=range(SEEDS))
    candidates: dict[str, Callable[[Path], object]] = {
        ONE: lambda folder: gl.run_sweep(points, folder, **SIZES),
        TWO: lambda folder: gl.run_sweep(points, folder, jobs=PROCESSES, **SIZES),
        SPAWNED: lambda folder: spawned(points, folder),
    }
    seconds = dict.fromkeys(candidates, math.inf)
    parent, tables = math.inf, set()
    for _ in range(ROUNDS):
        for name, candidate in candidates.items():
            wall, processor, table = timed(candidate)
            seconds[name] = min(seconds[name], wall)
            tables.add(table)
            if name == TWO:
                parent = min(parent, processor)
    values = {**seconds, DISPATCH: parent / len(points), ALLOWED: 1e-3}
    return Costs(values=values, difference=float(len(tables) - 1))


def spawned(points: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The sweep over processes that start from nothing, as on Windows and macOS."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as executor:
        gl.run_sweep(points, folder, executor=executor, jobs=PROCESSES, **SIZES)


def timed(candidate: Callable[[Path], object]) -> tuple[float, float, bytes]:
    """Seconds on the wall, processor seconds of this process, and the table that came of it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sweep"
        wall, processor = time.perf_counter(), time.process_time()
        candidate(folder)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        return wall, processor, (folder / "sweep.csv").read_bytes()
