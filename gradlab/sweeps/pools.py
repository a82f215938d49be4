"""Local processes that compute points: one BLAS thread each, and none outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing.connection import wait


def local_processes(jobs: int) -> Executor:
    """Executor of so many processes, which do not share memory with this one."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    return ProcessPoolExecutor(max_workers=jobs, mp_context=context, initializer=_begin_work)


def available_cores() -> int:
    """Cores this process may use; a container may grant fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin_work() -> None:
    """Keep Ctrl-C from ending workers with tracebacks: the parent cancels what has not begun."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed can end no worker, and a worker that waits for work never looks."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
