"""Settings of a sweep by their precedence: options, then the environment, then a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

import gradlab as gl
from gradlab_cli.groups import option_name

PREFIX = "GRADLAB_"
SHARED = "settings"  # table of a file with what all points share, which is no column


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What was said of a setting, as text, and where."""

    texts: tuple[str, ...]
    origin: str
    shared: bool = False  # no column of the table

    @property
    def text(self) -> str:
        """All of it as a comma list."""
        return ",".join(self.texts)

    def whole(self, at_least: int) -> int:
        """The one whole number that it is.

        Raises
        ------
        typer.BadParameter
            If it is none.
        """
        try:
            number = int(self.text)
        except ValueError:
            number = at_least - 1
        if number < at_least:
            raise typer.BadParameter(
                f"{self.text!r} found, expected a whole number from {at_least}",
                param_hint=self.origin,
            )
        return number

    def switch(self) -> bool:
        """Whether it is on.

        Raises
        ------
        typer.BadParameter
            If it is neither true nor false.
        """
        word = self.text.lower()
        if word not in ("true", "false"):
            raise typer.BadParameter(
                f"{self.text!r} found, expected true or false", param_hint=self.origin
            )
        return word == "true"


def chosen_settings(
    typed: Mapping[str, Any], config: Path | None, names: Iterable[str]
) -> dict[str, Setting]:
    """Every setting that was given, from where it counts.

    Parameters
    ----------
    typed
        Options by field; None where nothing was typed.
    config
        File of settings.
    names
        All settings that there are, in the order of the result.

    Raises
    ------
    InputFileError
        If the file cannot be read.
    UnknownNameError
        If it has a key that is no setting.
    """
    names = list(names)
    filed = {} if config is None else _filed(config, names)
    chosen = {}
    for name in names:
        variable = PREFIX + name.upper()
        if typed.get(name) is not None:
            chosen[name] = Setting(texts=_texts(typed[name]), origin=option_name(name))
        elif os.environ.get(variable):
            chosen[name] = Setting(texts=(os.environ[variable],), origin=variable)
        elif name in filed:
            chosen[name] = filed[name]
    return chosen


def _filed(path: Path, names: list[str]) -> dict[str, Setting]:
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise gl.InputFileError(
            f"{path} cannot be read as TOML ({error}): expected settings such as "
            'gamma = "0.5:1.5:21"'
        ) from error
    shared = document.pop(SHARED, {})
    if not isinstance(shared, dict):
        raise gl.InputFileError(f"{path}: {SHARED} is no table: expected [{SHARED}] and keys")
    found = {}
    for table, is_shared in ((shared, True), (document, False)):
        for name, value in table.items():
            if name not in names:
                raise gl.unknown_name(f"setting in {path}", name, names)
            found[name] = Setting(texts=_texts(value), origin=f"{name} in {path}", shared=is_shared)
    return found


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(repr(entry) if isinstance(entry, float) else str(entry) for entry in values)
