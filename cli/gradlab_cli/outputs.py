"""Where results go: refusals before any work, and numbers that survive a failed figure."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import gradlab as gl
from gradlab_cli.errors import one_line

PAGES = "report.*"  # of a run, in any format


def claim_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that must not, or cannot, be written.

    Parameters
    ----------
    folder
        Where a run shall be written; made later, in one piece.
    force
        Whether an older run there may be replaced.

    Raises
    ------
    OutputError
        If it holds something (without ``force``, or not written by gradlab), or has no place.
    """
    gl.refuse_to_overwrite(folder, force=force)
    _require_place(folder)


def claim_file(path: Path, *, force: bool, movable: bool = True) -> None:
    """Refuse a file that must not, or cannot, be written.

    Parameters
    ----------
    path
        Where the output shall be written.
    force
        Whether an older file there may be replaced.
    movable
        Whether the command would write it elsewhere.

    Raises
    ------
    OutputError
        If it exists (without ``force``), or if the nearest folder above it takes no new entry.
    """
    if os.path.lexists(path) and not force:
        way_out = "choose another --output, or --force" if movable else "pass --force"
        raise gl.OutputError(f"{path} exists: {way_out} to replace it")
    if path.is_dir():
        raise gl.OutputError(f"{path} is a folder: expected the name of a file")
    _require_place(path)


def _require_place(path: Path) -> None:
    above = next(place for place in path.absolute().parents if os.path.lexists(place))
    if not above.is_dir():
        raise gl.OutputError(f"{path} cannot be written: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise gl.OutputError(f"{path} cannot be written: no permission to write in {above}")


def copy_run(run: Path, folder: Path) -> None:
    """Copy a run's numbers, in one piece: a folder that exists is complete.

    Parameters
    ----------
    run
        Folder of a saved run. Its figures and its pages stay behind: they are made anew.
    folder
        The copy; an older one is replaced.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as staging:
        complete = Path(staging) / "complete"
        # The copy may be made inside the run: the staging folder is then no part of it.
        left_behind = shutil.ignore_patterns("figures", PAGES, Path(staging).name)
        shutil.copytree(run, complete, ignore=left_behind)
        if folder.exists():
            folder.rename(Path(staging) / "replaced")
        complete.rename(folder)


def chosen_formats(words: str) -> tuple[str, ...]:
    """Formats of a page from a list with commas, each once, in the order given.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    """
    from gradlab_reports import page_formats

    chosen = tuple(dict.fromkeys(part.strip().lower() for part in words.split(",")))
    for name in chosen:
        if name not in page_formats():
            raise gl.unknown_name("format of a page", name, page_formats())
    return chosen


@contextmanager
def keeping_numbers(folder: Path) -> Iterator[list[str]]:
    """Draw beside numbers that are already written, so that a picture cannot lose them.

    Parameters
    ----------
    folder
        Holds the numbers, complete.

    Yields
    ------
    failures
        A line for each figure that could not be drawn, for `tell_failures`.

    Raises
    ------
    RunFolderError
        If there are no numbers to draw from.
    OutputError
        In place of whatever else ended the drawing as a whole.
    """
    failures = _Failures(logging.WARNING)
    logger = logging.getLogger("gradlab_reports")
    logger.addHandler(failures)
    try:
        yield failures.lines
    except gl.RunFolderError:
        raise
    except Exception as error:
        raise gl.OutputError(
            f"drawing failed ({type(error).__name__}: {one_line(error)}); {_complete(folder)}"
        ) from error
    finally:
        logger.removeHandler(failures)


def tell_failures(failures: Sequence[str], folder: Path) -> None:
    """End with an error if figures failed, once everything else is done and said.

    Parameters
    ----------
    failures
        What `keeping_numbers` gathered.
    folder
        Holds the numbers.

    Raises
    ------
    OutputError
        If there is a failure; the message holds the first, and how many there are.
    """
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise gl.OutputError(f"{failures[0]}{more}; {_complete(folder)}")


def _complete(folder: Path) -> str:
    return f"the numbers are complete in {folder}"


class _Failures(logging.Handler):
    """What the reports log while they draw, a line each."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
