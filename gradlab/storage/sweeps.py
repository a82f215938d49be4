"""Sweeps as folders: one that is not finished says so, and holds the points that are."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from gradlab.errors import OutputError, RunFolderError
from gradlab.provenance import machine_facts
from gradlab.records.dynamics import SCHEMA
from gradlab.records.strict import strict_json
from gradlab.records.sweep import MEASURED, PointProfile, SweepResult
from gradlab.records.sweep_summary import SweepSummary
from gradlab.storage.durable import replacing, sync_folder
from gradlab.storage.folder import (
    MANIFEST,
    new_folder,
    read_json,
    refuse_to_overwrite,
    remove_own,
    write_json,
)
from gradlab.storage.point_log import PointLog
from gradlab.storage.toml import toml_text

INCOMPLETE = "INCOMPLETE"
SETTINGS = "sweep.toml"
HEADING = "gradlab sweep --config sweep.toml -o DIR measures this again"
SHOWN = 6  # values of an axis in a message

FinishedPoint: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any], str]


def save_sweep(
    result: SweepResult,
    folder: Path | str,
    *,
    force: bool = False,
    argv: Sequence[str] | None = None,
) -> Path:
    """Write a sweep's folder: sweep.csv, sweep_profiles.csv and manifest.json.

    Raises
    ------
    OutputError
        If the folder exists and may not be replaced, or the disk refuses.
    """
    folder = Path(folder)
    with new_folder(folder, force=force) as temporary:
        finished = (
            (
                point.parameters,
                point.found(),
                "\n".join([] if point.profile is None else point.profile.lines()),
            )
            for point in result.points
        )
        counts = write_sweep_tables(temporary, list(result.points[0].parameters), finished)
        identity = {"settings": result.fixed}
        write_json(_manifest(identity, argv) | counts.to_summary(), temporary / MANIFEST)
    return folder


@contextmanager
def claimed_sweep(
    folder: Path,
    identity: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    force: bool,
    resume: bool,
    argv: Sequence[str] | None,
) -> Iterator[PointLog]:
    """Folder of a sweep, made anew or found unfinished, with its log open.

    Parameters
    ----------
    folder
        To be made, with its parents. One with a file ``INCOMPLETE`` is gone on with.
    identity
        What tells this sweep from another, with the number of its ``points``.
    settings
        Content of ``sweep.toml``.
    force
        Whether to begin anew where there is a sweep, finished or not.
    resume
        Whether an unfinished sweep may be gone on with.
    argv
        Command line, for the manifest.

    Raises
    ------
    OutputError
        If the folder may not be written, or the disk refuses.
    RunFolderError
        If it holds an unfinished sweep with other settings.
    """
    manifest = strict_json(_manifest(identity, argv))
    try:
        log = _claim(folder, manifest, force=force, resume=resume)
        try:
            _write_settings(folder, manifest, settings)
            yield log
        finally:
            log.close()
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror or error}): expected a writable place "
            "with room; the points that were finished are still there"
        ) from error


def finish_sweep(
    folder: Path,
    columns: Sequence[str],
    finished: Iterable[FinishedPoint],
) -> SweepSummary:
    """Write the tables and the last state of the manifest; the folder stays marked.

    Parameters
    ----------
    folder
        As `claimed_sweep` made it.
    columns
        Those of the grid.
    finished
        Parameters, measured row and lines of the profile of every point, in order.
    """
    summary = write_sweep_tables(folder, columns, finished)
    _write_manifest(folder, read_json(folder / MANIFEST) | summary.to_summary())
    return summary


def unmark_sweep(folder: Path) -> None:
    """Take the file away that says that the sweep is not finished, and its points with it."""
    (folder / INCOMPLETE).unlink(missing_ok=True)
    sync_folder(folder)


def write_sweep_tables(
    folder: Path, columns: Sequence[str], finished: Iterable[FinishedPoint]
) -> SweepSummary:
    """Write ``sweep.csv`` and ``sweep_profiles.csv`` point by point, and count on the way."""
    regimes: Counter[str] = Counter()
    count = failed = 0
    first_failure = ""
    with replacing(folder / "sweep.csv") as table, replacing(folder / "sweep_profiles.csv") as rows:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow([*columns, *MEASURED, "regime", "status", "message"])
        rows.write(",".join(("point", *PointProfile.__slots__)) + "\n")
        for count, (parameters, found, profile) in enumerate(finished, start=1):
            writer.writerow(map(_cell, (*(parameters[name] for name in columns), *found.values())))
            if profile:
                begin = f"{count - 1},"
                rows.write(begin + profile.replace("\n", f"\n{begin}") + "\n")
            if found["status"] == "ok":
                regimes[found["regime"]] += 1
            else:
                failed += 1
                first_failure = first_failure or f"{found['status']}: {found['message']}"
    return SweepSummary(
        folder=folder,
        points=count,
        failed=failed,
        regimes=dict(sorted(regimes.items())),
        first_failure=first_failure,
    )


def _cell(value: Any) -> str:
    if value is None:
        return "nan"
    return repr(value) if isinstance(value, float) else str(value)


def _claim(folder: Path, manifest: Mapping[str, Any], *, force: bool, resume: bool) -> PointLog:
    mark = folder / INCOMPLETE
    unfinished = mark.is_file()
    if not unfinished:
        refuse_to_overwrite(folder, force=force)
    elif force:
        PointLog(mark, 1).close()  # refused while another process writes
    elif not resume:
        raise OutputError(
            f"{folder} holds an unfinished sweep: choose another name, or pass --force to begin "
            "anew, or --resume to go on"
        )
    elif (folder / MANIFEST).is_file():
        _require_same(folder, read_json(folder / MANIFEST), manifest)
    else:  # killed before anything was measured
        mark.unlink()
    if force and folder.exists():
        remove_own(folder)
    folder.mkdir(parents=True, exist_ok=True)
    log = PointLog(mark, manifest["points"])
    sync_folder(folder)
    return log


def _write_settings(folder: Path, manifest: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Say what is being measured, once: a sweep that goes on keeps what it began with."""
    if (folder / MANIFEST).is_file():
        return
    with replacing(folder / SETTINGS) as stream:
        stream.write(toml_text(settings, HEADING))
    _write_manifest(folder, manifest)


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    beside = folder / f"{MANIFEST}.partial"
    write_json(manifest, beside)
    beside.replace(folder / MANIFEST)


def _manifest(identity: Mapping[str, Any], argv: Sequence[str] | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "sweep",
        "argv": None if argv is None else list(argv),
        **identity,
        **machine_facts(),
    }


def _require_same(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse to mix points of different settings, or of different versions, in one table."""
    differences = [
        f"{name} {_said(old)} there, {_said(new)} here"
        for part in ("axes", "settings", "sha256_files", "versions")
        for name, old, new in _differing(there.get(part, {}), here[part])
    ]
    if not differences and there.get("order") != here["order"]:
        differences = ["other points"]
    if differences:
        raise RunFolderError(
            f"{folder} holds an unfinished sweep with other settings ({'; '.join(differences)}): "
            "expected the same; name another folder, or pass --force to begin anew"
        )


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys((*new, *old)):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _said(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "not set" if value is None else str(value)
    values = value.get("values", [])
    if value and len(values) <= SHOWN and "values" in value:
        return ", ".join(map(str, values))
    first, last = value.get("first", values[0] if values else None), value.get("last")
    count = value.get("count", len(values))
    return f"{first} … {values[-1] if values else last} ({count} values)"
