"""How long the searches for certificates may go on."""

from __future__ import annotations

import time
from dataclasses import dataclass

# Cubes of the state size that a search without a clock may spend, and that a second is worth.
WORK = 8e8
WORK_A_SECOND = 4e8
# Fewer steps than this improve nothing worth the wait.
LEAST_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Limit of one search, by steps alone (equal results every time) or by the clock."""

    deadline: float | None = None  # as `time.monotonic` counts; None: by steps alone

    @classmethod
    def of_seconds(cls, seconds: float | None) -> Effort:
        """Effort that ends after so many seconds; without a clock if None."""
        return cls(deadline=None if seconds is None else time.monotonic() + seconds)

    def share(self, part: float) -> Effort:
        """Effort that ends when so large a part of the time that is left is over."""
        if self.deadline is None:
            return self
        now = time.monotonic()
        return Effort(deadline=now + part * max(self.deadline - now, 0.0))

    def steps(self, n: int) -> int:
        """Steps of a search over matrices of order n; 0 where the search is not worth a start."""
        work = WORK
        if self.deadline is not None:
            work = WORK_A_SECOND * max(self.deadline - time.monotonic(), 0.0)
        steps = int(work / n**3)
        if steps < LEAST_STEPS:
            return 0
        return steps if self.deadline is None else 1_000_000

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() >= self.deadline
