"""The layout of Keras 3: ``layers/gru_1/cell/vars/0``, paths counted by class, names beside them.

A path is not a layer's name: it is the layer's class, counted. The name stands in the attribute
``name`` of the group ``vars``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.keras.config import KerasLayer, Member, Step
from gradlab.checkpoints.keras.hdf5 import Tree, natural
from gradlab.checkpoints.keras.places import (
    CellTensors,
    Located,
    Unnamed,
    alone,
    class_of_cell,
    distinct,
    sorted_by_side,
)

VARIABLES = "vars"
CONTAINERS = {"layers": ("layers", "_layer_checkpoint_dependencies"), "cells": ("cells",)}
COUNTED = tuple(name for names in CONTAINERS.values() for name in names)
WITHOUT_NAMES = (*COUNTED, "cell", "layer")
DIRECTIONS = {"forward_layer": "forward", "backward_layer": "backward"}


def recognizes(tree: Tree) -> bool:
    """Whether the weights are laid out so."""
    return any(path.rpartition("/")[2] == VARIABLES for path in tree.attributes)


def located(tree: Tree, layers: Sequence[KerasLayer]) -> Located:
    """Tensors of the layers that the file holds weights of.

    Parameters
    ----------
    tree
        The file.
    layers
        As the configuration describes them.
    """
    found = {layer.name: _tensors(tree, _place(tree, layer.steps)) for layer in layers}
    return {name: tensors for name, tensors in found.items() if tensors is not None}


def unnamed(tree: Tree) -> list[Unnamed]:
    """Every recurrent cell of the file, by names and shapes alone.

    Parameters
    ----------
    tree
        The file.

    Returns
    -------
    cells
        Under the names of the layers where the file has them, else under their paths; classes
        counted in order, since the model's own order is not in the file.
    """
    cells = [cell for path in _cells(tree) if (cell := _unnamed(tree, path)) is not None]
    if not distinct(cells):
        cells = [_by_path(cell) for cell in cells]
    return [alone(cell) for cell in cells]


def _by_path(cell: Unnamed) -> Unnamed:
    path = cell.tensors.kernel.rpartition(f"/{VARIABLES}")[0]
    return replace(cell, layer=replace(cell.layer, name=spoken(path)))


def _place(tree: Tree, steps: Sequence[Step]) -> str | None:
    path: str | None = ""
    for step in steps:
        if path is None:
            return None
        path = _member(tree, path, step) if isinstance(step, Member) else _joined(path, step)
    return path


def _member(tree: Tree, path: str, member: Member) -> str | None:
    """One of several layers, by its name; by its counted class in files without names."""
    inside = [
        child
        for container in CONTAINERS[member.container]
        for child in tree.children(_joined(path, container))
    ]
    names = {child: tree.text(f"{child}/{VARIABLES}", "name") for child in inside}
    for child, name in names.items():
        if name is not None and spoken(name) == member.name:
            return child
    if any(name is not None for name in names.values()):
        return None
    return next((child for child in inside if child.endswith(f"/{member.counted}")), None)


def _tensors(tree: Tree, path: str | None) -> CellTensors | None:
    start = f"{path}/{VARIABLES}/"
    names = sorted((name for name in tree.readers if name.startswith(start)), key=natural)
    if path is None or len(names) < 2:
        return None
    bias = names[2] if len(names) > 2 else None
    return CellTensors(kernel=names[0], recurrent=names[1], bias=bias, others=tuple(names[3:]))


def _cells(tree: Tree) -> Iterator[str]:
    """Groups that look like a recurrent cell, gru_2 before gru_10."""
    for path in sorted_by_side(tree.attributes):
        above, _, last = path.rpartition("/")
        if last == VARIABLES and above and not above.startswith("optimizer"):
            owner, _, own = above.rpartition("/")
            named = "_cell" in (tree.text(path, "name") or "")
            if named or own == "cell" or owner.rpartition("/")[2] == "cells":
                yield above


def _unnamed(tree: Tree, path: str) -> Unnamed | None:
    tensors = _tensors(tree, path)
    if tensors is None:
        return None
    name = tree.text(f"{path}/{VARIABLES}", "name") or ""
    layer = KerasLayer(
        name=_spelled(tree, path),
        class_name=class_of_cell(name, tree.shapes[tensors.recurrent]),
        steps=(),
        direction="backward" if "backward_layer" in path.split("/") else "forward",
    )
    return Unnamed(layer=layer, tensors=tensors)


def _spelled(tree: Tree, path: str) -> str:
    """Names of the layers on the way; of attributes of a subclassed model their own."""
    parts = path.split("/")
    names = []
    for index, part in enumerate(parts):
        counted = index > 0 and parts[index - 1] in COUNTED
        name = tree.text(f"{'/'.join(parts[: index + 1])}/{VARIABLES}", "name")
        if counted and name:
            names.append(spoken(name))
        elif part not in WITHOUT_NAMES or counted:
            names.append(DIRECTIONS.get(part, part))
    return ".".join(names) or "cell"


def _joined(path: str, step: str) -> str:
    return f"{path}/{step}" if path else step
