"""``gradlab design``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_design_is_printed_with_prediction_measurement_and_verdict(gradlab: Run) -> None:
    lines = gradlab("design", "--horizon", "20", "--hidden-size", "32").out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "design", "network", "predicted", "measured", "verdict",
    ]  # fmt: skip
    assert lines[0].split()[1] == "gain"
    assert "below 1 % from lag 20 on" in lines[2]
    assert lines[3].count(",") == 3
    assert lines[4].endswith("theory and simulation agree within 25 %")


def test_json_holds_the_record(gradlab: Run) -> None:
    document = json.loads(
        gradlab(
            "design", "--horizon", "20", "--cell", "gru", "--hidden-size", "16", "--networks", "2",
            "--json",
        ).out
    )  # fmt: skip
    assert document["solved"] == "forget_bias"
    assert document["horizon"] == 20
    assert len(document["measured"]) == 2
    assert document["settings"]["hidden_size"] == 16
    assert document["agrees"] in (True, False)


def test_unreachable_horizon_is_one_line_and_exit_code_1(gradlab: Run) -> None:
    result = gradlab("design", "--horizon", "100", "--solve", "input_std", "--gain", "0.5")
    assert (result.code, result.out) == (1, "")
    assert result.err.count("\n") == 1
    assert "shorter horizon than 100 steps" in result.err


def test_a_horizon_is_required(gradlab: Run) -> None:
    result = gradlab("design")
    assert result.code == 2
    assert "--horizon" in result.err
