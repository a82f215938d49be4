"""Keras 3's own file (.keras): a zip of configuration, metadata and HDF5 weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gradlab.checkpoints.archive import Archive, archive
from gradlab.checkpoints.keras.hdf5 import read_tree
from gradlab.checkpoints.keras.hdf5_file import finder
from gradlab.checkpoints.zip_members import read_member

CONTAINER = "Keras file"
WEIGHTS = "model.weights.h5"
CONFIG = "config.json"
METADATA = "metadata.json"
MAX_TEXT_BYTES = 100 * 1024**2  # of a configuration, which takes many times that when it is read


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a zip of these members is of this format."""
    return WEIGHTS in members and CONFIG in members


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by their paths in the weights' HDF5 file.

    Parameters
    ----------
    path
        A file of this format.
    max_bytes
        Limit of one member, and of one array.

    Returns
    -------
    archive
        The HDF5 member is unpacked once and kept, since its arrays lie anywhere in it.

    Raises
    ------
    MissingExtraError
        If h5py is not installed.
    ModelFileError
        If the file is damaged or declares more than the limit.
    """
    limit = min(max_bytes, MAX_TEXT_BYTES)
    description = json.loads(read_member(path, CONFIG, limit))
    metadata = json.loads(read_member(path, METADATA, limit))
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    tree = read_tree(read_member(path, WEIGHTS, max_bytes), max_bytes)
    known = version if isinstance(version, str) else None
    find = finder(path, CONTAINER, tree, description, known)
    return archive(path, CONTAINER, tree.readers, tree.skipped, find)
