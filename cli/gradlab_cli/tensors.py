"""What ``gradlab inspect`` shows of a file's arrays, whether or not they are a recurrence."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.groups import ReadingOptions, limit, option_name

COLUMNS = ("tensor", "shape", "type")


def show_tensors(console: Console, path: Path, reading: ReadingOptions) -> None:
    """Table of every array, or its JSON document."""
    listed = gl.list_tensors(path, **limit(reading.max_bytes))
    console.document({"source": str(path), "tensors": [asdict(tensor) for tensor in listed]})
    console.table(
        COLUMNS, [(entry.name, _shape(entry.shape), entry.dtype or "?") for entry in listed]
    )
    for tensor in listed:
        if tensor.problem:
            console.note(tensor.problem)


def show_proposal(console: Console, path: Path, reading: ReadingOptions) -> None:
    """Mapping to edit."""
    proposal = gl.propose_mapping(path, **limit(reading.max_bytes))
    console.document({"source": str(path), "mapping": proposal})
    console.text(proposal.rstrip("\n"))


def refuse_both(list_tensors: bool, propose_map: bool, reading: ReadingOptions) -> None:
    """A usage error for options that these two do not heed."""
    if list_tensors and propose_map:
        raise typer.BadParameter("expected one of --list and --propose-map", param_hint="--list")
    for name in reading.arguments():
        if name != "max_bytes":
            raise typer.BadParameter(
                "has no effect on the list of arrays", param_hint=option_name(name)
            )


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "-"
