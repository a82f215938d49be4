"""Points to workers in chunks, over any executor of ``concurrent.futures``."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from time import perf_counter
from typing import TypeVar

from gradlab.errors import WorkerError
from gradlab.linalg import single_threaded_blas
from gradlab.records.sweep import PointResult
from gradlab.sweeps.pacing import Pacer
from gradlab.sweeps.plans import Plan
from gradlab.sweeps.points import Chunk, Measured, Shown, measure_chunk
from gradlab.sweeps.pools import LocalProcesses, ProcessEndedError

WAITING = 2  # chunks that wait for every worker, so that none is ever idle
UNKNOWN_SIZE = 64  # workers that an executor may have if nobody says
MOST_ENDS = 2  # of processes, at which a point is given up
LOST = (
    "its process ended twice, perhaps for want of memory: expected fewer jobs or a smaller network"
)

Value = TypeVar("Value")
Result = Callable[[Future[Measured]], Measured]


def measured_points(
    plan: Plan,
    places: Iterable[int],
    count: int,
    shown: Shown,
    *,
    executor: Executor | None,
    jobs: int | None,
) -> Generator[Measured, None, None]:
    """What comes of the points at some places, in the order they finish.

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
        If a worker is lost, and the executor does not send its work to another; a process of this
        machine's own is replaced, and its points are measured again.
    """
    workers = jobs or (1 if executor is None else UNKNOWN_SIZE)
    pacer = Pacer(places, count, workers)
    if executor is None and workers == 1:
        with single_threaded_blas():
            yield from _here(plan, pacer, shown)
        return
    with _pool(executor, workers) as pool:
        crew = _Crew(plan, pacer, shown, pool)
        try:
            yield from crew.measured(workers * (1 + WAITING))
        finally:
            crew.cancel()


def _pool(executor: Executor | None, jobs: int) -> AbstractContextManager[Executor]:
    return LocalProcesses(jobs) if executor is None else nullcontext(executor)


def _chunk(plan: Plan, places: list[int]) -> Chunk:
    points = tuple((place, plan.points[place]) for place in places)
    return Chunk(fixed=plan.fixed, points=points, total=len(plan.points))


def _here(plan: Plan, pacer: Pacer, shown: Shown) -> Iterator[Measured]:
    while places := pacer.next_places():
        measured = measure_chunk(_chunk(plan, places), shown)
        pacer.learn(measured)
        yield measured


class _Crew:
    """Workers, the chunks that they have, and those that a process left when it ended."""

    def __init__(self, plan: Plan, pacer: Pacer, shown: Shown, pool: Executor) -> None:
        self._plan, self._pacer, self._shown, self._pool = plan, pacer, shown, pool
        self._sent: dict[Future[Measured], list[int]] = {}
        self._done: SimpleQueue[Future[Measured]] = SimpleQueue()
        self._again: deque[list[int]] = deque()
        self._ends: Counter[int] = Counter()  # of processes, by the place of the point
        self._result: Result = lambda future: future.result()
        if isinstance(pool, LocalProcesses):
            self._result = pool.result

    def measured(self, most: int) -> Iterator[Measured]:
        """Outcomes as their workers finish, with no more chunks out than keep all of them busy."""
        self._fill(most)
        while self._sent:
            futures = self._finished()
            began = perf_counter()
            found = _together([self._outcome(future) for future in futures])
            self._pacer.learn(found)
            self._fill(most)  # before the outcomes are saved: no worker waits for the disk
            if found.outcomes:
                yield found
            self._pacer.learn_busy(perf_counter() - began, len(futures))

    def cancel(self) -> None:
        """Take back what is out, if anything is; of foreign workers what they have not begun."""
        if self._sent and isinstance(self._pool, LocalProcesses):
            self._pool.shutdown(wait=False, cancel_futures=True)
            return
        for future in self._sent:
            future.cancel()

    def _fill(self, most: int) -> None:
        while len(self._sent) < most:
            places = self._again.popleft() if self._again else self._pacer.next_places()
            if not places:
                return
            chunk = _chunk(self._plan, places)
            future = _guarded(lambda: self._pool.submit(measure_chunk, chunk, self._shown))  # noqa: B023
            self._sent[future] = places
            future.add_done_callback(self._done.put)

    def _finished(self) -> list[Future[Measured]]:
        """All that are done, one at least: they are then saved in one go."""
        futures = [self._done.get()]
        while not self._done.empty():
            futures.append(self._done.get())
        return futures

    def _outcome(self, future: Future[Measured]) -> Measured:
        places = self._sent.pop(future)
        try:
            return _guarded(lambda: self._result(future))
        except ProcessEndedError as error:
            return self._try_again(places, begun=error.begun)

    def _try_again(self, places: list[int], *, begun: bool) -> Measured:
        """Put aside what a process left, alone what it may have ended by; give up what it has."""
        if not begun:
            self._again.append(places)
            return _together([])
        self._ends.update(places)
        if len(places) > 1 or self._ends[places[0]] < MOST_ENDS:
            self._again.extend([place] for place in places)
            return _together([])
        point = PointResult(
            parameters=self._plan.parameters(places[0]), status="lost", message=LOST
        )
        return Measured(outcomes=(self._shown(places[0], point),), seconds=0.0, failed=1)


def _together(several: list[Measured]) -> Measured:
    return Measured(
        outcomes=tuple(outcome for measured in several for outcome in measured.outcomes),
        seconds=sum(measured.seconds for measured in several),
        failed=sum(measured.failed for measured in several),
    )


def _guarded(deed: Callable[[], Value]) -> Value:
    """A point's own failure is in its result: what an executor raises is the loss of a worker."""
    try:
        return deed()
    except (ProcessEndedError, WorkerError):
        raise
    except Exception as error:
        raise WorkerError(
            f"a worker ended before its work was done ({type(error).__name__}: {error}), perhaps "
            "for want of memory: use fewer jobs or smaller networks"
        ) from error
