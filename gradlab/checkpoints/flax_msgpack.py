"""Flax parameters as ``flax.serialization.to_bytes`` writes them: one msgpack map of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive, require_size, spoken
from gradlab.checkpoints.element_types import BFLOAT16, decode, item_size
from gradlab.errors import MissingExtraError, ModelFileError

CONTAINER = "Flax msgpack file"
# A map that is not empty, followed by a text key: pickles begin with 0x80 and a number.
MAPS = (*range(0x81, 0x90), 0xDE, 0xDF)
KEY_AT = {0xDE: 3, 0xDF: 5}
TEXTS = (*range(0xA0, 0xC0), 0xD9, 0xDA)
ARRAY, COMPLEX, SCALAR = 1, 2, 3  # msgpack extension types of Flax
CHUNKED = "__msgpack_chunked_array__"


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so and, if a zip, holds these members is of this format."""
    at = KEY_AT.get(head[0], 1) if head and head[0] in MAPS else len(head)
    return not members and head[at : at + 1] != b"" and head[at] in TEXTS


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by their path in the tree, joined by ``/``.

    Parameters
    ----------
    path
        A file of this format.
    max_bytes
        Limit of the file, which is read whole.

    Returns
    -------
    archive
        Numbers and texts of the tree are left out: an optimizer's step count, for one.

    Raises
    ------
    MissingExtraError
        If msgpack is not installed.
    ModelFileError
        If the file is too large; other exceptions come from damaged bytes.
    """
    msgpack = _msgpack(path)
    require_size(path.stat().st_size, max_bytes, str(path))
    tree = msgpack.unpackb(
        path.read_bytes(),
        ext_hook=partial(_extension, msgpack),
        raw=False,
        strict_map_key=False,
    )
    readers: dict[str, Callable[[], Array]] = {}
    skipped: list[str] = []
    for name, leaf in _leaves(tree):
        if callable(leaf):
            readers[name] = leaf
        else:
            skipped.append(f"{spoken(name)} skipped ({type(leaf).__name__}, not an array)")
    return archive(path, CONTAINER, readers, skipped)


def _msgpack(path: Path) -> ModuleType:
    try:
        import msgpack
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a Flax file and needs msgpack: pip install 'gradlab-rnn[flax]'"
        ) from error
    module: ModuleType = msgpack
    return module


def _extension(msgpack: ModuleType, code: int, data: bytes) -> Any:
    """A reader in place of an array, so that only what is asked for is decoded."""
    if code not in (ARRAY, SCALAR):
        return "a complex number" if code == COMPLEX else f"an extension of type {code}"
    shape, kind, raw = msgpack.unpackb(data, raw=False)
    return partial(_array, tuple(shape), str(kind), raw)


def _array(shape: tuple[int, ...], kind: str, raw: bytes) -> Array:
    if kind != BFLOAT16 and np.dtype(kind).kind not in "biuf":
        raise ModelFileError(f"an array of {spoken(kind)}: expected numbers")
    wanted = math.prod(shape) * item_size(kind)
    if min(shape, default=0) < 0 or wanted != len(raw):
        raise ModelFileError(
            f"declares shape {shape} of {kind}, {wanted} bytes, and holds {len(raw)}: the file is "
            "damaged, save it again"
        )
    return decode(raw, kind).reshape(shape)


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Leaves of the tree by name; the pieces of a large array count as one leaf."""
    if not isinstance(tree, Mapping):
        yield "/".join(path), tree
    elif CHUNKED in tree:
        yield "/".join(path), partial(_joined, tree)
    else:
        for key, branch in tree.items():
            yield from _leaves(branch, (*path, str(key)))


def _joined(pieces: Mapping[str, Any]) -> Array:
    """Array of more than a gigabyte, which Flax cuts in pieces."""
    shape, chunks = (_in_order(pieces[key]) for key in ("shape", "chunks"))
    return np.concatenate([chunk() for chunk in chunks]).reshape([int(n) for n in shape])


def _in_order(numbered: Mapping[str, Any]) -> list[Any]:
    return [numbered[key] for key in sorted(numbered, key=int)]
