"""safetensors: a JSON header with types, shapes and offsets, then the raw values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive, require_size, spoken
from gradlab.checkpoints.element_types import BFLOAT16, decode, item_size
from gradlab.errors import ModelFileError

CONTAINER = "safetensors file"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100 * 1024**2  # the format's own limit
KINDS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": BFLOAT16,
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "BOOL": "bool", "C64": "complex64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor's place: type as spelled in the file, shape, first and last byte of the buffer."""

    spelling: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Bytes between the offsets."""
        return self.end - self.begin


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so is of this format."""
    length = int.from_bytes(head[:LENGTH_BYTES], "little")
    return head[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{" and length <= MAX_HEADER_BYTES


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by name, in the order of the header.

    Parameters
    ----------
    path
        A file of this format.
    max_bytes
        Limit of one tensor.

    Returns
    -------
    archive
        bfloat16 becomes the float32 of the same value; types without a NumPy counterpart are
        skipped by name.

    Raises
    ------
    ModelFileError
        If header and buffer do not fit each other exactly.
    """
    start, entries = _header(path)
    _require_contiguous(entries, path.stat().st_size - start)
    known = {name: entry for name, entry in entries.items() if entry.spelling in KINDS}
    for name, entry in known.items():
        _require_consistent(name, entry)
    readers = {
        name: partial(_read_tensor, path, start, entry, max_bytes) for name, entry in known.items()
    }
    skipped = [
        f"{spoken(name)} skipped (type {spoken(entry.spelling)})"
        for name, entry in entries.items()
        if name not in known
    ]
    kinds = {name: KINDS[entry.spelling] for name, entry in known.items()}
    return archive(path, CONTAINER, readers, skipped, kinds=kinds)


def _header(path: Path) -> tuple[int, dict[str, Entry]]:
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
        text = stream.read(length)
    if len(text) < length:
        raise ModelFileError(
            f"{path} is a truncated safetensors file: its header should have {length} bytes and "
            f"{len(text)} are there; fetch it or save it again"
        )
    header = json.loads(text.decode("utf-8"), object_pairs_hook=_without_duplicates)
    named = {name: fields for name, fields in header.items() if name != "__metadata__"}
    return LENGTH_BYTES + length, {name: _entry(name, fields) for name, fields in named.items()}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ModelFileError("a safetensors header names a key twice: expected every key once")
    return mapping


def _entry(name: str, fields: object) -> Entry:
    match fields:
        case {"dtype": str(spelling), "shape": list(shape), "data_offsets": [begin, end]} if all(
            type(number) is int and number >= 0 for number in (*shape, begin, end)
        ):
            return Entry(spelling, tuple(shape), begin, end)
    raise ModelFileError(
        f"the safetensors header describes {spoken(name)} wrongly: expected dtype, a shape and two "
        "data_offsets of non-negative integers; the file is damaged"
    )


def _require_contiguous(entries: dict[str, Entry], buffer_size: int) -> None:
    """Tensors follow each other without gap or overlap, and fill the buffer: the format's rule."""
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != position or entry.end < entry.begin:
            raise ModelFileError(
                f"the safetensors header places {spoken(name)} at bytes {entry.begin} to "
                f"{entry.end}: expected it to begin at {position}; the file is damaged"
            )
        position = entry.end
    if position != buffer_size:
        raise ModelFileError(
            f"the safetensors header describes {position} bytes of values and {buffer_size} are "
            "there: the file is truncated or damaged, fetch it or save it again"
        )


def _require_consistent(name: str, entry: Entry) -> None:
    wanted = math.prod(entry.shape) * item_size(KINDS[entry.spelling])
    if wanted != entry.size:
        raise ModelFileError(
            f"{spoken(name)} has shape {entry.shape} of {entry.spelling}, {wanted} bytes, and its "
            f"offsets span {entry.size}: the safetensors header is damaged"
        )


def _read_tensor(path: Path, start: int, entry: Entry, max_bytes: int) -> Array:
    require_size(entry.size, max_bytes, "the tensor")
    with path.open("rb") as stream:
        stream.seek(start + entry.begin)
        raw = stream.read(entry.size)
    return decode(raw, KINDS[entry.spelling]).reshape(entry.shape)
