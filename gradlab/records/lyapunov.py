"""Rates at which a network's Jacobians stretch and shrink directions in the long run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LyapunovSpectrum:
    """Finite-time Lyapunov exponents, nats per step, with what tells how far to trust them.

    Exponents are in the order of the frame's columns: falling in the long run, but not sorted,
    which would bias those that are close. A direction that is lost, to within rounding, has
    -inf and no standard error.
    """

    exponents: Float[Array, " k"]  # mean over the counted steps of all sequences
    standard_errors: Float[Array, " k"]  # by batch means; nan with fewer than two batches
    history_steps: Int[Array, " records"]  # counted steps of the longest sequence so far
    history: Float[
        Array, "records k"
    ]  # estimate from so many steps, to 0.01 nats in all before the last
    by_sequence: Float[Array, "sequences k"]  # estimate from each counted sequence alone
    state_size: int  # number of exponents there are
    steps: int  # counted, of all sequences together
    transient: int  # steps at the start of each sequence that turned the frame and do not count
    dynamics: str  # "driven by inputs", "autonomous" or "given Jacobians"
    status: str  # how the measurement ended
    kaplan_yorke: float  # dimension; nan if it lies beyond the exponents that were measured
    entropy_rate: float  # sum of the positive exponents; nan if more may be positive
    sum_rule_residual: float  # |sum of all exponents - mean ln|det J||; nan if not all are measured

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("exponents", "standard_errors", "history_steps", "history", "by_sequence"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def leading(self) -> float:
        """The largest exponent measured."""
        return float(self.exponents.max())

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.to_summary())

    def to_summary(self) -> dict[str, Any]:
        """Entry ``lyapunov`` of ``summary.json``."""
        return {
            "leading": self.leading,
            "leading_standard_error": float(self.standard_errors[int(np.argmax(self.exponents))]),
            "sum_rule_residual": self.sum_rule_residual,
            "kaplan_yorke": self.kaplan_yorke,
            "entropy_rate": self.entropy_rate,
            "count": len(self.exponents),
            "state_size": self.state_size,
            "steps": self.steps,
            "transient": self.transient,
            "dynamics": self.dynamics,
            "status": self.status,
        }

    def to_frame(self) -> pd.DataFrame:
        """Columns of ``lyapunov.csv`` but the recurrence: index, exponent, standard_error."""
        return frame(
            index=np.arange(len(self.exponents)),
            exponent=self.exponents,
            standard_error=self.standard_errors,
        )

    def history_frame(self) -> pd.DataFrame:
        """Running estimates: steps, index, exponent."""
        records, k = self.history.shape
        return frame(
            steps=np.repeat(self.history_steps, k),
            index=np.tile(np.arange(k), records),
            exponent=self.history.ravel(),
        )
