"""What NumPy and JAX pickle an array as, read without calling anything of theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import require_size
from gradlab.checkpoints.element_types import BFLOAT16, ByteOrder, decode, item_size
from gradlab.checkpoints.pickled import Constructors, Global, Stub
from gradlab.errors import ModelFileError

# NumPy 2 moved numpy.core to numpy._core; files of either time are around.
RECONSTRUCT = re.compile(r"numpy\._?core\.multiarray\._reconstruct")
FROM_BUFFER = re.compile(r"numpy\._?core\.numeric\._frombuffer")
OF_JAX = re.compile(r"jax[\w.]*\._?reconstruct_(device_)?array")
NUMBER = re.compile(r"[biufc]\d{1,2}|\?")
MAX_DIMENSIONS = 32
BFLOAT16_NAMES = ("ml_dtypes.bfloat16", "jax.numpy.bfloat16", "bfloat16")


@dataclass(frozen=True, slots=True, eq=False)
class PickledArray:
    """One array: its type, shape and bytes, nothing of it decoded yet."""

    kind: str  # NumPy type, or bfloat16
    byte_order: ByteOrder
    shape: tuple[int, ...]
    fortran: bool
    raw: bytes | bytearray

    def values(self, max_bytes: int) -> Array:
        """The array.

        Parameters
        ----------
        max_bytes
            Limit of its size.

        Raises
        ------
        ModelFileError
            If its bytes are not those that its shape needs.
        """
        wanted = math.prod(self.shape) * item_size(self.kind)
        require_size(wanted, max_bytes, "the array")
        if wanted != len(self.raw):
            raise ModelFileError(
                f"an array of shape {self.shape} of {self.kind} needs {wanted} bytes and has "
                f"{len(self.raw)}: the file is truncated or damaged"
            )
        flat = decode(bytes(self.raw), self.kind, self.byte_order)
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


def encoded(text: object, encoding: object = "", *_: object) -> bytes:
    """Bytes of a text, which is how Python 3 writes them for the protocols of Python 2."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise ModelFileError("the pickle holds bytes in an encoding other than Latin-1: refused")
    return text.encode("latin-1")


def _bytes(raw: object = b"", *_: object) -> bytes:
    return raw if isinstance(raw, bytes) else b""


ARRAY_CONSTRUCTORS: Constructors = {
    "_codecs.encode": encoded,
    "builtins.bytes": _bytes,
    "__builtin__.bytes": _bytes,
    "builtins.bytearray": _bytes,
}


def pickled_array(stub: Stub) -> PickledArray | None:
    """Array that a stub stands for.

    Parameters
    ----------
    stub
        Any.

    Returns
    -------
    array
        None if it stands for something else, or for an array of anything but numbers.
    """
    if RECONSTRUCT.fullmatch(stub.name):
        return _of_state(stub.state)
    if OF_JAX.fullmatch(stub.name) and len(stub.arguments) > 2:
        return _of_state(stub.arguments[2])
    if FROM_BUFFER.fullmatch(stub.name) and len(stub.arguments) == 4:
        raw, kind, shape, order = stub.arguments
        return _array(shape, kind, order == "F", raw)
    return None


def _of_state(state: object) -> PickledArray | None:
    match state:
        case (int(), shape, kind, fortran, raw):
            return _array(shape, kind, bool(fortran), raw)
    return None


def _array(shape: object, kind: object, fortran: bool, raw: object) -> PickledArray | None:
    sizes = _sizes(shape)
    spelled = _element_type(kind)
    content = raw.encode("latin-1") if isinstance(raw, str) else raw
    if sizes is None or spelled is None or not isinstance(content, bytes | bytearray):
        return None
    return PickledArray(spelled[0], spelled[1], sizes, fortran, content)


def _sizes(shape: object) -> tuple[int, ...] | None:
    if not isinstance(shape, Sequence) or len(shape) > MAX_DIMENSIONS:
        return None
    sizes = tuple(size for size in shape if type(size) is int and size >= 0)
    return sizes if len(sizes) == len(shape) else None


def _element_type(kind: object) -> tuple[str, ByteOrder] | None:
    """Type and byte order of a pickled ``numpy.dtype``."""
    if not isinstance(kind, Stub) or kind.name != "numpy.dtype" or not kind.arguments:
        return None
    name = kind.arguments[0]
    order: ByteOrder = "<"
    match kind.state:
        case (int(), ">", *_):
            order = ">"
    if isinstance(name, Global):
        return (BFLOAT16, order) if name.name in BFLOAT16_NAMES else None
    if not isinstance(name, str) or not NUMBER.fullmatch(name):
        return None
    return ("bool" if name in ("?", "b1") else np.dtype(name).name), order
