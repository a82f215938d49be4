"""What a sweep over the spectral norm says: rates by level, and where they cross zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.records.frames import frame, stack_frames
from gradlab.records.notebook import rows_html, summary_html

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
COLUMNS = (
    "gamma_w",
    "log_gamma_w",
    "points",
    "rate",
    "rate_se",
    "fitted_rate",
    "bound_rate",
    "mean_field_rate",
    "mean_field_low",
    "mean_field_high",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepCurve:
    """Networks that differ in their spectral norm and their seed alone; rates in nats per step.

    ``bound_gamma`` is where the textbook's bound is flat, 1 over the steepest slope: below it the
    gradient must vanish. It is a bound and no measurement.
    """

    parameters: Mapping[str, Any]  # what these networks share and others of the sweep have not
    gamma_w: Float[Array, " levels"]  # geometric means over the networks of a level, rising
    points: Int[Array, " levels"]  # networks with a finite rate
    rate: Float[Array, " levels"]  # their mean
    rate_se: Float[Array, " levels"]  # its standard error; nan with a single network
    fitted_rate: Float[Array, " levels"]  # nearest rising curve
    bound_rate: Float[Array, " levels"]
    mean_field_rate: Float[Array, " levels"]  # nan where there is no theory
    mean_field_low: Float[Array, " levels"]  # band in which a network of this size is expected
    mean_field_high: Float[Array, " levels"]
    zero_gamma: float  # where the fitted rate crosses 0; 0 or inf: below or above all levels
    zero_gamma_low: float  # nan where every level has a single network
    zero_gamma_high: float
    slope: float  # of the rate against ln gamma_w, by least squares; that of the bound is 1
    slope_low: float
    slope_high: float
    mean_field_gamma: float  # where theory crosses 0; nan: not told
    bound_gamma: float
    left_out: int  # points that failed or have no finite rate or spectral norm

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """An entry of ``sweep_analysis.json``."""
        numbers = (
            "zero_gamma",
            "zero_gamma_low",
            "zero_gamma_high",
            "mean_field_gamma",
            "bound_gamma",
            "slope",
            "slope_low",
            "slope_high",
        )
        return {
            "parameters": dict(self.parameters),
            "levels": len(self.gamma_w),
            "points": int(self.points.sum()),
            "left_out": self.left_out,
            "gamma_w_first": float(self.gamma_w[0]),
            "gamma_w_last": float(self.gamma_w[-1]),
            **{name: getattr(self, name) for name in numbers},
            "mean_field_difference": self.mean_field_difference,
            "mean_field_inside": self.mean_field_inside,
        }

    @property
    def mean_field_difference(self) -> float:
        """Mean over the levels of the measured less the predicted rate; nan without theory."""
        known = np.isfinite(self.mean_field_rate)
        return float((self.rate - self.mean_field_rate)[known].mean()) if known.any() else np.nan

    @property
    def mean_field_inside(self) -> float:
        """Share of the levels whose mean lies within the band; nan without one."""
        known = np.isfinite(self.mean_field_low)
        inside = (self.mean_field_low <= self.rate) & (self.rate <= self.mean_field_high)
        return float(inside[known].mean()) if known.any() else np.nan

    def to_frame(self) -> pd.DataFrame:
        """Rows of ``sweep_analysis.csv``: one a level."""
        columns = {
            "log_gamma_w": np.log(self.gamma_w),
            **{name: getattr(self, name) for name in COLUMNS if name != "log_gamma_w"},
        }
        return frame(**self.parameters, **{name: columns[name] for name in COLUMNS})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweepAnalysis:
    """One curve for every combination of the other settings; none where no scale was swept."""

    scale: str  # setting along which the levels lie: gamma, radius or gain; empty if none
    curves: tuple[SweepCurve, ...]
    confidence: float  # of the intervals
    resamples: int
    seed: int

    def _repr_html_(self) -> str:
        """Table for notebooks, a row a curve."""
        numbers = ("zero_gamma", "zero_gamma_low", "zero_gamma_high", "slope", "mean_field_gamma")
        rows = [
            (_named(curve.parameters), *(getattr(curve, name) for name in numbers))
            for curve in self.curves
        ]
        return rows_html(type(self).__name__, ("curve", *numbers), rows)

    def to_summary(self) -> dict[str, Any]:
        """The document ``sweep_analysis.json``."""
        return {
            "schema": SCHEMA,
            "kind": "sweep analysis",
            "scale": self.scale or None,
            "confidence": self.confidence,
            "resamples": self.resamples,
            "seed": self.seed,
            "curves": [curve.to_summary() for curve in self.curves],
        }

    def to_frame(self) -> pd.DataFrame:
        """Table ``sweep_analysis.csv``."""
        if not self.curves:
            return frame(**{name: [] for name in COLUMNS})
        return stack_frames([curve.to_frame() for curve in self.curves])


def _named(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items()) or "all points"
