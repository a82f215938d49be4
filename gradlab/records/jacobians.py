"""Norms of the long-term Jacobians, pair by pair and lag by lag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame
from gradlab.records.lags import LagGroups
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("sequence", "t", "k", "lag", "log_norm", "log_frobenius", "log_sigma_min")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JacobianProfile:
    """Measured norms of dh_t/dh_k for the pairs (t, k), by sequence, then t, then lag.

    Natural logarithms: norms leave the range of floating point long before their logarithms do.
    An exact zero is -inf; a smallest singular value that float64 cannot resolve is nan. Times count
    from 0 (the initial state), lag 0 is left out.
    """

    sequence: Int[Array, " pairs"]
    t: Int[Array, " pairs"]
    k: Int[Array, " pairs"]
    lag: Int[Array, " pairs"]  # t - k
    log_norm: Float[Array, " pairs"]  # spectral norm, nats
    log_frobenius: Float[Array, " pairs"]  # nats
    log_sigma_min: Float[Array, " pairs"]  # nats; nan where unresolved or not asked for

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in COLUMNS:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def groups(self) -> LagGroups:
        """The pairs grouped by lag."""
        return LagGroups.of(self.lag)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        groups = self.groups
        median = groups.quantile(self.log_norm, 0.5)
        told = {"pairs": len(self.lag), "longest lag": int(groups.lag[-1])}
        ends = {"first": float(median[0]), "last": float(median[-1])}
        return summary_html(self, told | {"median log norm at the lag": ends})

    def to_frame(self) -> pd.DataFrame:
        """One row a pair."""
        return frame(**{name: getattr(self, name) for name in COLUMNS})

    def by_lag(self) -> pd.DataFrame:
        """One row a lag: the distribution over end times and sequences, in nats."""
        groups = self.groups
        quantiles = {"min": 0.0, "q05": 0.05, "median": 0.5, "q95": 0.95, "max": 1.0}
        norms = {name: groups.quantile(self.log_norm, q) for name, q in quantiles.items()}
        return frame(
            lag=groups.lag,
            pairs=groups.counts,
            log_norm_min=norms["min"],
            log_norm_q05=norms["q05"],
            log_norm_median=norms["median"],
            log_norm_mean=groups.mean(self.log_norm),
            log_norm_q95=norms["q95"],
            log_norm_max=norms["max"],
            log_frobenius_median=groups.quantile(self.log_frobenius, 0.5),
            log_sigma_min_median=groups.quantile(self.log_sigma_min, 0.5),
        )
