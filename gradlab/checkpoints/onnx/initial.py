"""What a graph says of the state that a recurrent node starts from."""

from __future__ import annotations

import numpy as np

from gradlab.checkpoints.onnx.folding import Folding, Unknown
from gradlab.checkpoints.onnx.scopes import Definition, Node, Scope, definition

MAX_STEPS = 100  # nodes that only move entries about
# Operators whose result holds nothing but entries of their first input.
MOVES = (
    "Identity", "Cast", "Slice", "Squeeze", "Unsqueeze", "Transpose", "Reshape", "Expand",
    "Gather", "Split", "Tile",
)  # fmt: skip


def last_length(scope: Scope, name: str, folding: Folding) -> int | None:
    """Length of a state's last axis, if the graph tells it.

    Parameters
    ----------
    scope, name
        Where the state is used.
    folding
        Values of the model's names.

    Returns
    -------
    length
        None where only a run would tell.
    """
    step = definition(scope, name)
    for _ in range(MAX_STEPS):
        if step.stored is not None:
            return step.dims[-1] if step.dims else None
        if step.node is None or not _keeps_last_axis(step.node, folding):
            break
        step = definition(step.node.scope, step.node.operand(0))
    if step.node is not None and step.node.op in ("ConstantOfShape", "Expand"):
        return _last_of_shape(step, folding)
    return _declared(step)


def starts_at_zero(scope: Scope, name: str, folding: Folding) -> bool:
    """Whether a state is zeros, whatever its shape.

    Parameters
    ----------
    scope, name
        Where the state is used.
    folding
        Values of the model's names.
    """
    step = definition(scope, name)
    for _ in range(MAX_STEPS):
        if step.node is None or step.node.op not in MOVES:
            break
        step = definition(step.node.scope, step.node.operand(0))
    if step.node is not None and step.node.op == "ConstantOfShape":
        value = step.node.tensors.get("value")
        return value is None or not np.any(folding.store.read(value))
    stored = folding.value(step.scope, step.name) if step.stored is not None else Unknown("")
    return not isinstance(stored, Unknown) and not np.any(stored)


def _keeps_last_axis(node: Node, folding: Folding) -> bool:
    """Whether a result is as long along its last axis as the first input."""
    if node.op != "Slice":
        return node.op in ("Identity", "Cast")
    axes = folding.value(node.scope, node.operand(3)) if node.operand(3) else Unknown("unsaid")
    return not isinstance(axes, Unknown) and not np.any(axes)


def _last_of_shape(step: Definition, folding: Folding) -> int | None:
    """Last entry of the shape that a node makes its result of."""
    node = step.node
    if node is None:
        return None
    shape = definition(node.scope, node.inputs[-1]) if node.inputs else step
    if shape.node is not None and shape.node.op == "Concat" and shape.node.inputs:
        shape = definition(shape.node.scope, shape.node.inputs[-1])
    value = folding.value(shape.scope, shape.name)
    return None if isinstance(value, Unknown) or value.size == 0 else int(np.ravel(value)[-1])


def _declared(step: Definition) -> int | None:
    """Length of the last axis that the graph declares."""
    declared = step.scope.inputs.get(step.name) or step.scope.shapes.get(step.name)
    dims = [] if declared is None else list(declared.type.tensor_type.shape.dim)
    return int(dims[-1].dim_value) or None if dims else None
