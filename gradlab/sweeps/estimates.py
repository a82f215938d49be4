"""What a sweep would take, from a few of its points."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

from gradlab.estimates import PROCESS_BYTES
from gradlab.linalg import single_threaded_blas
from gradlab.records.sweep import PointResult
from gradlab.records.sweep_estimate import SweepEstimate
from gradlab.sweeps.grids import Grid, Point
from gradlab.sweeps.plans import Plan, planned
from gradlab.sweeps.points import measure_point

SHAPING = "model recurrence cell hidden_size input_size length batch anchors max_lag".split()
MOST_SHAPES = 64  # sizes that are told apart; of more, as many are sampled evenly
PROBE_SECONDS = 3.0  # after which no larger size is measured
SIZED_SECONDS = 0.5  # of a point that is measured once more, for its memory
STATES = {"lstm": 2}  # numbers of the state for each unit, where they are several
SMALL = 100  # units below which a step costs its calls rather than its operations


def estimate_sweep(points: Sequence[Point], *, jobs: int = 1, **fixed: Any) -> SweepEstimate:
    """Time and room that a sweep would take.

    Parameters
    ----------
    points, fixed
        As in `sweep`.
    jobs
        Processes among which the work would be shared.

    Returns
    -------
    estimate
        A point of every size is measured, the smallest first, for a few seconds. Larger sizes are
        scaled by their operations, T B n² (n + 100), from the largest that was measured: rather too
        much than too little, for large matrices are multiplied faster.

    Raises
    ------
    GradlabError
        As in `sweep`.
    """
    plan = planned(points, fixed)
    places = sorted(_shapes(plan), key=lambda place: _work(plan, place))
    with single_threaded_blas():
        _measure(plan, places[0])  # what is imported on first use is no part of a point
        seconds = _seconds(plan, places)
        largest = places[len(seconds) - 1]
        sized = places[max(0, sum(each < SIZED_SECONDS for each in seconds) - 1)]
        memory, disk = _bytes(plan, sized)
    scale = _work(plan, largest)
    rest = [seconds[-1] * _work(plan, place) / scale for place in places[len(seconds) :]]
    mean = (sum(seconds) + sum(rest)) / len(places)
    growth = max(_room(plan, place) for place in places) / _room(plan, sized)
    return SweepEstimate(
        points=len(points),
        jobs=jobs,
        probed=len(seconds),
        shapes=len(places),
        seconds_a_point=mean,
        seconds=mean * len(points) / min(jobs, len(points)),
        bytes_a_process=PROCESS_BYTES + int(memory * growth),
        disk_bytes=int(disk * _mean_lags(plan, places, sized) * len(points)),
    )


def _shapes(plan: Plan) -> list[int]:
    """Place of one point of every size, or of a sample of them."""
    if not isinstance(plan.points, Grid):
        count = min(len(plan.points), MOST_SHAPES)
        return [k * len(plan.points) // count for k in range(count)]
    axes, stride, strides = plan.points.axes, 1, {}
    for name in reversed(axes):
        strides[name] = stride
        stride *= len(axes[name])
    sizes = Grid({name: range(len(axes[name])) for name in axes if name in SHAPING})
    count = min(len(sizes), MOST_SHAPES)
    chosen = (sizes[k * len(sizes) // count] for k in range(count))
    return [sum(digit * strides[name] for name, digit in size.items()) for size in chosen]


def _work(plan: Plan, place: int) -> float:
    """Operations of a point, up to a factor."""
    settings = plan.settings(place)
    n = settings.hidden_size * STATES.get(settings.cell, 1)
    ends = settings.length if settings.anchors == "all" else settings.anchors
    many = ends if isinstance(ends, int) else 1
    return float(settings.length * settings.batch * many * n**2 * (n + SMALL))


def _room(plan: Plan, place: int) -> float:
    """Numbers that a point holds at once, up to a factor."""
    settings = plan.settings(place)
    n = settings.hidden_size * STATES.get(settings.cell, 1)
    return float(settings.batch * n * (n + settings.length) + n**2)


def _mean_lags(plan: Plan, places: Sequence[int], sized: int) -> float:
    """Mean number of lags of a point, in those of one whose tables were measured."""
    lags = [_lags(plan, place) for place in places]
    return sum(lags) / len(lags) / _lags(plan, sized)


def _lags(plan: Plan, place: int) -> int:
    settings = plan.settings(place)
    return min(settings.length, settings.max_lag or settings.length)


def _measure(plan: Plan, place: int) -> PointResult:
    point = plan.points[place]
    values = {**plan.fixed, **point}
    return measure_point(values, parameters=point, total=len(plan.points))


def _seconds(plan: Plan, places: Sequence[int]) -> list[float]:
    """Time of the smaller points, one at least; none is begun that would take too long."""
    left = PROBE_SECONDS
    taken: list[float] = []
    for index, place in enumerate(places):
        if index:
            expected = taken[-1] * _work(plan, place) / _work(plan, places[index - 1])
            if expected > left:
                break
        started = time.perf_counter()
        _measure(plan, place)
        taken.append(time.perf_counter() - started)
        left -= taken[-1]
    return taken


def _bytes(plan: Plan, place: int) -> tuple[float, float]:
    """Memory at most, and bytes in the tables, of a point."""
    tracemalloc.start()
    try:
        result = _measure(plan, place)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    lines = [] if result.profile is None else result.profile.lines()
    index = len(str(len(plan.points)))
    row = ",".join(map(str, result.row().values()))
    return float(memory), float(len(row) + sum(len(line) + index + 2 for line in lines))
