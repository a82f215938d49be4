"""Options of a group become options of a command."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from gradlab.cells.vanilla import VanillaCell
from gradlab.sweeps.settings import PointSettings
from gradlab_cli.grid import GridOptions
from gradlab_cli.groups import RandomOptions, given, option_name, spread


@dataclass(frozen=True, kw_only=True)
class Pair:
    left: Annotated[int, typer.Option(help="One side.")] = 1
    right: Annotated[int, typer.Option(help="The other side.")] = 2


def record(seen: list[Any]) -> typer.Typer:
    app = typer.Typer()

    def command(name: str, *, pair: Pair, loud: bool = False) -> None:
        """Take a pair."""
        seen.append((name, pair, loud))

    # The annotations name a class of this module; a command of a module of its own needs no help.
    command.__annotations__ = {"name": str, "pair": Pair, "loud": bool, "return": None}
    app.command()(spread(command))
    return app


def test_group_arrives_whole_with_what_was_typed_and_the_defaults() -> None:
    seen: list[Any] = []
    result = CliRunner().invoke(record(seen), ["x", "--right", "-5", "--loud"])
    assert result.exit_code == 0, result.output
    assert seen == [("x", Pair(left=1, right=-5), True)]


def test_spread_signature_holds_the_fields_in_place_of_the_group() -> None:
    def command(*, pair: Pair) -> None:
        """Take a pair."""

    command.__annotations__ = {"pair": Pair, "return": None}
    assert list(inspect.signature(spread(command)).parameters) == ["left", "right"]


def test_given_options_are_those_that_differ_from_the_default() -> None:
    assert given(RandomOptions(gain=2.0, hidden_size=8)) == {"gain": 2.0, "hidden_size": 8}
    assert given(RandomOptions()) == {}


@pytest.mark.parametrize(("field", "option"), [("bias_std", "--bias-std"), ("seed", "--seed")])
def test_option_name_is_the_field_with_dashes(field: str, option: str) -> None:
    assert option_name(field) == option


def shown_defaults(group: type) -> dict[str, str]:
    """What the help says where the library has the last word."""
    hints = get_type_hints(group, include_extras=True)
    return {name: str(hint.__metadata__[0].show_default) for name, hint in hints.items()}


def test_help_of_a_random_network_shows_the_defaults_of_the_library() -> None:
    parameters = inspect.signature(VanillaCell.initialize).parameters
    for name, shown in shown_defaults(RandomOptions).items():
        default = parameters[name].default
        if default not in (None, inspect.Parameter.empty):
            assert shown == str(default), name


def test_help_of_a_sweep_shows_the_defaults_of_the_library() -> None:
    defaults = PointSettings()
    for name, shown in shown_defaults(GridOptions).items():
        default = getattr(defaults, name)
        if default is None:  # words say what holds then
            assert " " in shown, name
        else:
            assert shown == str(default), name
