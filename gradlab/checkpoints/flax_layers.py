"""Flax's recurrent cells among tensors by name: linen's gate by gate, nnx's fused.

A linen cell has a kernel (inputs, outputs) for each gate: ``ii if ig io`` of the input and
``hi hf hg ho`` of the state (LSTM), ``ir iz in`` and ``hr hz hn`` (GRU), ``i`` and ``h``
(SimpleCell). Fused cells have one for all gates, ``dense_i`` and ``dense_h``, in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Tensors, spoken
from gradlab.checkpoints.chaining import chained
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.layers import StoredLayer
from gradlab.errors import ShapeError

GATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"lstm": ("i", "f", "g", "o"), "gru": ("r", "z", "n"), "rnn": ("",)}
)
KINDS_BY_BLOCKS = {1: "rnn", 3: "gru", 4: "lstm"}
MINIMAL = {"if", "in", "hf", "hn"}
FUSED = ("dense_i", "dense_h")
WRAPPERS = ("value", "raw_value")  # how nnx wraps an array
DIRECTIONS = {"forward_rnn": "forward", "backward_rnn": "backward"}
DEFAULT = "tanh"
LEAVES = ("kernel", "bias")

Leaves = Mapping[tuple[str, str], str]  # (module, kernel or bias) -> the tensor's name


@dataclass(frozen=True, slots=True)
class _Cell:
    """Tensors of one module that look like a recurrent cell's."""

    path: tuple[str, ...]
    leaves: Leaves
    kind: str
    inputs: tuple[str, ...]
    states: tuple[str, ...]

    @property
    def direction(self) -> str:
        """Direction by the names that ``nn.Bidirectional`` gives."""
        return next((DIRECTIONS[part] for part in self.path if part in DIRECTIONS), "forward")

    @property
    def stack(self) -> str:
        """Path without what every Flax file has, and without the direction."""
        parts = [part for part in self.path if part not in DIRECTIONS]
        parts = parts[1:] if parts[:1] == ["params"] else parts
        return ".".join(parts[:-1] if parts[-1:] == ["cell"] and len(parts) > 1 else parts)

    @property
    def name(self) -> str:
        """Name of the recurrence; a direction is added where there are two."""
        directed = any(part in DIRECTIONS for part in self.path)
        parts = (self.stack, self.direction if directed else "")
        return ".".join(part for part in parts if part) or "cell"


def find_flax(tensors: Tensors, unsaid: Unsaid) -> Findings:
    """Recurrences of Flax among tensors by name.

    Parameters
    ----------
    tensors
        Names are paths, joined by ``/`` or ``.``; only those of recurrent cells are read.
    unsaid
        Activation of a SimpleCell, and type of the states.

    Returns
    -------
    findings
        None if no name is Flax's.

    Raises
    ------
    ShapeError
        If the kernels of a cell do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    """
    modules = _modules(tensors)
    cells = [cell for path, leaves in modules.items() if (cell := _cell(path, leaves, tensors))]
    layers, chain = chained([_stored(cell, tensors, unsaid) for cell in cells])
    simple = [layer.name for layer in layers if layer.kind == "rnn"]
    return Findings(
        recurrences=[layer.recurrence(unsaid.dtype) for layer in layers],
        assumptions=(*_assumed(simple, unsaid), *chain),
        skipped=[_minimal(path) for path, leaves in modules.items() if _is_minimal(leaves)],
        heeded=frozenset({"nonlinearity"} if simple else ()),
    )


def _assumed(simple: Sequence[str], unsaid: Unsaid) -> list[str]:
    if not simple:
        return []
    named = ", ".join(simple)
    activation = (
        [f"Flax does not store the activation of {named}: {DEFAULT} assumed (option nonlinearity)"]
        if unsaid.nonlinearity is None
        else []
    )
    return [*activation, f"Flax does not store whether {named} is residual: it is taken as not"]


