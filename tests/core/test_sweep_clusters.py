"""Sweeps on a Dask cluster: a real one, of two processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl

TABLES = ("sweep.csv", "sweep_profiles.csv")
SMALL: dict[str, Any] = {"hidden_size": 4, "length": 8, "batch": 2, "input_size": 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Scheduler in this process, two workers in processes of their own."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def test_bytes_are_those_of_a_serial_sweep_though_a_worker_is_killed(
    cluster: Any, tmp_path: Path
) -> None:
    points = gl.grid(gamma=[0.5, 1.0, 1.5], seed=range(20))
    gl.run_sweep(points, tmp_path / "serial", **SMALL)
    told: list[int] = []
    killed: list[int] = []  # points that were done then

    def kill(finished: int, failed: int) -> None:
        told.append(finished)
        if sum(told) >= 5 and not killed:
            killed.append(sum(told))
            os.kill(next(nanny.pid for nanny in cluster.workers.values()), signal.SIGKILL)

    with gl.dask_executor(cluster.scheduler_address) as (executor, threads):
        assert threads == 2
        gl.run_sweep(
            points, tmp_path / "dask", executor=executor, jobs=threads, on_done=kill, **SMALL
        )
    assert 5 <= killed[0] < len(points) / 2
    for name in TABLES:
        assert (tmp_path / "dask" / name).read_bytes() == (tmp_path / "serial" / name).read_bytes()


def test_workers_of_other_versions_are_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"versions": {"gradlab": "0", "numpy": "0", "scipy": "0"}}
    monkeypatch.setattr("gradlab.sweeps.clusters.machine_facts", lambda: facts)
    with (
        pytest.raises(gl.WorkerError, match="and this process 0: expected the same version"),
        gl.dask_executor(cluster.scheduler_address),
    ):
        pass


def test_missing_dask_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(gl.MissingExtraError, match=r"gradlab-rnn\[cluster\]"),
        gl.dask_executor("tcp://127.0.0.1:1"),
    ):
        pass


def test_address_without_a_scheduler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("gradlab.sweeps.clusters.CONNECT_SECONDS", 0.2)
    with (
        pytest.raises(gl.WorkerError, match=r"no Dask scheduler at tcp://127.0.0.1:1 "),
        gl.dask_executor("tcp://127.0.0.1:1"),
    ):
        pass
