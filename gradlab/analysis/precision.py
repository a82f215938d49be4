"""Where powers, and measured norms, leave the floating-point formats.

The powers are those of the real number that ``gamma`` prints as: 0.9 means nine tenths, not the
nearest float64. Lags are exact integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.errors import SettingError, ShapeError
from gradlab.records.horizon import Fate, PrecisionHorizon, RunningProduct

# Significant digits of the logarithms, and how near to a whole number their quotient must come
# before the powers themselves are compared. Quotients have fewer than 20 digits before the point.
DIGITS = 100
NEAR_TIE = Decimal("1e-40")
ROUNDING = 1e-11  # of a fitted line, relative
LOG_HALF = math.log(0.5)
LOG_1PCT = math.log(0.01)


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format; logarithms are natural."""

    name: str
    significand_bits: int  # with the implicit leading bit
    min_exponent: int  # 2**min_exponent is the smallest normal number
    max_exponent: int  # the largest finite number lies below 2**(max_exponent + 1)

    @property
    def smallest_normal(self) -> Fraction:
        """Smallest number with all its digits."""
        return Fraction(2) ** self.min_exponent

    @property
    def smallest_subnormal(self) -> Fraction:
        """Smallest positive number."""
        return Fraction(2) ** (self.min_exponent - self.significand_bits + 1)

    @property
    def largest(self) -> Fraction:
        """Largest finite number."""
        ulp = Fraction(2) ** (self.max_exponent - self.significand_bits + 1)
        return Fraction(2) ** (self.max_exponent + 1) - ulp

    @property
    def log_smallest_normal(self) -> float:
        """Its logarithm, nats."""
        return self.min_exponent * math.log(2.0)

    @property
    def log_smallest_subnormal(self) -> float:
        """Its logarithm, nats."""
        return (self.min_exponent - self.significand_bits + 1) * math.log(2.0)

    @property
    def log_largest(self) -> float:
        """Its logarithm, nats."""
        short_by = 2.0**-self.significand_bits  # of the next power of two, relative
        return (self.max_exponent + 1) * math.log(2.0) + math.log1p(-short_by)

    def round(self, x: float) -> float:
        """Nearest number of the format, ties to even; x >= 0 and finite, or inf."""
        if x == 0.0 or math.isinf(x) or self.significand_bits == 53:
            return x
        exponent = max(math.frexp(x)[1] - 1, self.min_exponent)
        unit = math.ldexp(1.0, exponent - self.significand_bits + 1)
        rounded = round(x / unit) * unit
        return math.inf if math.frexp(rounded)[1] - 1 > self.max_exponent else rounded


FLOAT_FORMATS: Mapping[str, FloatFormat] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            FloatFormat("float16", 11, -14, 15),
            FloatFormat("bfloat16", 8, -126, 127),
            FloatFormat("float32", 24, -126, 127),
            FloatFormat("float64", 53, -1022, 1023),
        )
    }
)


def last_normal_lag(gamma: float, fmt: FloatFormat) -> int | None:
    """Last l for which gamma**l is at least the smallest normal number.

    Parameters
    ----------
    gamma
        Factor per step, finite and >= 0, read as the decimal it prints as.
    fmt
        Format, one of `FLOAT_FORMATS` for example.

    Returns
    -------
    lag
        None if gamma >= 1: the powers never become small.

    Raises
    ------
    SettingError
        If gamma is negative or not finite.
    """
    return _last_lag(_as_printed(gamma), fmt.smallest_normal)


def last_subnormal_lag(gamma: float, fmt: FloatFormat) -> int | None:
    """Last l for which gamma**l is at least the smallest subnormal; see `last_normal_lag`."""
    return _last_lag(_as_printed(gamma), fmt.smallest_subnormal)


def last_nonzero_lag(gamma: float, fmt: FloatFormat) -> int | None:
    """Last l for which gamma**l, correctly rounded, is not zero; see `last_normal_lag`.

    Half of the smallest subnormal is a tie, and rounds to the even neighbor, zero.
    """
    return _last_lag(_as_printed(gamma), fmt.smallest_subnormal / 2, strict=True)


def last_finite_lag(gamma: float, fmt: FloatFormat) -> int | None:
    """Last l for which gamma**l is at most the largest finite number; None if gamma <= 1."""
    exact = _as_printed(gamma)
    return _last_lag(1 / exact, 1 / fmt.largest) if exact > 1 else None


def running_product(
    gamma: float, fmt: FloatFormat, flush_to_zero: bool = False, *, max_steps: int = 1_000_000
) -> RunningProduct:
    """Fate of 1 · gamma · gamma · … with gamma and every product rounded to the format.

    Parameters
    ----------
    gamma
        Factor per step, finite and >= 0.
    fmt
        Format of the factor and of the products.
    flush_to_zero
        Whether results below the smallest normal number become 0, as on many accelerators.
        Otherwise they lose digits gradually, and a factor above 1/2 never leads to 0.
    max_steps
        Products after which the fate is "unfinished".

    Returns
    -------
    product
        Fate, the step that reached it, and the value in units of the smallest subnormal.

    Raises
    ------
    SettingError
        If gamma is negative or not finite.

    Notes
    -----
    Products of two numbers of up to 26 bits are exact in float64, so that they are rounded once.
    """
    _as_printed(gamma)
    factor, floor = fmt.round(float(gamma)), float(fmt.smallest_normal) if flush_to_zero else 0.0
    value = 1.0
    for step in range(max_steps):
        following = fmt.round(value * factor)
        if following < floor:
            following = 0.0
        if following == value:
            return _product(fmt, factor, step, value)
        value = following
    return _product(fmt, factor, None, value)


