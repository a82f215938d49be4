"""The layout of Keras 2, and of .h5 files by Keras 3: a group a layer, which lists its weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.keras.config import KerasLayer, Member
from gradlab.checkpoints.keras.hdf5 import Tree
from gradlab.checkpoints.keras.places import (
    CELL_NAME,
    CellTensors,
    Located,
    Unnamed,
    alone,
    class_of_cell,
    distinct,
)

WEIGHT = re.compile(r"(?P<owner>.*?)/?(?P<part>kernel|recurrent_kernel|bias)(_\d+)?(:\d+)?")
KERAS_1 = re.compile(r".*_[WUb](_[icfozrh])?(:0)?")
SIDES = ("forward_layer", "backward_layer")
DIRECTION = re.compile(r"(^|/)(forward|backward)_")


@dataclass(slots=True)
class _Cell:
    """Weights that follow each other in a layer's list."""

    owner: str
    kernel: str
    recurrent: str = ""
    bias: str | None = None
    others: tuple[str, ...] = ()

    @property
    def tensors(self) -> CellTensors:
        return CellTensors(
            kernel=self.kernel, recurrent=self.recurrent, bias=self.bias, others=self.others
        )


def root_of(tree: Tree) -> str | None:
    """Group that lists the layers; None if the file is not laid out so."""
    return next(
        (path for path in ("model_weights", "") if tree.texts(path, "layer_names") is not None),
        None,
    )


def recognizes(tree: Tree) -> bool:
    """Whether the weights are laid out so."""
    return root_of(tree) is not None


def is_keras_1(tree: Tree) -> bool:
    """Whether a layer lists separate arrays for each gate, or the version says so."""
    root = root_of(tree) or ""
    version = tree.text("", "keras_version") or tree.text(root, "keras_version") or ""
    names = [name for layer in _layers(tree) for name in _weights(tree, layer)]
    old = [name for name in names if re.fullmatch(r".*_U(_[icfozrh])?(:0)?", name)]
    return version.startswith("1.") or bool(old and all(map(KERAS_1.fullmatch, names)))


def located(tree: Tree, layers: Sequence[KerasLayer]) -> Located:
    """Tensors of the layers that the file holds weights of.

    Parameters
    ----------
    tree
        The file.
    layers
        As the configuration describes them: those of one group of the file in their own order.
    """
    found: dict[str, CellTensors] = {}
    for group in dict.fromkeys(_group(layer) for layer in layers):
        wanted = [layer for layer in layers if _group(layer) == group]
        cells = _cells(tree, group)
        for layer, cell in zip(wanted, _matched(wanted, cells), strict=True):
            if cell is not None:
                found[layer.name] = cell.tensors
    return found


def unnamed(tree: Tree) -> list[Unnamed]:
    """Every recurrent cell of the file, by names and shapes alone.

    Parameters
    ----------
    tree
        The file.

    Returns
    -------
    cells
        In the order of the file's own list of layers.
    """
    found = [_unnamed(tree, group, cell) for group in _layers(tree) for cell in _cells(tree, group)]
    if not distinct(found):
        found = [_by_path(cell) for cell in found]
    return [alone(cell) for cell in found]


def _by_path(cell: Unnamed) -> Unnamed:
    path = cell.tensors.recurrent.partition(":")[0]
    return replace(cell, layer=replace(cell.layer, name=spoken(path)))


def _layers(tree: Tree) -> list[str]:
    root = root_of(tree)
    return [] if root is None else tree.texts(root, "layer_names") or []


def _path(tree: Tree, *parts: str) -> str:
    return "/".join(part for part in (root_of(tree), *parts) if part)


def _weights(tree: Tree, layer: str) -> list[str]:
    return tree.texts(_path(tree, layer), "weight_names") or []


def _cells(tree: Tree, layer: str) -> list[_Cell]:
    """Recurrent cells in a layer's list of weights, in its order."""
    return [cell for cell in _runs(tree, layer) if cell.recurrent]


def _runs(tree: Tree, layer: str) -> Iterator[_Cell]:
    """Weights from one kernel to the next."""
    current: _Cell | None = None
    for name in _weights(tree, layer):
        path = _path(tree, layer, name)
        match = WEIGHT.fullmatch(name)
        part = match["part"] if match else ""
        if path not in tree.readers:
            continue
        if match and part == "kernel":
            if current is not None:
                yield current
            current = _Cell(match["owner"], path)
        elif current is not None and match and part == "recurrent_kernel":
            current.recurrent = path
        elif current is not None and part == "bias" and current.bias is None:
            current.bias = path
        elif current is not None and name.startswith(f"{current.owner}/"):
            current.others = (*current.others, path)
    if current is not None:
        yield current


def _group(layer: KerasLayer) -> str:
    """Group of the outermost layer: those of a nested model share one."""
    return next((step.name for step in layer.steps if isinstance(step, Member)), layer.name)


def _matched(layers: Sequence[KerasLayer], cells: Sequence[_Cell]) -> list[_Cell | None]:
    """A cell for each layer: by names on its path if they tell all apart, else in order."""
    named = [_named(layer, cells) for layer in layers]
    if all(cell is not None for cell in named) and len({id(cell) for cell in named}) == len(named):
        return named
    if len(layers) == len(cells):
        return list(cells)
    return [None] * len(layers)


def _named(layer: KerasLayer, cells: Sequence[_Cell]) -> _Cell | None:
    """The only cell whose path holds the innermost names of a layer."""
    names = [step.name for step in layer.steps if isinstance(step, Member)][1:]
    sides = [
        f"/{step.removesuffix('layer')}"
        for step in layer.steps
        if isinstance(step, str) and step in SIDES
    ]
    fitting = [
        cell
        for cell in cells
        if set(names) <= set(cell.owner.split("/"))
        and all(side in f"/{cell.owner}" for side in sides)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _unnamed(tree: Tree, group: str, cell: _Cell) -> Unnamed:
    last = cell.owner.rpartition("/")[2]
    side = DIRECTION.search(cell.owner)
    parts = [group, side[2] if side else ""]
    if len(_cells(tree, group)) > 1 and not side:
        parts.append(cell.owner.removeprefix(f"{group}/").replace("/", "."))
    known = last if CELL_NAME.fullmatch(last) or last.endswith("_cell") else ""
    layer = KerasLayer(
        name=spoken(".".join(part for part in parts if part)),
        class_name=class_of_cell(known, tree.shapes[cell.recurrent]),
        steps=(),
        direction="backward" if side and side[2] == "backward" else "forward",
    )
    return Unnamed(layer=layer, tensors=cell.tensors)
