"""Comparisons as folders: the curves, the document, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradlab.provenance import machine_facts
from gradlab.records.comparison import Comparison
from gradlab.records.dynamics import SCHEMA
from gradlab.storage.folder import new_folder, write_csv, write_json


def save_comparison(
    comparison: Comparison,
    folder: Path | str,
    *,
    force: bool = False,
    argv: Sequence[str] | None = None,
) -> Path:
    """Write a comparison's folder; it is complete, or it is not there.

    Parameters
    ----------
    comparison
        What `compare` returned.
    folder
        To be made. Its parents are made too.
    force
        Whether an older result of gradlab in its place may be replaced.
    argv
        Command line, for the manifest.

    Returns
    -------
    folder
        Holding compare.csv, compare.json and manifest.json. Equal comparisons give equal bytes in
        the first two.

    Raises
    ------
    OutputError
        If the folder exists and may not be replaced, or the disk refuses.
    """
    folder = Path(folder)
    with new_folder(folder, force=force) as temporary:
        write_csv(comparison.to_frame(), temporary / "compare.csv")
        write_json(comparison.summary(), temporary / "compare.json")
        document = {
            "schema": SCHEMA,
            "kind": "comparison",
            "argv": None if argv is None else list(argv),
            "labels": [entry.label for entry in comparison.recurrences],
            **machine_facts(),
        }
        write_json(document, temporary / "manifest.json")
    return folder
