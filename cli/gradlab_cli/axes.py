"""Axes of a sweep as text: one value, a comma list, or start:stop:count."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

import typer

Value = TypeVar("Value", int, float)

RANGE_FORM = "start:stop:count with count at least 2"


def floats(option: str, text: str) -> list[float]:
    """Values of a real axis.

    Parameters
    ----------
    option
        The option's name, for the message.
    text
        ``0.9``, ``0.5,0.9,1.1`` or ``0.5:1.5:21`` (both ends included, evenly spaced). The values
        are the floats nearest to the exact decimals, so that 0.65 is not 0.6500000000000001.

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


def integers(option: str, text: str) -> list[int]:
    """Values of an axis of counts, in the same forms; a range must fall on whole numbers.

    Parameters
    ----------
    option
        The option's name, for the message.
    text
        ``64``, ``16,32,64`` or ``10:100:10``.

    Returns
    -------
    values
        In the order given, each at least 1.

    Raises
    ------
    typer.BadParameter
        If the text has none of these forms.
    """
    expected = f"a whole number from 1, a comma list of them, or {RANGE_FORM}, such as 16:64:4"
    return _values(option, text, _positive_integer, expected)


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
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise _refusal(option, text, expected) from error


def _fractions(text: str) -> list[Fraction]:
    if ":" not in text:
        return [_exact(part) for part in text.split(",")]
    start, stop, count = text.split(":")
    return _evenly_spaced(_exact(start), _exact(stop), int(count))


def _exact(text: str) -> Fraction:
    # float() first: Fraction alone would also read 1/2, which is no number to any other option.
    if not math.isfinite(float(text)):
        raise ValueError(text)
    return Fraction(text.strip())


def _evenly_spaced(start: Fraction, stop: Fraction, count: int) -> list[Fraction]:
    if count < 2:
        raise ValueError(count)
    return [start + index * (stop - start) / (count - 1) for index in range(count)]


def _finite_float(exact: Fraction) -> float:
    return float(exact)


def _positive_integer(exact: Fraction) -> int:
    if exact.denominator != 1 or exact < 1:
        raise ValueError(exact)
    return int(exact)


def _refusal(option: str, text: str, expected: str) -> typer.BadParameter:
    return typer.BadParameter(f"{text!r} found, expected {expected}", param_hint=option)
