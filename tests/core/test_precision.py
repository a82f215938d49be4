"""Float ranges: the exact integers, and what becomes of rounded running products."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradlab.analysis.precision import (
    FLOAT_FORMATS,
    FloatFormat,
    last_finite_lag,
    last_nonzero_lag,
    last_normal_lag,
    last_subnormal_lag,
    running_product,
)
from gradlab.errors import SettingError

F16, BF16, F32, F64 = FLOAT_FORMATS.values()

# gamma, format, last normal, last subnormal, last correctly rounded to non-zero, flushed at step
UNDERFLOW = [
    (0.5, F16, 14, 24, 24, 15),
    (0.5, BF16, 126, 133, 133, 127),
    (0.5, F32, 126, 149, 149, 127),
    (0.5, F64, 1022, 1074, 1074, 1023),
    (0.9, F16, 92, 157, 164, 93),
    (0.9, BF16, 828, 874, 881, 819),
    (0.9, F32, 828, 980, 986, 829),
    (0.9, F64, 6723, 7065, 7072, 6724),
    (0.99, F16, 965, 1655, 1724, 990),
    (0.99, BF16, 8689, 9172, 9241, 7182),
    (0.99, F32, 8689, 10276, 10345, 8690),
    (0.99, F64, 70484, 74071, 74140, 70485),
]
# gamma, format, fate with gradual underflow, step, value in smallest subnormals
GRADUAL = [
    (0.5, F16, "zero", 25, 0),
    (0.5, BF16, "zero", 134, 0),
    (0.5, F32, "zero", 150, 0),
    (0.5, F64, "zero", 1075, 0),
    (0.9, F16, "sticks", 142, 4),
    (0.9, BF16, "sticks", 849, 4),
    (0.9, F32, "sticks", 964, 4),
    (0.9, F64, "sticks", 7050, 5),
    (0.99, F16, "sticks", 1283, 51),
    (0.99, BF16, "sticks", 7267, 42),
    (0.99, F32, "sticks", 9876, 50),
    (0.99, F64, "sticks", 73671, 49),
]
# gamma, format, last finite, infinite at step
OVERFLOW = [
    (1.01, F16, 1114, 1143),
    (1.01, BF16, 8916, 12288),
    (1.01, F32, 8916, 8917),
    (1.01, F64, 71332, 71333),
    (1.1, F16, 116, 117),
    (1.1, BF16, 930, 918),
    (1.1, F32, 930, 931),
    (1.1, F64, 7447, 7448),
    (2.0, F16, 15, 16),
    (2.0, BF16, 127, 128),
    (2.0, F32, 127, 128),
    (2.0, F64, 1023, 1024),
]


def test_formats_are_those_of_numpy() -> None:
    assert list(FLOAT_FORMATS) == ["float16", "bfloat16", "float32", "float64"]
    for fmt, dtype in ((F16, np.float16), (F32, np.float32), (F64, np.float64)):
        info = np.finfo(dtype)
        assert fmt.smallest_normal == Fraction(float(info.smallest_normal))
        assert fmt.smallest_subnormal == Fraction(float(info.smallest_subnormal))
        assert fmt.largest == Fraction(float(info.max))


def test_bfloat16_has_the_range_of_float32_and_eight_bits() -> None:
    assert BF16.smallest_normal == F32.smallest_normal
    assert BF16.largest == Fraction(0xFF) * Fraction(2) ** 120
    assert BF16.smallest_subnormal == Fraction(2) ** -133


@pytest.mark.parametrize("fmt", FLOAT_FORMATS.values(), ids=lambda fmt: fmt.name)
def test_logarithms_are_those_of_the_limits(fmt: FloatFormat) -> None:
    for value, log in (
        (fmt.smallest_normal, fmt.log_smallest_normal),
        (fmt.smallest_subnormal, fmt.log_smallest_subnormal),
        (fmt.largest, fmt.log_largest),
    ):
        expected = math.log(value.numerator) - math.log(value.denominator)
        assert log == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(("gamma", "fmt", "normal", "subnormal", "nonzero", "flushed"), UNDERFLOW)
def test_underflow_table(
    gamma: float, fmt: FloatFormat, normal: int, subnormal: int, nonzero: int, flushed: int
) -> None:
    assert last_normal_lag(gamma, fmt) == normal
    assert last_subnormal_lag(gamma, fmt) == subnormal
    assert last_nonzero_lag(gamma, fmt) == nonzero
    product = running_product(gamma, fmt, flush_to_zero=True)
    assert (product.fate, product.step, product.subnormals) == ("zero", flushed, 0)
    assert last_finite_lag(gamma, fmt) is None


@pytest.mark.parametrize(("gamma", "fmt", "fate", "step", "subnormals"), GRADUAL)
def test_gradual_underflow_table(
    gamma: float, fmt: FloatFormat, fate: str, step: int, subnormals: int
) -> None:
    product = running_product(gamma, fmt)
    assert (product.fate, product.step, product.subnormals) == (fate, step, subnormals)


@pytest.mark.parametrize(("gamma", "fmt", "finite", "infinite"), OVERFLOW)
def test_overflow_table(gamma: float, fmt: FloatFormat, finite: int, infinite: int) -> None:
    assert last_finite_lag(gamma, fmt) == finite
    product = running_product(gamma, fmt)
    assert (product.fate, product.step, product.value) == ("overflow", infinite, math.inf)
    assert product.subnormals is None
    for never in (last_normal_lag, last_subnormal_lag, last_nonzero_lag):
        assert never(gamma, fmt) is None


def test_bfloat16_rounds_the_factor() -> None:
    assert running_product(0.9, BF16).gamma == 0.8984375
    assert running_product(1.01, BF16).gamma == 1.0078125


@given(
    gamma=st.floats(min_value=0.01, max_value=0.97),
    fmt=st.sampled_from([F16, BF16, F32]),
)
def test_last_lags_are_the_last_by_rational_arithmetic(gamma: float, fmt: FloatFormat) -> None:
    exact = Fraction(repr(gamma))
    normal, nonzero = last_normal_lag(gamma, fmt), last_nonzero_lag(gamma, fmt)
    assert normal is not None
    assert nonzero is not None
    assert exact**normal >= fmt.smallest_normal > exact ** (normal + 1)
    assert exact**nonzero > fmt.smallest_subnormal / 2 >= exact ** (nonzero + 1)


@given(gamma=st.floats(min_value=1.05, max_value=1e5), fmt=st.sampled_from([F16, BF16, F32]))
def test_last_finite_lag_is_the_last_by_rational_arithmetic(gamma: float, fmt: FloatFormat) -> None:
    exact, lag = Fraction(repr(gamma)), last_finite_lag(gamma, fmt)
    assert lag is not None
    assert exact**lag <= fmt.largest < exact ** (lag + 1)


def test_largest_number_itself_is_finite() -> None:
    """The one tie that is no power of two: gamma equal to the largest number."""
    fmt = FloatFormat("tiny", 4, -10, 3)
    assert last_finite_lag(15.0, fmt) == 1
    assert fmt.largest == 15
    assert last_finite_lag(np.float64(15.0), fmt) == 1
    assert last_finite_lag(math.nextafter(15.0, 16.0), fmt) == 0


@pytest.mark.parametrize("power", [1, 2, 7, 14])
def test_ties_of_powers_of_two_are_exact(power: int) -> None:
    gamma = 2.0**-power
    assert last_normal_lag(gamma, F16) == 14 // power
    assert last_subnormal_lag(gamma, F16) == 24 // power
    # 2^-25 is half of the smallest subnormal, and rounds to the even neighbor, 0.
    assert last_nonzero_lag(gamma, F16) == 24 // power


def test_lags_of_factors_next_to_one_are_found_without_their_powers() -> None:
    gamma = math.nextafter(1.0, 0.0)
    lag = last_normal_lag(gamma, F64)
    assert lag is not None
    # The decimal that reads back as this float is 0.9999999999999999.
    expected = 1022 * math.log(2.0) / -math.log1p(-1e-16)
    assert lag == pytest.approx(expected, rel=1e-12)


def test_zero_and_one_are_ordinary_factors() -> None:
    assert last_normal_lag(0.0, F64) == 0
    assert last_finite_lag(1.0, F64) is None
    assert last_normal_lag(1.0, F64) is None
    product = running_product(0.0, F16)
    assert (product.fate, product.step) == ("zero", 1)
    product = running_product(1.0, F16)
    assert (product.fate, product.step, product.value) == ("sticks", 0, 1.0)


def test_factor_that_the_format_cannot_hold_is_infinite_at_once() -> None:
    assert last_finite_lag(1e6, F16) == 0
    product = running_product(1e6, F16)
    assert (product.fate, product.step) == ("overflow", 1)


@pytest.mark.parametrize("gamma", [0.3, 0.5, 0.51, 0.75, 0.999, 1.001, 1.5, 3.0])
def test_running_products_equal_those_of_numpy(gamma: float) -> None:
    for fmt, dtype in ((F16, np.float16), (F32, np.float32)):
        value, factor, step = dtype(1.0), dtype(gamma), 0
        with np.errstate(over="ignore", under="ignore"):
            while value * factor != value:
                value, step = value * factor, step + 1
        product = running_product(gamma, fmt)
        assert (product.value, product.step) == (float(value), step)


def test_running_product_above_one_half_never_reaches_zero() -> None:
    for fmt in FLOAT_FORMATS.values():
        assert running_product(0.501, fmt).fate == ("zero" if fmt is BF16 else "sticks")
        assert running_product(0.51, fmt).fate == "sticks"


def test_running_product_that_takes_too_long_is_unfinished() -> None:
    product = running_product(0.999999, F64, max_steps=1000)
    assert (product.fate, product.step) == ("unfinished", None)
    assert product.value == pytest.approx(0.999999**1000, rel=1e-12)


@pytest.mark.parametrize("gamma", [-0.5, math.nan, math.inf])
def test_factor_that_is_no_size_is_refused(gamma: float) -> None:
    for function in (last_normal_lag, last_finite_lag, running_product):
        with pytest.raises(SettingError, match="expected a finite number >= 0"):
            function(gamma, F32)
