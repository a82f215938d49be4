"""A log10 axis built from natural logarithms: right at 1e-7000, where the numbers are 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, Locator, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from gradlab_reports.spelling import LN10, factor, power_of_ten

# From so many decades on, the axis is labeled with whole powers of ten.
POWERS_FROM = 2.5


def to_decades(log_values: ArrayLike) -> NDArray[np.float64]:
    """Turn natural logarithms into log10."""
    return np.asarray(log_values, dtype=np.float64) / LN10


class DecadeLocator(Locator):
    """Ticks at whole powers of ten, or at round numbers between them on a short axis."""

    def __call__(self) -> Sequence[float]:
        """Return tick positions between the limits of the axis."""
        if self.axis is None:
            return ()
        low, high = sorted(self.axis.get_view_interval())
        return self.tick_values(float(low), float(high))

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return tick positions in decades between two limits in decades."""
        if vmax - vmin >= POWERS_FROM:
            ticks = MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)
            return [float(tick) for tick in ticks]
        return [math.log10(value) for value in _round_values(10.0**vmin, 10.0**vmax)]


class DecadeFormatter(Formatter):
    """Label a position in decades with the number it stands for."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick."""
        low, high = sorted(self.axis.get_view_interval()) if self.axis is not None else (0.0, 9.0)
        if high - low >= POWERS_FROM:
            return power_of_ten(round(x))
        return _trimmed(factor(x * LN10, 4))


def label_in_decades(axis: Axis) -> None:
    """Give an axis whose data are in decades its ticks and labels."""
    axis.set_major_locator(DecadeLocator())
    axis.set_major_formatter(DecadeFormatter())


def count_in_wholes(axis: Axis) -> None:
    """Put ticks at whole numbers only: steps and lags have no halves."""
    axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True))


def _round_values(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones: 1, 2, 5 of each decade, or evenly spaced."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ladder = [m * 10.0**k for k in range(first, last + 1) for m in (1.0, 2.0, 5.0)]
    inside = [value for value in ladder if low <= value <= high]
    if len(inside) >= 3:
        return inside
    even = MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(value) for value in even if low <= value <= high]


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number and "×" not in number else number
