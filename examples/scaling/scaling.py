"""What a large sweep costs: measured times, and a simulation of the load on its one writer.

    python examples/scaling/scaling.py measure     # costs.json, from this machine
    python examples/scaling/scaling.py simulate    # scaling.csv: workers against chunk sizes

For each chunk the parent of a sweep sends the points, receives the results, appends them to the log
and waits for the disk; workers do the rest. The simulation plays a queue with one server (the
parent) and many workers, each with two further chunks waiting, with the measured times.
"""

from __future__ import annotations

import csv
import heapq
import json
import pickle
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.linalg import single_threaded_blas
from gradlab.storage.point_log import PointLog, log_line
from gradlab.sweeps.points import Chunk, measure_chunk

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
    one, many = chunk_seconds(line, 1), chunk_seconds(line, 200)
    a_point = (many - one) / 199
    return {"chunk": one - a_point, "point": a_point, "bytes": float(len(line))}


def chunk_seconds(line: bytes, count: int, repeats: int = 40) -> float:
    """Least time to send so many points, to receive their results and to save them."""
    points = tuple((place, {"seed": place, "gamma": 1.5}) for place in range(count))
    chunk, sent = Chunk(fixed=SHAPE, points=points), pickle.dumps([line] * count)
    taken = []
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        log = PointLog(Path(folder) / "log", count)
        for _ in range(repeats):
            started = time.perf_counter()
            pickle.dumps(chunk)
            log.append(pickle.loads(sent))
            taken.append(time.perf_counter() - started)
        log.close()
    return min(taken)


def simulate() -> None:
    """Write what is lost at every number of workers, size and chunk."""
    costs = json.loads(COSTS.read_text(encoding="utf-8"))
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["hidden_size", "workers", "chunk", "lost_share", "days"])
        for size, workers in ((size, workers) for size in SIZES for workers in WORKERS):
            for chunk in CHUNKS:
                found = lost_share(workers, chunk, costs["points"][str(size)], costs["parent"])
                days = POINTS * costs["points"][str(size)] / workers / 86400
                writer.writerow([size, workers, chunk, round(found, 4), days / (1.0 - found)])


def lost_share(workers: int, chunk: int, point: float, parent: dict[str, float]) -> float:
    """Share of the workers' time in which they wait for the parent.

    A worker's queue is filled up, by the one parent, as each of its chunks ends.
    """
    rng = np.random.default_rng(0)
    each = parent["chunk"] + parent["point"] * chunk + NETWORK_SECONDS
    ends = [(0.0, worker) for worker in range(workers) for _ in range(1 + WAITING)]
    free = np.zeros(workers)
    busy, now = 0.0, 0.0
    for _ in range(workers * ROUNDS):
        ended, worker = heapq.heappop(ends)
        now = max(now, ended) + each
        noise = SPREAD * float(rng.standard_normal()) / chunk**0.5
        work = point * chunk * max(1.0 + noise, 0.5)
        free[worker] = max(now, float(free[worker])) + work
        busy += work
        heapq.heappush(ends, (float(free[worker]), worker))
    return 1.0 - busy / float(free.sum())


if __name__ == "__main__":
    {"measure": measure, "simulate": simulate}[sys.argv[1]]()
