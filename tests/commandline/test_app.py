"""The app itself, as a test runner or a shell completion sees it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gradlab_cli.commands
from gradlab_cli.app import app

COMMANDS = sorted(
    path.stem
    for path in Path(inspect.getfile(gradlab_cli.commands)).parent.glob("*.py")
    if path.stem != "__init__"
)


def test_every_command_module_is_registered_under_its_name() -> None:
    assert sorted(str(entry.name) for entry in app.registered_commands) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_has_help(name: str) -> None:
    [entry] = [entry for entry in app.registered_commands if entry.name == name]
    assert entry.callback is not None
    assert (entry.callback.__doc__ or "").strip()
    for parameter in inspect.signature(entry.callback).parameters.values():
        assert parameter.annotation.__metadata__[0].help, parameter.name


def test_known_error_inside_a_runner_is_one_line_and_exit_code_1() -> None:
    result = CliRunner().invoke(app, ["inspect", "missing.pt"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "missing.pt" in result.stderr


def test_wrong_usage_inside_a_runner_is_exit_code_2() -> None:
    assert CliRunner().invoke(app, ["inspect"]).exit_code == 2


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert name in result.stdout
    assert "..." not in result.stdout.partition("Commands")[2]
