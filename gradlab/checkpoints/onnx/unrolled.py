"""Models without a recurrent node: what they hold in its place."""

from __future__ import annotations

import re
from collections import Counter

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.onnx.scopes import Scope, definition, every_node, every_scope

TORCH_NAME = re.compile(r"(weight|bias)_(hh|ih)(_l\d+)?(_reverse)?$", re.ASCII)
PRODUCTS = ("MatMul", "Gemm")
GATED = {"Sigmoid", "Tanh", "Mul"}
ADVICE = (
    "give gradlab the state dict, name the weights in a mapping (option map), or export "
    "with a recurrent node (torch.onnx.export with dynamo=False)"
)


def written_out(scope: Scope) -> str:
    """Phrase for a model without a recurrent node.

    Parameters
    ----------
    scope
        The model's main graph.

    Returns
    -------
    phrase
        Says that a recurrence is unrolled, or written out as single operators, where matrices that
        multiply again and again, the names of tensors or the mix of operators tell so.
    """
    counts = Counter(node.op for node in every_node(scope))
    signs = [*_repeated(scope), *_named(scope)]
    ops = set(counts)
    if GATED <= ops and ops & set(PRODUCTS):
        signs.append("gates of MatMul or Gemm, Sigmoid, Tanh and Mul")
    signs += [f"a node {op}" for op in ("Loop", "Scan") if op in ops]
    shown = ", ".join(f"{spoken(op)} {count}" for op, count in counts.most_common(6)) or "none"
    if not signs:
        return f"the graph has no node RNN, LSTM or GRU (its nodes: {shown})"
    return (
        "the graph has no node RNN, LSTM or GRU, and a recurrence in it is unrolled or written out "
        f"as single operators ({', '.join(signs)}): {ADVICE}"
    )


def _repeated(scope: Scope) -> list[str]:
    """Stored matrices that multiply more than once."""
    factors = [
        definition(node.scope, node.operand(1)) for node in every_node(scope) if node.op in PRODUCTS
    ]
    uses = Counter(step.name for step in factors if len(step.dims) == 2)
    return [
        f"the product with {spoken(name)}, {count} times over"
        for name, count in uses.most_common(1)
        if count > 1
    ]


def _named(scope: Scope) -> list[str]:
    names = [name for graph in every_scope(scope) for name in graph.tensors]
    torch = [spoken(name) for name in names if TORCH_NAME.search(name)]
    return [f"the tensors {', '.join(torch[:2])}"] if torch else []
