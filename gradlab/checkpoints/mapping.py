"""A mapping of the user's own from the arrays of a file to recurrent layers, in TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.kinds import CELLS
from gradlab.checkpoints.archive import Tensors, first_bytes, naming, require_size
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.layers import StoredLayer, constructor_arguments, foreign_settings
from gradlab.checkpoints.recurrences import batch_axis
from gradlab.errors import GradlabError, SettingError, unknown_name

GATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"lstm": ("i", "f", "g", "o"), "gru": ("r", "z", "n"), "mgu": ("f", "n")}
)
PLACE = ("name", "cell", "layer", "direction", "stack", "gates", "transposed", "weights")
UNBLOCKED = ("W_hr", "peepholes")  # arrays that are not made of one block a gate
MAX_MAPPING = 1 << 20
SPOKEN = MappingProxyType(
    {str: "a text", bool: "true or false", int: "a whole number", dict: "a table"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedLayer:
    """One table of a mapping, checked as far as can be without the file's arrays."""

    name: str
    kind: str
    weights: Mapping[str, tuple[str, ...]]
    gates: tuple[str, ...]
    transposed: bool
    settings: Mapping[str, Any]
    layer: int
    direction: str
    stack: str

    def stored(self, tensors: Tensors) -> StoredLayer:
        """The layer in canonical form.

        Raises
        ------
        UnknownNameError
            If the file has no such array.
        ShapeError, SettingError
            If arrays do not fit what the table says.
        """
        return StoredLayer(
            name=self.name,
            kind=self.kind,
            weights={role: self._array(role, tensors) for role in self.weights},
            tensors={key: key for keys in self.weights.values() for key in keys},
            settings=self.settings,
            layer=self.layer,
            direction=self.direction,
            stack=self.stack,
        )

    def _array(self, role: str, tensors: Tensors) -> Array:
        arrays = [self._stored_array(key, tensors) for key in self.weights[role]]
        if role == "peepholes" and len(arrays) > 1:
            return np.stack(arrays)
        if not self.gates and len(arrays) > 1:
            return np.asarray(sum(arrays[1:], start=arrays[0]))
        whole = np.concatenate(arrays)
        return whole if role in UNBLOCKED or not self.gates else self._reordered(role, whole)

    def _stored_array(self, key: str, tensors: Tensors) -> Array:
        if key not in tensors:
            raise unknown_name("array", key, tensors)
        array = real_numbers(key, tensors[key])
        return array.T if self.transposed and array.ndim > 1 else array

    def _reordered(self, role: str, array: Array) -> Array:
        """Blocks of rows in the cell's own order."""
        if len(array) % len(self.gates):
            raise SettingError(
                f"{role} has {len(array)} rows: expected one block of rows for each of the gates "
                f"{', '.join(self.gates)}; transposed = true reads columns as rows"
            )
        blocks = np.split(array, len(self.gates))
        return np.concatenate([blocks[self.gates.index(gate)] for gate in GATES[self.kind]])


def read_mapping(source: str | os.PathLike[str] | Mapping[str, Any]) -> list[MappedLayer]:
    """Mapping of a TOML file, or of such a document in Python.

    Parameters
    ----------
    source
        Path of the file, or the document: ``{"recurrence": [{...}, ...]}``.

    Returns
    -------
    layers
        In the order of the document.

    Raises
    ------
    SettingError
        If it is not TOML, a key is missing or of the wrong type.
    UnknownNameError
        If a key, a cell, a gate or a weight is not known.
    """
    if isinstance(source, Mapping):
        return _layers(source)
    path = Path(source)
    with naming(path):
        require_size(len(first_bytes(path, MAX_MAPPING + 1)), MAX_MAPPING, "the mapping")
        try:
            return _layers(tomllib.loads(path.read_text(encoding="utf-8")))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SettingError(
                f"{path} is not TOML ({error}): expected tables [[recurrence]]"
            ) from error


def find_mapped(mapping: Sequence[MappedLayer], tensors: Tensors, unsaid: Unsaid) -> Findings:
    """Recurrences that a mapping takes from a file.

    Parameters
    ----------
    mapping
        The layers.
    tensors
        Arrays of the file by name.
    unsaid
        Type of the states; nothing else is left open.

    Raises
    ------
    GradlabError
        If an array is missing, not finite, or does not fit; the recurrence is named.
    """
    recurrences = []
    for layer in mapping:
        try:
            recurrences.append(layer.stored(tensors).recurrence(unsaid.dtype))
        except GradlabError as error:
            raise type(error)(f"recurrence {layer.name} of the mapping: {error}") from error
    named = ", ".join(entry.name for entry in recurrences)
    return Findings(
        recurrences=recurrences,
        assumptions=(f"{named}: read as the mapping says (option map)", *batch_axis(unsaid)),
        skipped=(),
    )


