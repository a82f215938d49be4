"""What a large sweep costs: measured times, and a simulation of the load on its one writer.

    python examples/scaling/scaling.py measure     # costs.json, from this machine
    python examples/scaling/scaling.py simulate    # scaling.csv: workers against chunk sizes

For each chunk the parent of a sweep sends the points, receives the results, appends them to the log
and waits for the disk; workers do the rest. The simulation plays a queue with one server (the
parent) and many workers, each with two further chunks waiting, with the measured times; chunks are
of one size, or of those that the sweep's own pacer chooses.
"""

from __future__ import annotations

import csv
import heapq
import itertools
import json
import pickle
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradlab.linalg import single_threaded_blas
from gradlab.storage.point_log import PointLog, log_line
from gradlab.sweeps.pacing import Pacer
from gradlab.sweeps.points import Chunk, Measured, measure_chunk
from gradlab.sweeps.pools import LocalProcesses

HERE = Path(__file__).parent
COSTS, TABLE = HERE / "costs.json", HERE / "scaling.csv"
SIZES = {64: 6, 128: 4, 256: 2, 512: 1}  # networks measured of each
SHAPE: dict[str, Any] = {"length": 100, "batch": 4, "gamma": 1.5}
POINTS = 10_000_000
WORKERS = (2, 16, 64, 256, 1024, 4096)
CHUNKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
NETWORK_SECONDS = 1e-3  # of a task, in the scheduler of a cluster engine
WAITING = 2  # chunks that wait for every worker
ROUNDS = 30  # chunks of each worker that are played
SPREAD = 0.2  # standard deviation of a point's time, as a share of it


def measure() -> None:
    """Write the times of this machine."""
    point_seconds(8, 1)  # what is imported on first use is no part of a point
    points = {size: point_seconds(size, count) for size, count in SIZES.items()}
    machine = f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    costs = {"machine": machine, "shape": SHAPE, "points": points, "parent": parent_seconds()}
    COSTS.write_text(json.dumps(costs, indent=2) + "\n", encoding="utf-8")


def point_seconds(size: int, count: int) -> float:
    """Processor time of a point with one BLAS thread, the least of a few networks."""
    taken = []
    for seed in range(count):
        chunk = Chunk(fixed={"hidden_size": size, **SHAPE}, points=((seed, {"seed": seed}),))
        started = time.process_time()
        with single_threaded_blas():
            measure_chunk(chunk, log_line)
        taken.append(time.process_time() - started)
    return min(taken)


def parent_seconds() -> dict[str, float]:
    """What the parent does for a chunk: seconds a chunk, seconds and bytes a point."""
    first = Chunk(fixed={"hidden_size": 16, **SHAPE}, points=((0, {"seed": 0}),))
    line = measure_chunk(first, log_line).outcomes[0]
    send, save = times_of_parent(line, 1)
    send_many, save_many = times_of_parent(line, 200)
    a_point = (send_many + save_many - send - save) / 199
    chunk = send + executor_seconds()
    return {"chunk": chunk, "save": save, "point": a_point, "bytes": float(len(line))}


def executor_seconds(count: int = 400) -> float:
    """Processor time of this process to hand one deed to another, and to take it back."""
    with LocalProcesses(1) as executor:
        executor.submit(abs, 1).result()
        started = time.process_time()
        for future in [executor.submit(abs, 1) for _ in range(count)]:
            future.result()
        return (time.process_time() - started) / count


def times_of_parent(line: bytes, count: int, repeats: int = 40) -> tuple[float, float]:
    """Least times to send so many points and receive their results, and to save these."""
    points = tuple((place, {"seed": place, "gamma": 1.5}) for place in range(count))
    chunk, sent = Chunk(fixed=SHAPE, points=points), pickle.dumps([line] * count)
    taken = []
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        log = PointLog(Path(folder) / "log", count)
        for _ in range(repeats):
            started = time.perf_counter()
            pickle.dumps(chunk)
            lines = pickle.loads(sent)
            received = time.perf_counter()
            log.append(lines)
            taken.append((received - started, time.perf_counter() - received))
        log.close()
    return min(sending for sending, _ in taken), min(saving for _, saving in taken)


