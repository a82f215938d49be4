"""Results of a sweep: one row a point of the grid, and its decay curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.records.frames import frame, stack_frames
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

MEASURED = (
    "gamma_w",
    "spectral_radius",
    "rate",
    "rate_se",
    "bound_rate",
    "mean_field_rate",
    "saturated_share",
    "lyapunov_leading",
    "horizon_1pct",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointProfile:
    """Decay curve of one point, nats."""

    lag: Int[Array, " lags"]
    log_norm_median: Float[Array, " lags"]
    log_norm_q05: Float[Array, " lags"]
    log_norm_q95: Float[Array, " lags"]
    log_bound_gamma: Float[Array, " lags"]

    def lines(self) -> list[str]:
        """Rows of ``sweep_profiles.csv`` without their point: shortest floats that read back."""
        columns = [getattr(self, name).tolist() for name in self.__slots__]
        return [",".join(map(repr, row)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointResult:
    """What was measured at one point; a failed point has a status, a message and no numbers."""

    parameters: Mapping[str, Any]
    measured: Mapping[str, float] = field(default_factory=dict)
    regime: str = ""
    status: str = "ok"
    message: str = ""
    profile: PointProfile | None = None

    def found(self) -> dict[str, Any]:
        """Columns of ``sweep.csv`` behind those of the grid."""
        return {
            **{name: float(self.measured.get(name, np.nan)) for name in MEASURED},
            "regime": self.regime,
            "status": self.status,
            "message": self.message,
        }

    def row(self) -> dict[str, Any]:
        """Columns of ``sweep.csv``."""
        return {**self.parameters, **self.found()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepResult:
    """All points of a sweep, in the grid's order."""

    points: tuple[PointResult, ...]
    fixed: Mapping[str, Any]  # settings that all points share, as resolved

    @property
    def failed(self) -> int:
        """Number of points that gave no result."""
        return sum(point.status != "ok" for point in self.points)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        regimes = Counter(point.regime for point in self.points if point.status == "ok")
        counts = {"points": len(self.points), "failed": self.failed, "regimes": regimes}
        return summary_html(self, counts)

    def to_frame(self) -> pd.DataFrame:
        """Table ``sweep.csv``: the grid's columns, then what was measured."""
        rows = [point.row() for point in self.points]
        return frame(**{name: [row[name] for row in rows] for name in rows[0]})

    def profiles_frame(self) -> pd.DataFrame:
        """Table ``sweep_profiles.csv``: point, lag and the curves, nats."""
        names = PointProfile.__slots__
        parts = [
            frame(point=index, **{name: getattr(point.profile, name) for name in names})
            for index, point in enumerate(self.points)
            if point.profile is not None
        ]
        return stack_frames(parts) if parts else frame(**{name: [] for name in ("point", *names)})
