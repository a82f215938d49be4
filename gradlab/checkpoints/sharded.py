"""An index of weights in several files beside it: ``model.safetensors.index.json`` and the like."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

from gradlab.checkpoints import safetensors, torch_legacy, torch_zip
from gradlab.checkpoints.archive import Archive, archive, first_bytes, reading, require_size, spoken
from gradlab.checkpoints.zip_members import SIGNATURES, member_sizes
from gradlab.errors import ModelFileError

CONTAINER = "index of sharded weights"
HEAD = re.compile(rb'\s*\{\s*"(metadata|weight_map)"')
MAX_INDEX_BYTES = 100 * 1024**2
HEAD_BYTES = 64
SHARD_FORMATS = (safetensors, torch_zip, torch_legacy)


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so is of this format."""
    return HEAD.match(head) is not None


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors of all shards by name.

    Parameters
    ----------
    path
        The index; its shards lie in the same folder.
    max_bytes
        Limit of one tensor.

    Returns
    -------
    archive
        In the index's order. Of each shard the header is read, and a tensor when it is asked for.

    Raises
    ------
    ModelFileError
        If a shard is missing or damaged, lies elsewhere, or lacks a tensor of the index.
    """
    require_size(path.stat().st_size, min(max_bytes, MAX_INDEX_BYTES), "the index")
    match json.loads(path.read_text(encoding="utf-8")):
        case {"weight_map": dict(places)}:
            names = list(dict.fromkeys(places.values()))
            shards = {name: _shard(path, name, max_bytes) for name in names}
            return _joined(path, places, shards)
    raise ModelFileError("the index has no weight_map: expected a shard by each tensor's name")


def _shard(index: Path, name: object, max_bytes: int) -> Archive:
    """One shard, which must lie beside the index."""
    if not isinstance(name, str) or not _is_plain(name):
        raise ModelFileError(
            f"the index places weights in {spoken(str(name))}: expected a file in its own folder; "
            "refused"
        )
    path = index.parent / name
    if not path.is_file():
        raise ModelFileError(
            f"the shard {spoken(name)} is missing: expected it beside the index; fetch all shards "
            "of the model"
        )
    head = first_bytes(path, HEAD_BYTES)
    with reading(path, "a shard"):
        members = list(member_sizes(path)) if head.startswith(SIGNATURES) else []
        for entry in SHARD_FORMATS:
            if entry.recognizes(head, members):
                stored: Archive = entry.read(path, max_bytes)
                return stored
        raise ModelFileError("is no shard: expected a safetensors file or a PyTorch state dict")


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file in the same folder, on any system."""
    pure = PurePosixPath(name), PureWindowsPath(name)
    return name.isprintable() and name not in ("", ".", "..") and all(p.name == name for p in pure)


def _joined(index: Path, places: Mapping[str, str], shards: Mapping[str, Archive]) -> Archive:
    for name, shard in places.items():
        if name not in shards[shard].tensors:
            raise ModelFileError(
                f"the index places {spoken(name)} in {spoken(shard)}, which does not hold it: the "
                "shards belong to another model, fetch them again"
            )
    readers = {
        name: partial(shards[shard].tensors.__getitem__, name) for name, shard in places.items()
    }
    skipped = [phrase for shard in shards.values() for phrase in shard.skipped]
    kinds = {name: shards[shard].tensors.kind(name) for name, shard in places.items()}
    return archive(index, CONTAINER, readers, skipped, kinds=kinds)
