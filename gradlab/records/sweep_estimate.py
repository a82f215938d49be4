"""What a sweep would take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEstimate:
    """Time and room of a sweep, from some of its points that were measured."""

    points: int
    jobs: int
    shapes: int  # kinds and sizes of networks and runs in the grid
    probed: int  # of these measured; the others are scaled by their number of operations
    seconds_a_point: float  # mean over the grid, on one core
    seconds: float  # with all jobs
    bytes_a_process: int  # of memory
    disk_bytes: int  # of the two tables

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """The document of ``gradlab sweep --dry-run --json``, without its schema."""
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        return frame(**{name: [value] for name, value in asdict(self).items()})
