"""Write the pages that say what the app and the facade say: commands, and the API.

Run in gradlab's own environment after a command, an option or a public name has changed:

    python docs/reference.py
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import gradlab as gl
from gradlab_cli.app import app

DOCS = Path(__file__).resolve().parent

WRITTEN = "<!-- Written by docs/reference.py: change the app, then run it. -->"
COMMANDS_HEAD = f"""{WRITTEN}

# Commands

Data go to stdout, messages and progress to stderr; `--json` gives one document on stdout.
Exit codes: 0 fine, 1 a known error in one line, 2 wrong usage, 3 a check that failed,
130 interrupted.
"""

API_HEAD = f"""{WRITTEN}

# API

Everything public is a name of `gradlab`; whatever else is in the package may change without notice.
`import gradlab` loads nothing: each name imports its part on first use.

```python
import gradlab as gl
```

"""

# Pages of the API: title, what is there, and the rooms whose names it holds.
ROOMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "studies": (
        "Studies",
        "Whole jobs: one network, several beside each other, a grid of random ones, a training.",
        (
            "dynamics",
            "estimates",
            "comparison",
            "sweeps",
            "trainings",
            "designs",
            "requirements",
            "verification",
        ),
    ),
    "measurements": ("Measurements", "One quantity a function.", ("analysis",)),
    "cells": ("Cells", "Recurrent layers, their equations and their weights.", ("cells",)),
    "running": (
        "Sequences, runs and losses",
        "What goes into a network, its run, and the gradient of a loss.",
        ("engine",),
    ),
    "files": (
        "Files",
        "Other people's models in, results out.",
        ("checkpoints", "storage", "provenance"),
    ),
    "records": (
        "Records",
        "What the functions return: frozen, with tables, in nats.",
        ("records", "linalg", "norms", "arrays", "errors"),
    ),
}


def commands_page() -> str:
    """Every command of the app with its arguments and options, by panel."""
    root: Any = typer.main.get_command(app)
    listing = ["| command | what it does |", "| --- | --- |"]
    sections = []
    for name, command in root.commands.items():
        listing.append(f"| [`{name}`](#{name}) | {command.help} |")
        sections.append("\n".join(_command(name, command)))
    return "\n".join([COMMANDS_HEAD, *listing, "", *sections])


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if not hasattr(p, "is_flag")]
    usage = " ".join(_argument(argument) for argument in arguments)
    yield f"## {name}\n"
    yield f"`gradlab {name} [OPTIONS] {usage}`".replace(" `", "`") + "\n"
    yield f"{command.help}\n"
    yield from (f"- `{_argument(p)}`: {p.help}" for p in arguments)
    if arguments:
        yield ""
    for panel in dict.fromkeys(_panel(p) for p in command.params if hasattr(p, "is_flag")):
        yield f"**{panel}**\n"
        yield "| option | default | |"
        yield "| --- | --- | --- |"
        yield from (
            f"| {_spelling(p)} | {_default(p)} | {_cell(p.help)} |"
            for p in command.params
            if hasattr(p, "is_flag") and _panel(p) == panel
        )
        yield ""


def _argument(argument: Any) -> str:
    word = argument.metavar or argument.name.upper()
    return word if argument.required else f"[{word}]"


def _panel(option: Any) -> str:
    return option.rich_help_panel or "Options"


def _spelling(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {_value(option)}"


def _value(option: Any) -> str:
    """What an option takes: its own word, its choices, or its type."""
    annotation = option.type_descriptor.annotation
    if option.metavar:
        return str(option.metavar)
    if choices := typing.get_args(annotation):
        return " or ".join(str(choice) for choice in choices)
    return {Path: "PATH", int: "INTEGER", float: "NUMBER"}.get(annotation, "TEXT")


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return f"({_cell(option.show_default)})"
    if option.is_flag:
        return f"`{option.opts[0]}`" if option.default else ""
    return "" if option.default is None else f"`{option.default}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("<", "&lt;")


def api_pages() -> dict[str, str]:
    """The pages of the API by file name: an index, and one for each part."""
    names = _names_by_page()
    index = [API_HEAD + "| part | what is there | names |", "| --- | --- | --- |"]
    pages = {}
    for page, (title, about, _) in ROOMS.items():
        listed = ", ".join(f"[`{name}`]({page}.md#gradlab.{name})" for name in names[page])
        index.append(f"| [{title}]({page}.md) | {about} | {listed} |")
        entries = "\n".join(f"::: gradlab.{name}\n" for name in names[page])
        pages[f"{page}.md"] = f"{WRITTEN}\n\n# {title}\n\n{about}\n\n{entries}"
    return {"index.md": "\n".join([*index, ""]), **pages}


def _names_by_page() -> dict[str, list[str]]:
    home: dict[str, str] = gl._HOME
    names: dict[str, list[str]] = {page: [] for page in ROOMS}
    for name, module in home.items():
        room = module.split(".")[1]
        names[next(page for page, (_, _, rooms) in ROOMS.items() if room in rooms)].append(name)
    return {page: sorted(found, key=str.lower) for page, found in names.items()}


def pages() -> dict[str, str]:
    """Every page that this script writes, by its path under docs."""
    return {"cli.md": commands_page(), **{f"api/{n}": text for n, text in api_pages().items()}}


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