def _layers(document: Mapping[str, Any]) -> list[MappedLayer]:
    for key in document:
        if key != "recurrence":
            raise unknown_name("key of the mapping", key, ["recurrence"])
    entries = document.get("recurrence")
    if not isinstance(entries, Sequence) or not entries:
        raise SettingError("the mapping has no table [[recurrence]]: expected one for each layer")
    return [_layer(number, entry) for number, entry in enumerate(entries, start=1)]


def _layer(number: int, entry: Any) -> MappedLayer:
    if not isinstance(entry, Mapping):
        raise SettingError(f"recurrence {number} is no table: expected [[recurrence]] and its keys")
    kind = _of_type(entry, "cell", str, number)
    if kind not in CELLS:
        raise unknown_name("cell", kind, CELLS)
    name = _of_type(entry, "name", str, number, f"{kind}.{number}")
    return MappedLayer(
        name=name,
        kind=kind,
        weights=_weights(entry, kind, number),
        gates=_gates(entry, kind, number),
        transposed=_of_type(entry, "transposed", bool, number, False),
        settings=_settings(entry, kind, number),
        layer=_of_type(entry, "layer", int, number, 0),
        direction=_of_type(entry, "direction", str, number, "forward"),
        stack=_of_type(entry, "stack", str, number, name),
    )


def _of_type(
    entry: Mapping[str, Any], key: str, kind: type[Any], number: int, default: Any = None
) -> Any:
    value = entry.get(key, default)
    if type(value) is not kind:
        found = "is missing" if value is None else f"is {value!r}"
        raise SettingError(
            f"{key} of recurrence {number} of the mapping {found}: expected {SPOKEN[kind]}"
        )
    return value


def _gates(entry: Mapping[str, Any], kind: str, number: int) -> tuple[str, ...]:
    canonical = GATES.get(kind, ())
    given = entry.get("gates", list(canonical))
    if not isinstance(given, list) or sorted(map(str, given)) != sorted(canonical):
        raise SettingError(
            f"gates of recurrence {number} of the mapping are {given!r}: expected the order of the "
            f"blocks, {', '.join(canonical) or 'none'} in some order"
        )
    return tuple(map(str, given))


def _weights(entry: Mapping[str, Any], kind: str, number: int) -> dict[str, tuple[str, ...]]:
    """Names of arrays by the cell's attribute; several are blocks, or biases that add up."""
    table = _of_type(entry, "weights", dict, number)
    known = [name for name in constructor_arguments(kind) if _is_weight(name)]
    weights = {}
    for role, keys in table.items():
        if role not in known:
            raise unknown_name(f"weight of a {kind} cell", role, known)
        names = [keys] if isinstance(keys, str) else keys
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise SettingError(
                f"{role} of recurrence {number} of the mapping is {keys!r}: expected the name of "
                "an array, or a list with one for each gate"
            )
        weights[role] = tuple(names)
    missing = {"W_hh", "W_xh", "W_h", "W_x"} & set(known) - set(weights)
    if missing:
        raise SettingError(
            f"recurrence {number} of the mapping has no {', '.join(sorted(missing))}: expected the "
            f"recurrent and the input weights of a {kind} cell"
        )
    return weights


def _settings(entry: Mapping[str, Any], kind: str, number: int) -> dict[str, Any]:
    known = [name for name in constructor_arguments(kind) if not _is_weight(name)]
    settings = {key: value for key, value in entry.items() if key not in PLACE}
    for key in settings:
        if key not in known:
            raise unknown_name(f"key of a {kind} cell", key, [*PLACE, *known])
    wrong = foreign_settings(kind, settings)
    if wrong:
        key = min(wrong)
        raise SettingError(
            f"{key} of recurrence {number} of the mapping is {settings[key]!r}: expected a value "
            "of another type"
        )
    return settings


def _is_weight(argument: str) -> bool:
    return argument.startswith(("W_", "b_")) or argument == "peepholes"
