"""Numbers as people read them, spelled from natural logarithms: none under- or overflows."""

from __future__ import annotations

import math
import re

LN10 = math.log(10.0)
MINUS = "−"
NO_BREAK = "\u00a0"

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(exponent: int) -> str:
    """Spell ten to an integer power: ``10⁻⁴⁰⁰``."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def plain(value: float, digits: int = 3) -> str:
    """Spell a number to so many significant digits, with a true minus sign.

    Parameters
    ----------
    value
        Any float; nan is spelled "undefined".
    digits
        Significant digits.

    Returns
    -------
    text
        Without exponent for ordinary sizes, as ``2.5 × 10⁻⁷`` otherwise.
    """
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else MINUS + "∞"
    if value == 0.0:
        return "0"
    sign = MINUS if value < 0 else ""
    return sign + factor(math.log(abs(value)), digits)


def factor(log_value: float, digits: int = 3) -> str:
    """Spell ``exp(log_value)`` without ever forming it outside the range of floats.

    Parameters
    ----------
    log_value
        Natural logarithm; ``-inf`` is an exact zero.
    digits
        Significant digits.

    Returns
    -------
    text
        Such as ``0.905``, ``1280`` or ``4.2 × 10⁻⁷⁰⁰⁰``.
    """
    if math.isnan(log_value):
        return "undefined"
    if math.isinf(log_value):
        return "∞" if log_value > 0 else "0"
    decades = log_value / LN10
    if -4.0 <= decades < 4.0:
        return _without_exponent(math.exp(log_value), digits)
    exponent = math.floor(decades)
    # Rounding may carry into the next decade: 9.996 becomes 1.00 of the decade above.
    if round(10.0 ** (decades - exponent), digits - 1) >= 10.0:
        exponent += 1
    mantissa = f"{10.0 ** (decades - exponent):.{digits - 1}f}"
    return f"{mantissa}{NO_BREAK}×{NO_BREAK}{power_of_ten(exponent)}"


def _without_exponent(value: float, digits: int) -> str:
    for _ in range(2):  # once more where rounding carried: 0.9996 is 1.00, not 1.000
        places = max(digits - 1 - math.floor(math.log10(value)), 0)
        value = round(value, places)
    return f"{value:.{places}f}"


def share(value: float) -> str:
    """Spell a share between 0 and 1 as per cent."""
    return "undefined" if math.isnan(value) else f"{100.0 * value:.3g}{NO_BREAK}%"


def shortened(name: str, width: int = 48) -> str:
    """Cut a name that would not fit, keeping both ends."""
    if len(name) <= width:
        return name
    half = (width - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def with_minus(words: str) -> str:
    """Set true minus signs before the numbers and logarithms of a sentence."""
    return re.sub(r"(?<![\w.])-(?=\d|\.\d|ln\b|inf\b)", MINUS, words)
