"""What an analysis would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceEstimate:
    """Work on one recurrence."""

    name: str
    state_size: int
    end_times: int  # of the longest sequence
    steps: int  # of the longest sequence
    pairs: int  # (t, k) whose norms are measured
    seconds: Mapping[str, float]  # by measurement, on one core


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisEstimate:
    """Time and memory of an analysis, from counts of its work and the speed of this machine."""

    recurrences: tuple[RecurrenceEstimate, ...]
    seconds: float  # on one core, without what a report draws
    bytes: int  # of memory, at most
    speed: float  # of this machine, in that of the one whose unit costs are known

    @property
    def pairs(self) -> int:
        """Pairs (t, k) of all recurrences."""
        return sum(entry.pairs for entry in self.recurrences)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        told = {"seconds": self.seconds, "bytes": self.bytes, "pairs": self.pairs}
        return summary_html(self, told)

    def to_summary(self) -> dict[str, Any]:
        """The document of ``gradlab analyze --estimate --json``, without its schema."""
        return {
            "seconds": self.seconds,
            "bytes": self.bytes,
            "pairs": self.pairs,
            "speed": self.speed,
            "recurrences": [
                {
                    "name": entry.name,
                    "state_size": entry.state_size,
                    "end_times": entry.end_times,
                    "steps": entry.steps,
                    "pairs": entry.pairs,
                    "seconds": dict(entry.seconds),
                }
                for entry in self.recurrences
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a recurrence and measurement."""
        rows = [
            (entry.name, part, seconds)
            for entry in self.recurrences
            for part, seconds in entry.seconds.items()
        ]
        names, parts, seconds = zip(*rows, strict=True) if rows else ((), (), ())
        return frame(recurrence=list(names), measurement=list(parts), seconds=list(seconds))
