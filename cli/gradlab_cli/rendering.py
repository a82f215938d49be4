"""Pages of saved comparisons and trainings once more, from the numbers in their folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from gradlab_cli.console import Console
from gradlab_cli.outputs import claim_file, keeping_numbers, tell_failures


def article_kind(folder: Path) -> str | None:
    """``comparison`` or ``training`` if the folder says so, None for all others."""
    from gradlab_reports.catalog import PAGE_FILES

    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        kind = manifest.get("kind")
    except (OSError, ValueError, AttributeError):
        return None  # what is wrong with it is told by those who need it
    return kind if kind in PAGE_FILES else None


def render_article(
    folder: Path,
    kind: str,
    output: Path | None,
    formats: Sequence[str],
    console: Console,
    *,
    force: bool,
) -> None:
    """Write the page of a comparison or a training into its folder, and tell where.

    Parameters
    ----------
    folder, kind
        What is rendered.
    output
        The folder itself, or None.
    formats
        Of the page.
    console
        Told the files.
    force
        Whether older pages may be replaced.

    Raises
    ------
    typer.BadParameter
        If another folder is named: these are rendered where they are.
    OutputError
        If a page exists and ``force`` is off, or the folder cannot be written to.
    """
    from gradlab_reports import write_comparison, write_training
    from gradlab_reports.catalog import PAGE_FILES

    if output is not None and output.resolve() != folder.resolve():
        raise typer.BadParameter(
            f"has no effect on a {kind}, which is rendered in its own folder",
            param_hint="--output",
        )
    files = [folder / PAGE_FILES[kind][name] for name in formats]
    for path in files:
        claim_file(path, force=force, movable=False)
    write = write_comparison if kind == "comparison" else write_training
    with keeping_numbers(folder) as failures, console.working("rendering"):
        write(folder, formats=formats)
    names = [str(path) for path in files]
    console.document({"schema": 1, "run": str(folder), "page": names[0], "pages": names})
    console.text("\n".join(names))
    tell_failures(failures, folder)
