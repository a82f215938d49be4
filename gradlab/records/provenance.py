"""Where numbers come from: enough to make them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Provenance:
    """Versions, machine, settings and hashes behind a result."""

    versions: Mapping[str, str]  # gradlab, python, numpy, scipy; numba if installed
    blas: str
    cpu_count: int
    platform: str
    seed: int | None
    dtype: str
    settings: Mapping[str, Any]  # as resolved
    source: str | None  # where the weights came from
    sha256_weights: str
    sha256_inputs: str
    started_utc: str
    wall_seconds: float

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Keys of ``manifest.json``."""
        return {**asdict(self), "versions": dict(self.versions), "settings": dict(self.settings)}

    def to_frame(self) -> pd.DataFrame:
        """Two columns: key and value."""
        summary = self.to_summary()
        return frame(key=list(summary), value=[str(value) for value in summary.values()])
