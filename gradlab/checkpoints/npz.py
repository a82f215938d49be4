"""NumPy archives (.npz): one .npy member a tensor, under any names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive
from gradlab.checkpoints.described import DESCRIPTION, find_described
from gradlab.checkpoints.npy import read_npy
from gradlab.checkpoints.zip_members import SIGNATURES, member_sizes, open_member

CONTAINER = "NumPy .npz archive"
SUFFIX = ".npy"


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so and, if a zip, holds these members is of this format."""
    return head.startswith(SIGNATURES) and any(name.endswith(SUFFIX) for name in members)


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by the names they were saved under.

    Parameters
    ----------
    path
        An archive of this format.
    max_bytes
        Limit of one tensor.

    Returns
    -------
    archive
        Nothing of it is unpickled: arrays of objects are refused when they are asked for.
    """
    arrays = [name for name in member_sizes(path) if name.endswith(SUFFIX)]
    readers = {
        name.removesuffix(SUFFIX): partial(read_array, path, name, max_bytes) for name in arrays
    }
    stored = archive(path, CONTAINER, readers)
    if DESCRIPTION not in readers:
        return stored
    return replace(stored, find=partial(find_described, stored.tensors))


def read_array(path: Path, member: str, max_bytes: int) -> Array:
    """Array of one member.

    Parameters
    ----------
    path
        The archive.
    member
        The member's name, ending in ``.npy``.
    max_bytes
        Limit of its unpacked size.
    """
    with open_member(path, member, max_bytes) as stream:
        return read_npy(stream, member_sizes(path)[member], member.removesuffix(SUFFIX))
