"""Folders that are complete or absent: written beside their place and renamed into it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlab.errors import OutputError, RunFolderError
from gradlab.records.strict import strict

if TYPE_CHECKING:
    import pandas as pd

MARKS = ("manifest.json",)  # a folder with one of these was made by gradlab


def refuse_to_overwrite(folder: Path, *, force: bool) -> None:
    """Check that a folder may be written, before any work is done.

    Raises
    ------
    OutputError
        If it exists and ``force`` is off; if it is a file; or, with ``force``, if it holds
        something that gradlab did not write.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder} is a file: expected a folder to write; choose another name")
    occupied = any(folder.iterdir())
    if occupied and not force:
        raise OutputError(
            f"{folder} exists: expected a new folder; choose another name or pass --force"
        )
    if occupied and not any((folder / mark).exists() for mark in MARKS):
        raise OutputError(
            f"{folder} holds files that gradlab did not write: nothing is replaced there; choose "
            "another name"
        )


@contextmanager
def new_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """Temporary sibling that takes the folder's place when the block ends without an error.

    Raises
    ------
    OutputError
        If the folder may not be written, or the disk refuses.
    """
    refuse_to_overwrite(folder, force=force)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    try:
        yield temporary
        temporary.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Strict JSON with sorted nothing: keys stay in the order they have."""
    text = json.dumps(strict(document), indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """CSV by the project's contract: UTF-8, a header, shortest round-trip floats, -inf and nan."""
    table.to_csv(path, index=False, na_rep="nan", lineterminator="\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """JSON document of a run folder.

    Raises
    ------
    RunFolderError
        If it is missing or damaged.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"{path} cannot be read ({error}): expected a complete run folder; analyze again"
        ) from error
    return document


def _cannot_write(folder: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    return OutputError(
        f"{folder} cannot be written ({reason}): expected a writable place with room; nothing was "
        "left behind"
    )
