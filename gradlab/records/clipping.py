"""What clipping did over the steps of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClipAudit:
    """Norms of the gradient before and after clipping, step by step, and what follows from them.

    A step without a finite gradient has the norm nan and enters no share, mean or quantile; a norm
    beyond float64 is inf and does.
    """

    before: Float[Array, " steps"]
    after: Float[Array, " steps"]
    threshold: float  # inf without clipping
    candidates: tuple[float, ...]
    cosine_with_unclipped_sum: float  # of the sums over all steps; nan where they were not kept

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("before", "after"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def norms(self) -> Float[Array, " counted"]:
        """Norms before clipping of the steps that have one."""
        return self.before[~np.isnan(self.before)]

    @property
    def first_nonfinite(self) -> int | None:
        """First step, from 1, whose gradient was not finite."""
        wrong = np.flatnonzero(np.isnan(self.before))
        return int(wrong[0]) + 1 if len(wrong) else None

    @property
    def clipped_share(self) -> float:
        """Share of steps that were clipped: those with a norm strictly above the threshold."""
        return self.share_above(self.threshold)

    @property
    def mean(self) -> float:
        """Mean norm before clipping; nan without steps."""
        return float(self.norms.mean()) if len(self.norms) else float("nan")

    def share_above(self, threshold: float) -> float:
        """Share of steps with a norm strictly above a threshold; nan without steps."""
        return float((self.norms > threshold).mean()) if len(self.norms) else float("nan")

    def quantile(self, q: float) -> float:
        """Quantile of the norms before clipping, linear between order statistics."""
        if not len(self.norms):
            return float("nan")
        ordered = np.sort(self.norms)
        place = q * (len(ordered) - 1)
        low, high = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
        return float(low if low == high else low + (place - np.floor(place)) * (high - low))

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.summary())

    def summary(self) -> dict[str, Any]:
        """The numbers for people and files; the method of the quantiles is stated."""
        return {
            "steps": len(self.before),
            "nonfinite_steps": int(np.isnan(self.before).sum()),
            "first_nonfinite": self.first_nonfinite,
            "threshold": self.threshold,
            "clipped_share": self.clipped_share,
            "mean_before": self.mean,
            "mean_after": float(np.nanmean(self.after)) if len(self.norms) else float("nan"),
            "quantile_method": "linear",
            "quantiles": {f"q{100.0 * q:g}": self.quantile(q) for q in QUANTILES},
            "share_above": {f"{each:g}": self.share_above(each) for each in self.candidates},
            "cosine_with_unclipped_sum": self.cosine_with_unclipped_sum,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a step: step from 1, norm before and after, whether it was clipped."""
        return frame(
            step=np.arange(1, len(self.before) + 1),
            norm_before=self.before,
            norm_after=self.after,
            clipped=self.before > self.threshold,
        )
