"""Sweeps in folders: what interrupts them loses no finished point and moves no byte."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl

TABLES = ("sweep.csv", "sweep_profiles.csv")
SMALL: dict[str, Any] = {"hidden_size": 4, "length": 8, "batch": 2, "input_size": 2}
POINTS = gl.grid(gamma=[0.5, 1.0, 1.5], seed=range(4))


def tables(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in TABLES]


class StoppedError(Exception):
    """Ends a sweep from inside."""


def stop_after(points: int) -> Callable[[int, int], None]:
    """Progress that interrupts the sweep once so many points are on the disk."""
    counted = itertools.count(1)

    def on_done(finished: int, failed: int) -> None:
        if any(next(counted) > points for _ in range(finished)):
            raise StoppedError

    return on_done


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Tables of the sweep that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    gl.run_sweep(POINTS, folder, **SMALL)
    return tables(folder)


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """Folder of the same sweep, stopped on its way."""
    folder = tmp_path / "unfinished"
    with pytest.raises(StoppedError):
        gl.run_sweep(POINTS, folder, on_done=stop_after(2), **SMALL)
    assert (folder / "INCOMPLETE").is_file()
    assert not (folder / "sweep.csv").exists()
    return folder


def test_finished_folder_holds_what_the_sweep_in_memory_has(
    whole: list[bytes], tmp_path: Path
) -> None:
    gl.save_sweep(gl.sweep(POINTS, **SMALL), tmp_path / "memory")
    assert tables(tmp_path / "memory") == whole


def test_interrupted_sweep_goes_on_and_ends_with_the_same_bytes(
    unfinished: Path, whole: list[bytes]
) -> None:
    told: list[tuple[int, int]] = []
    summary = gl.run_sweep(POINTS, unfinished, on_done=lambda *n: told.append(n), **SMALL)
    assert tables(unfinished) == whole
    assert not (unfinished / "INCOMPLETE").exists()
    assert told[0][0] > 2
    assert sum(finished for finished, _ in told) == len(POINTS) == summary.points


@pytest.mark.parametrize(
    ("lost", "end"),
    [
        (0, b""),
        (1, b""),
        (7, b"\n"),
        (500, b"garbage\n"),
        (1500, b"\0" * 600),
        (0, b'0badc0de 3 ok {"a": 1}\n'),
        (10**6, b""),
        (10**6, b"This sw"),
    ],
)
def test_torn_log_is_repaired(unfinished: Path, whole: list[bytes], lost: int, end: bytes) -> None:
    log = unfinished / "INCOMPLETE"
    log.write_bytes(log.read_bytes()[: -lost or None] + end)
    gl.run_sweep(POINTS, unfinished, **SMALL)
    assert tables(unfinished) == whole


def test_damaged_line_amid_the_log_is_measured_again(unfinished: Path, whole: list[bytes]) -> None:
    log = unfinished / "INCOMPLETE"
    note, first, *rest = log.read_bytes().splitlines(keepends=True)
    damaged = first.replace(b'"rate"', b'"rote"')
    assert damaged != first
    log.write_bytes(b"".join((note, damaged, *rest)))
    gl.run_sweep(POINTS, unfinished, **SMALL)
    assert tables(unfinished) == whole


def test_sweep_that_ends_while_drawing_has_its_tables_and_can_go_on(
    tmp_path: Path, whole: list[bytes]
) -> None:
    def fail(folder: Path) -> None:
        assert tables(folder) == whole
        raise StoppedError

    with pytest.raises(StoppedError):
        gl.run_sweep(POINTS, tmp_path / "sweep", on_tables=fail, **SMALL)
    assert (tmp_path / "sweep" / "INCOMPLETE").exists()
    measured: list[int] = []
    gl.run_sweep(POINTS, tmp_path / "sweep", on_done=lambda n, _: measured.append(n), **SMALL)
    assert measured == [len(POINTS)]
    assert not (tmp_path / "sweep" / "INCOMPLETE").exists()


@pytest.mark.parametrize(
    ("points", "fixed", "difference"),
    [
        (gl.grid(gamma=[0.5, 1.0, 1.5], seed=range(4)), {"length": 9}, "length 8 there, 9 here"),
        (
            gl.grid(gamma=[0.5, 1.0, 2.0], seed=range(4)),
            {},
            "gamma 0.5, 1.0, 1.5 there, 0.5, 1.0, 2",
        ),
        (gl.grid(seed=range(12)), {}, "gamma 0.5, 1.0, 1.5 there, not set here"),
        (list(reversed(POINTS)), {}, "0.5, 1.0, 1.5 there, 1.5, 1.0, 0.5 here"),
    ],
)
def test_other_settings_are_refused_with_the_difference(
    unfinished: Path, whole: list[bytes], points: Any, fixed: dict[str, Any], difference: str
) -> None:
    with pytest.raises(gl.RunFolderError, match=difference):
        gl.run_sweep(points, unfinished, **{**SMALL, **fixed})
    gl.run_sweep(POINTS, unfinished, **SMALL)
    assert tables(unfinished) == whole


def test_same_values_in_other_combinations_are_other_points(unfinished: Path) -> None:
    shuffled = [POINTS[0], *POINTS[1:][::-1]]
    with pytest.raises(gl.RunFolderError, match="there"):
        gl.run_sweep(shuffled, unfinished, **SMALL)


def test_force_begins_anew_and_a_finished_folder_is_kept_without(
    unfinished: Path, tmp_path: Path
) -> None:
    gl.run_sweep(POINTS[:2], unfinished, force=True, **SMALL)
    kept = tables(unfinished)
    assert kept[0].count(b"\n") == 3
    with pytest.raises(gl.OutputError, match="exists"):
        gl.run_sweep(POINTS, unfinished, **SMALL)
    assert tables(unfinished) == kept


def test_unfinished_folder_can_be_refused(unfinished: Path) -> None:
    with pytest.raises(gl.OutputError, match="unfinished sweep"):
        gl.run_sweep(POINTS, unfinished, resume=False, **SMALL)


def test_two_writers_are_kept_apart(tmp_path: Path, whole: list[bytes]) -> None:
    pytest.importorskip("fcntl")
    again: list[str] = []

    def intrude(finished: int, failed: int) -> None:
        for force in (False, True):
            with pytest.raises(gl.OutputError, match="another process"):
                gl.run_sweep(POINTS, tmp_path / "sweep", force=force, **SMALL)
        again.append("refused")

    gl.run_sweep(POINTS, tmp_path / "sweep", on_done=intrude, **SMALL)
    assert again
    assert tables(tmp_path / "sweep") == whole


def test_failing_points_are_rows_and_are_counted_across_an_interruption(tmp_path: Path) -> None:
    points = gl.grid(gamma=[1e200, 0.5, 1e250], seed=range(2))
    settings = {**SMALL, "activation": "identity"}
    with pytest.raises(StoppedError):
        gl.run_sweep(points, tmp_path / "sweep", on_done=stop_after(1), **settings)
    told: list[tuple[int, int]] = []
    summary = gl.run_sweep(
        points, tmp_path / "sweep", on_done=lambda *n: told.append(n), **settings
    )
    assert summary.failed == 4 == sum(failed for _, failed in told)
    assert summary.first_failure.startswith("diverged: ")
    document = json.loads((tmp_path / "sweep" / "manifest.json").read_text(encoding="utf-8"))
    assert (document["points"], document["failed"]) == (6, 4)


def test_settings_file_says_everything_that_shapes_the_sweep(unfinished: Path) -> None:
    document = tomllib.loads((unfinished / "sweep.toml").read_text(encoding="utf-8"))
    assert document.pop("settings") == {
        **{"cell": "rnn", "bias": 0.0, "bias_std": 0.0, "recurrent": "gaussian"},
        **{"activation": "tanh", "synthetic": "gaussian", "input_std": 0.5, "anchors": "last"},
        **{"threshold": 0.97, "inclusive": False, "dtype": "float64", **SMALL},
    }
    assert document == {"gamma": [0.5, 1.0, 1.5], "seeds": 4, "seed": 0}


class Shuffled(Executor):
    """Executor that finishes its work in an order of its own, and not before it must."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.threads = ThreadPoolExecutor(3)

    def submit(self, *work: Any, **more: Any) -> Future[Any]:
        delay = 0.01 * self.random.random()

        def later() -> Any:
            time.sleep(delay)
            return work[0](*work[1:], **more)

        return self.threads.submit(later)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_completion_moves_no_byte(tmp_path: Path, whole: list[bytes], seed: int) -> None:
    executor = Shuffled(seed)
    with executor.threads:
        gl.run_sweep(POINTS, tmp_path / "sweep", executor=executor, jobs=3, **SMALL)
    assert tables(tmp_path / "sweep") == whole


