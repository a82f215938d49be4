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
    torch_legacy,
    torch_zip,
    zip_members,
)
from gradlab.checkpoints.archive import MAX_BYTES, Archive, first_bytes, reading
from gradlab.checkpoints.keras import hdf5_file, zip_file
from gradlab.checkpoints.onnx import archive as onnx
from gradlab.errors import ModelFileError

HEAD_BYTES = 64
EXPECTED = (
    "expected a PyTorch state dict (.pt), .safetensors, .npz, Keras .keras or .h5, .onnx or Flax "
    ".msgpack"
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
        torch_zip,
        npz,
        torch_legacy,
        array_pickle,
        safetensors,
        hdf5_file,
        flax_msgpack,
        onnx,
    )
)

# Formats that are known and not read, by their first bytes, a zip member or the suffix.
KNOWN_HEADS = {
    b"\x93NUMPY": "a single NumPy array without names",
    b"{": "a JSON file",
}
KNOWN_MEMBERS = {
    "archive_format": "a torch.export archive (.pt2)",
}
KNOWN_SUFFIXES = {
    ".eqx": "an Equinox file",
    ".mlmodel": "a CoreML model",
    ".tflite": "a TensorFlow Lite model",
    ".pb": "a TensorFlow model",
}


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
    head = first_bytes(path, HEAD_BYTES)
    members = _members(path, head)
    for entry in FORMATS:
        if entry.recognizes(head, members):
            with reading(path, entry.container):
                return entry.read(path, max_bytes)
    raise ModelFileError(f"{path} {_described(path, head, members)}; {EXPECTED}")


def _members(path: Path, head: bytes) -> list[str]:
    if not head.startswith(zip_members.SIGNATURES):
        return []
    with reading(path, "a zip archive"):
        return list(zip_members.member_sizes(path))


def _described(path: Path, head: bytes, members: Sequence[str]) -> str:
    known = (
        *(what for start, what in KNOWN_HEADS.items() if head.startswith(start)),
        *(what for member, what in KNOWN_MEMBERS.items() if _holds(members, member)),
        *(what for suffix, what in KNOWN_SUFFIXES.items() if path.suffix.lower() == suffix),
    )
    if known:
        return f"is {known[0]}, which this version does not read"
    return "is a zip archive without a model" if members else "is not a model file"


def _holds(members: Sequence[str], name: str) -> bool:
    return any(member == name or member.endswith(f"/{name}") for member in members)
