"""What a sweep that was written to a folder came to, in numbers that do not grow with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSummary:
    """Counts of a finished sweep; its rows are in the folder."""

    folder: Path
    points: int
    failed: int
    regimes: Mapping[str, int]  # points that were measured, by the name of their regime
    first_failure: str = ""  # status and message of the first failed point in the grid's order

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """The keys that the manifest has of it."""
        return {"points": self.points, "failed": self.failed, "regimes": dict(self.regimes)}

    def to_frame(self) -> pd.DataFrame:
        """Table regime, points."""
        return frame(regime=list(self.regimes), points=list(self.regimes.values()))
