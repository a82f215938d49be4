"""Axes of a sweep as text: one value, a comma list, start:stop:count, or start:stop:count:log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeVar

import typer

Value = TypeVar("Value", int, float)

RANGE_FORM = "start:stop:count (or start:stop:count:log) with count at least 2"
LOG = "log"
DIGITS = Context(prec=50)  # of a logarithmic range, so that 1e-3:1:4:log is 0.001, 0.01, 0.1, 1


def floats(option: str, text: str) -> list[float]:
    """Values of a real axis.

    Parameters
    ----------
    option
        The option's name, for the message.
    text
        ``0.9``, ``0.5,0.9,1.1`` or ``0.5:1.5:21`` (both ends included, evenly spaced). The values
        are the floats nearest to the exact decimals, so that 0.65 is not 0.6500000000000001.
        ``1e-3:1:13:log`` has equal ratios.

    Returns
    -------
    values
        In the order given.

    Raises
    ------
    typer.BadParameter
        If the text has none of these forms.
    """
    expected = f"a number, a comma list of numbers, or {RANGE_FORM}, such as 0.5:1.5:21"
    return _values(option, text, _finite_float, expected)


def integers(option: str, text: str, at_least: int = 1) -> list[int]:
    """Values of an axis of counts, in the same forms.

    An even range must fall on whole numbers; a logarithmic one is rounded to distinct ones.

    Parameters
    ----------
    option
        The option's name, for the message.
    text
        ``64``, ``16,32,64``, ``10:100:10`` or ``16:1024:7:log``.
    at_least
        The smallest value that makes sense.

    Returns
    -------
    values
        In the order given, each at least ``at_least``.

    Raises
    ------
    typer.BadParameter
        If the text has none of these forms.
    """
    expected = (
        f"a whole number from {at_least}, a comma list of them, or {RANGE_FORM}, such as 16:64:4"
    )
    values = _values(option, text, _rounded if _is_logarithmic(text) else _whole, expected)
    if min(values) < at_least or (_is_logarithmic(text) and len(set(values)) < len(values)):
        raise _refusal(option, text, expected)
    return values


def names(option: str, text: str) -> list[str]:
    """Values of an axis of names, such as ``tanh,relu``.

    Parameters
    ----------
    option
        The option's name, for the message.
    text
        One name or a comma list.

    Returns
    -------
    values
        In the order given; whether they exist is for the library to say.

    Raises
    ------
    typer.BadParameter
        If a name is empty.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise _refusal(option, text, "a name or a comma list of names, such as tanh,relu")
    return parts


def _values(
    option: str, text: str, read: Callable[[Fraction], Value], expected: str
) -> list[Value]:
    try:
        return [read(exact) for exact in _fractions(text)]
    except (ValueError, ArithmeticError) as error:
        raise _refusal(option, text, expected) from error


def _is_logarithmic(text: str) -> bool:
    return text.rpartition(":")[2].strip() == LOG


def _fractions(text: str) -> Iterable[Fraction]:
    if ":" not in text:
        return [_exact(part) for part in text.split(",")]
    start, stop, count = text.removesuffix(f":{LOG}").split(":")
    spaced = _equal_ratios if _is_logarithmic(text) else _evenly_spaced
    return spaced(_exact(start), _exact(stop), int(count))


def _exact(text: str) -> Fraction:
    # float() first: Fraction alone would also read 1/2, which is no number to any other option.
    if not math.isfinite(float(text)):
        raise ValueError(text)
    return Fraction(text.strip())


def _evenly_spaced(start: Fraction, stop: Fraction, count: int) -> Iterable[Fraction]:
    if count < 2:
        raise ValueError(count)
    step = (stop - start) / (count - 1)
    return (start + index * step for index in range(count))


def _equal_ratios(start: Fraction, stop: Fraction, count: int) -> Iterable[Fraction]:
    if count < 2 or start <= 0 or stop <= 0:
        raise ValueError(count)
    low, high = (
        DIGITS.ln(DIGITS.divide(Decimal(end.numerator), Decimal(end.denominator)))
        for end in (start, stop)
    )
    step = DIGITS.divide(DIGITS.subtract(high, low), Decimal(count - 1))
    between = (
        Fraction(DIGITS.exp(DIGITS.fma(Decimal(index), step, low))) for index in range(1, count - 1)
    )
    return [start, *between, stop]


def _finite_float(exact: Fraction) -> float:
    return float(exact)


def _whole(exact: Fraction) -> int:
    if exact.denominator != 1:
        raise ValueError(exact)
    return int(exact)


def _rounded(exact: Fraction) -> int:
    return round(exact)


def _refusal(option: str, text: str, expected: str) -> typer.BadParameter:
    return typer.BadParameter(f"{text!r} found, expected {expected}", param_hint=option)
