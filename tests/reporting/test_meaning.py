"""What a run means for training: said from the numbers saved, and only where they are there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradlab_reports import meaning

FORMATS = ("float16", "bfloat16", "float32", "float64")


def horizon(
    lag_1pct: int | None = None,
    measured: Mapping[str, int] | None = None,
    predicted: Mapping[str, int] | None = None,
    overflow: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    seen, over = measured or {}, overflow or {}
    return {
        "lag_1pct": lag_1pct,
        **{name: seen.get(name) for name in FORMATS},
        "overflow": {name: over.get(name) for name in FORMATS},
        "predicted": predicted or {},
    }


def said(regime: str, **entry: Any) -> str:
    recurrence = {"regime": {"name": regime}, "sequences": {"length_max": 100}, **entry}
    return " | ".join(meaning.sentences(recurrence)).replace("\u00a0", " ")


def test_lags_without_a_gradient_are_told_as_measured_or_as_predicted() -> None:
    assert "From lag 47 on, steps get less than 1 % of the gradient (measured)" in said(
        "vanishing", horizon=horizon(47)
    )
    words = said("vanishing", horizon=horizon(None, predicted={"lag_1pct": 460}))
    assert "from lag 460 on they would get less (predicted from the measured rate)" in words
    assert "Every lag up to 100 gets" in said("near-critical", horizon=horizon())
    assert "From lag" not in said("undecided", horizon=horizon())


def test_the_format_that_is_left_first_comes_first_with_what_is_known_of_it() -> None:
    words = said(
        "vanishing",
        horizon=horizon(
            47,
            measured={"float16": 90},
            predicted={"float16": 88, "bfloat16": 742, "float32": 742, "float64": 5958},
        ),
    )
    assert (
        "float16 underflows first, at lag 90 (measured), then bfloat16 and float32 at lag 742 "
        "(predicted), float64 at lag 5958 (predicted). Loss scaling" in words
    )
    assert "overflows" not in words
    words = said(
        "exploding",
        horizon=horizon(
            overflow={"float16": 33}, predicted={"overflow_float16": 33, "overflow_float32": 310}
        ),
    )
    assert "float16 overflows first, at lag 33 (measured), then float32 at lag 310" in words
    assert "Loss scaling" not in words
    assert "inside the range of every number format" in said("near-critical", horizon=horizon())


def test_clipping_is_told_from_the_runs_own_norm_and_promises_no_lost_lag() -> None:
    words = said("vanishing", gradient={"lag_90": 4, "lag_99": 9, "log_total_norm": math.log(2.5)})
    assert "the lags 0 to 4 hold 90 % and the lags 0 to 9 hold 99 % (measured" in words
    assert "has norm 2.50 (measured). Of clip thresholds, one of 1 would leave 40 % of" in words
    assert "and one above 2.50 would change nothing, unless" in words
    low = said("vanishing", gradient={"lag_90": 4, "lag_99": 9, "log_total_norm": -1.0})
    assert "Of clip thresholds, one above 0.368 would change nothing" in low
    assert "gives no gradient back to lags that have lost theirs" in words
    assert "Clipping" in said("exploding")
    assert "Clipping" not in said("vanishing")


def test_every_change_is_a_row_with_its_effect_and_how_it_is_known() -> None:
    changes = [
        {"setting": "gain", "amount": 2.0, "rate": 0.0, "lag_1pct": None, "basis": "measured"},
        {"setting": "gain", "amount": 1.9, "rate": -0.01, "lag_1pct": 461, "basis": "predicted"},
        {"setting": "forget_bias", "amount": 3.0, "rate": "-inf", "lag_1pct": 1},
    ]
    table = meaning.changes_table(
        {"rate": math.log(0.5), "lag_1pct": 7, "sequences": 2, "steps": 50, "changes": changes}
    )
    assert table is not None
    assert [row[1:3] for row in table.rows] == [
        ("× 0.500", "lag 7"),
        ("× 1.00", "no lag"),
        ("× 0.990", "lag 461"),
        ("× 0", "lag 1"),
    ]
    assert table.rows[1][0] == "W_hh × 2, the factor nearest to 1 whose rate is 0"
    assert table.rows[2][3].startswith("predicted")
    assert table.rows[3][0].startswith("+ 3 on the bias")
    assert "not advice" in table.note
    near = {"rate": -1e-6, "lag_1pct": 4605171, "steps": 50, "changes": changes}
    table = meaning.changes_table(near)
    assert table is not None
    assert table.rows[0][2] == "beyond lag 5000"


def test_runs_without_an_outlook_have_no_such_table() -> None:
    assert meaning.changes_table({}) is None
    assert meaning.changes_table({"rate": 0.0, "changes": []}) is None
