"""Proven bounds on the long-term Jacobians, from the textbook's down to the exact norm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame, stack_frames
from gradlab.records.lags import LagGroups
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

RUNGS = ("gamma", "saturation_max", "saturation", "onestep", "blocks", "exact")
GATED = ("lstm_weights", "lstm_gates", "lstm_data", "gru_rows")
LOWER = ("radius", "determinant", "sigma_min")
ORDER = (*GATED, *RUNGS, *LOWER)
# What is lost between two rungs, and why.
CAUSES = {
    "saturation": ("gamma", "saturation"),
    "onestep": ("saturation", "onestep"),
    "alignment": ("onestep", "exact"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundLadder:
    """Bounds on ln of the norm of dh_t/dh_k from above and below, pair by pair; all are proven.

    Upper rungs, loosest first (in nats): ``gamma`` l ln(γ_a γ_w); ``saturation_max``
    l ln(max‖D‖ γ_w); ``saturation`` Σ ln(‖D_j‖ γ_w); ``onestep`` Σ ln‖J_j‖; ``blocks`` the same
    over blocks of steps. ``exact`` is the measured norm itself. Lower rungs, tightest first:
    ``radius`` ln ρ(P), at some lags of the last end times; ``determinant`` ln|det P|/n;
    ``sigma_min`` Σ ln σ_min(J_j). nan is not measured, or not resolved.

    Gated cells have other rungs above ``onestep``: ``lstm_weights`` from the norms of the weights
    and the largest cell state, ``lstm_gates`` from the largest factor of every gate, ``lstm_data``
    from the four blocks of every Jacobian, ``gru_rows`` from row sums. They are not ordered against
    ``onestep``. ``absent`` says of a rung that one might miss why it is not there.
    """

    sequence: Int[Array, " pairs"]
    t: Int[Array, " pairs"]
    k: Int[Array, " pairs"]
    lag: Int[Array, " pairs"]
    rungs: Mapping[str, Float[Array, " pairs"]]
    block: int | None  # steps of a block; None without blocks
    gamma_w: float | None  # σ_max(W_hh); None for gated cells
    gamma_a: float | None  # sup |φ'|
    absent: Mapping[str, str] = field(default_factory=dict)  # rung -> reason

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("sequence", "t", "k", "lag"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        rungs = {name: read_only(values) for name, values in self.rungs.items()}
        object.__setattr__(self, "rungs", rungs)
        object.__setattr__(self, "absent", dict(self.absent))

    def medians(self, rung: str) -> Float[Array, " lags"]:
        """Median over the pairs of every lag, nats; nan where the cell has no such rung."""
        groups = LagGroups.of(self.lag)
        if rung not in self.rungs:
            return np.full(len(groups.lag), np.nan)
        return groups.quantile(self.rungs[rung], 0.5)

    def slack(self) -> Mapping[str, float]:
        """Median distance between rungs at the longest lag, by cause; nats.

        ``saturation``: slopes below the supremum; ``onestep``: units saturate where W_hh is large;
        ``alignment``: successive Jacobians do not stretch the same direction. A cause is nan where
        the cell lacks a rung.
        """
        chosen = self.lag == self.lag.max()
        gaps = {}
        for cause, (upper, lower) in CAUSES.items():
            pairs = (self.rungs.get(upper), self.rungs.get(lower))
            gaps[cause] = _median_gap(pairs[0], pairs[1], chosen)
        return gaps

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, {"slack in nats at the longest lag": self.slack()})

    def to_frame(self) -> pd.DataFrame:
        """Long table rung, kind, lag, log_bound: medians over the pairs of a lag."""
        lag = LagGroups.of(self.lag).lag
        parts = [
            frame(
                rung=np.repeat(rung, len(lag)),
                kind=kind_of(rung),
                lag=lag,
                log_bound=self.medians(rung),
            )
            for rung in ORDER
            if rung in self.rungs
        ]
        return stack_frames(parts)

    def at(self, chosen: Array) -> BoundLadder:
        """The given pairs alone."""
        return replace(
            self,
            sequence=self.sequence[chosen],
            t=self.t[chosen],
            k=self.k[chosen],
            lag=self.lag[chosen],
            rungs={name: values[chosen] for name, values in self.rungs.items()},
        )


def kind_of(rung: str) -> str:
    """``upper`` or ``lower`` bound, or the ``exact`` norm."""
    if rung == "exact":
        return rung
    return "lower" if rung in LOWER else "upper"


def _median_gap(upper: Array | None, lower: Array | None, chosen: Array) -> float:
    if upper is None or lower is None:
        return float("nan")
    with np.errstate(invalid="ignore"):
        gap = np.where(upper[chosen] == lower[chosen], 0.0, upper[chosen] - lower[chosen])
    return float(np.median(gap))
