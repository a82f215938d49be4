"""The verdict on a network's gradient, from the measured rate."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

REGIMES = ("vanishing", "near-critical", "exploding", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """How the median norm of dh_t/dh_k changes with the lag, beyond the transient.

    Rates are natural logarithms per step. The verdict never comes from a bound.
    """

    name: str  # one of REGIMES
    rate: float  # robust slope of the median log norm; -inf where the product is exactly 0
    rate_low: float  # nominal 95 % interval over sequences and end times
    rate_high: float
    tolerance: float  # rates below it change the norm by less than a factor 10
    rule: str  # the rule that fired
    transient_height: float  # largest median log norm above 0 before the decay, nats
    transient_lag: int  # its lag; 0 where the median never rises above 1
    level: float  # median of the median log norm over the lags fitted, nats
    contradicts: str | None  # the rule of thumb that the measurement contradicts
    rate_se: float  # standard error behind the interval; nan where there is none
    intercept: float  # of the fitted line, nats
    first_lag: int  # lags fitted, from and to
    last_lag: int

    @property
    def trend(self) -> tuple[float, float]:
        """Rate and intercept to predict from; nan where the gradient has no trend to speak of."""
        if self.name in ("vanishing", "exploding"):
            return self.rate, self.intercept
        return math.nan, math.nan

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """The keys of ``summary.json``."""
        left_out = ("rate_se", "level", "intercept", "first_lag", "last_lag")
        return {key: value for key, value in asdict(self).items() if key not in left_out}

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        return frame(**{key: [value] for key, value in asdict(self).items()})
