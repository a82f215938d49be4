"""What the gates do to the gradient: the direct path through time, and the parts of the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame, stack_frames
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd

VALUE_COLUMNS = ("mean", "q05", "q95")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CarryGate:
    """One gate that keeps the old state: f of an LSTM, z of a GRU, and the like.

    The product of its values is the direct path ∂c_t/∂c_k with everything that goes through the
    gates themselves left out: neither a bound on the gradient nor the gradient.
    """

    mean_log: Float[Array, " n"]  # of ln f over all valid steps, unit by unit; nats per step
    lag: Int[Array, " lags"]
    log_norm: Float[Array, " lags"]  # ln max over units of the product, median over sequences
    log_median: Float[Array, " lags"]  # ln of the product, median over units and sequences

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("mean_log", "lag", "log_norm", "log_median"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def half_life(self) -> Float[Array, " n"]:
        """Steps in which each unit's product halves on average; inf where it does not fall."""
        falling = self.mean_log < 0.0
        return np.where(falling, np.log(2.0) / -np.where(falling, self.mean_log, -1.0), np.inf)

    def to_summary(self) -> dict[str, Any]:
        """Half-lives over the units, in steps."""
        return {
            "half_life_min": float(self.half_life.min()),
            "half_life_median": float(np.median(self.half_life)),
            "half_life_max": float(self.half_life.max()),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateValues:
    """Values of one gate or candidate at every valid step, by sequence and then time."""

    sequence: Int[Array, " steps"]
    t: Int[Array, " steps"]
    mean: Float[Array, " steps"]  # over units, as are the quantiles
    q05: Float[Array, " steps"]
    q95: Float[Array, " steps"]

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("sequence", "t", *VALUE_COLUMNS):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateDynamics:
    """Direct paths by gate, where in the state the gradient flows, and what the gates did.

    ``shares`` splits the squared Frobenius norm of ∂h_T/∂s_k, T each sequence's last step, over the
    parts of s_k: the mean square of dL/ds_k over all directions of dL/dh_T. The parts add up to 1
    at every lag; nan where the norm is exactly 0.
    """

    carry: Mapping[str, CarryGate]  # empty for cells without a direct path
    lag: Int[Array, " lags"]
    shares: Mapping[str, Float[Array, " lags"]]  # by part of the state, mean over sequences
    values: Mapping[str, GateValues]  # by gate; empty for cells without gates

    def __post_init__(self) -> None:
        """Freeze arrays and mappings."""
        for name in ("carry", "values"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        object.__setattr__(self, "lag", read_only(self.lag))
        shares = {name: read_only(values) for name, values in self.shares.items()}
        object.__setattr__(self, "shares", shares)

    def to_frame(self) -> pd.DataFrame:
        """Long table quantity, name, lag, value: carry_log_norm, carry_log_median and share."""
        parts = [
            frame(quantity=f"carry_{curve}", name=name, lag=gate.lag, value=getattr(gate, curve))
            for name, gate in self.carry.items()
            for curve in ("log_norm", "log_median")
        ]
        parts += [
            frame(quantity="share", name=name, lag=self.lag, value=values)
            for name, values in self.shares.items()
        ]
        return stack_frames(parts)

    def values_frame(self) -> pd.DataFrame | None:
        """Columns of ``gates.csv`` but the recurrence; None without gates."""
        parts = [
            frame(
                sequence=values.sequence,
                t=values.t,
                gate=name,
                **{column: getattr(values, column) for column in VALUE_COLUMNS},
            )
            for name, values in self.values.items()
        ]
        return stack_frames(parts) if parts else None

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Half-lives by gate, and the shares at the first and at the longest lag."""
        return {
            "carry": {name: gate.to_summary() for name, gate in self.carry.items()},
            "shares": {
                name: {"first_lag": float(values[0]), "last_lag": float(values[-1])}
                for name, values in self.shares.items()
            },
        }
