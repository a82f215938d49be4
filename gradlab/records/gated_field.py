"""What theory predicts of a random gated network whose carry gate has a bias."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from gradlab.records.frames import frame
from gradlab.records.notebook import summary_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedField:
    """Slow mode of many units of a random LSTM or GRU; natural logarithms per step.

    The state decays by the gate that keeps it, and is fed by itself through the recurrent weights.
    A prediction for a random network with these statistics, not a measurement of any network.
    """

    cell: str  # lstm or gru
    activation: str
    forget_bias: float
    gain: float
    input_std: float
    q: float  # stationary variance of a gate's pre-activation
    carry: float  # geometric mean of the gate that keeps the old state
    spread: float  # variance of its logarithm at one step
    feedback: float  # spectral radius of the slow state's effect on itself
    reading: float  # of an LSTM, by what h follows its cell state; 0 for a GRU

    @property
    def rate(self) -> float:
        """ln(carry + feedback)."""
        return math.log(self.carry + self.feedback)

    def log_norm(self, lag: int, hidden_size: int) -> float:
        """Predicted ln ‖P_{t,t-l}‖ of N units, at lags of 1 and more.

        The rate times the lag, and what the luckiest unit's gate exceeds the mean by: the expected
        maximum of N normal variables (Blom 1958) times the standard deviation of the sum. An LSTM's
        output adds its square, the factor √(1 + s²) of the error carousel.
        """
        from scipy.special import ndtri

        largest = float(ndtri((hidden_size - 0.375) / (hidden_size + 0.25)))
        follows = 0.5 * math.log1p(self.reading**2)
        return lag * self.rate + largest * math.sqrt(lag * self.spread) + follows

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, asdict(self) | {"rate": self.rate})

    def to_frame(self) -> pd.DataFrame:
        """Table: quantity, value."""
        values = asdict(self) | {"rate": self.rate}
        return frame(quantity=list(values), value=list(values.values()))
