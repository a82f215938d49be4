"""Arrays of an ONNX model: in the model itself, or in a file beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import require_size, spoken
from gradlab.checkpoints.element_types import BFLOAT16, decode, item_size
from gradlab.errors import ModelFileError

Proto: TypeAlias = Any  # a protobuf message: its classes carry no types

# Element types of the format by number; text, and floats of fewer than 16 bits, are left out.
KINDS = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: BFLOAT16,
}  # fmt: skip
# Values that are not raw bytes stand in lists, 16-bit floats by their bits.
LISTS = {
    "float32": ("float_data", "float32"), "complex64": ("float_data", "float32"),
    "float64": ("double_data", "float64"), "complex128": ("double_data", "float64"),
    "int64": ("int64_data", "int64"), "uint32": ("uint64_data", "uint32"),
    "uint64": ("uint64_data", "uint64"), "float16": ("int32_data", "uint16"),
    BFLOAT16: ("int32_data", "uint16"),
}  # fmt: skip
EXTERNAL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where a model's arrays are: the folder of the file, and the limit of one array."""

    folder: Path
    max_bytes: int

    def read(self, tensor: Proto) -> Array:
        """Array of one tensor.

        Parameters
        ----------
        tensor
            As the model describes it.

        Returns
        -------
        array
            bfloat16 as the float32 of the same value.

        Raises
        ------
        ModelFileError
            If its type is not one of numbers, its size is above the limit, its bytes are not as
            many as its shape needs, or they are in a file outside the model's folder.
        """
        kind = self.kind(tensor)
        shape = tuple(tensor.dims)
        wanted = math.prod(shape) * item_size(kind)
        if min(shape, default=0) < 0:
            raise ModelFileError(f"{_named(tensor)} has shape {shape}: the file is damaged")
        require_size(wanted, self.max_bytes, _named(tensor))
        raw = self._external(tensor, wanted) if _outside(tensor) else _inline(tensor, kind)
        if len(raw) != wanted:
            raise ModelFileError(
                f"{_named(tensor)} has shape {shape} of {kind}, {wanted} bytes, and holds "
                f"{len(raw)}: the file is truncated or damaged, export it again"
            )
        return decode(raw, kind).reshape(shape)

    def kind(self, tensor: Proto) -> str:
        """Element type.

        Raises
        ------
        ModelFileError
            If it is none that holds numbers gradlab reads.
        """
        if tensor.data_type not in KINDS:
            raise ModelFileError(
                f"{_named(tensor)} has elements of type {tensor.data_type}: expected numbers of "
                "16 bits or more, or whole bytes; save the network before quantization"
            )
        return KINDS[tensor.data_type]

    def _external(self, tensor: Proto, wanted: int) -> bytes:
        fields = {entry.key: entry.value for entry in tensor.external_data}
        file = self._neighbor(tensor, fields.get("location", ""))
        offset = _whole(tensor, fields, "offset", 0)
        length = _whole(tensor, fields, "length", wanted)
        if length != wanted or offset + length > file.stat().st_size:
            raise ModelFileError(
                f"{_named(tensor)} needs {wanted} bytes and its external data are {length} bytes "
                f"from {offset} of {spoken(file.name)}, which has {file.stat().st_size}: copy the "
                "file that was saved with the model"
            )
        with file.open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)

    def _neighbor(self, tensor: Proto, location: str) -> Path:
        """File of external data, which may only be in or below the model's own folder."""
        parts = PurePosixPath(location.replace("\\", "/")).parts
        plain = location.isprintable() and not any(":" in part or part == ".." for part in parts)
        root = self.folder.resolve()
        file = root.joinpath(*parts).resolve() if plain and parts else root
        if file == root or not file.is_relative_to(root):
            raise ModelFileError(
                f"{_named(tensor)} is in external data at {spoken(location)!r}, outside the "
                "model's folder: refused; put the data beside the model, as a plain file"
            )
        if not file.is_file():
            raise ModelFileError(
                f"{_named(tensor)} is in the file {spoken(location)}, which is not beside the "
                "model: copy both"
            )
        return file


def _outside(tensor: Proto) -> bool:
    return bool(tensor.data_location == EXTERNAL)


def _inline(tensor: Proto, kind: str) -> bytes:
    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    field, stored = LISTS.get(kind, ("int32_data", kind))
    values = np.asarray(getattr(tensor, field))
    return bytes(values.astype(np.dtype(stored).newbyteorder("<")).tobytes())


def _whole(tensor: Proto, fields: dict[str, str], key: str, default: int) -> int:
    text = fields.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelFileError(
            f"{_named(tensor)} has external data with {key} {spoken(text)!r}: expected a whole "
            "number; the file is damaged"
        )
    return int(text)


def _named(tensor: Proto) -> str:
    return f"the tensor {spoken(tensor.name)}" if tensor.name else "a tensor without a name"
