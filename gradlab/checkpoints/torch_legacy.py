"""PyTorch files before 1.6: five pickles in a row, then the raw storages one after the other."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from io import BufferedIOBase
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, require_size
from gradlab.checkpoints.element_types import decode, item_size
from gradlab.checkpoints.pickled import read_pickle
from gradlab.checkpoints.pickled_arrays import PickledArray
from gradlab.checkpoints.pickled_tree import Leaf, named_tensors
from gradlab.checkpoints.torch_modules import told_of, torch_archive
from gradlab.checkpoints.torch_objects import (
    CONSTRUCTORS,
    HeldStorage,
    Storage,
    elements_of,
    storage_reference,
)
from gradlab.errors import ModelFileError

CONTAINER = "PyTorch file of the time before 1.6"
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
SIGNATURE = b"\x8a\x0a" + MAGIC_NUMBER.to_bytes(10, "little", signed=True)  # LONG1, ten bytes
COUNT_BYTES = 8
HEAD_BYTES = 64


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so is of this format."""
    return head.startswith(b"\x80") and head[2:].startswith(SIGNATURE)


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by the keys of the pickled dictionaries.

    Parameters
    ----------
    path
        A file of this format.
    max_bytes
        Limit of one tensor and of one storage.

    Returns
    -------
    archive
        The pickles are read as data: nothing that they name is imported or called.
    """
    with path.open("rb") as stream:
        described, places = _read_stream(stream, path.stat().st_size)
    named = named_tensors(described)
    readers = {
        name: partial(_read_tensor, path, places, tensor, max_bytes)
        for name, tensor in named.tensors.items()
    }
    return torch_archive(path, CONTAINER, readers, named, told_of(named.modules))


def storage_in(content: object = b"", *_: object) -> object:
    """Storage that a plain pickle holds as a whole file of this format, bytes in bytes.

    Parameters
    ----------
    content
        The file.

    Returns
    -------
    storage
        With its bytes, or a stub if it has an element type that NumPy does not know.

    Raises
    ------
    ModelFileError
        If the file is damaged or of another version.
    """
    if not isinstance(content, bytes) or not recognizes(content[:HEAD_BYTES], ()):
        raise ModelFileError("the pickle holds a storage in an unknown form: use torch.save")
    with io.BytesIO(content) as stream:
        described, places = _read_stream(stream, len(content))
    if not isinstance(described, Storage):
        return described
    start, size = places[described.key]
    return HeldStorage(described.key, described.kind, content[start : start + size])


def _read_stream(stream: BufferedIOBase, size: int) -> tuple[object, dict[str, tuple[int, int]]]:
    """Object of a stream, and the places of its storages."""
    storages: dict[str, Storage] = {}

    def reference(identifier: object) -> object:
        found = storage_reference(identifier)
        if isinstance(found, Storage):
            storages[found.key] = found
        return found

    _require_known_version([read_pickle(stream, {}) for _ in range(3)])
    described = read_pickle(stream, CONSTRUCTORS, reference)
    return described, _places(stream, read_pickle(stream, {}), storages, size)


def _require_known_version(preamble: Sequence[object]) -> None:
    magic, version, system = preamble
    little = isinstance(system, Mapping) and system.get("little_endian") is True
    if magic != MAGIC_NUMBER or version != PROTOCOL_VERSION or not little:
        raise ModelFileError(
            f"a PyTorch file of protocol {version!r}: expected {PROTOCOL_VERSION}, "
            "little-endian; save it again with a newer PyTorch"
        )


def _places(
    stream: BufferedIOBase, keys: object, storages: Mapping[str, Storage], file_size: int
) -> dict[str, tuple[int, int]]:
    """First byte and size of every storage."""
    if not isinstance(keys, list):
        raise ModelFileError("the list of storages is missing: the file is damaged")
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        count = int.from_bytes(stream.read(COUNT_BYTES), "little", signed=True)
        size = count * item_size(storages[key].kind)
        start = stream.tell()
        if size < 0 or start + size > file_size:
            raise ModelFileError(
                f"storage {key!r} should have {size} bytes and {file_size - start} are left: the "
                "file is truncated or damaged"
            )
        places[key] = (start, size)
        stream.seek(size, 1)
    return places


def _read_tensor(
    path: Path, places: Mapping[str, tuple[int, int]], tensor: Leaf, max_bytes: int
) -> Array:
    if isinstance(tensor, PickledArray):
        return tensor.values(max_bytes)
    start, size = places[tensor.storage.key]
    require_size(size, max_bytes, "the storage")
    with path.open("rb") as stream:
        stream.seek(start)
        values = decode(stream.read(size), tensor.storage.kind)
    return elements_of(tensor, values, max_bytes)
