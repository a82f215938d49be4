"""A sweep over two processes against the same sweep in one, by the clock on the wall."""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.timing import Comparison

PROCESSES = 2
SEEDS = (10, 40)  # networks at each of the gammas
GAMMAS = np.linspace(0.5, 1.5, 20)
SIZES: dict[str, Any] = {"hidden_size": 64, "length": 100}
ROUNDS = 2


def comparisons(*, quick: bool = False) -> list[Comparison]:
    """One comparison a number of points: what starting the processes costs tells between them."""
    return [compare(seeds) for seeds in SEEDS[: 1 if quick else None]]


def compare(seeds: int) -> Comparison:
    """Time the candidates on one grid, after checking that they agree to the last byte."""
    points = gl.grid(gamma=GAMMAS, seed=range(seeds))
    candidates: dict[str, Callable[[Path], object]] = {
        "serial": lambda folder: gl.run_sweep(points, folder, **SIZES),
        "processes": lambda folder: gl.run_sweep(points, folder, jobs=PROCESSES, **SIZES),
        "spawn": lambda folder: spawned(points, folder),
    }
    seconds = dict.fromkeys(candidates, float("inf"))
    parent, tables = float("inf"), set()
    for _ in range(ROUNDS):
        for name, candidate in candidates.items():
            wall, processor, table = timed(candidate)
            seconds[name] = min(seconds[name], wall)
            tables.add(table)
            if name == "processes":
                parent = min(parent, processor)
    return Comparison(
        problem=f"sweep of {len(points)} points, N = 64, T = 100",
        seconds={
            "floor": seconds["serial"] / PROCESSES,
            **seconds,
            "dispatch of a point": parent / len(points),
        },
        difference=float(len(tables) - 1),
    )


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


def table(comparisons: Sequence[Comparison]) -> str:
    """Markdown table, a comparison a row."""
    rows = [
        "| problem | serial, s | two processes, times as fast | spawned, times as fast "
        "| dispatch and saving, ms a point | tables that differ |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    rows += [
        f"| {c.problem} | {c.seconds['serial']:.2f} | {c.ratio('serial', 'processes'):.2f} "
        f"| {c.ratio('serial', 'spawn'):.2f} | {1e3 * c.seconds['dispatch of a point']:.2f} "
        f"| {c.difference:.0f} |"
        for c in comparisons
    ]
    return "\n".join(rows)
