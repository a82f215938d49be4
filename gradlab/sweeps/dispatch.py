"""Points to workers in chunks, over any executor of ``concurrent.futures``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from gradlab.errors import WorkerError
from gradlab.linalg import single_threaded_blas
from gradlab.sweeps.plans import Plan
from gradlab.sweeps.points import Chunk, Measured, Shown, measure_chunk
from gradlab.sweeps.pools import local_processes

CHUNK_SECONDS = 0.25  # long beside the milliseconds that sending and saving a chunk take
LARGEST = 1000  # points of a chunk
WAITING = 2  # chunks that wait for every worker, so that none is ever idle
UNKNOWN_SIZE = 64  # workers that an executor may have if nobody says

Value = TypeVar("Value")


class Pacer:
    """Cuts what is left into chunks, as long as the measured time of a point makes them.

    Parameters
    ----------
    places
        Places of the points that are to be measured, in order.
    count
        How many there are.
    workers
        Among how many the end of the sweep is to be shared.
    """

    def __init__(self, places: Iterable[int], count: int, workers: int) -> None:
        self._places = iter(places)
        self._left = count
        self._workers = workers
        self._seconds, self._points = 0.0, 0

    def learn(self, measured: Measured) -> None:
        """Take a finished chunk's time into account."""
        self._seconds += measured.seconds
        self._points += len(measured.outcomes)

    def next_places(self) -> list[int]:
        """Places of the next chunk; empty at the end."""
        places = list(itertools.islice(self._places, self._size()))
        self._left -= len(places)
        return places

    def _size(self) -> int:
        if self._points == 0:
            return 1
        a_point = max(self._seconds / self._points, 1e-9)
        share = -(-self._left // (2 * self._workers))  # even at the end
        return max(1, min(int(CHUNK_SECONDS / a_point), share, LARGEST))


def measured_points(
    plan: Plan,
    places: Iterable[int],
    count: int,
    shown: Shown,
    *,
    executor: Executor | None,
    jobs: int | None,
) -> Generator[Measured, None, None]:
    """What comes of the points at some places, a chunk at a time, in the order they finish.

    To be closed: what was sent is then taken back, and the processes end.

    Parameters
    ----------
    plan
        The sweep.
    places, count
        Which of its points, and how many these are.
    shown
        Form of a point's result, a function that can be sent to a worker.
    executor
        Any executor; its workers are limited to one BLAS thread while they measure.
    jobs
        Processes if there is no executor, 1 (or None) to measure in this one; else how many
        workers the executor has, if that is known.

    Raises
    ------
    WorkerError
        If a worker is lost, and the executor does not send its work to another.
    """
    workers = jobs or (1 if executor is None else UNKNOWN_SIZE)
    pacer = Pacer(places, count, workers)
    with single_threaded_blas(), _pool(executor, workers) as pool:
        if pool is None:
            yield from _here(plan, pacer, shown)
        else:
            yield from _sent(plan, pacer, shown, pool, workers * (1 + WAITING))


def _pool(executor: Executor | None, jobs: int) -> AbstractContextManager[Executor | None]:
    if executor is not None or jobs <= 1:
        return nullcontext(executor)
    return local_processes(jobs)


def _chunk(plan: Plan, places: list[int]) -> Chunk:
    return Chunk(fixed=plan.fixed, points=tuple((place, plan.points[place]) for place in places))


def _here(plan: Plan, pacer: Pacer, shown: Shown) -> Iterator[Measured]:
    while places := pacer.next_places():
        measured = measure_chunk(_chunk(plan, places), shown)
        pacer.learn(measured)
        yield measured


def _sent(plan: Plan, pacer: Pacer, shown: Shown, pool: Executor, most: int) -> Iterator[Measured]:
    """Outcomes as their workers finish; no more chunks are sent than keep all of them busy."""
    waiting: set[Future[Measured]] = set()

    def send(places: list[int]) -> None:
        waiting.add(_guarded(lambda: pool.submit(measure_chunk, _chunk(plan, places), shown)))

    try:
        while True:
            while len(waiting) < most and (places := pacer.next_places()):
                send(places)
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                waiting.discard(future)
                measured = _guarded(future.result)
                pacer.learn(measured)
                yield measured
    finally:
        for future in waiting:
            future.cancel()


def _guarded(deed: Callable[[], Value]) -> Value:
    """A point's own failure is in its result: what an executor raises is the loss of a worker."""
    try:
        return deed()
    except Exception as error:
        raise WorkerError(
            f"a worker ended before its work was done ({type(error).__name__}: {error}), perhaps "
            "for want of memory: use fewer jobs or smaller networks"
        ) from error
