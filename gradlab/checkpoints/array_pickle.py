"""Plain pickles of arrays, in any protocol, of any nesting; nothing in them is executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, require_size
from gradlab.checkpoints.element_types import decode
from gradlab.checkpoints.pickled import Constructors, read_pickle
from gradlab.checkpoints.pickled_arrays import PickledArray
from gradlab.checkpoints.pickled_tree import Leaf, named_tensors
from gradlab.checkpoints.torch_legacy import storage_in
from gradlab.checkpoints.torch_modules import told_of, torch_archive
from gradlab.checkpoints.torch_objects import CONSTRUCTORS, HeldStorage, elements_of
from gradlab.errors import ModelFileError

CONTAINER = "plain pickle"

# Protocols 2 to 5 say so; 0 and 1 begin with a dictionary, a list, a tuple or a class's name.
HEAD = re.compile(rb"\x80[\x02-\x05]|\((dp|lp|[dlti]|c\w)|[}\]](q|r)|c[A-Za-z_][\w.]*\n\w+\n")


def _joblib(*_: object) -> object:
    raise ModelFileError(
        "the pickle is joblib's, which puts the arrays between the opcodes: load it with joblib "
        "and save the arrays with numpy.savez"
    )


ALLOWED: Constructors = {
    **CONSTRUCTORS,
    "torch.storage._load_from_bytes": storage_in,
    "joblib.numpy_pickle.NumpyArrayWrapper": _joblib,
}


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so is of this format."""
    return HEAD.match(head) is not None


def read(path: Path, max_bytes: int) -> Archive:
    """Arrays by the keys and attributes that lead to them.

    Parameters
    ----------
    path
        A pickle of dictionaries, lists or objects that hold NumPy or JAX arrays, or of PyTorch
        tensors pickled without ``torch.save``.
    max_bytes
        Limit of the file, whose arrays all lie in the pickle itself, and of one array.

    Returns
    -------
    archive
        Objects are read as their attributes; arrays of anything but numbers are skipped by name.
    """
    require_size(path.stat().st_size, max_bytes, "the pickle")
    with path.open("rb") as stream:
        named = named_tensors(read_pickle(stream, ALLOWED))
    readers: dict[str, Callable[[], Array]] = {
        name: partial(_values, leaf, max_bytes) for name, leaf in named.tensors.items()
    }
    return torch_archive(path, CONTAINER, readers, named, told_of(named.modules))


def _values(leaf: Leaf, max_bytes: int) -> Array:
    if isinstance(leaf, PickledArray):
        return leaf.values(max_bytes)
    if not isinstance(leaf.storage, HeldStorage):
        raise ModelFileError("a tensor lies outside the pickle: save it with torch.save")
    return elements_of(leaf, decode(leaf.storage.raw, leaf.storage.kind), max_bytes)
