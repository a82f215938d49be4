"""Numbers in words: right far outside the range of floats."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab_reports.spelling import factor, plain, power_of_ten, share, shortened, with_minus

LN10 = math.log(10.0)
UNRAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def read_back(words: str) -> float:
    """log10 of a spelled number."""
    mantissa, cross, power = words.replace("\u00a0", " ").partition(" × ")
    exponent = int(power.translate(UNRAISED).removeprefix("10")) if cross else 0
    return math.log10(float(mantissa)) + exponent


@given(decades=st.floats(min_value=-9000.0, max_value=9000.0))
def test_a_spelled_factor_reads_back_to_three_digits(decades: float) -> None:
    # Three significant digits are off by at most half a percent: 0.0022 decades.
    assert read_back(factor(decades * LN10)) == pytest.approx(decades, abs=0.0022)


@pytest.mark.parametrize(
    ("log_value", "words"),
    [
        (0.0, "1.00"),
        (math.log(0.9), "0.900"),
        (math.log(0.99996), "1.00"),
        (math.log(9.9996), "10.0"),
        (-400 * LN10, "1.00\u00a0×\u00a010⁻⁴⁰⁰"),
        (-7000 * LN10, "1.00\u00a0×\u00a010⁻⁷⁰⁰⁰"),
        (math.log(9.9999) + 20 * LN10, "1.00\u00a0×\u00a010²¹"),
        (-math.inf, "0"),
        (math.inf, "∞"),
        (math.nan, "undefined"),
    ],
)
def test_factors_are_spelled_from_their_logarithm(log_value: float, words: str) -> None:
    assert factor(log_value) == words


def test_plain_numbers_have_a_true_minus_and_no_float_noise() -> None:
    assert plain(-0.105360516) == "−0.105"
    assert plain(2.999999999999999, 5) == "3.0000"
    assert plain(0.0) == "0"
    assert plain(-math.inf) == "−∞"
    assert plain(math.nan) == "undefined"


def test_powers_shares_and_long_names_are_spelled_for_people() -> None:
    assert power_of_ten(-38) == "10⁻³⁸"
    assert share(0.455) == "45.5\u00a0%"
    assert share(math.nan) == "undefined"
    assert shortened("a" * 30 + "b" * 70, 21) == "a" * 10 + "…" + "b" * 10


def test_minus_signs_are_set_before_numbers_only() -> None:
    assert with_minus("below -ln 10/100 = -0.023, near-critical, 1e-5") == (
        "below −ln 10/100 = −0.023, near-critical, 1e-5"
    )
