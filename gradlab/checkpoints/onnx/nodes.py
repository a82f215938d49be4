"""One recurrent node of ONNX to the layers that it is, one a direction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.layers import StoredLayer
from gradlab.checkpoints.onnx.activations import activations
from gradlab.checkpoints.onnx.folding import Folding
from gradlab.checkpoints.onnx.initial import last_length
from gradlab.checkpoints.onnx.scopes import Node
from gradlab.checkpoints.onnx.weights import (
    INITIAL_C,
    INITIAL_H,
    QUANTIZED,
    Weights,
    read_weights,
)
from gradlab.errors import ModelFileError

KINDS = {"RNN": "RNN", "GRU": "GRU", "LSTM": "LSTM", QUANTIZED: "LSTM"}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# Where the cell's gates are among ONNX's: r, z, n of z, r, h; and i, f, g, o of i, o, f, c.
ORDER = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
PROJECTED = ": ONNX has no LSTM with a projection (proj_size), read its state dict instead"
PEEPHOLE_ORDER = (0, 2, 1)  # i, f, o of i, o, f
DIRECTIONS = {
    "forward": ("forward",), "reverse": ("backward",), "bidirectional": ("forward", "backward")
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeLayer:
    """The layers of one node, and what it says of the time axis."""

    node: Node
    layers: Sequence[StoredLayer]
    batch_first: bool
    input_size: int
    output_size: int


def is_recurrent(node: Node) -> bool:
    """Whether gradlab may read a node: of ONNX itself, or onnxruntime's quantized LSTM."""
    return node.domain == ("com.microsoft" if node.op == QUANTIZED else "") and node.op in KINDS


def read_node(node: Node, name: str, folding: Folding) -> NodeLayer:
    """Layers of a recurrent node, by gradlab's names.

    Parameters
    ----------
    node
        An RNN, a GRU, an LSTM or a DynamicQuantizeLSTM.
    name
        What to call it; the direction is added unless the node runs forward only.
    folding
        Values of the model's names.

    Returns
    -------
    layers
        Forward before backward.

    Raises
    ------
    ModelFileError
        If a weight is only known when the model runs, an activation is unknown, or the shapes do
        not fit the node's own sizes, as with projections; without the node's name.
    """
    kind = KINDS[node.op]
    directions = DIRECTIONS.get(node.attributes.get("direction", "forward"), ())
    weights = read_weights(node, folding)
    _require_shapes(node, kind, weights, len(directions))
    for role in (INITIAL_H, INITIAL_C):
        _require_state(node, role, weights.R.shape[2], folding)
    settings = _settings(node, kind, len(directions))
    layers = [
        StoredLayer(
            name=name if directions == ("forward",) else f"{name}.{direction}",
            kind=kind.lower(),
            weights=WEIGHTS[kind](weights, d),
            tensors=_sources(kind, weights),
            settings=settings[d],
            direction=direction,
            stored_dtype=weights.stored_dtype,
        )
        for d, direction in enumerate(directions)
    ]
    return NodeLayer(
        node=node,
        layers=layers,
        batch_first=bool(node.attributes.get("layout", 0)),
        input_size=weights.W.shape[2],
        output_size=len(directions) * weights.R.shape[2],
    )


def _require_shapes(node: Node, kind: str, weights: Weights, directions: int) -> None:
    """Refuse arrays that are not those of GN rows a direction; N is the node's own hidden_size."""
    n = weights.R.shape[-1] if weights.R.ndim == 3 else 0
    rows = GATES[kind] * n
    features = weights.W.shape[-1] if weights.W.ndim == 3 else 0
    wanted: dict[str, tuple[int, ...]] = {
        "W": (directions, rows, features),
        "R": (directions, rows, n),
    }
    wanted |= {} if weights.B is None else {"B": (directions, 2 * rows)}
    wanted |= {} if weights.P is None else {"P": (directions, 3 * n)}
    for letter, shape in wanted.items():
        found = np.shape(getattr(weights, letter))
        if found != shape or 0 in shape or node.attributes.get("hidden_size", n) != n:
            said = ", ".join(
                f"{key} {spoken(str(node.attributes[key]))}"
                for key in ("hidden_size", "direction")
                if key in node.attributes
            )
            raise ModelFileError(
                f"its {letter} has shape {found} and it says {said or 'nothing of its size'}, "
                f"where {shape} belongs to R of shape {weights.R.shape}"
                f"{PROJECTED if kind == 'LSTM' else ''}"
            )


def _require_state(node: Node, role: int, n: int, folding: Folding) -> None:
    """Refuse an initial state of another size: what exporters make of an LSTM with a projection."""
    length = last_length(node.scope, node.operand(role), folding) if node.operand(role) else n
    if length is not None and length != n:
        which = "initial_h" if role == INITIAL_H else "initial_c"
        raise ModelFileError(f"its {which} has {length} units and its R {n}{PROJECTED}")


def _settings(node: Node, kind: str, directions: int) -> list[dict[str, Any]]:
    """Further arguments of the cell, for each direction."""
    common: dict[str, Any] = {}
    if clip := node.attributes.get("clip"):
        common["clip"] = _positive(clip)
    if kind == "GRU":
        common["reset"] = "after" if node.attributes.get("linear_before_reset", 0) else "before"
    if kind == "LSTM" and node.attributes.get("input_forget", 0):
        common["coupled"] = "forget"
    return [
        common | dict(zip(ROLES[kind], names, strict=True))
        for names in activations(node, kind, directions)
    ]


def _positive(clip: float) -> float:
    if not 0.0 < clip < math.inf:
        raise ModelFileError(f"its clip is {clip}, where a positive number is expected")
    return clip


ROLES = {
    "RNN": ("activation",),
    "GRU": ("recurrent_activation", "activation"),
    "LSTM": ("recurrent_activation", "activation", "output_activation"),
}


def _rows(array: Array, order: Sequence[int]) -> Array:
    """Blocks of rows in another order."""
    parts = np.split(array, len(order))
    return np.concatenate([parts[place] for place in order])


def _vanilla(weights: Weights, d: int) -> dict[str, Array]:
    arrays = {"W_xh": weights.W[d], "W_hh": weights.R[d]}
    if weights.B is None:
        return arrays
    return arrays | {"b_h": np.sum(np.split(weights.B[d].astype(np.float64), 2), axis=0)}


def _gated(kind: str, weights: Weights, d: int) -> dict[str, Array]:
    order = ORDER[kind]
    arrays = {"W_x": _rows(weights.W[d], order), "W_h": _rows(weights.R[d], order)}
    if weights.B is not None:
        biases = np.split(weights.B[d], 2)
        arrays |= {f"b_{side}": _rows(b, order) for side, b in zip("xh", biases, strict=True)}
    if kind == "LSTM" and weights.P is not None:
        arrays["peepholes"] = weights.P[d].reshape(3, -1)[list(PEEPHOLE_ORDER)]
    return arrays


WEIGHTS: Mapping[str, Callable[[Weights, int], dict[str, Array]]] = {
    "RNN": _vanilla,
    "GRU": lambda weights, d: _gated("GRU", weights, d),
    "LSTM": lambda weights, d: _gated("LSTM", weights, d),
}


def _sources(kind: str, weights: Weights) -> Mapping[str, str]:
    """Stored tensors by the cell's attribute."""
    names, own = weights.names, ("W_xh", "W_hh") if kind == "RNN" else ("W_x", "W_h")
    first = {role: names[letter][0] for role, letter in zip(own, "WR", strict=True)}
    return first | {"b_x": names["B"][0], "b_h": names["B"][-1], "peepholes": names["P"][0]}
