"""Which format a file has, by its content; the suffix only helps to word a refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradlab.checkpoints import (
    array_pickle,
    flax_msgpack,
    npz,
    safetensors,
    sharded,
    torch_export,
    torch_legacy,
    torch_zip,
    zip_members,
)
from gradlab.checkpoints.archive import MAX_BYTES, Archive, first_bytes, reading
from gradlab.checkpoints.keras import hdf5_file, zip_file
from gradlab.checkpoints.onnx import archive as onnx
from gradlab.checkpoints.refusals import folder_refusal, has_known_suffix, refusal
from gradlab.errors import ModelFileError

HEAD_BYTES = 64
EXPECTED = (
    "expected a PyTorch file (.pt, .pt2), .safetensors, .npz, Keras .keras or .h5, .onnx, Flax "
    ".msgpack or a pickle of arrays"
)


@dataclass(frozen=True, slots=True)
class Format:
    """One format: its name, how to recognize it, how to read it."""

    container: str
    recognizes: Callable[[bytes, Sequence[str]], bool]
    read: Callable[[Path, int], Archive]


# In order: the first that recognizes a file reads it. A new format is a module and a line here.
FORMATS = tuple(
    Format(module.CONTAINER, module.recognizes, module.read)
    for module in (
        zip_file,
        torch_export,
        torch_zip,
        npz,
        torch_legacy,
        safetensors,  # whose first bytes, a length, may look like a pickle's
        array_pickle,
        sharded,
        hdf5_file,
        flax_msgpack,
        onnx,
    )
)

# Told by a structure that other protocol buffers share: a suffix that names one of those is heeded.
GUESSED = (onnx.CONTAINER,)


def read_archive(path: Path, max_bytes: int = MAX_BYTES) -> Archive:
    """Tensors of a model file of any format.

    Parameters
    ----------
    path
        The file.
    max_bytes
        Limit of one tensor or member, as declared.

    Returns
    -------
    archive
        Read as far as names and places; arrays are read when they are asked for.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is truncated, damaged or of another format.
    """
    if path.is_dir():
        raise ModelFileError(f"{path} {folder_refusal(path)}")
    head = first_bytes(path, HEAD_BYTES)
    members = _members(path, head)
    for entry in FORMATS:
        alike = entry.container in GUESSED and has_known_suffix(path)
        if not alike and entry.recognizes(head, members):
            with reading(path, entry.container):
                return entry.read(path, max_bytes)
    raise ModelFileError(f"{path} {refusal(path, head, members)}; {EXPECTED}")


def _members(path: Path, head: bytes) -> list[str]:
    if not head.startswith(zip_members.SIGNATURES):
        return []
    with reading(path, "a zip archive"):
        return list(zip_members.member_sizes(path))
