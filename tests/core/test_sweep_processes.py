"""Processes of a sweep: one that ends is replaced, and a point that ends it twice is a row."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl
from gradlab.sweeps import pacing
from gradlab.sweeps.pacing import Pacer
from gradlab.sweeps.points import Measured
from gradlab.sweeps.pools import LocalProcesses, ProcessEndedError

TABLES = ("sweep.csv", "sweep_profiles.csv")
SMALL: dict[str, Any] = {"hidden_size": 4, "length": 8, "batch": 2, "input_size": 2}
POINTS = gl.grid(gamma=[0.5, 1.5], seed=range(12))

Script = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def processes() -> Iterator[LocalProcesses]:
    with LocalProcesses(2) as executor:
        yield executor


def test_work_goes_to_the_process_that_has_least(processes: LocalProcesses) -> None:
    futures = [processes.submit(os.getpid) for _ in range(4)]
    found = [processes.result(future) for future in futures]
    assert len(set(found)) == 2
    assert found[:2] == found[2:]


def test_process_that_ends_is_replaced_and_leaves_the_other_alone(
    processes: LocalProcesses,
) -> None:
    before = [processes.result(processes.submit(os.getpid)) for _ in range(2)]
    held = [processes.submit(time.sleep, 0.5) for _ in range(2)]  # until all of these are sent:
    deadly, other = processes.submit(os._exit, 1), processes.submit(time.sleep, 0.1)
    behind = processes.submit(os.getpid)  # waits for the process that ends
    assert [processes.result(future) for future in (*held, other)] == [None] * 3
    for future, begun in ((deadly, True), (behind, False)):
        with pytest.raises(ProcessEndedError) as caught:
            processes.result(future)
        assert caught.value.begun is begun
    after = [processes.submit(os.getpid) for _ in range(2)]
    assert len({*before, *(processes.result(future) for future in after)}) == 3


def test_processes_end_in_the_middle_of_their_work() -> None:
    with LocalProcesses(1) as executor:
        executor.result(executor.submit(os.getpid))
        future = executor.submit(time.sleep, 600)
        executor.submit(os.getpid)
        executor.shutdown(cancel_futures=True)
    with pytest.raises(ProcessEndedError):
        executor.result(future)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Run a program that sweeps with two processes; its top level runs in these too."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def run(top: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(f"import os, sys, pathlib\nimport gradlab as gl\n{top}\n", encoding="utf-8")
        return subprocess.run(
            [sys.executable, str(path)],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


DEADLY = """
import gradlab.sweeps.points as points
measure = points._measure
def deadly(settings, *rest):
    if settings.seed in (3, 7) and not (ONCE and os.path.exists(f"ended-{settings.seed}")):
        pathlib.Path(f"ended-{settings.seed}").open("a").write("x")
        os.kill(os.getpid(), 9)
    return measure(settings, *rest)
points._measure = deadly
"""
SWEEP = f"""
if __name__ == "__main__":
    points = gl.grid(gamma=[0.5, 1.5], seed=range(12))
    print(gl.run_sweep(points, "sweep", jobs=2, **{SMALL!r}).failed)
"""


def test_points_whose_process_was_killed_once_move_no_byte(script: Script, tmp_path: Path) -> None:
    ended = script(f"ONCE = True{DEADLY}{SWEEP}")
    assert ended.stdout.strip() == "0", ended.stderr
    assert {path.name for path in tmp_path.glob("ended-*")} == {"ended-3", "ended-7"}
    gl.run_sweep(POINTS, tmp_path / "whole", **SMALL)
    for name in TABLES:
        assert (tmp_path / "sweep" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_point_that_ends_its_process_twice_is_a_failed_row(script: Script, tmp_path: Path) -> None:
    ended = script(f"ONCE = False{DEADLY}{SWEEP}")
    assert ended.stdout.strip() == "4", ended.stderr
    gl.run_sweep(POINTS, tmp_path / "whole", **SMALL)
    rows, whole = (
        (tmp_path / name / "sweep.csv").read_text(encoding="utf-8").splitlines()
        for name in ("sweep", "whole")
    )
    for row, expected in zip(rows, whole, strict=True):
        if row.split(",")[1] in ("3", "7"):
            assert ',lost,"its process ended twice' in row
        else:
            assert row == expected
    assert [len((tmp_path / f"ended-{seed}").read_text()) for seed in (3, 7)] == [4, 4]


def test_program_without_a_guard_is_told_so(script: Script) -> None:
    ended = script(SWEEP.replace('if __name__ == "__main__":', "if True:"))
    assert ended.returncode == 1
    assert "WorkerError: a process ended before it could begin" in ended.stderr
    assert "if __name__ == '__main__'" in ended.stderr


def told(pacer: Pacer, seconds: float, points: int) -> None:
    pacer.learn(Measured(outcomes=(None,) * points, seconds=seconds, failed=0))


@pytest.mark.parametrize(
    ("workers", "busy", "seconds"),
    [
        (1, 0.0, pacing.CHUNK_SECONDS),
        (2, 0.01, pacing.CHUNK_SECONDS),  # 10 ms a chunk of two workers: 8 % of the parent's time
        (256, 0.0, 256 * pacing.TASK_SECONDS / pacing.BUSY_SHARE),
        (256, 0.01, 256 * 0.01 / pacing.BUSY_SHARE),
        (4096, 0.1, pacing.MOST_SECONDS),
    ],
)
def test_chunks_are_longer_with_more_workers_and_a_busier_parent(
    workers: int, busy: float, seconds: float
) -> None:
    pacer = Pacer(iter(range(10**9)), 10**9, workers)
    assert len(pacer.next_places()) == 1  # nothing is known yet
    told(pacer, 4.0, 40)
    if busy:
        pacer.learn_busy(30 * busy, 30)
    assert len(pacer.next_places()) == max(1, int(seconds / 0.1 + 1e-9))


def test_every_place_is_in_one_chunk_and_the_end_is_shared() -> None:
    pacer = Pacer(range(100), 100, 2)
    told(pacer, 1.0, 1000)
    chunks = list(iter(pacer.next_places, []))
    assert [place for chunk in chunks for place in chunk] == list(range(100))
    sizes = list(map(len, chunks))
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (25, 1)
