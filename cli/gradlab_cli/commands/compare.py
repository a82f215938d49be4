"""``gradlab compare``: decay curves of several networks in one figure and one table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradlab as gl
from gradlab_cli.comparisons import comparison
from gradlab_cli.console import Console
from gradlab_cli.groups import CellOptions, ComparedOptions, InputOptions, MessageOptions
from gradlab_cli.options.cells import ComparedArgument
from gradlab_cli.options.output import ComparisonFolderOption, ForceOption, FormatOption
from gradlab_cli.outputs import chosen_formats, claim_folder, keeping_numbers, tell_failures


def compare(
    names: ComparedArgument,
    *,
    sequence: InputOptions,
    cells: CellOptions,
    measurement: ComparedOptions,
    output: ComparisonFolderOption = None,
    force: ForceOption = False,
    format: FormatOption = "html",
    messages: MessageOptions,
) -> None:
    """Run random cells over the same sequences, or take saved runs, and compare their gradients."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    formats = chosen_formats(format)
    if output is not None:
        claim_folder(output, force=force)
    with console.progress("measuring", len(names)) as advance:
        found = comparison(names, cells, sequence, measurement, advance)
    page, failures = None, list[str]()
    if output is not None:
        gl.save_comparison(found, output, force=force, argv=sys.argv)
        from gradlab_reports import write_comparison

        with keeping_numbers(output) as failures, console.working("drawing"):
            page = write_comparison(output, formats=formats)
    _tell(found.summary(), page, console)
    if output is not None:
        tell_failures(failures, output)


def _tell(document: Mapping[str, Any], page: Path | None, console: Console) -> None:
    from gradlab_reports import comparison as words

    console.document(document)
    if page is not None:
        console.text(words.finding(document))
    table = words.verdicts_table(document)
    console.table(table.header, table.rows)
    for remark in words.remarks(document):
        console.note(remark)
    console.assumptions(words.assumptions(document))
    if page is not None:
        console.text(str(page))
