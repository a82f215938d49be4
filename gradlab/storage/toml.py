"""Flat documents of settings as TOML, which the standard library reads but does not write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_text(document: Mapping[str, Any], heading: str) -> str:
    """Text of a document of strings, numbers, truth values, lists of them, and tables of these.

    Parameters
    ----------
    document
        Keys are plain names; what is None is left out, for TOML has no word for it.
    heading
        A comment above.
    """
    lines = [f"# {heading}", *_lines(document)]
    for name, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = {_value(value)}"
        for key, value in table.items()
        if value is not None and not isinstance(value, Mapping)
    ]


def _value(value: Any) -> str:
    if isinstance(value, list | tuple | range):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    # A JSON string is a TOML string, but for the one control character that JSON leaves as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
