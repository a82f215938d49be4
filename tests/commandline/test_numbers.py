"""Numbers on the command line: every numeric option takes a negative value, in every spelling."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import pytest

import gradlab as gl
from gradlab_cli.grid import COUNTS, NAMES, GridOptions
from gradlab_cli.groups import MeasureOptions, RandomOptions, SequenceOptions, option_name

SPELLINGS = [("-1e-3", -0.001), ("-.5", -0.5), ("-2", -2.0), ("1e-3", 0.001)]


def options_of(kind: type, *groups: type) -> Iterator[str]:
    """Fields of the groups whose value is of one kind of number, or None."""
    for group in groups:
        for name, annotation in get_type_hints(group).items():
            if annotation is kind or kind in get_args(annotation):
                yield name


REALS = sorted(options_of(float, SequenceOptions, RandomOptions, MeasureOptions))
COUNTED = sorted(options_of(int, SequenceOptions, RandomOptions, MeasureOptions))
REAL_AXES = sorted(
    field.name for field in dataclasses.fields(GridOptions) if field.name not in (*COUNTS, *NAMES)
)


class Stopped(gl.GradlabError):
    """Ends a command once its options are known."""


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """All options that reached the measurement, which does not take place."""
    values: dict[str, Any] = {}

    def keep(*groups: Any) -> None:
        for group in groups:
            values.update({} if isinstance(group, str) else dataclasses.asdict(group))
        raise Stopped("stopped")

    def keep_grid(**axes: Any) -> None:
        values.update(axes)
        raise Stopped("stopped")

    for name in ("analyze", "report"):
        monkeypatch.setattr(
            importlib.import_module(f"gradlab_cli.commands.{name}"), "measure", keep
        )
    monkeypatch.setattr(gl, "grid", keep_grid, raising=False)
    return values


def test_numeric_options_are_found() -> None:
    assert {"bias", "gain", "gamma", "input_std", "threshold"} <= set(REALS)
    assert {"length", "batch", "seed", "max_lag", "block"} <= set(COUNTED)


@pytest.mark.parametrize(("text", "value"), SPELLINGS)
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("name", REALS)
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_real_option_takes_every_spelling_of_a_number(
    gradlab: Callable[..., Any],
    received: dict[str, Any],
    command: str,
    name: str,
    joined: bool,
    text: str,
    value: float,
) -> None:
    option = option_name(name)
    typed = [f"{option}={text}"] if joined else [option, text]
    outcome = gradlab(command, "random", *typed, *(["-o", "never"] if command == "report" else []))
    assert outcome.error == "Error: stopped"
    assert received[name] == value


@pytest.mark.parametrize(("text", "value"), SPELLINGS)
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("name", REAL_AXES)
def test_real_axis_of_a_sweep_takes_every_spelling_of_a_number(
    gradlab: Callable[..., Any],
    received: dict[str, Any],
    name: str,
    joined: bool,
    text: str,
    value: float,
) -> None:
    option = option_name(name)
    typed = [f"{option}={text}"] if joined else [option, text]
    assert gradlab("sweep", *typed, "-o", "never").error == "Error: stopped"
    assert received[name] == [value]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("name", [name for name in COUNTED if name != "seed"])
def test_negative_count_is_a_value_out_of_range_and_not_an_unknown_option(
    gradlab: Callable[..., Any], name: str, joined: bool
) -> None:
    option = option_name(name)
    outcome = gradlab("analyze", "random", *([f"{option}=-3"] if joined else [option, "-3"]))
    assert outcome.code == 2
    assert f"Invalid value for '{option}'" in outcome.error


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_negative_count_on_an_axis_names_the_expected_form(
    gradlab: Callable[..., Any], name: str
) -> None:
    outcome = gradlab("sweep", option_name(name), "-3", "-o", "never")
    assert outcome.code == 2
    assert "'-3' found, expected a whole number" in outcome.error
