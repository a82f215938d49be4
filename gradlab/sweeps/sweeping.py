"""Sweeps: into memory, or into a folder that an interrupted one goes on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from pathlib import Path
from typing import Any

from gradlab.errors import WorkerError
from gradlab.records.sweep import PointResult, SweepResult
from gradlab.records.sweep_summary import SweepSummary
from gradlab.storage.point_log import PointLog, log_line
from gradlab.storage.sweeps import FinishedPoint, claimed_sweep, finish_sweep, unmark_sweep
from gradlab.sweeps.dispatch import measured_points
from gradlab.sweeps.grids import Point
from gradlab.sweeps.plans import Plan, planned

Progress = Callable[[int, int], None]


def sweep(
    points: Sequence[Point],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    on_done: Progress | None = None,
    **fixed: Any,
) -> SweepResult:
    """Analyze a network at every point.

    Parameters
    ----------
    points
        Settings of every point, as `grid` makes them; all with the same names, see
        `gradlab.sweeps.settings.PointSettings`.
    executor
        Any executor of ``concurrent.futures``, such as `dask_executor` gives.
    jobs
        Without an executor: processes, with one BLAS thread each; 1 or None computes in this
        process. With one: how many workers it has, if that is known.
    on_done
        Called with the number of points just finished, and how many of these failed.
    fixed
        Settings that all points share.

    Returns
    -------
    result
        In the order of the points, with the same bits whatever ``jobs`` and ``executor`` are: a
        point's random stream is derived from its seed and settings alone, see
        `gradlab.sweeps.streams`. A point that fails has a status and a message; the sweep goes on.

    Raises
    ------
    UnknownNameError
        If there is no setting of a name, or no such kind of cell.
    SettingError
        If there is no point, their names differ, or a setting has the wrong type or no effect.
    WorkerError
        If a worker is lost.
    """
    plan = planned(points, fixed)
    count = len(points)
    results: dict[int, PointResult] = {}
    measuring = measured_points(plan, range(count), count, _placed, executor=executor, jobs=jobs)
    with closing(measuring):
        for measured in measuring:
            results.update(measured.outcomes)
            _tell(on_done, len(measured.outcomes), measured.failed)
    return SweepResult(points=tuple(results[place] for place in range(count)), fixed=plan.shared())


def run_sweep(
    points: Sequence[Point],
    folder: Path | str,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    on_done: Progress | None = None,
    on_tables: Callable[[Path], None] | None = None,
    force: bool = False,
    resume: bool = True,
    argv: Sequence[str] | None = None,
    axes: Mapping[str, Any] | None = None,
    **fixed: Any,
) -> SweepSummary:
    """Analyze a network at every point, and write the results into a folder as they come.

    Finished points are on the disk before the next ones are waited for. Whatever ends the sweep,
    the same call goes on with the points that are missing, and gives the bytes of a sweep that was
    never interrupted. Memory does not grow with the number of points.

    Parameters
    ----------
    points, executor, jobs, fixed
        As in `sweep`.
    folder
        To be made. While it holds the file ``INCOMPLETE``, the sweep is not finished.
    on_done
        Called with the number of points just finished, and how many of these failed; first with
        those that an earlier call finished.
    on_tables
        Called with the folder once its tables are written and before ``INCOMPLETE`` goes: the
        place to draw.
    force
        Whether a sweep in its place may be replaced, finished or not.
    resume
        Whether an unfinished sweep may be gone on with.
    argv
        Command line, for the manifest.
    axes
        How ``sweep.toml`` is to spell the values of the axes; in full if None.

    Returns
    -------
    summary
        Counts; the rows are in the folder.

    Raises
    ------
    OutputError
        If the folder may not be written, another process writes to it, or the disk refuses.
    RunFolderError
        If it holds an unfinished sweep with other settings.
    GradlabError
        As in `sweep`.
    """
    folder, plan = Path(folder), planned(points, fixed)
    settings = {**(axes or _spelled(plan)), "settings": plan.shared()}
    claim = claimed_sweep(folder, plan.identity(), settings, force=force, resume=resume, argv=argv)
    with claim as log:
        _measure_missing(plan, log, executor, jobs, on_done)
        summary = finish_sweep(folder, plan.names, _finished(plan, log))
        if on_tables is not None:
            on_tables(folder)
        unmark_sweep(folder)
    return summary


def _measure_missing(
    plan: Plan, log: PointLog, executor: Executor | None, jobs: int | None, on_done: Progress | None
) -> None:
    if on_done is not None:
        on_done(log.done, log.failed)
    left = len(plan.points) - log.done
    if not left:
        return
    measuring = measured_points(plan, log.missing(), left, log_line, executor=executor, jobs=jobs)
    try:
        with closing(measuring):
            for measured in measuring:
                log.append(measured.outcomes)
                _tell(on_done, len(measured.outcomes), measured.failed)
    except WorkerError as error:
        raise WorkerError(
            f"{error}; {log.done} of {len(plan.points)} points are kept in {log.path.parent}, and "
            "the same command goes on from there"
        ) from error


def _finished(plan: Plan, log: PointLog) -> Iterator[FinishedPoint]:
    for place in range(len(plan.points)):
        document = log.read(place)
        yield plan.parameters(place), document["found"], document["profile"]


def _spelled(plan: Plan) -> dict[str, Any]:
    """Axes under the names and in the forms of the command line."""
    spelled: dict[str, Any] = {}
    for name in plan.names:
        values = plan.values(name)
        if name == "seed" and all(k == seed for k, seed in enumerate(values, start=values[0])):
            spelled |= {"seeds": len(values), "seed": values[0]}
        else:
            spelled["models" if name == "model" else name] = list(values)
    return spelled


def _placed(index: int, result: PointResult) -> tuple[int, PointResult]:
    return index, result


def _tell(on_done: Progress | None, finished: int, failed: int) -> None:
    if on_done is not None:
        on_done(finished, failed)
