"""The Lyapunov spectrum of a run, as a table of words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gradlab_reports.spelling import factor, plain
from gradlab_reports.tables import Table, number

BEYOND = "beyond the exponents measured"


def lyapunov_table(measured: Mapping[str, Any]) -> Table | None:
    """The leading exponent, what follows from the spectrum, and how far to trust it.

    Parameters
    ----------
    measured
        Entry ``lyapunov`` of a recurrence's summary.

    Returns
    -------
    table
        None where no exponent was measured.
    """
    leading, error, dimension, entropy, residual = (
        number(measured.get(key))
        for key in (
            "leading",
            "leading_standard_error",
            "kaplan_yorke",
            "entropy_rate",
            "sum_rule_residual",
        )
    )
    if math.isnan(leading):
        return None
    rows = [
        ("leading exponent", f"× {factor(leading)} per step ({plain(leading)} nats)"),
        ("its standard error", _known(error, " nats", "unknown: too few steps")),
        ("Kaplan–Yorke dimension", _known(dimension)),
        ("sum of the positive exponents", _known(entropy, " nats per step")),
        ("residual of the sum rule", _known(residual, " nats", "not all exponents measured")),
        *_extent(measured),
    ]
    return Table(
        title="Lyapunov spectrum",
        header=("quantity", "value"),
        rows=rows,
        note="The sum rule: all exponents together are the mean of ln|det J|. Along inputs that "
        "drive the network the exponents are conditional on these; a positive sum is then no "
        "entropy of an autonomous system.",
    )


def _extent(measured: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How many exponents, from how many steps, of what; as far as the run tells."""
    told = {key: measured.get(key) for key in ("count", "state_size", "steps", "transient")}
    if None not in told.values():
        yield "exponents measured", f"{told['count']} of {told['state_size']}"
        yield "steps counted", f"{told['steps']}, after {told['transient']} of each sequence"
    if "dynamics" in measured:
        yield "dynamics", str(measured["dynamics"])


def _known(value: float, unit: str = "", otherwise: str = BEYOND) -> str:
    return otherwise if math.isnan(value) else plain(value) + unit
