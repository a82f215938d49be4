"""Raw bytes of a tensor to numbers that NumPy knows; bfloat16, which it does not know, included."""

from __future__ import annotations

import sys

import numpy as np

from gradlab.arrays import Array

BFLOAT16 = "bfloat16"
NATIVE = "<" if sys.byteorder == "little" else ">"


def item_size(kind: str) -> int:
    """Bytes of one element.

    Parameters
    ----------
    kind
        A NumPy type's name, or ``bfloat16``.
    """
    return 2 if kind == BFLOAT16 else np.dtype(kind).itemsize


def decode(raw: bytes, kind: str, byte_order: str = "<") -> Array:
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
    return stored.astype(stored.dtype.newbyteorder(NATIVE), copy=False)
