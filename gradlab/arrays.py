"""Array aliases for the signatures, and the two checks that every array passes on its way in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gradlab.errors import NonFiniteError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def read_only(array: Any, dtype: Any = None) -> Array:
    """Array that its owner can share: no write goes through it.

    Parameters
    ----------
    array
        Anything NumPy can read as an array.
    dtype
        Type to convert to; the array's own if None.

    Returns
    -------
    shared
        Read-only. The same object if it was so already, else a copy: no other name can change it.
    """
    source = np.asarray(array, dtype=dtype)
    return source if not source.flags.writeable else close(source.copy())


def close(array: Array) -> Array:
    """Same array, closed to writing; for the function that made it and holds the only name."""
    array.flags.writeable = False
    return array


def require_finite(name: str, array: Array) -> None:
    """Refuse an array with NaN or infinity, naming the first place and the count.

    Parameters
    ----------
    name
        The tensor's name, as the user knows it.
    array
        Any numeric array.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.
    """
    wrong = ~np.isfinite(array)
    count = int(np.count_nonzero(wrong))
    if count == 0:
        return
    first = tuple(int(axis[0]) for axis in np.nonzero(wrong))
    entries = "entry" if count == 1 else "entries"
    where = f"({', '.join(map(str, first))}{',' if len(first) == 1 else ''})"
    raise NonFiniteError(
        f"{name} holds {count} non-finite {entries} of {array.size}, the first at {where} = "
        f"{array[first]}: expected finite numbers; mend or re-export the tensor"
    )
