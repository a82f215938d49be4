"""Numbers into words: the verdict says what was measured and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from gradlab_reports import tables, views


def recurrence(name: str, rate: object, **extra: Any) -> dict[str, Any]:
    regime = {"name": name, "rate": rate, "rate_low": None, "rate_high": None, "rule": "the rule"}
    regime |= {"transient_height": 0.0, "transient_lag": 0, "contradicts": None}
    return {"name": "rnn", "regime": regime | extra.pop("regime", {}), **extra}


def spoken(entry: Mapping[str, Any]) -> str:
    return views.verdict(entry).replace("\u00a0", " ")


def test_vanishing_names_factor_interval_and_horizon() -> None:
    entry = recurrence(
        "vanishing",
        math.log(0.9),
        regime={"rate_low": math.log(0.89), "rate_high": math.log(0.91)},
        horizon={"lag_1pct": 44, "predicted": {"lag_1pct": 45}},
    )
    assert spoken(entry) == (
        "The gradient vanishes: each step back in time multiplies it by 0.900 "
        "(nominal 95 % interval 0.890 to 0.910), so that less than 1 % of it is left from "
        "lag 44 on."
    )


def test_a_horizon_beyond_the_lags_measured_is_told_as_a_prediction() -> None:
    horizon = {"lag_1pct": None, "predicted": {"lag_1pct": 4605}}
    assert spoken(recurrence("vanishing", -0.001, horizon=horizon)) == (
        "The gradient vanishes: each step back in time multiplies it by 0.999, so that at this "
        "rate less than 1 % of it would be left from lag 4605 on."
    )


def test_an_exact_zero_is_told_by_its_rule() -> None:
    entry = recurrence(
        "vanishing", "-inf", regime={"rule": "the product is exactly 0 from lag 6 on"}
    )
    assert spoken(entry) == (
        "The gradient vanishes completely: the product is exactly 0 from lag 6 on."
    )
    assert views.remarks(entry) == []


def test_exploding_names_the_format_that_overflows_first() -> None:
    overflow = {"float16": 36, "bfloat16": 286, "float32": 286, "float64": None}
    assert spoken(recurrence("exploding", 0.31, horizon={"overflow": overflow})) == (
        "The gradient explodes: each step back in time multiplies it by 1.36, so that it overflows "
        "float16 from lag 36 on."
    )


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        (
            "near-critical",
            "The gradient keeps its level, neither vanishing nor exploding with the lag: ",
        ),
        (
            "undecided",
            "The measurement does not decide whether the gradient vanishes or explodes: ",
        ),
        ("a new one", "The regime is a new one: "),
    ],
)
def test_other_regimes_claim_no_more_than_the_factor(name: str, opening: str) -> None:
    words = "each step back in time multiplies it by 1.01."
    assert spoken(recurrence(name, 0.01)) == opening + words


def test_an_open_interval_and_a_missing_rate_are_not_spelled() -> None:
    entry = recurrence("undecided", None, regime={"rate_low": "-inf", "rate_high": "inf"})
    assert spoken(entry).endswith("explodes: no rate could be measured.")


def test_the_contradicted_rule_of_thumb_is_a_sentence() -> None:
    entry = recurrence("vanishing", -0.1, regime={"contradicts": "σ_max = 1.8 would suggest it"})
    assert views.false_friend(entry) == "σ_max = 1.8 would suggest it."
    assert views.false_friend(recurrence("vanishing", -0.1)) == ""


def test_remarks_tell_rule_transient_and_synthetic_inputs() -> None:
    entry = recurrence(
        "vanishing",
        -0.1,
        regime={"rule": "below -0.02", "transient_height": math.log(3.9), "transient_lag": 9},
        sequences={"synthetic": True, "description": "white noise"},
    )
    assert views.remarks(entry) == [
        "Rule of the verdict: below −0.02 (rates in natural logarithms).",
        "Before it falls, the median norm reaches 3.90 at lag 9.",
        "No real data: synthetic inputs (white noise); with other inputs the rate may differ.",
    ]


def test_a_page_is_named_after_the_file_that_the_weights_came_from() -> None:
    one, two = {"recurrences": [{"name": "rnn"}]}, {"recurrences": [{"name": "a"}, {"name": "b"}]}
    assert views.page_title(one, {"source": "models/digits.safetensors"}) == "digits.safetensors"
    assert views.page_title(one, {"source": "rnn"}) == "Gradient dynamics"
    assert views.page_title(two, {"source": None}) == "Gradient dynamics"


def test_provenance_is_flat_and_spelled_as_typed() -> None:
    manifest = {
        "schema": 1,
        "argv": ["gradlab", "report", "my model.pt"],
        "settings": {"max_lag": None, "block": 8},
        "assumptions": ["told elsewhere"],
    }
    assert views.provenance_rows(manifest) == [
        ("argv", "gradlab report 'my model.pt'"),
        ("settings.max_lag", "none"),
        ("settings.block", "8"),
    ]


def test_assumptions_are_told_once() -> None:
    summary = {"recurrences": [{"assumptions": ["a", "b"]}, {"assumptions": ["b", "c"]}]}
    assert views.all_assumptions(summary, {"assumptions": ["a"]}) == ["a", "b", "c"]


def test_numbers_of_strict_json_are_read() -> None:
    assert tables.number("-inf") == -math.inf
    assert tables.number(2) == 2.0
    for value in (None, True, "word", [1]):
        assert math.isnan(tables.number(value))


def test_ladder_table_has_every_rung_with_the_slack_to_the_next() -> None:
    rungs = {"gamma": 10.0, "saturation_max": 9.0, "saturation": 8.0, "onestep": 5.0}
    rows = [("upper", rung, value) for rung, value in rungs.items()]
    rows += [("exact", "exact", -2.0), ("lower", "determinant", -4.0)]
    frame = pd.DataFrame(rows, columns=["kind", "rung", "log_bound"]).assign(lag=10)
    older = frame.assign(lag=9, log_bound=0.0)
    table = tables.ladder_table(pd.concat([older, frame]))
    assert table is not None
    assert [row[0].split(":")[0] for row in table.rows] == [
        "(γ_a γ_w)^l",
        "(max‖D‖ γ_w)^l",
        "Π ‖D_j‖ γ_w",
        "Π ‖J_j‖",
        "measured norm",
        "|det P|^(1/n)",
    ]
    assert [row[1] for row in table.rows] == ["upper bound"] * 4 + ["measured", "lower bound"]
    assert [row[4] for row in table.rows] == ["1.00", "1.00", "3.00", "7.00", "", ""]
    assert [row[5] for row in table.rows][:4] == [
        "saturation", "saturation", "one-step structure", "alignment across steps",
    ]  # fmt: skip
    assert table.rows[0][3] == "× 2.72"


def test_horizons_that_neither_happen_nor_are_predicted_are_left_out() -> None:
    horizon = {"lag_half": 7, "lag_1pct": None, "predicted": {"lag_half": 7, "lag_1pct": 44}}
    table = tables.horizon_table(horizon)
    assert table is not None
    assert table.rows == [
        ("below one half", "7", "7"),
        ("below 1 %", "not within the lags measured", "44"),
    ]
    assert tables.horizon_table({}) is None


def test_saturation_is_told_with_its_rule() -> None:
    """H23: a share without its rule says nothing; the mean derivative needs none."""
    entry = {"rule": "|h| > 0.97", "saturated_share": 0.25, "mean_derivative": 0.34056175}
    table = tables.saturation_table(entry | {"dead_units": [3, 5]})
    assert table.rows == [
        ("saturated share, by the rule |h| > 0.97", "25\u00a0%"),
        ("mean derivative φ′ (needs no threshold)", "0.341"),
        ("dead units (derivative 0 at every step)", "2: 3, 5"),
    ]


def test_gates_are_named_for_what_they_are() -> None:
    entry = {
        "gamma_w": None,
        "gates": {"f": {"sigma_max": 1.5, "spectral_radius": 0.9}},
    }
    assert tables.spectrum_table(entry).rows == []
    gates = tables.gates_table(entry)
    assert gates is not None
    assert gates.rows == [("f", "1.500", "0.9000", "", "", "")]
    assert "No gate's σ_max bounds the gradient" in gates.note


def test_highest_power_is_told_with_its_lag() -> None:
    entry = {"kreiss": 2.6, "power_height": math.log(3.9125670783767), "power_lag": 9}
    assert tables.spectrum_table(entry).rows == [
        ("Kreiss constant, a lower value", "2.6000"),
        ("largest norm of a power", "3.9126 at lag 9"),
    ]
    growing = {"kreiss": "inf", "power_height": "inf", "power_lag": None}
    assert tables.spectrum_table(growing).rows == [("Kreiss constant, a lower value", "∞")]


def test_gates_have_ends_and_half_lives_and_the_state_its_shares() -> None:
    ends = {"low_share": 0.25, "high_share": 0.0}
    lives = {"half_life_min": 0.5, "half_life_median": 12.3, "half_life_max": "inf"}
    shares = {"h": {"first_lag": 0.1, "last_lag": 0.5}, "c": {"first_lag": 0.9, "last_lag": 0.5}}
    gates = {"f": {"sigma_max": None, "spectral_radius": None} | ends | lives}
    table = tables.gates_table({"gates": gates, "state_shares": shares})
    assert table is not None
    assert table.rows == [("f", "", "", "25\u00a0%", "0\u00a0%", "12.3 (units: 0.500 to ∞)")]
    assert "at lag 1 10\u00a0% is in h and 90\u00a0% is in c" in table.note
    assert tables.gates_table({"gates": {}}) is None


def test_the_gradient_of_a_loss_is_told_in_norms_that_may_leave_float64() -> None:
    entry = {
        "lag_50": 3, "lag_90": 21, "lag_99": None, "cancellation_ratio": 0.25, "total_norm": "inf",
        "log_total_norm": 2000.0 * math.log(10.0), "log_sum_of_norms": math.log(4.0),
    }  # fmt: skip
    table = tables.gradient_table(entry)
    assert table is not None
    assert [value for _, value in table.rows] == [
        "0 to 3", "0 to 21", "undefined", "1.00\u00a0×\u00a010²⁰⁰⁰", "4.00", "0.250",
    ]  # fmt: skip
    assert tables.gradient_table({}) is None
