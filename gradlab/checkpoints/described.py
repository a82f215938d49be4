"""gradlab's own weights: arrays by name, and beside them what each layer is, so nothing is assumed.

The description is JSON in UTF-8, kept as an array of bytes under the name ``gradlab.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.kinds import CELLS
from gradlab.cells.stack import Network, Recurrence
from gradlab.checkpoints.archive import Tensors, require_size, spoken
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.layers import (
    NOT_SETTINGS,
    StoredLayer,
    constructor_arguments,
    foreign_settings,
)
from gradlab.errors import ModelFileError, SettingError

DESCRIPTION = "gradlab.json"
SCHEMA = 1
MAX_DESCRIPTION = 1 << 20


def described(network: Network) -> dict[str, Array]:
    """Arrays of a network by name, the description among them.

    Parameters
    ----------
    network
        Of cells that gradlab has a constructor for.

    Returns
    -------
    arrays
        Weights as ``name.W_hh``, and the description under ``gradlab.json``.

    Raises
    ------
    SettingError
        If a cell is of a class of the user's own, or a whole stack as one cell.
    """
    entries = [_described(entry) for entry in network.recurrences]
    text = json.dumps({"schema": SCHEMA, "recurrences": entries, "source": network.source})
    weights = {
        f"{entry.name}.{name}": array
        for entry in network.recurrences
        for name, array in entry.cell.parameters.items()
    }
    return weights | {DESCRIPTION: np.frombuffer(text.encode(), np.uint8)}


def _described(entry: Recurrence) -> dict[str, Any]:
    cell = entry.cell
    if type(cell) is not CELLS.get(cell.kind):
        raise SettingError(
            f"{entry.name} is a {type(cell).__name__}: expected one of {', '.join(CELLS)}; export "
            "its layers one by one"
        )
    return {
        "name": entry.name,
        "cell": cell.kind,
        "layer": entry.layer,
        "direction": entry.direction,
        "stack": entry.stack,
        "settings": _settings(cell),
        "weights": {name: f"{entry.name}.{name}" for name in cell.parameters},
    }


def _settings(cell: Any) -> dict[str, Any]:
    """What a constructor takes beside weights."""
    names = [field.name for field in fields(cell) if field.init and field.name not in NOT_SETTINGS]
    values = {name: getattr(cell, name) for name in names if name not in cell.parameters}
    return {name: value for name, value in values.items() if value is not None}


def find_described(tensors: Tensors, unsaid: Unsaid) -> Findings:
    """Recurrences as their description says.

    Parameters
    ----------
    tensors
        Arrays by name, the description among them.
    unsaid
        Type of the states; nothing else is left open.

    Raises
    ------
    ModelFileError
        If the description is damaged or of another version.
    GradlabError
        If the weights do not fit each other or are not finite.
    """
    layers = [_layer(entry, tensors) for entry in _description(tensors)]
    return Findings(
        recurrences=[layer.recurrence(unsaid.dtype) for layer in layers],
        assumptions=(),
        skipped=(),
    )


def _description(tensors: Tensors) -> list[Any]:
    raw = tensors[DESCRIPTION]
    require_size(raw.nbytes, MAX_DESCRIPTION, DESCRIPTION)
    try:
        document = json.loads(raw.tobytes().decode())
        schema, entries = document["schema"], document["recurrences"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFileError(
            f"{DESCRIPTION} cannot be read: expected what gradlab's export writes; export again"
        ) from error
    if schema != SCHEMA or not isinstance(entries, list):
        raise ModelFileError(
            f"{DESCRIPTION} has schema {spoken(str(schema))}: expected {SCHEMA}; update gradlab"
        )
    return list(entries)


def _layer(entry: Any, tensors: Tensors) -> StoredLayer:
    """One entry; whatever is wrong with it is a damaged description."""
    try:
        kind, weights = entry["cell"], dict(entry["weights"])
        missing = [key for key in weights.values() if key not in tensors]
        foreign = foreign_settings(kind, entry["settings"])
        foreign |= {*weights} - constructor_arguments(kind).keys()
        if missing or foreign or not _names(entry):
            raise KeyError(*missing, *foreign)
        return StoredLayer(
            name=entry["name"],
            kind=kind,
            weights={name: tensors[key] for name, key in weights.items()},
            tensors=weights,
            settings=entry["settings"],
            layer=entry["layer"],
            direction=entry["direction"],
            stack=entry["stack"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{DESCRIPTION} does not fit the file ({spoken(str(error))}): expected what gradlab's "
            "export writes; export again"
        ) from error


def _names(entry: Mapping[str, Any]) -> bool:
    """Whether a layer is told its place by texts and a number."""
    texts = all(isinstance(entry[key], str) for key in ("name", "stack", "direction"))
    return texts and isinstance(entry["layer"], int)