def _modules(tensors: Tensors) -> dict[tuple[str, ...], dict[tuple[str, str], str]]:
    """Kernels and biases by the path of the module that owns their layers."""
    modules: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for name in tensors:
        parts = name.split("/" if "/" in name else ".")
        while parts and parts[-1] in WRAPPERS:
            parts.pop()
        if len(parts) > 1 and parts[-1] in LEAVES:
            owned = modules.setdefault(tuple(parts[:-2]), {})
            owned[parts[-2].rstrip("_"), parts[-1]] = name
    return modules


def _kernels(leaves: Leaves) -> set[str]:
    return {module for module, leaf in leaves if leaf == "kernel"}


def _is_minimal(leaves: Leaves) -> bool:
    kernels = _kernels(leaves)
    return kernels >= MINIMAL and not kernels & {"ii", "hi"}


def _minimal(path: tuple[str, ...]) -> str:
    return f"{spoken('.'.join(path))} is an MGUCell, whose reset this version does not know"


def _cell(path: tuple[str, ...], leaves: Leaves, tensors: Tensors) -> _Cell | None:
    kernels = _kernels(leaves)
    for kind, gates in GATES.items():
        inputs, states = (tuple(side + gate for gate in gates) for side in "ih")
        if kernels >= {*inputs, *states}:
            return _Cell(path, leaves, kind, inputs, states)
    if not kernels >= set(FUSED):
        return None
    shape = tensors[leaves[FUSED[1], "kernel"]].shape
    blocks = KINDS_BY_BLOCKS.get(shape[1] // shape[0]) if len(shape) == 2 and shape[0] else None
    return None if blocks is None else _Cell(path, leaves, blocks, FUSED[:1], FUSED[1:])


def _stored(cell: _Cell, tensors: Tensors, unsaid: Unsaid) -> StoredLayer:
    weights = {
        "W_x": _matrix(cell, cell.inputs, tensors),
        "W_h": _matrix(cell, cell.states, tensors),
        "b_x": _bias(cell, cell.inputs, tensors),
        "b_h": _bias(cell, cell.states, tensors),
    }
    settings = {"reset": "after"} if cell.kind == "gru" else {}
    if cell.kind == "rnn":
        weights = {
            "W_hh": weights["W_h"],
            "W_xh": weights["W_x"],
            "b_h": weights["b_x"] + weights["b_h"],
        }
        settings = {"activation": unsaid.nonlinearity or DEFAULT}
    used = {(module, leaf) for module in (*cell.inputs, *cell.states) for leaf in LEAVES}
    names = [name for key, name in cell.leaves.items() if key in used]
    return StoredLayer(
        name=cell.name,
        kind=cell.kind,
        weights=weights,
        tensors={name: name for name in names},
        settings=settings,
        direction=cell.direction,
        stack=cell.stack,
        stored_dtype=tensors.kinds(names),
    )


def _matrix(cell: _Cell, modules: Sequence[str], tensors: Tensors) -> Array:
    """Kernels of the gates, one below the other, rows as outputs."""
    names = [cell.leaves[module, "kernel"] for module in modules]
    kernels = [real_numbers(name, tensors[name]) for name in names]
    if any(kernel.ndim != 2 or kernel.shape != kernels[0].shape for kernel in kernels):
        raise ShapeError(
            f"{spoken(names[0])} and its gates have shapes "
            f"{', '.join(str(kernel.shape) for kernel in kernels)}: expected one (inputs, outputs)"
        )
    return np.concatenate([kernel.T for kernel in kernels])


def _bias(cell: _Cell, modules: Sequence[str], tensors: Tensors) -> Array:
    """Biases of the gates, one after the other, zeros where a gate has none."""
    parts = []
    for module in modules:
        rows = tensors[cell.leaves[module, "kernel"]].shape[1]
        name = cell.leaves.get((module, "bias"))
        parts.append(np.zeros(rows) if name is None else real_numbers(name, tensors[name]))
    return np.concatenate(parts)
