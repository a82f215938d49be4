"""The recurrences of an ONNX model, and what it says and leaves open about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

import numpy as np

from gradlab.checkpoints.archive import Tensors, spoken
from gradlab.checkpoints.conventions import find_by_names
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.onnx.chains import chains, distinct, placed
from gradlab.checkpoints.onnx.folding import Folding, Unknown
from gradlab.checkpoints.onnx.initial import starts_at_zero
from gradlab.checkpoints.onnx.nodes import NodeLayer, is_recurrent, read_node
from gradlab.checkpoints.onnx.scopes import Node, Scope, every_node
from gradlab.checkpoints.onnx.stored import Store
from gradlab.checkpoints.onnx.unrolled import ADVICE, written_out
from gradlab.checkpoints.onnx.weights import INITIAL_C, INITIAL_H, LENGTHS, QUANTIZED
from gradlab.errors import GradlabError, ModelFileError

RECURRENT_NAME = re.compile("LSTM|GRU|RNN")
AXES = {
    False: "X is (time, batch, features), as the node says (layout 0)",
    True: "X is (batch, time, features), as the node says (layout 1): give sequences as (time, "
    "batch, features), or as they are with the option batch_first",
}


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What was read, and what was not and why."""

    nodes: list[NodeLayer] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def find(scope: Scope, store: Store, tensors: Tensors, unsaid: Unsaid) -> Findings:
    """Recurrent layers anywhere in a model.

    Parameters
    ----------
    scope
        The model's main graph.
    store
        Where its arrays are.
    tensors
        All of them by name, for models without a recurrent node.
    unsaid
        Type of the states; a node says everything else itself.

    Returns
    -------
    findings
        One recurrence a node and direction; nodes that feed each other are the layers of a stack,
        and nodes of equal weights are one.

    Raises
    ------
    NonFiniteError
        If a weight is NaN or infinite.
    ModelFileError
        If a stored tensor is damaged.
    """
    folding = Folding(store=store)
    reading = _read(scope, folding)
    kept, repeated = distinct(chains(reading.nodes))
    layers = [layer for stack in kept for layer in placed(stack)]
    nodes = [entry for stack in kept for entry in stack]
    if not reading.nodes and not reading.skipped:
        return _by_names(scope, tensors, unsaid)
    return Findings(
        recurrences=[layer.recurrence(unsaid.dtype) for layer in layers],
        assumptions=[*_said(nodes, folding), *repeated],
        skipped=reading.skipped,
    )


def _read(scope: Scope, folding: Folding) -> _Reading:
    reading, taken = _Reading(), Counter[str]()
    for node in every_node(scope):
        if is_recurrent(node):
            name = _name(node, taken)
            try:
                reading.nodes.append(read_node(node, name, folding))
            except ModelFileError as error:
                reading.skipped.append(f"{name}: {error}")
        elif node.domain and RECURRENT_NAME.search(node.op) and node.body is None:
            kind = spoken(f"{node.domain}.{node.op}")
            reading.skipped.append(f"{_name(node, taken)} is a node {kind}, of another runtime")
    return reading


def _by_names(scope: Scope, tensors: Tensors, unsaid: Unsaid) -> Findings:
    """What the names of the tensors tell, where a recurrence is written out as operators."""
    absence = written_out(scope)
    try:
        found = find_by_names(tensors, unsaid)
    except GradlabError as error:
        absence = f"{absence}; {error}"
        found = Findings(recurrences=[], assumptions=[], skipped=[])
    if not found.recurrences:
        return replace(found, assumptions=[], skipped=[absence])
    names = ", ".join(entry.name for entry in found.recurrences)
    sentence = f"{names}: read by the names of tensors, what the operators do with them unchecked"
    written = absence.removesuffix(f": {ADVICE}")
    return replace(found, assumptions=(sentence, written, *found.assumptions))


def _name(node: Node, taken: Counter[str]) -> str:
    """The node's own name, else that of its first output; told apart by its graph or a number."""
    own = spoken(node.name or next(filter(None, node.outputs), node.op))
    numbered = (f"{own}_{number}" for number in count(taken[own] + 1))
    names = chain((own, spoken(f"{node.scope.label}{own}")), numbered)
    name = next(name for name in names if name not in taken)
    taken.update({own, name})
    return name


def _said(nodes: Sequence[NodeLayer], folding: Folding) -> list[str]:
    """Sentences about time, lengths, starts and quantization, each with the layers it is about."""
    facts: dict[str, list[str]] = {}
    for entry in nodes:
        for fact in (AXES[entry.batch_first], *_facts(entry.node, folding)):
            facts.setdefault(fact, []).extend(layer.name for layer in entry.layers)
    return [f"{', '.join(names)}: {fact}" for fact, names in facts.items()]


def _facts(node: Node, folding: Folding) -> list[str]:
    facts = []
    if node.op == QUANTIZED:
        facts.append("weights dequantized, (q - zero point) * scale of the stored bytes")
    if node.attributes.get("clip") and node.op in ("LSTM", QUANTIZED):
        facts.append(
            f"clip {node.attributes['clip']:g} limits the argument of every activation, as the "
            "text of ONNX has it; onnxruntime does not limit that of the output, h(C)"
        )
    if node.operand(LENGTHS):
        facts.append(_lengths(folding.value(node.scope, node.operand(LENGTHS))))
    states = [node.operand(role) for role in (INITIAL_H, INITIAL_C) if node.operand(role)]
    if not all(starts_at_zero(node.scope, name, folding) for name in states):
        facts.append(
            "the model sets its initial state: zeros are used here unless one is given (option "
            "initial_state)"
        )
    return facts


def _lengths(value: object) -> str:
    if isinstance(value, Unknown):
        return "the model takes the sequences' lengths as an input: give them with the sequences"
    lengths = ", ".join(map(str, np.ravel(np.asarray(value))[:8]))
    return f"the model fixes the sequences' lengths to {lengths}: give them with the sequences"
