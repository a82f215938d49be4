"""Which recurrent node reads the output of which: stacks of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from gradlab.checkpoints.layers import StoredLayer
from gradlab.checkpoints.onnx.nodes import NodeLayer
from gradlab.checkpoints.onnx.scopes import Node, definition

MAX_STEPS = 100
# Operators between layers that leave the features as they are.
PASSED = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout", "Cast")


def chains(nodes: Sequence[NodeLayer]) -> list[list[NodeLayer]]:
    """Nodes grouped by what feeds what.

    Parameters
    ----------
    nodes
        In the file's order.

    Returns
    -------
    chains
        In order of their first nodes; each node but a chain's first reads the whole output of the
        one before it and nothing else.
    """
    known = {id(entry.node): entry for entry in nodes}
    follower: dict[int, NodeLayer] = {}
    followed = set()
    for entry in nodes:
        before = known.get(id(_feeding(entry.node)))
        if before is None or id(before.node) in follower:
            continue
        if before.output_size == entry.input_size and before is not entry:
            follower[id(before.node)] = entry
            followed.add(id(entry.node))
    return [_chain(entry, follower) for entry in nodes if id(entry.node) not in followed]


def _chain(first: NodeLayer, follower: dict[int, NodeLayer]) -> list[NodeLayer]:
    chain = [first]
    while (following := follower.get(id(chain[-1].node))) is not None:
        chain.append(following)
    return chain


def _feeding(node: Node) -> Node | None:
    """Recurrent node whose Y a node reads as its X, through operators that only reshape."""
    step = definition(node.scope, node.operand(0))
    for _ in range(MAX_STEPS):
        if step.node is None or step.node.op not in PASSED:
            break
        step = definition(step.node.scope, step.node.operand(0))
    first = step.node is not None and step.node.outputs[0] == step.name
    return step.node if first else None


def distinct(
    chains: Sequence[Sequence[NodeLayer]],
) -> tuple[list[Sequence[NodeLayer]], list[str]]:
    """Chains of different weights or equations, and a sentence for each that repeats another.

    Branches of a model often hold the same layers twice.

    Parameters
    ----------
    chains
        In the file's order.

    Returns
    -------
    kept, repeated
        The first of each kind, and what was left out.
    """
    kept: dict[str, Sequence[NodeLayer]] = {}
    copies: dict[str, list[str]] = {}
    for chain in chains:
        digest = _digest(chain)
        if kept.setdefault(digest, chain) is not chain:
            copies.setdefault(digest, []).append(_names(chain))
    repeated = [
        f"{', '.join(names)}: the same weights as {_names(kept[digest])}, left out as a copy"
        for digest, names in copies.items()
    ]
    return list(kept.values()), repeated


def _names(chain: Sequence[NodeLayer]) -> str:
    return ", ".join(layer.name for entry in chain for layer in entry.layers)


def _digest(chain: Sequence[NodeLayer]) -> str:
    """Hash of all that a chain computes with."""
    digest = sha256()
    for layer in (layer for entry in chain for layer in entry.layers):
        digest.update(repr((layer.kind, layer.direction, sorted(layer.settings.items()))).encode())
        for name, array in sorted(layer.weights.items()):
            digest.update(f"{name} {array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def placed(chain: Sequence[NodeLayer]) -> list[StoredLayer]:
    """Layers of a chain as those of one stack, named for its first layer's node.

    Parameters
    ----------
    chain
        Nodes that feed each other.
    """
    first = chain[0].layers[0]
    stack = first.name.removesuffix(f".{first.direction}")
    return [
        replace(layer, layer=depth, stack=stack)
        for depth, entry in enumerate(chain)
        for layer in entry.layers
    ]
