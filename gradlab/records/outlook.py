"""What another setting would do to a network's rate, each tried or predicted."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gradlab.records.frames import frame
from gradlab.records.notebook import rows_html

if TYPE_CHECKING:
    import pandas as pd

LOG_1PCT = math.log(0.01)
Basis: TypeAlias = Literal["measured", "predicted"]
Setting: TypeAlias = Literal["gain", "orthogonal", "forget_bias", "leak"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting changed, everything else kept, and the rate that goes with it.

    ``amount`` is the factor on W_hh for ``gain``; the gain of the orthogonal matrix for
    ``orthogonal``; what is added to the bias of the gate that keeps the state for ``forget_bias``;
    the new leak for ``leak``.
    """

    setting: Setting
    amount: float
    rate: float  # leading Lyapunov exponent with the change, nats per step; may be infinite
    basis: Basis  # measured along the same inputs, or predicted by mean-field theory

    @property
    def lag_1pct(self) -> int | None:
        """Lag from which less than 1 % is left at this rate alone; None if it never is."""
        return _lag_1pct(self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Rates of a network with one setting changed at a time, beside its own rate.

    All measured rates are the leading Lyapunov exponent over the same steps. A network that was
    trained computes something else with another setting: a change is a start for a new training.
    """

    rate: float  # as the network is, nats per step
    sequences: int  # that the rates were measured along
    steps: int  # the longest of them, the transient included
    changes: tuple[Change, ...]

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        header = ("setting", "amount", "rate (nats per step)", "basis")
        own = ("as it is", "", self.rate, "measured")
        rows = [(each.setting, each.amount, each.rate, each.basis) for each in self.changes]
        return rows_html(type(self).__name__, header, [own, *rows])

    def to_summary(self) -> dict[str, Any]:
        """Entry ``outlook`` of ``summary.json``; each rate with its ``lag_1pct``."""
        changes = [asdict(each) | {"lag_1pct": each.lag_1pct} for each in self.changes]
        return asdict(self) | {"lag_1pct": _lag_1pct(self.rate), "changes": changes}

    def to_frame(self) -> pd.DataFrame:
        """One row a change: setting, amount, rate, basis."""
        names = ("setting", "amount", "rate", "basis")
        return frame(**{name: [getattr(each, name) for each in self.changes] for name in names})


def _lag_1pct(rate: float) -> int | None:
    if not rate < 0.0:
        return None
    return 1 if math.isinf(rate) else math.floor(LOG_1PCT / rate) + 1
