"""How far a gradient reaches before it is small, or outside a floating-point format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

Lags: TypeAlias = Mapping[str, int | None]  # quantity -> lag in steps; None where there is none
Fate: TypeAlias = Literal["zero", "sticks", "overflow", "unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionHorizon:
    """Lags from which the median norm stays below a share of 1, or outside a format.

    A lag is in steps; None where the event does not happen within the lags measured, or is not
    predicted by the line ``intercept + rate * lag``.
    """

    lag_half: int | None  # below 1/2
    lag_1pct: int | None  # below 1/100
    underflow: Lags  # format -> lag: below its smallest normal number
    overflow: Lags  # format -> lag: above its largest finite number
    predicted: Lags  # lag_half, lag_1pct, <format>, overflow_<format>

    def __post_init__(self) -> None:
        """Own the mappings, so that no other name can change them."""
        for name in ("underflow", "overflow", "predicted"):
            object.__setattr__(self, name, dict(getattr(self, name)))

    @property
    def measured(self) -> Lags:
        """Measured lags under the keys of ``predicted``."""
        over = {f"overflow_{name}": lag for name, lag in self.overflow.items()}
        return {"lag_half": self.lag_half, "lag_1pct": self.lag_1pct, **self.underflow, **over}

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Entry ``horizon`` of ``summary.json``."""
        return {
            "lag_half": self.lag_half,
            "lag_1pct": self.lag_1pct,
            **self.underflow,
            "overflow": dict(self.overflow),
            "predicted": dict(self.predicted),
        }

    def to_frame(self) -> pd.DataFrame:
        """Table: quantity, measured, predicted; whole numbers, missing where None."""
        measured = self.measured
        table = frame(
            quantity=list(measured),
            measured=list(measured.values()),
            predicted=[self.predicted.get(quantity) for quantity in measured],
        )
        return table.astype({"measured": "Int64", "predicted": "Int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProduct:
    """What becomes of 1 · gamma · gamma · … when every product is rounded to a format."""

    format: str
    gamma: float  # the factor, rounded to the format
    fate: Fate  # "sticks" at a number that the factor rounds back to
    step: int | None  # multiplication that first gave the last value; None when unfinished
    value: float  # the value reached
    subnormals: int | None  # the value in units of the smallest subnormal; None for infinity
