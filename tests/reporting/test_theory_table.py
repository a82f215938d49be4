"""The table of what theory predicts."""

from __future__ import annotations

import gradlab as gl
from gradlab_reports.theory import mean_field_table


def test_prediction_is_told_with_the_statistics_it_was_made_from() -> None:
    prediction = gl.mean_field("tanh", gain=2.0)
    table = mean_field_table(gl.strict_json(prediction.to_summary(64, 400)))
    assert table is not None
    rows = {row[0]: row[1] for row in table.rows}
    assert rows["recurrent weights"] == "independent entries, g = ‖W‖_F/√N = 2.000"
    assert rows["standard deviation of input and bias, as measured"] == "0 and 0"
    assert rows["critical gain"] == "1.000"
    growth = rows["growth of the gradient, infinitely many units"]
    assert growth == "× 1.17 per step (0.155 nats)"
    assert rows["largest singular value, and its spread over draws"] == "3.888 ± 0.10"
    assert rows["exponents above 0"] == "13.3\u00a0%"
    assert rows["Kaplan–Yorke dimension"] == "0.258 of N"
    assert "no measurement" in table.note


def test_infinite_and_missing_numbers_are_spelled() -> None:
    prediction = gl.mean_field("affine(0.0, 0.5)", gain=2.0, ensemble="orthogonal")
    table = mean_field_table(gl.strict_json(prediction.to_summary(64, 400)))
    assert table is not None
    rows = {row[0]: row[1] for row in table.rows}
    assert rows["critical gain"] == "undefined"
    assert rows["growth of the gradient, infinitely many units"] == "× 0 per step (−∞ nats)"


def test_without_a_theory_there_is_no_table() -> None:
    assert mean_field_table({}) is None
