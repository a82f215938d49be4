"""An HDF5 file as arrays and attributes by path; only what lies in the file itself is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import require_size, spoken
from gradlab.checkpoints.element_types import BFLOAT16, decode
from gradlab.checkpoints.keras.heaps import require_sound_heaps
from gradlab.errors import MissingExtraError, ModelFileError

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MAX_OBJECTS = 100_000
MAX_RATIO = 1100  # deflate, the filter of Keras's choice, packs at most about 1032 to 1
# Keras splits long lists over numbered attributes.
WANTED = re.compile(r"(name|keras_version|model_config)|(layer_names|weight_names)\d*")


@dataclass(frozen=True, slots=True)
class Tree:
    """What an HDF5 file holds, by paths with slashes; the root is the empty path."""

    readers: dict[str, partial[Array]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def children(self, path: str) -> list[str]:
        """Groups right inside another, by path, gru_2 before gru_10."""
        start = f"{path}/" if path else ""
        inside = (key for key in self.attributes if key.startswith(start) and key != path)
        return sorted((key for key in inside if "/" not in key[len(start) :]), key=natural)

    def text(self, path: str, name: str) -> str | None:
        """Attribute of a group as text; None if it has none of that name."""
        value = self.attributes.get(path, {}).get(name)
        return _text(value) if isinstance(value, str | bytes) else None

    def texts(self, path: str, name: str) -> list[str] | None:
        """Attribute of a group as a list of texts, put together if it is split."""
        held = self.attributes.get(path, {})
        parts = sorted((key for key in held if re.fullmatch(rf"{name}\d*", key)), key=natural)
        if not parts:
            return None
        return [_text(entry) for key in parts for entry in np.asarray(held[key]).ravel().tolist()]


def natural(name: str) -> list[tuple[int, str]]:
    """Sorting key that takes numbers inside a name as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def read_tree(source: Path | bytes, max_bytes: int) -> Tree:
    """Everything in an HDF5 file but the values of its arrays.

    Parameters
    ----------
    source
        The file, or its bytes.
    max_bytes
        Limit of one array, as declared.

    Returns
    -------
    tree
        An array is read when its reader is called. Arrays of other things than numbers, and links
        by name, are among ``skipped``.

    Raises
    ------
    MissingExtraError
        If h5py is not installed.
    ModelFileError
        If the file refers to other files, or holds more objects than any model.
    """
    tree = Tree()
    require_sound_heaps(source)
    with _opened(source) as file:
        seen: set[int] = set()
        pending = [("", file)]
        while pending:
            path, group = pending.pop()
            if len(seen) > MAX_OBJECTS:
                raise ModelFileError(f"the HDF5 file holds over {MAX_OBJECTS} objects: damaged")
            tree.attributes[path] = _wanted_attributes(group)
            found = _subgroups(tree, path, group, seen, partial(_read, source, max_bytes))
            pending += reversed(found)
    for path in [*tree.attributes, *tree.readers]:
        for above in _above(path):
            tree.attributes.setdefault(above, {})
    return tree


def _above(path: str) -> list[str]:
    """Groups that a path leads through, which a path joined by backslashes does not have."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _subgroups(
    tree: Tree, path: str, group: Any, seen: set[int], read: partial[Array]
) -> list[tuple[str, Any]]:
    """Groups inside a group that were not seen yet; its arrays go into the tree."""
    h5py = _h5py()
    found = []
    for name in group:
        # TensorFlow on Windows joined parts of a path by backslashes.
        full = f"{path}/{name}".lstrip("/").replace("\\", "/")
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise ModelFileError(
                f"{spoken(full)} is a link to another file ({spoken(str(link.filename))}): "
                "expected a model in one file; nothing outside of it was read"
            )
        if isinstance(link, h5py.SoftLink) or not full.isprintable():
            reason = "a link" if full.isprintable() else "unprintable name"
            tree.skipped.append(f"{spoken(full)} skipped ({reason})")
            continue
        entry = group[name]
        address = int(h5py.h5o.get_info(entry.id).addr)
        if address not in seen:
            seen.add(address)
            if isinstance(entry, h5py.Group):
                found.append((full, entry))
            elif isinstance(entry, h5py.Dataset):
                _add_array(tree, full, entry, partial(read, entry.name))
    return found


def _add_array(tree: Tree, path: str, dataset: Any, reader: partial[Array]) -> None:
    kind = dataset.dtype.kind
    if dataset.shape is None or kind not in "fiubV" or (kind == "V" and not _opaque_pair(dataset)):
        tree.skipped.append(f"{spoken(path)} skipped (type {spoken(str(dataset.dtype))})")
    else:
        tree.readers[path], tree.shapes[path] = reader, dataset.shape


def _read(source: Path | bytes, max_bytes: int, place: str) -> Array:
    """Values of one array."""
    with _opened(source) as file:
        dataset = file[place]
        _require_plausible(dataset, max_bytes)
        values = np.asarray(dataset[()])
        if values.dtype.kind == "V":
            return decode(values.tobytes(), BFLOAT16).reshape(values.shape)
        return values.astype(values.dtype.newbyteorder("="), copy=False)


def _require_plausible(dataset: Any, max_bytes: int) -> None:
    """Refuse values outside the file, filters that are not there and impossible sizes."""
    h5py, name = _h5py(), spoken(dataset.name.lstrip("/"))
    if dataset.is_virtual or dataset.external:
        raise ModelFileError(
            f"the values of {name} lie in other files: expected a model in one file; nothing "
            "outside of it was read"
        )
    properties = dataset.id.get_create_plist()
    for index in range(properties.get_nfilters()):
        number, *_ = properties.get_filter(index)
        if not h5py.h5z.filter_avail(number):
            raise ModelFileError(
                f"{name} is packed by HDF5 filter {number}, which is not installed: expected gzip "
                "or none; save the model again with Keras"
            )
    item = dataset.dtype.itemsize
    declared = int(np.prod((item, *dataset.shape), dtype=object))
    chunk = int(np.prod((item, *(dataset.chunks or ())), dtype=object))
    stored = int(dataset.id.get_storage_size())
    for size in (declared, chunk if dataset.chunks else 0):
        require_size(size, max_bytes, f"the array {name}")
        require_size(size, MAX_RATIO * stored, f"the array {name}")


def _wanted_attributes(group: Any) -> dict[str, Any]:
    names = [name for name in group.attrs if WANTED.fullmatch(name)]
    return {name: group.attrs[name] for name in names if _is_text(group.attrs.get_id(name))}


def _is_text(attribute: Any) -> bool:
    """Whether an attribute holds text, and not more of it than Keras writes.

    Others are not read: the library crashes on some damaged types, and reads damaged counts to
    their end.
    """
    string = isinstance(attribute.get_type(), _h5py().h5t.TypeStringID)
    return string and int(np.prod(attribute.shape, dtype=object)) <= MAX_OBJECTS


def _opaque_pair(dataset: Any) -> bool:
    """Whether elements are two bytes without a meaning: so h5py stores bfloat16."""
    return dataset.dtype.itemsize == 2 and dataset.dtype.names is None


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@contextmanager
def _opened(source: Path | bytes) -> Iterator[Any]:
    h5py = _h5py()
    with h5py.File(BytesIO(source) if isinstance(source, bytes) else source, "r") as file:
        yield file


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            "reading Keras files needs h5py: pip install 'gradlab-rnn[keras]'"
        ) from error
    return h5py
