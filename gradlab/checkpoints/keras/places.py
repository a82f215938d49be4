"""Where the weights of recurrent cells lie in a Keras file: one description for both layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.keras.config import KerasLayer
from gradlab.checkpoints.keras.hdf5 import natural

CELL_NAME = re.compile(r"(lstm|gru|simple_rnn)_cell(_\d+)?")
CLASSES = {"lstm": "LSTM", "gru": "GRU", "simple_rnn": "SimpleRNN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTensors:
    """Names of the tensors of one recurrent cell."""

    kernel: str
    recurrent: str
    bias: str | None = None
    others: tuple[str, ...] = field(default=())  # weights that no cell known here has

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        bias = () if self.bias is None else (self.bias,)
        return (self.kernel, self.recurrent, *bias, *self.others)


Located: TypeAlias = Mapping[str, CellTensors]  # by the layer's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A recurrent cell of a file, without what a configuration would say of it."""

    layer: KerasLayer
    tensors: CellTensors


def class_of_cell(name: str, shape: tuple[int, ...]) -> str:
    """Class of a cell by the name Keras gives it; by its gates if that name is not kept.

    Parameters
    ----------
    name
        Name of the cell, or empty.
    shape
        Of the recurrent weight.

    Returns
    -------
    class_name
        A description, which no class has, if it is none of Keras's cells.
    """
    if match := CELL_NAME.fullmatch(name):
        return CLASSES[match[1]]
    if name:
        return f"a cell named {spoken(name)}"
    gates = {(1, 0): "SimpleRNN", (3, 0): "GRU", (4, 0): "LSTM"}
    ratio = divmod(shape[1], shape[0]) if len(shape) == 2 and shape[0] else (0, 0)
    return gates.get(ratio, f"a cell with weights of shape {shape}")


def sorted_by_side(paths: Iterable[str]) -> list[str]:
    """Paths with numbers in order, and each forward layer before the backward one."""
    return sorted(paths, key=lambda path: natural(path.replace("backward_", "forward_~")))


def alone(cell: Unnamed) -> Unnamed:
    """The cell on a stack that only the other direction of its layer may share."""
    name = cell.layer.name
    stack = name.rpartition(".")[0] if name.endswith((".forward", ".backward")) else name
    return replace(cell, layer=replace(cell.layer, stack=stack))


def distinct(cells: Sequence[Unnamed]) -> bool:
    """Whether all names differ."""
    return len({cell.layer.name for cell in cells}) == len(cells)