def simulate() -> None:
    """Write what is lost at every number of workers, size and chunk."""
    costs = json.loads(COSTS.read_text(encoding="utf-8"))
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["hidden_size", "workers", "chunk", "points", "lost_share", "days"])
        for size, workers in ((size, workers) for size in SIZES for workers in WORKERS):
            point = costs["points"][str(size)]
            for chunk in (*CHUNKS, None):
                played = Queue(workers, chunk, point, costs["parent"]).play()
                days = POINTS * point / workers / 86400 / (1.0 - played.lost_share)
                points = round(played.chunk, 1)
                row = [size, workers, chunk or "own", points, round(played.lost_share, 4)]
                writer.writerow([*row, float(f"{days:.4g}")])


class Played(NamedTuple):
    """What came of a simulation once it had settled."""

    lost_share: float  # of the workers' time, in which they wait for the parent
    chunk: float  # mean points of a chunk


class Queue:
    """One parent and many workers.

    Parameters
    ----------
    workers
        How many.
    chunk
        Points of every chunk; as many as the pacer of sweeps chooses if None.
    point
        Mean seconds of a point.
    parent
        Seconds of the parent: ``chunk`` to send and receive a chunk, ``save`` to save what has
        come, whatever it is, and ``point`` for every point.
    """

    def __init__(
        self, workers: int, chunk: int | None, point: float, parent: dict[str, float]
    ) -> None:
        self.workers, self.chunk, self.point, self.parent = workers, chunk, point, parent
        self.pacer = Pacer(itertools.repeat(0), 10**12, workers)
        self.rng = np.random.default_rng(0)
        self.free = [0.0] * workers
        self.running: list[tuple[float, int, int, float]] = []  # end, worker, points, work

    def play(self) -> Played:
        """Play so many chunks a worker, and look at the last half of them."""
        now, chunks = 0.0, 0
        marks: list[tuple[float, int, int, float]] = []  # time, chunks, points and work until then
        points, work = 0, 0.0
        for worker in list(range(self.workers)) * (1 + WAITING):
            now += self.parent["chunk"] + NETWORK_SECONDS
            self._send(worker, now)
        for _ in range(self.workers * ROUNDS):
            now = max(now, self.running[0][0])
            began, come = now, []
            while self.running and self.running[0][0] <= now:
                come.append(heapq.heappop(self.running))
            self.pacer.learn(
                Measured(
                    outcomes=(None,) * sum(points for _, _, points, _ in come),
                    seconds=sum(work for *_, work in come),
                    failed=0,
                )
            )
            for _, worker, _, _ in come:
                now += self.parent["chunk"] + NETWORK_SECONDS
                self._send(worker, now)
            now += self.parent["save"] + self.parent["point"] * sum(c[2] for c in come)
            self.pacer.learn_busy(now - began, len(come))
            chunks += len(come)
            points += sum(chunk[2] for chunk in come)
            work += sum(chunk[3] for chunk in come)
            marks.append((now, chunks, points, work))
            if chunks >= self.workers * ROUNDS:
                break
        half = next(mark for mark in marks if mark[1] >= chunks / 2)
        seconds, taken, held, done = (end - mid for end, mid in zip(marks[-1], half, strict=True))
        return Played(
            lost_share=max(0.0, 1.0 - done / (seconds * self.workers)), chunk=held / taken
        )

    def _send(self, worker: int, now: float) -> None:
        points = self.chunk or len(self.pacer.next_places())
        noise = SPREAD * float(self.rng.standard_normal()) / points**0.5
        work = self.point * points * max(1.0 + noise, 0.5)
        self.free[worker] = max(now, self.free[worker]) + work
        heapq.heappush(self.running, (self.free[worker], worker, points, work))


if __name__ == "__main__":
    {"measure": measure, "simulate": simulate}[sys.argv[1]]()
