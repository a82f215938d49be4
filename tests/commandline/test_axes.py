"""Axes of a sweep as text."""

from __future__ import annotations

import itertools

import pytest
import typer

from gradlab_cli import axes


def test_range_includes_both_ends() -> None:
    values = axes.floats("--gamma", "0.5:1.5:21")
    assert (len(values), values[0], values[-1]) == (21, 0.5, 1.5)


def test_range_gives_the_floats_nearest_to_the_exact_decimals() -> None:
    assert axes.floats("--gamma", "0.5:1.5:21")[3] == 0.65
    assert axes.floats("--gamma", "0:1:11") == [index / 10 for index in range(11)]


def test_range_may_fall_and_may_be_negative() -> None:
    assert axes.floats("--bias", "1:-1:3") == [1.0, 0.0, -1.0]
    assert axes.floats("--bias", "-.5:.5:2") == [-0.5, 0.5]


@pytest.mark.parametrize(
    ("text", "values"), [("-1e-3", [-1e-3]), ("-.5,2", [-0.5, 2.0]), (" 1 , 2 ", [1.0, 2.0])]
)
def test_list_keeps_its_order_and_values(text: str, values: list[float]) -> None:
    assert axes.floats("--bias", text) == values


def test_integers_come_one_listed_or_as_a_range_of_whole_numbers() -> None:
    assert axes.integers("--hidden-size", "64") == [64]
    assert axes.integers("--hidden-size", "16,8") == [16, 8]
    assert axes.integers("--length", "10:100:10") == list(range(10, 101, 10))


def test_names_are_split_at_commas() -> None:
    assert axes.names("--activation", "tanh, relu") == ["tanh", "relu"]


WRONG_RANGES = ["1:2", "1:2:3:4", "0:1:1", "0:1:2.5", "0:x:3"]
WRONG_NUMBERS = ["", "x", "1,,2", "nan", "inf", "1/2", *WRONG_RANGES]


@pytest.mark.parametrize("text", WRONG_NUMBERS)
def test_refusal_of_numbers_names_option_value_and_form(text: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        axes.floats("--gamma", text)
    message = refused.value.format_message()
    assert "--gamma" in message
    assert repr(text) in message
    assert "start:stop:count" in message


@pytest.mark.parametrize("text", [*WRONG_NUMBERS, "0", "-3", "1.5", "1:2:3"])
def test_refusal_of_counts_covers_zero_negative_and_broken_ones(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="whole number"):
        axes.integers("--length", text)


@pytest.mark.parametrize("text", ["", "tanh,", ",relu"])
def test_refusal_of_names_covers_empty_ones(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="comma list of names"):
        axes.names("--activation", text)


def test_logarithmic_range_has_equal_ratios_and_exact_decimals() -> None:
    assert axes.floats("--gain", "1e-3:1:4:log") == [0.001, 0.01, 0.1, 1.0]
    assert axes.floats("--gain", "8:1:4:log") == [8.0, 4.0, 2.0, 1.0]
    values = axes.floats("--gain", "1e-3:1:13:log")
    assert len(values) == 13
    ratios = [after / before for before, after in itertools.pairwise(values)]
    assert ratios == pytest.approx([10**0.25] * 12, rel=1e-14)


def test_logarithmic_counts_are_rounded_to_distinct_whole_numbers() -> None:
    assert axes.integers("--hidden-size", "16:1024:7:log") == [16, 32, 64, 128, 256, 512, 1024]
    assert axes.integers("--hidden-size", "10:1000:5:log") == [10, 32, 100, 316, 1000]
    with pytest.raises(typer.BadParameter, match="whole number"):
        axes.integers("--hidden-size", "1:3:9:log")


@pytest.mark.parametrize("text", ["0:1:3:log", "-1:1:3:log", "1:2:1:log", "1:2:log", "1:2:3:lin"])
def test_logarithmic_range_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"start:stop:count:log"):
        axes.floats("--gain", text)
