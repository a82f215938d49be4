"""Folders that are complete or absent: written beside their place and renamed into it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlab.errors import OutputError, RunFolderError
from gradlab.records.strict import strict_json

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.json"
OWN_NAMES = frozenset(
    "manifest.json summary.json records.npz report.html report.md report.json figures "
    "INCOMPLETE lag_profile.csv ladder.csv pairs.csv steps.csv spectrum.csv lyapunov.csv "
    "directions.csv product_spectrum.csv mean_field.csv gates.csv paths.csv gradient.csv "
    "slopes.csv units.csv "
    "gradient_pairs.csv sweep.csv sweep_profiles.csv sweep.toml sweep.csv.partial "
    "sweep_profiles.csv.partial sweep.toml.partial manifest.json.partial "
    "sweep_analysis.json sweep_analysis.csv sweep.md sweep.parquet sweep_profiles.parquet "
    "sweep.parquet.partial sweep_profiles.parquet.partial "
    "training.csv clipping.csv weights.npz checkpoint.npz compare.csv compare.json "
    "compare.html compare.md compare.page.json training.html training.md training.json".split()
)
SIGNATURE = ("schema", "versions")  # what only a manifest of gradlab holds


def refuse_to_overwrite(folder: Path, *, force: bool) -> None:
    """Check that a folder may be written, before any work is done.

    Raises
    ------
    OutputError
        If it exists and ``force`` is off; if it is a file or a link, or the current folder or one
        above it; or, with ``force``, if gradlab did not write it.
    """
    if folder.is_symlink():
        raise OutputError(f"{folder} is a link: expected a folder; name the folder itself")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder} is a file: expected a folder to write; choose another name")
    if Path.cwd().is_relative_to(folder.resolve()):
        raise OutputError(
            f"{folder} is the folder you are in, or above it: expected another one; name a folder "
            "inside it"
        )
    _refuse_to_replace(folder, force=force)


def _refuse_to_replace(folder: Path, *, force: bool) -> None:
    occupied = any(folder.iterdir())
    if occupied and not force:
        raise OutputError(
            f"{folder} exists: expected a new folder; choose another name or pass --force"
        )
    if occupied and not _written_by_gradlab(folder):
        raise OutputError(
            f"{folder} holds files that gradlab did not write: nothing is replaced there; choose "
            "another name"
        )


def _written_by_gradlab(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all(key in manifest for key in SIGNATURE) and "gradlab" in manifest["versions"]
    except (OSError, ValueError, TypeError):
        return False


@contextmanager
def new_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """Temporary sibling that takes the folder's place when the block ends without an error.

    Files that are not gradlab's own move over from a folder that is replaced: nothing is lost.

    Raises
    ------
    OutputError
        If the folder may not be written, or the disk refuses.
    """
    refuse_to_overwrite(folder, force=force)
    target = folder.absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    try:
        temporary = staging / "new"
        temporary.mkdir()
        yield temporary
        _take_place(temporary, target, staging / "old")
    except OSError as error:
        raise _cannot_write(folder, error) from error
    finally:
        shutil.rmtree(staging / "new", ignore_errors=True)
        with suppress(OSError):
            staging.rmdir()  # stays if an old folder is still in it


def _take_place(new: Path, target: Path, old: Path) -> None:
    """Put a folder in the place of another, which is moved aside first and back on failure."""
    if not target.exists():
        new.rename(target)
        return
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    for entry in _foreign(old):
        if not (target / entry.name).exists():
            entry.rename(target / entry.name)
    shutil.rmtree(old)


def _foreign(folder: Path) -> list[Path]:
    """What a user put into a folder of gradlab: files whose names are not in its contract."""
    return [entry for entry in folder.iterdir() if entry.name not in OWN_NAMES]


def remove_own(folder: Path) -> None:
    """Delete what gradlab wrote into a folder, and nothing else."""
    for entry in folder.iterdir():
        if entry.name in OWN_NAMES:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Strict JSON, its keys in the order they have."""
    text = json.dumps(strict_json(document), indent=2, allow_nan=False, ensure_ascii=False)
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
