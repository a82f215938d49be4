"""The texts of an HDF5 file and the heaps they lie in, checked before the library reads them.

An object of size 0 in a damaged heap lets the library run in a circle for ever, and a text that
claims to be longer than its place lets it take gigabytes of memory first.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from gradlab.errors import ModelFileError

Bytes: TypeAlias = bytes | mmap.mmap
Heaps: TypeAlias = Mapping[int, Mapping[int, int]]  # by address, sizes by the object's number

# Signature, version 1 and three reserved bytes, at a multiple of 8; then the heap's size.
SIGNATURE = b"GCOL\x01\x00\x00\x00"
HEADER = 16  # bytes of a heap's header, of an object's, and of a text's place
ALIGNMENT = 8
# A name in an attribute's description, which begins eight bytes before it.
NAMES = (b"name", b"keras_version", b"model_config", b"layer_names", b"weight_names")
REST = re.compile(rb"\d*\x00")  # a number where a list is split
TEXT = 0x19  # version 1 of the class of variable lengths
DAMAGED = "the file is damaged, fetch it or save it again"


def require_sound_heaps(source: Path | bytes) -> None:
    """Refuse a file in which a heap, or a text's place in one, cannot be as it says.

    Parameters
    ----------
    source
        The file, or its bytes.

    Raises
    ------
    ModelFileError
        If a heap does not fill its size with objects, or a text is longer than its object.
    """
    if isinstance(source, bytes):
        _require_sound(source)
        return
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        _require_sound(held)


def _require_sound(held: Bytes) -> None:
    starts = (start for start in _found(held, SIGNATURE) if start % ALIGNMENT == 0)
    heaps = {start: _objects(held, start) for start in starts}
    for name in NAMES:
        for start in _found(held, name):
            rest = REST.match(held, start + len(name))
            for length, address, index in _places(held, start, rest.end()) if rest else ():
                _require_there(heaps, start, length, address, index)


def _require_there(heaps: Heaps, start: int, length: int, address: int, index: int) -> None:
    if length > heaps.get(address, {}).get(index, 0):
        raise ModelFileError(
            f"the HDF5 attribute at byte {start} is a text of {length} bytes that the file does "
            f"not hold; {DAMAGED}"
        )


def _found(held: Bytes, wanted: bytes) -> Iterator[int]:
    start = held.find(wanted)
    while start >= 0:
        yield start
        start = held.find(wanted, start + 1)


def _objects(held: Bytes, start: int) -> dict[int, int]:
    """Sizes of a heap's objects by their numbers."""
    (size,) = struct.unpack_from("<Q", held, start + ALIGNMENT)
    end, place, found = start + size, start + HEADER, {}
    while end <= len(held) and place + HEADER <= end:
        index, _, _, length = struct.unpack_from("<HHIQ", held, place)
        found[index] = length
        # Object 0 is the free space behind the others, whose size counts its own header.
        taken = length if index == 0 else HEADER + _padded(length)
        place += taken if taken >= HEADER else end
    if end > len(held) or place > end:
        raise ModelFileError(
            f"the HDF5 heap at byte {start} is not filled by its objects; {DAMAGED}"
        )
    return found


def _places(held: Bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Length, heap and number of every text of an attribute whose name stands here."""
    version, _, *sizes = struct.unpack_from("<BBHHH", held, max(start - ALIGNMENT, 0))
    kind = start + _padded(sizes[0])
    space, data = kind + _padded(sizes[1]), kind + _padded(sizes[1]) + _padded(sizes[2])
    if version != 1 or sizes[0] != end - start or data + HEADER > len(held) or held[kind] != TEXT:
        return
    rank = held[space + 1]
    if space + ALIGNMENT * (1 + rank) > len(held):
        return
    count = math.prod(struct.unpack_from(f"<{rank}Q", held, space + ALIGNMENT))
    for index in range(min(count, (len(held) - data) // HEADER)):
        yield struct.unpack_from("<IQI", held, data + HEADER * index)


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT
