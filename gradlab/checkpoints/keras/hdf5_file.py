"""Keras's HDF5 files: a whole model (.h5, .hdf5) or its weights alone (.weights.h5 as well)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gradlab.checkpoints.archive import Archive, archive, reading
from gradlab.checkpoints.findings import Find, Findings, Unsaid
from gradlab.checkpoints.keras import listed, numbered
from gradlab.checkpoints.keras.config import model_of
from gradlab.checkpoints.keras.finding import KerasModel, find_layers
from gradlab.checkpoints.keras.hdf5 import SIGNATURE, Tree, read_tree
from gradlab.errors import ModelFileError

CONTAINER = "Keras HDF5 file"


def recognizes(head: bytes, members: Sequence[str]) -> bool:
    """Whether a file that begins so is of this format."""
    return head.startswith(SIGNATURE)


def read(path: Path, max_bytes: int) -> Archive:
    """Tensors by their paths in the file.

    Parameters
    ----------
    path
        A file of this format.
    max_bytes
        Limit of one array.

    Returns
    -------
    archive
        With Keras's own layers, by the configuration where it is in the file.

    Raises
    ------
    MissingExtraError
        If h5py is not installed.
    ModelFileError
        If the file is damaged, refers to other files, or is not laid out as Keras does.
    """
    tree = read_tree(path, max_bytes)
    text = tree.text("", "model_config")
    description = None if text is None else json.loads(text)
    version = tree.text("", "keras_version") or tree.text("model_weights", "keras_version")
    find = finder(path, CONTAINER, tree, description, version)
    return archive(path, CONTAINER, tree.readers, tree.skipped, find)


def finder(path: Path, container: str, tree: Tree, description: Any, version: str | None) -> Find:
    """How the recurrences of a file are found once they are asked for.

    Parameters
    ----------
    path, container
        The file and its kind, for messages.
    tree
        What it holds.
    description
        The model's configuration; None in a file of weights.
    version
        Keras's, if the file has it.
    """

    def find(unsaid: Unsaid) -> Findings:
        with reading(path, container):
            return find_layers(_keras_model(tree, description, version), unsaid)

    return find


def _keras_model(tree: Tree, description: Any, version: str | None) -> KerasModel:
    if listed.recognizes(tree) and listed.is_keras_1(tree):
        raise ModelFileError(
            "the file is of Keras 1, whose layers have an array for each gate: expected Keras 2 or "
            "3; load it with Keras 2 and save it again"
        )
    layout = next((layout for layout in (listed, numbered) if layout.recognizes(tree)), None)
    if layout is None:
        raise ModelFileError(
            "the file is HDF5 but holds no Keras model: expected groups with layer_names or vars"
        )
    model = model_of(description) if isinstance(description, dict) else None
    layers = model.layers if model else []
    return KerasModel(
        model=model,
        located=layout.located(tree, layers),
        unnamed=layout.unnamed(tree),
        version=version,
        modern=layout is numbered,
        array=partial(_array, tree),
    )


def _array(tree: Tree, name: str) -> Any:
    return tree.readers[name]()
