"""The table of the Lyapunov spectrum."""

from __future__ import annotations

import numpy as np

import gradlab as gl
from gradlab_reports.exponents import lyapunov_table


def rows_of(diagonal: list[float], **settings: int) -> dict[str, str]:
    jacobians = np.broadcast_to(np.diag(diagonal), (300, len(diagonal), len(diagonal)))
    spectrum = gl.lyapunov_from_jacobians(jacobians, transient=200, **settings)  # type: ignore[arg-type]
    table = lyapunov_table(gl.strict_json(spectrum.to_summary()))
    assert table is not None
    return {str(row[0]): str(row[1]) for row in table.rows}


def test_table_tells_the_spectrum_and_how_far_to_trust_it() -> None:
    rows = rows_of([2.0, 0.5, 0.125])
    assert rows["leading exponent"] == "× 2.00 per step (0.693 nats)"
    assert rows["Kaplan–Yorke dimension"] == "2.00"
    assert rows["sum of the positive exponents"] == "0.693 nats per step"
    assert rows["exponents measured"] == "3 of 3"
    assert rows["steps counted"] == "100, after 200 of each sequence"
    assert rows["dynamics"] == "given Jacobians"
    assert "measured" not in rows["residual of the sum rule"]


def test_what_was_not_measured_is_said() -> None:
    rows = rows_of([2.0, 1.5, 0.125], k=1)
    assert rows["Kaplan–Yorke dimension"] == "beyond the exponents measured"
    assert rows["sum of the positive exponents"] == "beyond the exponents measured"
    assert rows["residual of the sum rule"] == "not all exponents measured"


def test_lost_directions_and_absent_spectra_are_told() -> None:
    assert rows_of([0.0, 0.0])["leading exponent"] == "× 0 per step (−∞ nats)"
    assert lyapunov_table({}) is None
    assert lyapunov_table({"leading": None, "sum_rule_residual": None}) is None
    brief = lyapunov_table({"leading": "-inf", "sum_rule_residual": 0.0, "kaplan_yorke": 0.0})
    assert brief is not None
    assert len(brief.rows) == 5
