"""The log10 axis comes from logarithms, not from numbers that have become 0 or inf."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.axes import Axes

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.ticks import DecadeFormatter, DecadeLocator, label_in_decades, to_decades


def labeled(low: float, high: float) -> dict[float, str]:
    ax: Axes = axes_or_new(None, (4.0, 3.0))
    ax.set_ylim(low, high)
    label_in_decades(ax.yaxis)
    ticks = [float(tick) for tick in ax.yaxis.get_majorticklocs()]
    words = ax.yaxis.get_major_formatter().format_ticks(ticks)
    return {tick: text for tick, text in zip(ticks, words, strict=True) if low <= tick <= high}


@pytest.mark.parametrize("decades", [-400.0, -7000.0, 7000.0])
def test_decades_are_exact_where_the_number_itself_is_not_a_float(decades: float) -> None:
    np.testing.assert_allclose(to_decades(decades * math.log(10.0)), decades, rtol=1e-14)


def test_a_long_axis_is_labeled_with_whole_powers_of_ten() -> None:
    ticks = labeled(-7000.0, 0.0)
    assert ticks[-6000.0] == "10⁻⁶⁰⁰⁰"
    assert ticks[0.0] == "10⁰"
    assert all(tick == round(tick) for tick in ticks)


def test_a_short_axis_is_labeled_with_the_numbers_themselves() -> None:
    ticks = labeled(-1.0, 1.0)
    assert {"0.1", "0.2", "0.5", "1", "2", "5", "10"} <= set(ticks.values())
    for tick, words in ticks.items():
        assert tick == pytest.approx(math.log10(float(words)), abs=1e-9)


def test_an_axis_around_one_has_even_ticks_that_mean_what_they_say() -> None:
    ticks = labeled(-0.02, 0.02)
    assert len(ticks) >= 3
    for tick, words in ticks.items():
        assert tick == pytest.approx(math.log10(float(words)), abs=1e-6)


def test_a_locator_without_an_axis_has_no_ticks_and_a_formatter_still_formats() -> None:
    assert DecadeLocator()() == ()
    assert DecadeFormatter()(3.0) == "10³"
