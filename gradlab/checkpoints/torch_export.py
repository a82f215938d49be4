"""Archives of ``torch.export`` (.pt2): raw weights in a zip, described by JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive, spoken
from gradlab.checkpoints.element_types import BFLOAT16, ByteOrder, decode
from gradlab.checkpoints.torch_objects import Storage, StridedTensor, elements_of
from gradlab.checkpoints.torch_zip import byte_order
from gradlab.checkpoints.zip_members import SIGNATURES, member_sizes, read_member
from gradlab.errors import ModelFileError

CONTAINER = "torch.export archive"
FOLDER = "data/weights/"
CONFIG = "weights_config.json"
MAX_CONFIG_BYTES = 64 * 1024**2
KINDS = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 10: "complex64", 11: "complex128", 12: "bool", 13: BFLOAT16,
}  # fmt: skip


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so and, if a zip, holds these members is of this format."""
    return head.startswith(SIGNATURES) and bool(_configs(members))


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by the names that the exported module's state dict gave them.

    Parameters
    ----------
    path
        A file of this format, as ``torch.export.save`` has written it since PyTorch 2.8.
    max_bytes
        Limit of one tensor and of one storage.

    Returns
    -------
    archive
        Only the weights are read; the program beside them is not. Weights that are pickled, or of
        a type without a NumPy counterpart, are skipped by name.

    Raises
    ------
    ModelFileError
        If the description is damaged.
    """
    members = list(member_sizes(path))
    entries: dict[str, tuple[str, object]] = {}
    for config in _configs(members):
        described = json.loads(read_member(path, config, min(max_bytes, MAX_CONFIG_BYTES)))
        root = config.rpartition("/")[0]
        entries |= {name: (root, entry) for name, entry in described["config"].items()}
    tensors = {name: _tensor(name, entry) for name, (_, entry) in entries.items()}
    order = byte_order(path, _configs(members)[0].partition(FOLDER)[0], members)
    readers = {
        name: partial(_read_tensor, path, f"{entries[name][0]}/", order, tensor, max_bytes)
        for name, tensor in tensors.items()
        if tensor is not None
    }
    skipped = [
        f"{spoken(name)} skipped (pickled, or of a type that NumPy does not have)"
        for name, entry in tensors.items()
        if entry is None
    ]
    kinds = {name: entry.storage.kind for name, entry in tensors.items() if entry is not None}
    return archive(path, CONTAINER, readers, skipped, kinds=kinds)


def _configs(members: Sequence[str]) -> list[str]:
    return [name for name in members if FOLDER in name and name.endswith(CONFIG)]


def _tensor(name: str, entry: object) -> StridedTensor | None:
    """Place of a weight; None if it is pickled or of an unknown type."""
    match entry:
        case {
            "path_name": str(file),
            "use_pickle": bool(pickled),
            "tensor_meta": {
                "dtype": int(kind),
                "sizes": list(sizes),
                "strides": list(strides),
                "storage_offset": offset,
            },
        } if len(sizes) == len(strides):
            if pickled or kind not in KINDS:
                return None
            storage = Storage(file, KINDS[kind])
            shape, steps = (tuple(map(_number, numbers)) for numbers in (sizes, strides))
            return StridedTensor(storage, _number(offset), shape, steps)
    raise ModelFileError(
        f"the archive describes {spoken(name)} wrongly: expected its file, type, sizes, strides "
        "and offset; the file is damaged"
    )


def _number(entry: object) -> int:
    match entry:
        case {"as_int": int(number)} if number >= 0 and not isinstance(number, bool):
            return number
    raise ModelFileError("a size, stride or offset in the archive is no number: it is damaged")


def _read_tensor(
    path: Path, folder: str, order: ByteOrder, tensor: StridedTensor, max_bytes: int
) -> Array:
    raw = read_member(path, f"{folder}{tensor.storage.key}", max_bytes)
    return elements_of(tensor, decode(raw, tensor.storage.kind, order), max_bytes)
