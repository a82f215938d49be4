"""``gradlab inspect``: what the weights alone say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.groups import MessageOptions, ReadingOptions
from gradlab_cli.options.certificates import BudgetOption, InputBoundOption
from gradlab_cli.options.network import ListOption, ModelArgument, ProposeMapOption
from gradlab_cli.sources import load
from gradlab_cli.tensors import refuse_both, show_proposal, show_tensors

COLUMNS = {
    "name": "recurrence",
    "cell": "cell",
    "layer": "layer",
    "direction": "direction",
    "hidden_size": "N",
    "input_size": "D",
    "gamma_w": "sigma_max",
    "spectral_radius": "spectral radius",
    "numerical_radius": "numerical radius",
    "henrici": "Henrici",
    "condition_number": "condition",
    "kreiss": "Kreiss",
}
SOURCE_COLUMNS = ("recurrence", "stored as", "read from")
GATE_COLUMNS = ("recurrence", "gate", "sigma_max", "spectral radius", "note")


def inspect(
    model: ModelArgument,
    *,
    reading: ReadingOptions,
    budget: BudgetOption = 2.0,
    input_bound: InputBoundOption = 1.0,
    list_tensors: ListOption = False,
    propose_map: ProposeMapOption = False,
    messages: MessageOptions,
) -> None:
    """List every recurrence in a model file with its norms and certificates; nothing is run."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    if list_tensors or propose_map:
        refuse_both(list_tensors, propose_map, reading)
        show = show_tensors if list_tensors else show_proposal
        show(console, model, reading)
        return
    network = load(model, **reading.arguments())
    with console.working("searching for certificates"):
        document = gl.inspect(network, budget=budget, input_bound=input_bound)
    console.document(document)
    console.table(tuple(COLUMNS.values()), [_row(entry) for entry in document["recurrences"]])
    gates = [row for entry in document["recurrences"] for row in _gate_rows(entry)]
    if gates:
        console.table(GATE_COLUMNS, gates)
    console.table(SOURCE_COLUMNS, [_source_row(entry) for entry in document["recurrences"]])
    for line in _certified(document["recurrences"], budget):
        console.text(line)
    console.assumptions(document["assumptions"])


def _certified(entries: Sequence[dict[str, Any]], budget: float) -> list[str]:
    """A sentence a recurrence on what holds for every input; none where nothing covers the cell."""
    from gradlab_reports.certificates import sentence

    said = {entry["name"]: sentence(entry, searched=f"within {budget:g} s") for entry in entries}
    return [f"{name}: {words}" for name, words in said.items() if words]


def _row(entry: dict[str, Any]) -> list[str]:
    return [cell(entry[key]) for key in COLUMNS]


def _source_row(entry: dict[str, Any]) -> list[str]:
    return [entry["name"], cell(entry["stored_dtype"]), ", ".join(entry["tensors"]) or "-"]


def _gate_rows(entry: dict[str, Any]) -> list[list[str]]:
    """Norm and radius of every gate; no single matrix plays the part of W_hh."""
    return [
        [
            entry["name"],
            name,
            cell(gate["sigma_max"]),
            cell(gate["spectral_radius"]),
            gate.get("note", ""),
        ]
        for name, gate in entry["gates"].items()
    ]


def cell(value: object) -> str:
    """A number in seven digits; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:.7g}" if isinstance(value, float) else str(value)
