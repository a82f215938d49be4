"""A random network made for a wished horizon, and whether simulation agrees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Setting that theory found for a horizon, and the horizons of networks drawn with it.

    The horizon is the lag from which the median norm of dh_t/dh_{t-l} stays below 1 %.
    """

    cell: str
    solved: str  # the setting that was found
    value: float
    settings: Mapping[str, Any]  # the others, as given
    horizon: int  # wished, and predicted from the setting
    rate: float  # predicted, nats per step
    measured: tuple[int | None, ...]  # one a network; None: not within the lags measured
    max_lag: int  # longest lag measured
    tolerance: float  # largest factor between prediction and measurement that counts as agreement
    seed: int  # of the first network; the others count on

    def __post_init__(self) -> None:
        """Freeze the mapping."""
        object.__setattr__(self, "settings", dict(self.settings))

    @property
    def measured_horizon(self) -> int | None:
        """Median over the networks, the longer one of two; None beyond the lags measured."""
        lags = sorted(math.inf if lag is None else lag for lag in self.measured)
        middle = lags[len(lags) // 2]
        return None if math.isinf(middle) else int(middle)

    @property
    def agrees(self) -> bool:
        """Whether the median horizon is the wished one within the tolerance, or one step."""
        median = self.measured_horizon
        if median is None:
            return False
        near = 1.0 / self.tolerance <= median / self.horizon <= self.tolerance
        return near or abs(median - self.horizon) <= 1

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Keys of ``gradlab design --json``."""
        found = asdict(self) | {"measured": list(self.measured)}
        return found | {"measured_horizon": self.measured_horizon, "agrees": self.agrees}

    def to_frame(self) -> pd.DataFrame:
        """One row a network: seed, horizon (nan beyond the lags measured)."""
        lags = [math.nan if lag is None else float(lag) for lag in self.measured]
        return frame(seed=[self.seed + i for i in range(len(lags))], horizon=lags)
