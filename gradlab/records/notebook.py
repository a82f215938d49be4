"""Records as small tables of HTML, for notebooks: a few numbers, escaped, no styles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

MOST_ENTRIES = 12  # of a list, in one cell


def summary_html(record: object, summary: Mapping[str, Any]) -> str:
    """Table of a record's summary.

    Parameters
    ----------
    record
        Whose class names the table.
    summary
        Numbers by name; nested names are joined by dots.

    Returns
    -------
    html
        A ``<table>`` of names and values, every word escaped.
    """
    return rows_html(type(record).__name__, ("quantity", "value"), list(_flat(summary)))


def rows_html(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Table of rows whose first cell names the row; every word escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{_spelled(first)}</th>'
        + "".join(f"<td>{_spelled(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _flat(summary: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _spelled(value: object) -> str:
    if value is None:
        return "undefined"
    if isinstance(value, float):
        return "undefined" if math.isnan(value) else f"{value:.6g}"
    if isinstance(value, list | tuple):
        more = ", …" if len(value) > MOST_ENTRIES else ""
        return ", ".join(_spelled(entry) for entry in value[:MOST_ENTRIES]) + more
    return escape(str(value))