class Losing(Executor):
    """Executor that loses its workers after some chunks."""

    def __init__(self, after: int) -> None:
        self.left = after

    def submit(self, *work: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.left -= 1
        if self.left < 0:
            future.set_exception(ConnectionError("worker gone"))
        else:
            future.set_result(work[0](*work[1:], **more))
        return future


def test_lost_worker_keeps_what_was_finished(tmp_path: Path, whole: list[bytes]) -> None:
    with pytest.raises(gl.WorkerError, match=r"worker gone.*the same command goes on"):
        gl.run_sweep(POINTS, tmp_path / "sweep", executor=Losing(3), jobs=1, **SMALL)
    told: list[int] = []
    gl.run_sweep(POINTS, tmp_path / "sweep", on_done=lambda n, _: told.append(n), **SMALL)
    assert told[0] > 0
    assert tables(tmp_path / "sweep") == whole


def test_killed_worker_process_ends_the_sweep_with_what_to_do(
    tmp_path: Path, whole: list[bytes]
) -> None:
    def kill(finished: int, failed: int) -> None:
        for worker in multiprocessing.active_children():
            worker.kill()

    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor,
        pytest.raises(gl.WorkerError, match=r"BrokenProcessPool.*the same command goes on"),
    ):
        gl.run_sweep(POINTS, tmp_path / "sweep", executor=executor, on_done=kill, **SMALL)
    gl.run_sweep(POINTS, tmp_path / "sweep", **SMALL)
    assert tables(tmp_path / "sweep") == whole


