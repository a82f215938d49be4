"""Raw bytes of a tensor to numbers that NumPy knows; bfloat16, which it does not know, included."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from gradlab.arrays import Array, require_finite
from gradlab.checkpoints.archive import spoken
from gradlab.errors import ModelFileError

BFLOAT16 = "bfloat16"
ByteOrder: TypeAlias = Literal["<", ">"]


def item_size(kind: str) -> int:
    """Bytes of one element.

    Parameters
    ----------
    kind
        A NumPy type's name, or ``bfloat16``.
    """
    return 2 if kind == BFLOAT16 else np.dtype(kind).itemsize


def decode(raw: bytes, kind: str, byte_order: ByteOrder = "<") -> Array:
    """Numbers of a flat run of bytes.

    Parameters
    ----------
    raw
        Whole elements.
    kind
        A NumPy type's name, or ``bfloat16``.
    byte_order
        ``<`` little-endian or ``>`` big-endian.

    Returns
    -------
    values
        One-dimensional, in the machine's byte order; bfloat16 as the float32 of the same value.
    """
    if kind == BFLOAT16:
        halves = np.frombuffer(raw, np.dtype(np.uint16).newbyteorder(byte_order))
        return (halves.astype(np.uint32) << 16).view(np.float32)
    stored = np.frombuffer(raw, np.dtype(kind).newbyteorder(byte_order))
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)


def real_numbers(name: str, array: Array) -> Array:
    """Float64 values of a weight that must be finite and real.

    Parameters
    ----------
    name
        The tensor's name in the file.
    array
        As stored.

    Raises
    ------
    ModelFileError
        If it is quantized or complex.
    NonFiniteError
        If an entry is NaN or infinite.
    """
    if array.dtype.kind not in "fiu" or array.dtype.itemsize == 1:
        raise ModelFileError(
            f"{spoken(name)} is {array.dtype}: expected real floating-point weights; save the "
            "network before quantization"
        )
    require_finite(spoken(name), array)
    return array.astype(np.float64)
