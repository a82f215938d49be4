"""Fair timing of candidates that do the same work."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Fastest times of candidates for one problem, with the error against the peer."""

    problem: str
    seconds: Mapping[str, float]  # processor seconds by candidate
    difference: float  # largest absolute difference between gradlab's and the peer's result

    def ratio(self, candidate: str, reference: str) -> float:
        """Time of one candidate in units of another's."""
        return self.seconds[candidate] / self.seconds[reference]


def fastest(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Processor seconds of each candidate's fastest round; the candidates take turns."""
    for candidate in candidates.values():
        candidate()
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, candidate in candidates.items():
            best[name] = min(best[name], seconds_of(candidate))
    return best


def seconds_of(candidate: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    candidate()
    return time.process_time() - start
