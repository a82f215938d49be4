"""Fair timing of candidates that do the same work."""

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.comparing import Costs

PATIENCE = 2.0  # seconds after which a candidate is not run again

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Something to time; of long work a part that stands for the whole."""

    run: Callable[[], Any]
    times: float = 1.0  # the whole is this many of what is run; below 1 where it is run many times
    patience: float = PATIENCE


def repeated(run: Callable[[], Any], count: int) -> Candidate:
    """Something short, run many times; it costs what one of them costs."""

    def many() -> Any:
        for _ in range(count - 1):
            run()
        return run()

    return Candidate(run=many, times=1.0 / count)


def raced(
    candidates: Mapping[str, Candidate | None],
    rounds: int,
    difference: Callable[[Mapping[str, Any]], float] | None = None,
    clock: Clock = time.process_time,
) -> Costs:
    """Costs of each candidate's fastest round; the candidates take turns, None is not installed.

    All run once before, so that nothing is timed that happens only once. That run counts for those
    that took so long that they are not run again.
    """
    present = {name: candidate for name, candidate in candidates.items() if candidate is not None}
    first = {name: timed(candidate, clock) for name, candidate in present.items()}
    results = {name: result for name, (_, result) in first.items()}
    slow = {name: s for name, (s, _) in first.items() if s > present[name].patience}
    best = dict.fromkeys(present, math.inf) | slow
    repeating = [name for name in present if name not in slow]
    for _ in range(rounds):
        for name in repeating:
            best[name] = min(best[name], timed(present[name], clock)[0])
    return Costs(
        values={name: best[name] * present[name].times for name in present},
        difference=math.nan if difference is None else difference(results),
    )


def timed(candidate: Candidate, clock: Clock) -> tuple[float, Any]:
    """Seconds of one call, and what it returned."""
    start = clock()
    result = candidate.run()
    return clock() - start, result


def peak_bytes(run: Callable[[], object]) -> float:
    """Most that is allocated at a time while something runs, NumPy's arrays included."""
    tracemalloc.start()
    try:
        run()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
