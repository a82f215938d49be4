"""The .npy array: header checked against the bytes that are there, objects never unpickled."""

from __future__ import annotations

import math
import warnings
from io import BufferedIOBase

import numpy as np

from gradlab.arrays import Array
from gradlab.errors import ModelFileError

MAGIC = b"\x93NUMPY"
NUMERIC_KINDS = "biufc"


def read_npy(stream: BufferedIOBase, size: int, name: str) -> Array:
    """Array of one .npy stream.

    Parameters
    ----------
    stream
        At the magic bytes.
    size
        Bytes of the whole stream.
    name
        The array's name, for messages.

    Returns
    -------
    array
        Of the stored type and shape.

    Raises
    ------
    ModelFileError
        If it holds Python objects, text or records, or fewer bytes than its shape needs. Other
        exceptions come from damaged headers.
    """
    shape, fortran, dtype = _header(stream)
    if dtype.kind not in NUMERIC_KINDS:
        raise ModelFileError(
            f"{name} holds {_spelled(dtype)}: expected numbers; convert it and save again"
        )
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or wanted > size - stream.tell():
        raise ModelFileError(
            f"{name} declares shape {shape} of {dtype}, {wanted} bytes, and holds "
            f"{size - stream.tell()}: the file is truncated or damaged, save it again"
        )
    values = np.frombuffer(stream.read(wanted), dtype)
    return values.reshape(shape, order="F" if fortran else "C")


def npy_layout(stream: BufferedIOBase) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Shape and type that the header at a stream's position declares; values are not read.

    Parameters
    ----------
    stream
        At the magic bytes; left at the first value.
    """
    shape, _, dtype = _header(stream)
    return shape, dtype


def _header(stream: BufferedIOBase) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers written by Python 2 are read all the same
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(stream)
        return np.lib.format.read_array_header_2_0(stream)


def _spelled(dtype: np.dtype[np.generic]) -> str:
    named = {"O": "Python objects", "U": "text", "S": "text", "V": "records"}
    return named.get(dtype.kind, str(dtype))
