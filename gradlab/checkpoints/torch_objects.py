"""What PyTorch pickles a tensor as: a storage, and a strided view of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import require_size
from gradlab.checkpoints.element_types import BFLOAT16, item_size
from gradlab.checkpoints.pickled import Constructors, Global, Stub
from gradlab.checkpoints.pickled_arrays import ARRAY_CONSTRUCTORS
from gradlab.errors import ModelFileError

STORAGE_KINDS = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": BFLOAT16, "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip
MAX_DIMENSIONS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """A flat run of elements, by its key in the file."""

    key: str
    kind: str  # NumPy type, or bfloat16


@dataclass(frozen=True, slots=True, eq=False)
class HeldStorage(Storage):
    """A storage whose bytes lie in the pickle itself."""

    raw: bytes


@dataclass(frozen=True, slots=True, eq=False)
class StridedTensor:
    """A view of a storage: first element, sizes and strides, all in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def kind(self) -> str:
        """Type of its elements."""
        return self.storage.kind


def storage_reference(identifier: object) -> object:
    """Storage of a persistent identifier (kind, type, key, location, size, view).

    Parameters
    ----------
    identifier
        As pickled by PyTorch; its view, where there is one, must be None. Old files refer to the
        classes of modules in this way too, with their source text.

    Returns
    -------
    storage
        A stub for element types that NumPy has no counterpart for; of a class its name.
    """
    match identifier:
        case ("storage", Global(name=name), str(key), _, int()) | (
            "storage", Global(name=name), str(key), _, int(), None,
        ):  # fmt: skip
            kind = STORAGE_KINDS.get(name.rpartition(".")[2])
            return Stub(name) if kind is None else Storage(key, kind)
        case ("module", Global() as kind, *_):
            return kind
    raise ModelFileError("the pickle refers to outside data in a way PyTorch does not: refused")


def _tensor(storage: object, offset: object, shape: object, strides: object, *_: object) -> object:
    if not isinstance(storage, Storage):
        return Stub(storage.name if isinstance(storage, Stub) else "torch.Tensor")
    sizes, steps = _counts(shape), _counts(strides)
    if len(sizes) != len(steps) or len(sizes) > MAX_DIMENSIONS:
        raise ModelFileError(f"a tensor has {len(sizes)} sizes and {len(steps)} strides: refused")
    return StridedTensor(storage, _counts((offset,))[0], sizes, steps)


def _counts(numbers: object) -> tuple[int, ...]:
    counts = [n for n in numbers if type(n) is int and n >= 0] if _is_sequence(numbers) else []
    if not _is_sequence(numbers) or len(counts) < len(numbers):
        raise ModelFileError("a tensor has a negative or odd offset, size or stride: refused")
    return tuple(counts)


def _is_sequence(described: object) -> TypeGuard[Sequence[object]]:
    return isinstance(described, list | tuple)


def _parameter(data: object, *_: object) -> object:
    return data


def _subclass(function: object, _kind: object, arguments: object, *_: object) -> object:
    name = function.name if isinstance(function, Global) else ""
    known = name in PLAIN_TENSORS and _is_sequence(arguments)
    return _tensor(*cast("Any", arguments)) if known else Stub(name)


def _dictionary(*_: object) -> dict[object, object]:
    return {}


def _sequence(items: object = (), *_: object) -> object:
    return items if _is_sequence(items) else []


PLAIN_TENSORS = ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2")
CONSTRUCTORS: Constructors = {
    **ARRAY_CONSTRUCTORS,
    **dict.fromkeys(PLAIN_TENSORS, _tensor),
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _subclass,
    "collections.OrderedDict": _dictionary,
    "collections.defaultdict": _dictionary,
    "torch.Size": _sequence,
    "builtins.set": _sequence,
    "__builtin__.set": _sequence,
}


def elements_of(tensor: StridedTensor, values: Array, max_bytes: int) -> Array:
    """Array of a strided tensor.

    Parameters
    ----------
    tensor
        Place of every element.
    values
        The whole storage, one-dimensional.
    max_bytes
        Limit of the result; strides of 0 could make a small storage vast.

    Returns
    -------
    array
        A copy, contiguous.

    Raises
    ------
    ModelFileError
        If an element lies outside the storage.
    """
    count = math.prod(tensor.shape)
    require_size(count * item_size(tensor.storage.kind), max_bytes, "the tensor")
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    if count and last >= len(values):
        raise ModelFileError(
            f"a tensor of shape {tensor.shape} needs element {last} of a storage that holds "
            f"{len(values)}: the file is truncated or damaged"
        )
    if not count:
        return np.zeros(tensor.shape, values.dtype)
    strides = [stride * values.itemsize for stride in tensor.strides]
    view = np.lib.stride_tricks.as_strided(values[tensor.offset :], tensor.shape, strides)
    return view.copy()
