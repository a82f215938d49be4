"""Local processes that compute points: one BLAS thread each, and none outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any

from gradlab.errors import WorkerError

# What a point needs, imported once by the server that the processes are forked from; what is not
# installed is left out there.
PRELOADED = [
    "gradlab.sweeps.points",
    "gradlab.analysis.products.compiled.chains",
    "threadpoolctl",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.special",
]


class ProcessEndedError(Exception):
    """A process was gone before some work was done.

    Parameters
    ----------
    begun
        Whether it had begun this very work: of what it was sent, only the first can have been.
    """

    def __init__(self, *, begun: bool) -> None:
        super().__init__("a process ended before its work was done")
        self.begun = begun


class LocalProcesses(Executor):
    """So many processes, which do not share memory with this one; one that ends is replaced.

    Each is a pool of its own: the end of one breaks no other, and tells whose work it was. To be
    used by one thread.

    Parameters
    ----------
    jobs
        How many.
    """

    def __init__(self, jobs: int) -> None:
        self._context = _context()
        self._processes = [_Process(self._context) for _ in range(jobs)]
        self._places: dict[Future[Any], _Process] = {}

    def submit(self, deed: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        """Send work to the process that has least of it."""
        process = min(self._processes, key=lambda each: each.waiting)
        try:
            future = process.pool.submit(deed, *args, **more)
        except BrokenProcessPool:
            self._replace(process)
            return self.submit(deed, *args, **more)
        process.waiting += 1
        self._places[future] = process
        return future

    def result(self, future: Future[Any]) -> Any:
        """What came of work that is done; to be asked in the order in which it was finished.

        Raises
        ------
        ProcessEndedError
            If its process is gone.
        WorkerError
            If its process did not even begin.
        """
        process = self._places.pop(future)
        process.waiting -= 1
        try:
            return future.result()
        except BrokenProcessPool as error:
            begun, process.ended = not process.ended, True
            self._replace(process)
            raise ProcessEndedError(begun=begun) from error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes; with ``cancel_futures`` at once, in the middle of their work."""
        for process in self._processes:
            if cancel_futures:
                process.leash.close()
            process.pool.shutdown(wait=False)
        if wait:
            for process in self._processes:
                process.pool.shutdown(wait=True)

    def _replace(self, process: _Process) -> None:
        """Put another in its place, unless that was done."""
        if process not in self._processes:
            return
        process.require_begun()
        process.pool.shutdown(wait=False)
        self._processes[self._processes.index(process)] = _Process(self._context)


class _Process:
    """A pool of one process, which ends when its leash is closed, as it is when this one ends."""

    def __init__(self, context: BaseContext) -> None:
        self._end, self.leash = context.Pipe(duplex=False)
        self.pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_begin_work, initargs=(self._end,)
        )
        self.waiting = 0  # deeds that were sent and not taken back
        self.ended = False
        self._first: Future[int] = self.pool.submit(os.getpid)

    def require_begun(self) -> None:
        """Refuse a process that ended before it did anything.

        Raises
        ------
        WorkerError
            Another one would end in the same way.
        """
        try:
            self._first.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                "a process ended before it could begin: in a script of your own, call this under "
                "if __name__ == '__main__', which the processes do not run; or measure with jobs=1"
            ) from error


def available_cores() -> int:
    """Cores this process may use; a container may grant fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _context() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _begin_work(leash: Connection) -> None:
    """Keep Ctrl-C from ending workers with tracebacks: the parent ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_leash, args=(leash,), daemon=True).start()


def _end_with_leash(leash: Connection) -> None:
    """A parent that was killed can end no worker, and one that waits for work never looks."""
    wait([leash])
    os._exit(1)
