"""Files that are whole at any moment: written beside their place, synced, and renamed into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """UTF-8 text file, as it is written, that takes its place when the block ends well."""
    beside = path.with_name(path.name + PARTIAL)
    with beside.open("w", encoding="utf-8", newline="") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a loss of power, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
