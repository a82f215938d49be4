"""What the weights alone say of a network: nothing is run."""

from __future__ import annotations

import time
from typing import Any

from gradlab.analysis.certificates.collection import certificates
from gradlab.analysis.spectrum import spectral_summary
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network, Recurrence
from gradlab.records.dynamics import SCHEMA, RecurrenceDescription, spectrum_summary
from gradlab.records.strict import strict_json


def inspect(
    network: Network | Cell, *, budget: float | int | None = None, input_bound: float | int = 1.0
) -> dict[str, Any]:
    """What the weights alone say: the document of ``gradlab inspect --json``.

    Parameters
    ----------
    network
        A network, or a single cell.
    budget
        Seconds that all recurrences together may search for certificates. None: as long as a fixed
        number of steps takes, with equal results every time.
    input_bound
        Largest modulus of an input's entry that the certificates of gated cells allow for.

    Returns
    -------
    document
        Keys ``schema``, ``source``, ``recurrences`` (with the keys of ``summary.json`` that need no
        trajectory) and ``assumptions``; strict JSON.

    Raises
    ------
    SettingError
        If the budget or the input's limit is negative or not a number.
    """
    whole = network if isinstance(network, Network) else Network.of(network)
    entries, left = [], budget
    for index, entry in enumerate(whole.recurrences):
        share = None if left is None else left / (len(whole) - index)
        started = time.monotonic()
        proven = certificates(entry.cell, budget=share, input_bound=input_bound)
        if left is not None:
            left = max(left - (time.monotonic() - started), 0.0)
        entries.append(_facts(entry) | proven.to_summary())
    document: dict[str, Any] = strict_json(
        {
            "schema": SCHEMA,
            "source": whole.source,
            "recurrences": entries,
            "assumptions": whole.assumptions,
        }
    )
    return document


def _facts(entry: Recurrence) -> dict[str, Any]:
    described = describe(entry)
    facts = {name: getattr(described, name) for name in described.__slots__}
    facts |= {"tensors": entry.tensors, "stored_dtype": entry.stored_dtype or None}
    return facts | spectrum_summary(spectral_summary(entry.cell))


def describe(entry: Recurrence) -> RecurrenceDescription:
    """What a recurrence is, before anything is measured."""
    cell = entry.cell
    return RecurrenceDescription(
        name=entry.name,
        cell=cell.kind,
        layer=entry.layer,
        direction=entry.direction,
        activation=getattr(cell, "activation", None),
        hidden_size=cell.hidden_size,
        input_size=cell.input_size,
        state_size=cell.state_size,
    )