CHILD = """
import sys
import gradlab as gl
import gradlab.sweeps.pacing
gradlab.sweeps.pacing.CHUNK_SECONDS = 0.02  # many places to be killed at
points = gl.grid(gamma=[0.5, 1.0, 1.5], seed=range(200))
gl.run_sweep(points, sys.argv[1], jobs=int(sys.argv[2]),
             hidden_size=4, length=8, batch=2, input_size=2)
"""


@pytest.fixture
def start(tmp_path: Path) -> Callable[[Path, int], subprocess.Popen[bytes]]:
    """Start a sweep in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def run(folder: Path, jobs: int) -> subprocess.Popen[bytes]:
        script = tmp_path / "child.py"
        script.write_text(f"if __name__ == '__main__':\n    exec({CHILD!r})\n", encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, str(script), str(folder), str(jobs)], env=environment
        )

    return run


def test_killed_ten_times_at_random_it_ends_with_the_same_bytes(
    start: Callable[[Path, int], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    moments = np.random.default_rng(8)
    folder, log = tmp_path / "killed", tmp_path / "killed" / "INCOMPLETE"
    kills = 0
    while kills < 10:
        before = log.stat().st_size if log.exists() else 0
        process = start(folder, 1)
        grown = before + int(moments.integers(0, 12_000))
        while process.poll() is None and not (log.exists() and log.stat().st_size > grown):
            time.sleep(0.002)
        time.sleep(moments.uniform(0.0, 0.01))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "the sweep was over before the tenth kill"
        kills += 1
    for place in (folder, tmp_path / "whole"):
        assert start(place, 1).wait() == 0
    assert tables(folder) == tables(tmp_path / "whole")


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_disk_that_fills_up_is_told_and_loses_no_finished_point(
    tmp_path: Path, whole: list[bytes]
) -> None:
    folder = tmp_path / "sweep"
    with pytest.raises(StoppedError):
        gl.run_sweep(POINTS, folder, on_done=stop_after(2), **SMALL)
    limit = (folder / "INCOMPLETE").stat().st_size + 100
    code = f"""
import resource, signal
import gradlab as gl
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    gl.run_sweep(gl.grid(gamma=[0.5, 1.0, 1.5], seed=range(4)), {str(folder)!r}, **{SMALL!r})
except gl.OutputError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # bytecode cut off would break later processes
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "cannot be written" in ended.stdout
    gl.run_sweep(POINTS, folder, **SMALL)
    assert tables(folder) == whole


def children(process: int) -> set[int]:
    """Descendants of a process, by /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal():
                stat = (entry / "stat").read_text(encoding="utf-8")
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: set[int] = set()
    new = {process}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_of_a_killed_sweep_end_too(
    start: Callable[[Path, int], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    process = start(tmp_path / "sweep", 2)
    log = tmp_path / "sweep" / "INCOMPLETE"
    while not (log.exists() and log.stat().st_size > 5_000):
        assert process.poll() is None
        time.sleep(0.01)
    workers = children(process.pid)
    assert len(workers) >= 3
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(1000):
        left = {worker for worker in workers if Path(f"/proc/{worker}").exists()}
        if not left:
            break
        time.sleep(0.01)
    assert not left
