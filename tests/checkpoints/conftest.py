"""Model files written by hand: the pickle opcodes and the zip of PyTorch, without PyTorch."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from gradlab.arrays import Array

FIXTURES = Path(__file__).parents[1] / "fixtures" / "models"
STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "int8": "CharStorage",
    "int64": "LongStorage",
}


@dataclass(frozen=True)
class Named:
    """A global by module and name."""

    module: str
    name: str


@dataclass(frozen=True)
class Persistent:
    """What a persistent identifier refers to."""

    identifier: tuple[object, ...]


@dataclass(frozen=True)
class Called:
    """A global applied to arguments, and the state it is built with."""

    function: Named | Persistent | bytes
    arguments: tuple[object, ...] = ()
    state: object = None


@dataclass(frozen=True)
class Filled:
    """A dictionary of a class of its own."""

    kind: Named
    items: Mapping[str, Array]


@dataclass(frozen=True)
class View:
    """A tensor as PyTorch pickles it: numbers are in elements of the storage."""

    storage: Array
    offset: object
    shape: tuple[object, ...]
    strides: tuple[object, ...]
    numel: object = None


@dataclass
class TorchPickle:
    """Opcodes of a nested object; storages are collected on the way."""

    storages: list[Array] = field(default_factory=list)

    def dumps(self, described: object) -> bytes:
        """Whole pickle of protocol 2."""
        return b"\x80\x02" + self.opcodes(described) + b"."

    def opcodes(self, described: object) -> bytes:
        """Opcodes that leave the object on the stack."""
        for kind, write in self.writers().items():
            if isinstance(described, kind):
                return write(described)
        raise TypeError(type(described))

    def writers(self) -> Mapping[type, Callable[..., bytes]]:
        """How to write each type; bool stands before int, which it is too."""
        return {
            bool: lambda x: b"\x88" if x else b"\x89",
            int: lambda x: b"\x8a\x09" + x.to_bytes(9, "little", signed=True),
            float: lambda x: b"G" + struct.pack(">d", x),
            str: lambda x: b"X" + struct.pack("<I", len(x.encode())) + x.encode(),
            bytes: lambda x: x,
            type(None): lambda x: b"N",
            tuple: lambda x: b"(" + self.all(x) + b"t",
            list: lambda x: b"](" + self.all(x) + b"e",
            dict: lambda x: b"}(" + self.all(sum(x.items(), ())) + b"u",
            Named: lambda x: f"c{x.module}\n{x.name}\n".encode(),
            Persistent: lambda x: self.opcodes(x.identifier) + b"Q",
            Called: self.called,
            Filled: self.filled,
            View: self.view,
            np.ndarray: self.whole,
        }

    def all(self, items: tuple[object, ...] | list[object]) -> bytes:
        """Opcodes of several objects in a row."""
        return b"".join(self.opcodes(item) for item in items)

    def called(self, x: Called) -> bytes:
        """Opcodes of a call, and of building its result with a state."""
        built = b"" if x.state is None else self.opcodes(x.state) + b"b"
        return self.opcodes(x.function) + self.opcodes(x.arguments) + b"R" + built

    def filled(self, x: Filled) -> bytes:
        """Opcodes of a dictionary subclass and of its items."""
        return self.called(Called(x.kind)) + b"(" + self.all(sum(x.items.items(), ())) + b"u"

    def whole(self, array: Array) -> bytes:
        """Opcodes of a contiguous tensor with a storage of its own."""
        strides = tuple(stride // array.itemsize for stride in np.ascontiguousarray(array).strides)
        return self.view(View(array.ravel(), 0, array.shape, strides))

    def view(self, x: View) -> bytes:
        """Opcodes of a tensor on a storage, shared if it is the same array."""
        known = [index for index, storage in enumerate(self.storages) if storage is x.storage]
        key = known[0] if known else len(self.storages)
        if not known:
            self.storages.append(x.storage)
        kind = Named("torch", STORAGES[str(x.storage.dtype)])
        numel = len(x.storage) if x.numel is None else x.numel
        reference = self.opcodes(("storage", kind, str(key), "cpu", numel)) + b"Q"
        hooks = Called(Named("collections", "OrderedDict"))
        rebuild = Named("torch._utils", "_rebuild_tensor_v2")
        arguments = (reference, x.offset, x.shape, x.strides, False, hooks)
        return self.opcodes(Called(rebuild, arguments))


@dataclass(frozen=True)
class ModelWriter:
    """Writes model files into a folder."""

    folder: Path
    named: type[Named] = Named
    persistent: type[Persistent] = Persistent
    called: type[Called] = Called
    filled: type[Filled] = Filled
    view: type[View] = View

    def torch(
        self, described: object, *, name: str = "model.pt", byte_order: Literal["<", ">"] = "<"
    ) -> Path:
        """File of ``torch.save`` since 1.6; arrays become tensors, bytes raw opcodes."""
        pickle = TorchPickle()
        members = {"data.pkl": pickle.dumps(described), "version": b"3\n"}
        members["byteorder"] = b"little" if byte_order == "<" else b"big"
        for key, storage in enumerate(pickle.storages):
            members[f"data/{key}"] = storage.astype(
                storage.dtype.newbyteorder(byte_order)
            ).tobytes()
        return self.zip({f"archive/{member}": data for member, data in members.items()}, name)

    def legacy(self, described: object, *, name: str = "model.pt") -> Path:
        """File of ``torch.save`` before 1.6: five pickles and the storages."""
        pickle = TorchPickle()
        magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
        parts = [magic, pickle.dumps(1001), pickle.dumps({"little_endian": True})]
        parts.append(pickle.dumps(described))
        parts.append(pickle.dumps([str(key) for key in range(len(pickle.storages))]))
        for storage in pickle.storages:
            parts += [struct.pack("<q", len(storage)), storage.tobytes()]
        return self.bytes(b"".join(parts), name)

    def zip(
        self,
        members: Mapping[str, bytes],
        name: str = "model.pt",
        compression: int = zipfile.ZIP_STORED,
    ) -> Path:
        """Zip archive of these members."""
        path = self.folder / name
        with zipfile.ZipFile(path, "w", compression) as archive:
            for member, data in members.items():
                archive.writestr(member, data)
        return path

    def npz(self, arrays: Mapping[str, Array], name: str = "model.npz") -> Path:
        """NumPy archive."""
        path = self.folder / name
        np.savez(path, allow_pickle=True, **arrays)
        return path

    def safetensors(self, tensors: Mapping[str, Array], name: str = "model.safetensors") -> Path:
        """File of safetensors, float64 only."""
        header: dict[str, object] = {}
        position = 0
        for key, array in tensors.items():
            end = position + array.nbytes
            header[key] = {
                "dtype": "F64",
                "shape": list(array.shape),
                "data_offsets": [position, end],
            }
            position = end
        values = b"".join(array.tobytes() for array in tensors.values())
        return self.header_and_values(json.dumps(header), values, name)

    def header_and_values(
        self, header: str, values: bytes, name: str = "model.safetensors"
    ) -> Path:
        """File of safetensors with any header."""
        text = header.encode()
        return self.bytes(struct.pack("<Q", len(text)) + text + values, name)

    def bytes(self, data: bytes, name: str = "model.bin") -> Path:
        """Any file."""
        path = self.folder / name
        path.write_bytes(data)
        return path

    def layer(
        self, W_hh: object, prefix: str = "", suffix: str = "_l0", D: int = 3
    ) -> dict[str, Array]:
        """Tensors of one layer by PyTorch's keys, with input weights of 1 and biases of 0."""
        W = np.asarray(W_hh, dtype=np.float64)
        return {
            f"{prefix}weight_ih{suffix}": np.ones((len(W), D)),
            f"{prefix}weight_hh{suffix}": W,
            f"{prefix}bias_ih{suffix}": np.zeros(len(W)),
            f"{prefix}bias_hh{suffix}": np.zeros(len(W)),
        }


@pytest.fixture(scope="session")
def models() -> Path:
    """Folder of the models that real frameworks wrote."""
    return FIXTURES


@pytest.fixture
def write(tmp_path: Path) -> ModelWriter:
    """Writer of model files into a temporary folder."""
    return ModelWriter(tmp_path)
