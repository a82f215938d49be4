"""Tables of a sweep read row by row, in the memory of a few rows."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradlab.errors import RunFolderError
from gradlab.storage.folder import MANIFEST, read_json


def sweep_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Rows of a sweep's points, as texts by the names of their columns.

    Parameters
    ----------
    folder
        Of a sweep whose tables are written.

    Raises
    ------
    RunFolderError
        If there is no table, or it is damaged.
    """
    path = folder / "sweep.csv"
    if not path.is_file():
        raise RunFolderError(
            f"{folder} holds no sweep.csv: expected a folder as written by gradlab sweep -o"
        )
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if None in row or None in row.values():
                raise RunFolderError(
                    f"{path} has a row of another length than its header: measure the sweep again"
                )
            yield row


def sweep_settings(folder: Path) -> dict[str, Any]:
    """Settings that all points share; empty where no manifest tells them."""
    path = folder / MANIFEST
    found = read_json(path).get("settings", {}) if path.is_file() else {}
    return dict(found) if isinstance(found, dict) else {}
