"""Horizons: where a median log norm becomes small, or leaves the formats, for good."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.analysis.precision import FLOAT_FORMATS, last_finite_lag, precision_horizon
from gradlab.errors import ShapeError
from gradlab.records.horizon import PrecisionHorizon

KEYS = ["lag_half", "lag_1pct", *FLOAT_FORMATS, *(f"overflow_{name}" for name in FLOAT_FORMATS)]


def line_horizon(rate: float, intercept: float = 0.0, steps: int = 2000) -> PrecisionHorizon:
    lag = np.arange(1, steps + 1)
    with np.errstate(invalid="ignore"):
        return precision_horizon(lag, intercept + rate * lag, rate, intercept)


def test_horizons_of_powers_of_nine_tenths() -> None:
    """0.9^7 < 1/2 < 0.9^6 and 0.9^44 < 1/100 < 0.9^43; formats: one past the last normal lag."""
    horizon = line_horizon(math.log(0.9))
    assert (horizon.lag_half, horizon.lag_1pct) == (7, 44)
    assert horizon.underflow == {
        "float16": 93,
        "bfloat16": 829,
        "float32": 829,
        "float64": None,
    }
    assert horizon.predicted["float64"] == 6724
    assert set(horizon.overflow.values()) == {None}


def test_predictions_reach_beyond_the_lags_measured() -> None:
    horizon = line_horizon(math.log(0.9), steps=5)
    assert horizon.lag_half is None
    assert horizon.predicted["lag_half"] == 7
    assert horizon.predicted["lag_1pct"] == 44


def test_overflow_is_one_past_the_last_finite_lag() -> None:
    horizon = line_horizon(math.log(1.1), steps=8000)
    for name, fmt in FLOAT_FORMATS.items():
        last = last_finite_lag(1.1, fmt)
        assert last is not None
        assert horizon.overflow[name] == last + 1
        assert horizon.predicted[f"overflow_{name}"] == last + 1
    assert horizon.lag_half is None
    assert horizon.predicted["lag_half"] is None
    assert set(horizon.underflow.values()) == {None}


def test_powers_of_one_half_are_below_one_half_from_the_second_on() -> None:
    """The first power is a tie: below means strictly below."""
    horizon = line_horizon(math.log(0.5))
    assert horizon.lag_half == horizon.predicted["lag_half"] == 2
    assert horizon.underflow["float16"] == horizon.predicted["float16"] == 15


@given(
    rate=st.floats(min_value=-30.0, max_value=30.0).filter(lambda rate: abs(rate) > 0.4),
    intercept=st.floats(min_value=-50.0, max_value=50.0),
)
def test_measured_and_predicted_agree_on_a_line(rate: float, intercept: float) -> None:
    horizon = line_horizon(rate, intercept)
    towards = [key for key in KEYS if key.startswith("overflow") == (rate > 0.0)]
    assert [horizon.measured[key] for key in towards] == [horizon.predicted[key] for key in towards]
    assert {horizon.predicted[key] for key in KEYS if key not in towards} == {None}


def test_return_above_the_threshold_delays_the_horizon() -> None:
    lag = np.array([1, 2, 3, 5, 8, 13])
    curve = np.array([-1.0, -1.0, 0.3, -0.8, -5.0, -6.0])
    horizon = precision_horizon(lag, curve, -0.5, 0.0)
    assert horizon.lag_half == 5
    assert horizon.lag_1pct == 8
    back_up = precision_horizon(lag, np.append(curve[:-1], 0.0), -0.5, 0.0)
    assert back_up.lag_half is None


def test_return_below_the_largest_number_delays_the_overflow() -> None:
    curve = np.array([12.0, 10.0, 12.0, 13.0])
    horizon = precision_horizon(np.arange(1, 5), curve, 0.3, 10.0)
    assert horizon.overflow["float16"] == 3
    assert horizon.overflow["float32"] is None


def test_largest_and_smallest_numbers_themselves_are_inside() -> None:
    for name, fmt in FLOAT_FORMATS.items():
        for edge in (fmt.log_largest, fmt.log_smallest_normal):
            horizon = precision_horizon(np.arange(1, 3), np.full(2, edge), 0.0, edge)
            assert (horizon.underflow[name], horizon.overflow[name]) == (None, None)


def test_exact_zero_is_below_every_threshold() -> None:
    """A nilpotent product: -inf from some lag on, and a rate of -inf."""
    curve = np.where(np.arange(1, 9) < 6, 0.0, -np.inf)
    horizon = precision_horizon(np.arange(1, 9), curve, -math.inf, 0.0)
    assert [horizon.measured[key] for key in KEYS] == [6] * 6 + [None] * 4
    assert [horizon.predicted[key] for key in KEYS] == [1] * 6 + [None] * 4


def test_unresolved_median_is_not_below() -> None:
    curve = np.array([-1.0, math.nan, -9.0])
    assert precision_horizon(np.arange(1, 4), curve, -1.0, 0.0).lag_half == 3
    assert precision_horizon(np.arange(1, 3), curve[:2], -1.0, 0.0).lag_half is None


@pytest.mark.parametrize(
    ("rate", "intercept"),
    [(0.0, -1.0), (-0.0, -1.0), (math.nan, -1.0), (-1.0, math.nan), (-math.inf, math.nan)],
)
def test_no_line_predicts_nothing(rate: float, intercept: float) -> None:
    horizon = precision_horizon(np.arange(1, 4), np.full(3, -1.0), rate, intercept)
    assert set(horizon.predicted.values()) == {None}
    assert horizon.lag_half == 1


def test_line_that_starts_below_is_below_from_the_first_lag() -> None:
    assert line_horizon(-0.1, intercept=-3.0).predicted["lag_half"] == 1


@pytest.mark.parametrize("rate", [-1e-300, -5e-324])
def test_tiny_rate_predicts_a_huge_lag_or_none(rate: float) -> None:
    lag = line_horizon(rate).predicted["lag_half"]
    assert lag is None or lag > 10**299


def test_no_lags_measured_is_no_horizon() -> None:
    horizon = precision_horizon(np.zeros(0, int), np.zeros(0), -1.0, 0.0)
    assert set(horizon.measured.values()) == {None}


@pytest.mark.parametrize(
    ("lag", "curve", "message"),
    [
        ([1, 2], [0.0], "two vectors of one length"),
        ([1, 1], [0.0, 0.0], "lag does not increase"),
    ],
)
def test_curve_that_is_none_is_refused(lag: list[int], curve: list[float], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        precision_horizon(np.array(lag), np.array(curve), -1.0, 0.0)


def test_summary_has_the_keys_of_the_run_folder() -> None:
    summary = line_horizon(math.log(0.9)).to_summary()
    assert list(summary) == ["lag_half", "lag_1pct", *FLOAT_FORMATS, "overflow", "predicted"]
    assert summary["float32"] == 829
    assert list(summary["overflow"]) == list(FLOAT_FORMATS)
    assert list(summary["predicted"]) == KEYS


def test_table_has_one_row_a_quantity() -> None:
    table = line_horizon(math.log(0.9), steps=100).to_frame()
    assert list(table.columns) == ["quantity", "measured", "predicted"]
    assert list(table["quantity"]) == KEYS
    assert table["measured"].isna().sum() == 7
    row = table[table["quantity"] == "float16"].iloc[0]
    assert (row["measured"], row["predicted"]) == (93, 93)


def test_record_owns_its_mappings_and_can_be_copied() -> None:
    underflow: dict[str, int | None] = {"float16": 3}
    horizon = PrecisionHorizon(
        lag_half=1, lag_1pct=2, underflow=underflow, overflow={}, predicted={}
    )
    underflow["float16"] = 4
    assert horizon.underflow == {"float16": 3}
    assert pickle.loads(pickle.dumps(horizon)) == copy.deepcopy(horizon) == horizon
