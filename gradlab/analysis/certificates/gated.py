"""Certificates of gated cells, for every input within a stated limit."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gradlab.analysis.certificates.margin import rounded_up
from gradlab.analysis.gated_bounds import gamma_gru, gamma_lstm
from gradlab.cells.base import Cell
from gradlab.cells.gru import GRUCell
from gradlab.cells.lstm import LSTMCell
from gradlab.cells.minimal_gated import MinimalGatedCell
from gradlab.records.certificates import EVERY_INPUT, NOT_FOUND, PROVEN, Certificate
from gradlab.records.gated_rate import GatedRate


def gated_certificates(cell: Cell, input_bound: float) -> dict[str, Certificate]:
    """``gamma_lstm`` of an LSTM, ``gamma_gru`` of a GRU or minimal gated unit, else nothing.

    Parameters
    ----------
    cell
        Any cell.
    input_bound
        Largest modulus of an input's entry; a GRU's certificate that holds beyond says so.
    """
    if isinstance(cell, LSTMCell):
        return {"gamma_lstm": _certificate(gamma_lstm(cell, input_bound=input_bound))}
    if isinstance(cell, GRUCell | MinimalGatedCell):
        bounded = _certificate(gamma_gru(cell, input_bound=input_bound))
        unbounded = _certificate(gamma_gru(cell))
        return {"gamma_gru": unbounded if unbounded.rate == bounded.rate else bounded}
    return {}


def _certificate(found: GatedRate) -> Certificate:
    if found.rate is None or found.constant is None:
        return Certificate(rate=None, constant=None, status=f"{NOT_FOUND}: {found.status}")
    return Certificate(
        rate=rounded_up(found.rate),
        constant=rounded_up(found.constant),
        status=PROVEN,
        holds_for=_limits(found.limits),
    )


def _limits(limits: Mapping[str, float]) -> str:
    """The limits in words; those of the states hold for ever once they hold at the start."""
    start = [f"|{name}_0| <= {_down(limits[name])}" for name in ("h", "c") if name in limits]
    x = limits["x"]
    inputs = EVERY_INPUT if math.isinf(x) else f"every input with |x| <= {_down(x)}"
    return f"{inputs}, from {' and '.join(start)} on"


def _down(limit: float) -> str:
    """A limit in six digits, rounded down: within what is said the certificate holds."""
    if limit == 0.0 or not math.isfinite(limit):
        return f"{limit:g}"
    places = 5 - math.floor(math.log10(limit))
    units = math.floor(round(limit * 10.0**places, 4))
    return f"{units / 10.0**places:.6g}"
