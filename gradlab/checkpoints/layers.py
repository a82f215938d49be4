"""A layer that a format describes in full, in canonical form, to the recurrence it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from gradlab.arrays import Array, require_finite
from gradlab.cells.kinds import CELLS
from gradlab.cells.stack import Recurrence
from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.element_types import real_numbers

NOT_SETTINGS = frozenset({"kind", "dtype"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredLayer:
    """One recurrence as a format with a layout of its own states it.

    ``weights`` are keyed and laid out as the attributes of the cell (rows are outputs, gates in the
    cell's order), in the type the file stores; ``tensors`` names what in the file each came from;
    ``settings`` are further arguments of the cell: activations, reset, clip. ``stored_dtype`` is
    the type in the file of weights that were computed from what is there; their own if empty.
    """

    name: str
    kind: str
    weights: Mapping[str, Array]
    tensors: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    layer: int = 0
    direction: str = "forward"
    stack: str = ""
    stored_dtype: str = ""

    @property
    def input_size(self) -> int:
        """Features that the layer reads."""
        return int(self._matrix("W_xh", "W_x").shape[1])

    @property
    def output_size(self) -> int:
        """Features that the layer gives."""
        return int(self._matrix("W_hh", "W_h").shape[1])

    def _matrix(self, *names: str) -> Array:
        return next(self.weights[name] for name in names if name in self.weights)

    def recurrence(self, dtype: str) -> Recurrence:
        """The layer as a recurrence.

        Parameters
        ----------
        dtype
            Type the states will be computed in.

        Raises
        ------
        ModelFileError
            If a weight is quantized or complex.
        NonFiniteError
            If a weight is NaN or infinite, in the file or in the type of the states.
        ShapeError
            If the weights do not fit each other.
        """
        arrays = {
            name: real_numbers(self.spelled(name), array) for name, array in self.weights.items()
        }
        cell = CELLS[self.kind](**cast(arrays, self.name, dtype), **self.settings, dtype=dtype)
        return Recurrence(
            name=self.name,
            cell=cell,
            layer=self.layer,
            direction=self.direction,
            stack=self.stack,
            tensors=tuple(dict.fromkeys(filter(None, self.tensors.values()))),
            stored_dtype=self.stored_dtype or stored_dtype(self.weights),
        )

    def spelled(self, name: str) -> str:
        """The file's name of a weight, with the part that it plays."""
        key = self.tensors.get(name, "")
        return f"{spoken(key)} ({name})" if key and not key.endswith(name) else key or name


def cast(arrays: Mapping[str, Array], name: str, dtype: str) -> dict[str, Array]:
    """Arrays in the type of the states, still finite.

    Parameters
    ----------
    arrays
        By the cell's attribute names.
    name
        The recurrence's name, for the message.
    dtype
        The type.

    Raises
    ------
    NonFiniteError
        If a value is beyond the range of the type.
    """
    with np.errstate(over="ignore"):
        converted = {role: array.astype(dtype) for role, array in arrays.items()}
    for role, array in converted.items():
        require_finite(f"{role} of {spoken(name)} in {dtype}", array)
    return converted


def stored_dtype(weights: Mapping[str, Array]) -> str:
    """Type of the stored weights; all types where they differ."""
    return ", ".join(dict.fromkeys(str(array.dtype) for array in weights.values()))


def constructor_arguments(kind: str) -> dict[str, str]:
    """What the constructor of a cell takes, weights among it, with its types as they are spelled.

    Parameters
    ----------
    kind
        Spelling of the cell, such as ``lstm``.
    """
    return {
        entry.name: str(entry.type)
        for entry in fields(CELLS[kind])
        if entry.init and entry.name not in NOT_SETTINGS
    }


def foreign_settings(kind: str, settings: Mapping[str, Any]) -> set[str]:
    """Settings from a file that a cell does not have, or that are not of the type it takes.

    Parameters
    ----------
    kind
        Spelling of the cell.
    settings
        Values by the name of the argument.
    """
    types = constructor_arguments(kind)
    return {
        name
        for name, value in settings.items()
        if name not in types
        or isinstance(value, bool)
        or not isinstance(value, str | int | float)
        or isinstance(value, str) is not types[name].startswith("str")
    }
