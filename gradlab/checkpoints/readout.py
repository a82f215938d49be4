"""The linear layer of a model file that reads the states of its recurrent layers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.stack import Recurrence
from gradlab.checkpoints.archive import MAX_BYTES, Tensors, naming, spoken
from gradlab.checkpoints.conventions import find_by_names
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.findings import Unsaid
from gradlab.checkpoints.keys import weight_names
from gradlab.checkpoints.recognition import read_archive
from gradlab.errors import AmbiguousModelError, ModelFileError, ShapeError, unknown_name

LINEAR_KEY = re.compile(r"(?P<prefix>(.*[./])?)(?P<weight>weight|W_hy)", re.ASCII)
BIASES = {"weight": "bias", "W_hy": "b_y"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearLayer:
    """One linear layer of a file, W h + b."""

    key: str
    weight: Float[Array, "outputs hidden"]
    bias_key: str | None
    bias: Float[Array, " outputs"] | None

    @property
    def words(self) -> str:
        """Names and shape, for people."""
        bias = "without a bias" if self.bias_key is None else f"with {spoken(self.bias_key)}"
        return f"{spoken(self.key)} {self.weight.shape} {bias}"


def find_readout(
    path: str | os.PathLike[str], *, key: str | None = None, max_bytes: int = MAX_BYTES
) -> LinearLayer:
    """The one linear layer that reads what a network's last recurrent layer gives.

    Parameters
    ----------
    path
        A file that `load` reads.
    key
        Name of the weight (``readout.weight``), or of its layer (``readout``), where the file
        leaves a choice.
    max_bytes
        As for `load`.

    Returns
    -------
    layer
        float64.

    Raises
    ------
    AmbiguousModelError
        If more than one layer fits, or what fits feeds another one.
    ModelFileError
        If none fits, or the file cannot be read.
    UnknownNameError
        If there is no layer of the given name.
    ShapeError
        If the named one does not fit, or its bias does not fit it.
    NonFiniteError
        If a weight is NaN or infinite.
    """
    file = Path(path)
    stored = read_archive(file, max_bytes)
    tensors = stored.tensors
    with naming(file):
        found = stored.find(Unsaid()) if stored.find else find_by_names(tensors, Unsaid())
        if not found.recurrences:
            raise ModelFileError("holds no recurrent layer that could be read out")
        widths = _widths(found.recurrences)
        shapes = _linear_shapes(tensors)
        chosen = _named(key, tensors, shapes) if key is not None else _only(shapes, widths)
        return _layer(tensors, chosen, widths)


def _widths(recurrences: Sequence[Recurrence]) -> dict[str, int]:
    """Number of outputs of every stack's last layer, both directions together."""
    last = {entry.stack: entry.layer for entry in recurrences}
    widths = dict.fromkeys(last, 0)
    for entry in recurrences:
        if entry.layer == last[entry.stack]:
            widths[entry.stack] += entry.cell.hidden_size
    return widths


def _linear_shapes(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """Shapes of all matrices that have the name of a linear layer's weight."""
    names = [name for name in weight_names(tensors) if LINEAR_KEY.fullmatch(name)]
    shapes = {name: tensors[name].shape for name in names}
    return {name: shape for name, shape in shapes.items() if len(shape) == 2 and 0 not in shape}


def _only(shapes: Mapping[str, tuple[int, ...]], widths: Mapping[str, int]) -> str:
    fitting = [name for name, shape in shapes.items() if shape[1] in widths.values()]
    if not fitting:
        found = f"found {_listed(shapes, list(shapes))}" if shapes else "there is none at all"
        raise ModelFileError(
            f"no linear layer reads {_spelled(widths)}, {found}: expected one beside the recurrent "
            f"layers, such as readout.weight (outputs, {next(iter(widths.values()))})"
        )
    if len(fitting) > 1:
        raise AmbiguousModelError(
            f"{_listed(shapes, fitting)} could each be the readout: expected one layer that reads "
            f"{_spelled(widths)}; name it (option readout)"
        )
    [only] = fitting
    fed = [name for name, shape in shapes.items() if name != only and shape[1] == shapes[only][0]]
    if fed:
        raise AmbiguousModelError(
            f"{_listed(shapes, [only])} may feed {_listed(shapes, fed)}: expected one linear layer "
            f"between states and loss; if {spoken(only)} is it, name it (option readout)"
        )
    return only


def _named(key: str, tensors: Tensors, shapes: Mapping[str, tuple[int, ...]]) -> str:
    for name in (key, f"{key}.weight", f"{key}.W_hy"):
        if name in tensors:
            return name
    raise unknown_name("readout", key, shapes)


def _layer(tensors: Tensors, key: str, widths: Mapping[str, int]) -> LinearLayer:
    weight = real_numbers(key, tensors[key])
    if weight.ndim != 2 or weight.shape[1] not in widths.values():
        raise ShapeError(
            f"{spoken(key)} has shape {weight.shape}: expected (outputs, "
            f"{next(iter(widths.values()))}), to read {_spelled(widths)}"
        )
    match = LINEAR_KEY.fullmatch(key)
    bias_key = None if match is None else f"{match['prefix']}{BIASES[match['weight']]}"
    if bias_key is None or bias_key not in tensors:
        return LinearLayer(key=key, weight=weight, bias_key=None, bias=None)
    bias = real_numbers(bias_key, tensors[bias_key])
    if bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"{spoken(bias_key)} has shape {bias.shape} and {spoken(key)} {weight.shape}: expected "
            f"({len(weight)},)"
        )
    return LinearLayer(key=key, weight=weight, bias_key=bias_key, bias=bias)


def _spelled(widths: Mapping[str, int]) -> str:
    return " or ".join(
        f"the {width} outputs of {spoken(name) if name else 'the recurrent layers'}"
        for name, width in widths.items()
    )


def _listed(shapes: Mapping[str, tuple[int, ...]], names: Sequence[str]) -> str:
    return ", ".join(f"{spoken(name)} {shapes[name]}" for name in names)
