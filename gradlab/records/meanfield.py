"""What the theory of infinitely wide random networks predicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradlab.records.frames import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanField:
    """Limit N → ∞ of a random network; rates are natural logarithms per step.

    A prediction for a random network with these statistics, not a measurement of any network.
    """

    activation: str
    gain: float
    input_std: float
    bias_std: float
    ensemble: str
    q: float  # stationary variance of a pre-activation; inf: diverges; nan: keeps its first value
    chi: float  # factor per step of the mean squared Frobenius norm of the Jacobian
    lambda_1: float  # leading Lyapunov exponent, ln(chi) / 2
    kappa: float  # E phi'^4 / (E phi'^2)^2
    bound_rate: float  # ln(gamma_a gamma_w), gamma_w being the ensemble's limit

    def bias(self, hidden_size: int) -> float:
        """Expected lambda_1 of N units less that of the limit, to order 1/N."""
        return -(3.0 * self.kappa - 1.0) / (4.0 * hidden_size)

    def deviation(self, hidden_size: int, steps: int) -> float:
        """Least standard deviation of lambda_1 estimated from that many steps."""
        return math.sqrt((3.0 * self.kappa - 1.0) / (4.0 * hidden_size * steps))

    def to_frame(self) -> pd.DataFrame:
        """Table: quantity, value."""
        names = ("q", "chi", "lambda_1", "kappa", "bound_rate")
        return frame(quantity=list(names), value=[getattr(self, name) for name in names])