def precision_horizon(
    lag: Int[Array, " lag"],
    log_norm_median: Float[Array, " median"],  # one a lag
    rate: float,
    intercept: float,
) -> PrecisionHorizon:
    """Lags at which the median norm becomes small, or leaves the formats, for good.

    Parameters
    ----------
    lag
        Distances in steps, strictly increasing.
    log_norm_median
        Median of the log norm at these lags, nats; may hold -inf.
    rate, intercept
        Line ``intercept + rate * lag`` from which lags are predicted; nats per step (may be
        -inf), nats. Nothing is predicted from an intercept of nan.

    Returns
    -------
    horizon
        Measured: first lag from which every later value lies strictly beyond the threshold.
        Predicted: first lag >= 1 at which the line does, if its rate points that way.

    Raises
    ------
    ShapeError
        If the two curves differ in length, or the lags do not increase.
    """
    lags, curve = np.asarray(lag), np.asarray(log_norm_median, dtype=np.float64)
    _check_curve(lags, curve)
    below = {"lag_half": LOG_HALF, "lag_1pct": LOG_1PCT}
    below |= {name: fmt.log_smallest_normal for name, fmt in FLOAT_FORMATS.items()}
    above = {name: fmt.log_largest for name, fmt in FLOAT_FORMATS.items()}
    measured = {name: _settled(lags, curve < bound) for name, bound in below.items()}
    predicted = {name: _crossing(intercept, rate, bound) for name, bound in below.items()}
    for name, bound in above.items():
        # Upside down, staying above is staying below.
        predicted[f"overflow_{name}"] = _crossing(-intercept, -rate, -bound)
    return PrecisionHorizon(
        lag_half=measured.pop("lag_half"),
        lag_1pct=measured.pop("lag_1pct"),
        underflow=measured,
        overflow={name: _settled(lags, curve > bound) for name, bound in above.items()},
        predicted=predicted,
    )


def _as_printed(gamma: float) -> Fraction:
    """Shortest decimal that reads back as gamma, exactly."""
    if not (math.isfinite(gamma) and gamma >= 0.0):
        raise SettingError(f"gamma is {gamma}: expected a finite number >= 0")
    return Fraction(repr(float(gamma)))


def _last_lag(gamma: Fraction, threshold: Fraction, *, strict: bool = False) -> int | None:
    """Last l >= 0 with gamma**l >= threshold (> if strict), for 0 <= threshold < 1."""
    if gamma >= 1:
        return None
    if gamma == 0:
        return 0
    with localcontext(prec=DIGITS):
        quotient = _ln(threshold) / _ln(gamma)
        nearest = int(quotient.to_integral_value())
        if abs(quotient - nearest) > NEAR_TIE:
            return math.floor(quotient)
    # Only true ties come so near, and their powers are short: compare the numbers themselves.
    power = gamma**nearest
    return nearest if power > threshold or (power == threshold and not strict) else nearest - 1


def _ln(x: Fraction) -> Decimal:
    """Natural logarithm in the current decimal context."""
    return Decimal(x.numerator).ln() - Decimal(x.denominator).ln()


def _product(fmt: FloatFormat, factor: float, step: int | None, value: float) -> RunningProduct:
    units = None if math.isinf(value) else int(Fraction(value) / fmt.smallest_subnormal)
    fate: Fate = "zero" if value == 0.0 else "sticks" if units is not None else "overflow"
    if step is None:
        fate = "unfinished"
    return RunningProduct(
        format=fmt.name, gamma=factor, fate=fate, step=step, value=value, subnormals=units
    )


def _check_curve(lags: Array, curve: Array) -> None:
    if lags.ndim != 1 or lags.shape != curve.shape:
        raise ShapeError(
            f"lag has shape {lags.shape} and log_norm_median {curve.shape}: expected two vectors "
            "of one length"
        )
    if np.any(np.diff(lags) <= 0):
        raise ShapeError("lag does not increase: expected one median a lag, in order of the lag")


def _settled(lags: Array, beyond: Array) -> int | None:
    """First lag from which the condition holds to the end."""
    if len(lags) == 0 or not beyond[-1]:
        return None
    broken = np.nonzero(~beyond)[0]
    return int(lags[broken[-1] + 1 if len(broken) else 0])


def _crossing(intercept: float, rate: float, bound: float) -> int | None:
    """First lag >= 1 with intercept + rate * lag strictly below the bound; None if rate >= 0."""
    if not rate < 0.0 or math.isnan(intercept) or intercept == math.inf:
        return None
    if math.isinf(rate) or intercept == -math.inf:
        return 1
    quotient = (bound - intercept) / rate
    if math.isinf(quotient):
        return 1 if quotient < 0.0 else None
    # A line through rounded logarithms that meets a bound at a whole lag is not yet beyond it.
    return max(1, math.floor(quotient * (1.0 + ROUNDING) + ROUNDING) + 1)
