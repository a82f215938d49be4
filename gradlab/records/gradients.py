"""The gradient of the recurrent weights, term by term."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame
from gradlab.records.lags import LagGroups
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("sequence", "t", "k", "lag", "log_term_norm", "log_term_bound")
HELD = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientProfile:
    """Terms of dL/dW by the step t of the loss and the step k of the weights, k = t - lag.

    A term is the gradient of L_t through the use of W at step k alone. Its norm is the Frobenius
    norm, as a natural logarithm; an exact zero is -inf. Rows are ordered by sequence, then t, then
    lag; lag 0 is there. Times count from 1 to T.
    """

    sequence: Int[Array, " terms"]
    t: Int[Array, " terms"]
    k: Int[Array, " terms"]
    lag: Int[Array, " terms"]
    log_term_norm: Float[Array, " terms"]  # measured, nats
    log_term_bound: Float[Array, " terms"]  # upper bound, nats; nan for gated cells
    total: Float[Array, "rows columns"]  # the sum of all terms, dL/dW; infinite out of range
    log_total_norm: float  # ln of its Frobenius norm, whatever its size

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in (*COLUMNS, "total"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def groups(self) -> LagGroups:
        """The terms grouped by lag."""
        return LagGroups.of(self.lag)

    @property
    def log_sum_of_norms(self) -> float:
        """ln of the sum of all terms' norms, nats."""
        total = float(np.sum(np.exp(self.log_term_norm - self._reference)))
        return self._reference + math.log(total) if total > 0.0 else -math.inf

    @property
    def share(self) -> Float[Array, " lags"]:
        """Share of each lag, ascending from 0, in the sum of all terms' norms; nan if that is 0."""
        weights = np.exp(self.log_term_norm - self._reference)
        sums = np.bincount(self.lag, weights=weights)[self.groups.lag]
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / sums.sum())

    @property
    def cumulative_share(self) -> Float[Array, " lags"]:
        """Share of each lag and all shorter ones."""
        return np.asarray(np.cumsum(self.share))

    @property
    def cancellation_ratio(self) -> float:
        """Norm of the sum over sum of the norms: 1 if all terms point the same way; nan if 0/0."""
        if np.isneginf(self.log_sum_of_norms):
            return float("nan")
        return float(np.exp(self.log_total_norm - self.log_sum_of_norms))

    def lag_holding(self, share: float) -> int | None:
        """Shortest lag up to which the terms hold the given share of the sum of norms.

        None if every term is 0.
        """
        reached = np.flatnonzero(self.cumulative_share >= share * (1.0 - 1e-12))
        return int(self.groups.lag[reached[0]]) if len(reached) else None

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Entry ``gradient`` of ``summary.json``: lags that hold 50, 90 and 99 %, and norms.

        ``log_`` norms are in nats; ``total_norm`` is infinite where it leaves float64.
        """
        with np.errstate(over="ignore"):
            total_norm = float(np.exp(self.log_total_norm))
        return {
            **{f"lag_{100.0 * share:g}": self.lag_holding(share) for share in HELD},
            "cancellation_ratio": self.cancellation_ratio,
            "total_norm": total_norm,
            "log_total_norm": self.log_total_norm,
            "log_sum_of_norms": self.log_sum_of_norms,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a term."""
        return frame(**{name: getattr(self, name) for name in COLUMNS})

    def by_lag(self) -> pd.DataFrame:
        """Columns of ``gradient.csv`` but the recurrence: one row a lag, norms in nats."""
        groups = self.groups
        return frame(
            lag=groups.lag,
            log_term_norm_median=groups.quantile(self.log_term_norm, 0.5),
            log_term_bound_median=groups.quantile(self.log_term_bound, 0.5),
            share=self.share,
            cumulative_share=self.cumulative_share,
        )

    @property
    def _reference(self) -> float:
        """A finite logarithm near the largest term's."""
        largest = float(np.max(self.log_term_norm, initial=-np.inf))
        return largest if np.isfinite(largest) else 0.0
