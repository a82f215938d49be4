"""ONNX model files: recognized by their first fields, parsed whole, never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive, reading, require_size
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.onnx.finding import find
from gradlab.checkpoints.onnx.scopes import Scope, every_scope, main_scope
from gradlab.checkpoints.onnx.stored import Proto, Store
from gradlab.errors import MissingExtraError, ModelFileError

CONTAINER = "ONNX model"
Reader: TypeAlias = Callable[[], Array]
VERSION, PRODUCER = 0x08, 0x12  # the first two fields, as a protobuf tags them
# What may follow the version: producer, its version, domain, model version, text, graph, imports.
FOLLOWING = (PRODUCER, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
OLDEST, NEWEST = 3, 64  # versions of the format; the newest of 2026 is 13


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so is of this format.

    A protobuf has no signature. Core ML and TensorFlow files begin alike, with a message where ONNX
    has the producer's name.
    """
    if len(head) < 4 or head[0] != VERSION or head[2] not in FOLLOWING:
        return False
    name = head[4 : 4 + head[3]] if head[2] == PRODUCER else b""
    return OLDEST <= head[1] <= NEWEST and all(0x20 <= byte != 0x7F for byte in name)


def read(path: Path, max_bytes: int) -> Archive:
    """Every stored array of a model, and its recurrent layers.

    Parameters
    ----------
    path
        A file of this format.
    max_bytes
        Limit of the file, of one tensor, and of what weights are computed from.

    Returns
    -------
    archive
        Arrays that are initializers or constants of any graph in the model; external data are read
        only where they are asked for.

    Raises
    ------
    ModelFileError
        If the file is above the limit or damaged.
    MissingExtraError
        If onnx is not installed.
    """
    require_size(path.stat().st_size, max_bytes, "the model")
    store = Store(folder=path.parent, max_bytes=max_bytes)
    scope = main_scope(_parsed(path))
    readers = _readers(scope, store)
    return archive(path, CONTAINER, readers, find=partial(_find, path, scope, store, readers))


def _parsed(path: Path) -> Proto:
    """Message of a whole file."""
    try:
        from onnx import ModelProto
    except ImportError as error:
        raise MissingExtraError(
            f"reading {path}, an ONNX model, needs onnx: pip install 'gradlab-rnn[onnx]'"
        ) from error
    model = ModelProto.FromString(path.read_bytes())
    if not model.HasField("graph"):
        raise ModelFileError(f"{path} holds no graph: expected an ONNX model; export it again")
    return model


def _find(
    path: Path, scope: Scope, store: Store, readers: dict[str, Reader], unsaid: Unsaid
) -> Findings:
    with reading(path, CONTAINER):
        return find(scope, store, archive(path, CONTAINER, readers).tensors, unsaid)


def _readers(scope: Scope, store: Store) -> dict[str, Reader]:
    """Arrays of all graphs, by their own names, with the graph's label where one is taken."""
    readers: dict[str, Reader] = {}
    for graph in every_scope(scope):
        constants = {
            node.outputs[0]: node.tensors["value"]
            for node in graph.nodes
            if node.op == "Constant" and "value" in node.tensors and node.outputs
        }
        for name, tensor in {**graph.tensors, **constants}.items():
            free = name if name not in readers else f"{graph.label}{name}"
            readers[free] = partial(store.read, tensor)
    return readers
