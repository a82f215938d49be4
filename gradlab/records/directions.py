"""In how many directions the gradient survives: whole singular spectra of long-term Jacobians."""

from __future__ import annotations

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

# Share of a gradient below which it counts as lost.
SHARE = 0.01
LOG_SHARE = float(np.log(SHARE))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DirectionProfile:
    """All singular values of dh_t/dh_k at some lags of each sequence's last end time.

    Natural logarithms, the largest first; an exact zero is -inf. A value that float64 does not
    resolve is nan, and lies below ``log_ceiling``, which is -inf where there is none.
    """

    sequence: Int[Array, " pairs"]
    t: Int[Array, " pairs"]
    lag: Int[Array, " pairs"]
    log_singular_values: Float[Array, "pairs n"]  # nats
    log_ceiling: Float[Array, " pairs"]  # nats

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("sequence", "t", "lag", "log_singular_values", "log_ceiling"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def participation_ratio(self) -> Float[Array, " pairs"]:
        r"""(Σσ²)²/Σσ⁴: n where all directions are kept alike, 1 where one is; 0 for a zero product.

        What is not resolved is too small to count beside the largest; nan where that is not.
        """
        values = self.log_singular_values
        largest = values[:, :1]
        with np.errstate(invalid="ignore"):
            relative = np.exp(2.0 * (values - largest))
        squares = np.where(np.isneginf(values) | np.isnan(values), 0.0, relative)
        ratio = squares.sum(axis=1) ** 2 / np.maximum((squares**2).sum(axis=1), 1.0)
        return np.where(np.isnan(largest[:, 0]), np.nan, ratio)

    @property
    def surviving(self) -> Float[Array, " pairs"]:
        """Number of directions in which a gradient keeps 1 % of its length or more.

        nan where an unresolved value might be one of them.
        """
        return self._above(np.zeros((len(self.lag), 1)))

    @property
    def followers(self) -> Float[Array, " pairs"]:
        """Number of directions in which it keeps 1 % of what it keeps in the best, or more."""
        return self._above(self.log_singular_values[:, :1])

    def by_lag(self) -> pd.DataFrame:
        """Columns of ``directions.csv`` but the recurrence: medians over the sequences."""
        groups, values = LagGroups.of(self.lag), self.log_singular_values
        with np.errstate(invalid="ignore"):
            condition = np.where(np.isneginf(values[:, -1]), np.inf, values[:, 0] - values[:, -1])
        columns = {
            "participation_ratio": self.participation_ratio,
            "surviving": self.surviving,
            "within_1pct": self.followers,
            "log_sigma_max": values[:, 0],
            "log_sigma_min": values[:, -1],
            "log_condition": condition,
        }
        medians = {name: groups.quantile(own, 0.5) for name, own in columns.items()}
        return frame(lag=groups.lag, sequences=groups.counts, **medians)

    def to_frame(self) -> pd.DataFrame:
        """Columns of ``product_spectrum.csv`` but the recurrence: medians over the sequences."""
        groups, values = LagGroups.of(self.lag), self.log_singular_values
        table = np.stack([groups.quantile(column, 0.5) for column in values.T], axis=1)
        lags, n = table.shape
        return frame(
            lag=np.repeat(groups.lag, n),
            index=np.tile(np.arange(n), lags),
            log_singular_value=table.ravel(),
        )

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Entry ``directions`` of ``summary.json``: the longest lag."""
        last = self.by_lag().iloc[-1]
        names = ("participation_ratio", "surviving", "within_1pct", "log_condition")
        return {"lag": int(last["lag"])} | {name: float(last[name]) for name in names}

    def _above(self, reference: Float[Array, "pairs 1"]) -> Float[Array, " pairs"]:
        values = self.log_singular_values
        limit = np.where(np.isneginf(reference), np.inf, reference + LOG_SHARE)
        count = (values >= limit).sum(axis=1).astype(np.float64)
        return np.where(self.log_ceiling <= limit[:, 0], count, np.nan)
