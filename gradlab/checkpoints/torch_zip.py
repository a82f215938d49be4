"""PyTorch files since 1.6: a zip of one pickle and one raw member a storage."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive
from gradlab.checkpoints.element_types import ByteOrder, decode
from gradlab.checkpoints.pickled import read_pickle
from gradlab.checkpoints.pickled_arrays import PickledArray
from gradlab.checkpoints.pickled_tree import Leaf, named_tensors
from gradlab.checkpoints.torch_modules import told_of, torch_archive
from gradlab.checkpoints.torch_objects import (
    CONSTRUCTORS,
    elements_of,
    storage_reference,
)
from gradlab.checkpoints.zip_members import SIGNATURES, member_sizes, read_member
from gradlab.errors import ModelFileError

CONTAINER = "PyTorch zip file"
PICKLE = "data.pkl"
MAX_PICKLE_BYTES = 256 * 1024**2
MAX_CODE_BYTES = 16 * 1024**2
BYTE_ORDERS: dict[bytes, ByteOrder] = {b"little": "<", b"big": ">"}


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so and, if a zip, holds these members is of this format."""
    return head.startswith(SIGNATURES) and _root(members) is not None


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
        The pickle is read as data: nothing that it names is imported or called. What a whole
        module, or the text of a script, says of its layers is taken from there.
    """
    members = member_sizes(path)
    root = _root(list(members)) or ""
    pickle = read_member(path, f"{root}{PICKLE}", min(max_bytes, MAX_PICKLE_BYTES))
    described = read_pickle(io.BytesIO(pickle), CONSTRUCTORS, storage_reference)
    named = named_tensors(described)
    order = byte_order(path, root, list(members))
    # Many tensors may lie in one storage: the last one read is kept.
    storage = lru_cache(maxsize=1)(partial(_read_storage, path, root, order, max_bytes))
    readers = {
        name: partial(_read_tensor, storage, tensor, max_bytes)
        for name, tensor in named.tensors.items()
    }
    scripted = any(name.startswith(f"{root}code/") for name in members)
    container = "TorchScript archive" if scripted else CONTAINER
    code = partial(_code, path, root, frozenset(members))
    return torch_archive(path, container, readers, named, told_of(named.modules, code))


def _code(path: Path, root: str, members: frozenset[str], file: str) -> str:
    name = f"{root}code/{file}"
    content = read_member(path, name, MAX_CODE_BYTES) if name in members else b""
    return content.decode("utf-8", errors="replace")


def _root(members: Sequence[str]) -> str | None:
    """Folder of the pickle inside the archive, with its slash."""
    found = [name for name in members if name == PICKLE or name.endswith(f"/{PICKLE}")]
    return min(found, key=len).removesuffix(PICKLE) if found else None


def byte_order(path: Path, root: str, members: Sequence[str]) -> ByteOrder:
    """Byte order of an archive's storages: little-endian where it does not say.

    Parameters
    ----------
    path
        The archive.
    root
        Folder inside it, with its slash.
    members
        Names of its members.

    Raises
    ------
    ModelFileError
        If it is spelled in another way than PyTorch does.
    """
    name = f"{root}byteorder"
    spelled = read_member(path, name, 64) if name in members else b"little"
    if spelled not in BYTE_ORDERS:
        raise ModelFileError(f"{path} spells its byte order {spelled!r}: expected little or big")
    return BYTE_ORDERS[spelled]


def _read_storage(
    path: Path, root: str, order: ByteOrder, max_bytes: int, key: str, kind: str
) -> Array:
    return decode(read_member(path, f"{root}data/{key}", max_bytes), kind, order)


def _read_tensor(storage: Callable[[str, str], Array], tensor: Leaf, max_bytes: int) -> Array:
    if isinstance(tensor, PickledArray):
        return tensor.values(max_bytes)
    return elements_of(tensor, storage(tensor.storage.key, tensor.storage.kind), max_bytes)
