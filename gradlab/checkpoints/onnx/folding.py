"""Values that a graph computes from stored numbers alone, worked out without running the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import require_size, spoken
from gradlab.checkpoints.onnx.operators import OPERATORS, result_size
from gradlab.checkpoints.onnx.scopes import Definition, Node, Scope, definition
from gradlab.checkpoints.onnx.stored import Store
from gradlab.errors import GradlabError, ModelFileError

MAX_STEPS = 10_000  # nodes between stored numbers and one weight
ITEM_BYTES = 8
SCALARS: Mapping[str, type[np.generic]] = {
    "value_float": np.float32, "value_floats": np.float32,
    "value_int": np.int64, "value_ints": np.int64,
}  # fmt: skip
Key: TypeAlias = tuple[Scope, str]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not there before the model runs, and why."""

    reason: str


@dataclass(slots=True, eq=False, kw_only=True)
class Folding:
    """Values of names, each computed once, within a limit of bytes for all of them."""

    store: Store
    known: dict[Key, Array | Unknown] = field(default_factory=dict)
    sources: dict[Key, tuple[Definition, ...]] = field(default_factory=dict)
    taken: int = 0

    def value(self, scope: Scope, name: str) -> Array | Unknown:
        """Value of a name, if the model stores it or what it is computed from.

        Parameters
        ----------
        scope, name
            Where the name is used.

        Returns
        -------
        value
            Or the reason why it is only known when the model runs.

        Raises
        ------
        ModelFileError
            If a stored tensor is damaged, or values take more bytes than the limit.
        """
        wanted = definition(scope, name)
        for step in _ordered(wanted, lambda step: step.key in self.known):
            self.known[step.key] = value = self._computed(step)
            self.sources[step.key] = self._behind(step)
            if not isinstance(value, Unknown) and (step.stored is not None or value.base is None):
                self.take(value.nbytes)
        return self.known[wanted.key]

    def take(self, size: int) -> None:
        """Count bytes that are about to be held, or are held already.

        Raises
        ------
        ModelFileError
            If all of them together are more than the limit.
        """
        self.taken += size
        require_size(self.taken, self.store.max_bytes, "the set of tensors behind the weights")

    def behind(self, scope: Scope, name: str) -> tuple[Definition, ...]:
        """The largest stored tensors that a value was computed from, the first and the last.

        Parameters
        ----------
        scope, name
            Where the name is used; its value must have been asked for.
        """
        return self.sources.get(definition(scope, name).key, ())

    def _behind(self, step: Definition) -> tuple[Definition, ...]:
        if step.stored is not None:
            return (step, step)
        needs = [self._taken_branch(step)] if step.node and step.node.op == "If" else _needs(step)
        return _largest(self.sources.get(needed.key, ()) for needed in needs if needed is not None)

    def _computed(self, step: Definition) -> Array | Unknown:
        if step.tensor is not None:
            return self.store.read(step.tensor)
        if step.node is None:
            given = step.name in step.scope.inputs
            return Unknown(f"{spoken(step.name)}, {'an input' if given else 'not in the file'}")
        if step.node.op == "Constant":
            return self._constant(step.node)
        if step.node.op == "If":
            return self._branch(step.node, step)
        if step.node.domain or step.node.op not in OPERATORS:
            return Unknown(f"the output {spoken(step.name)} of a node {spoken(step.node.op)}")
        return self._applied(step.node, step)

    def _constant(self, node: Node) -> Array | Unknown:
        if "value" in node.tensors:
            return self.store.read(node.tensors["value"])
        for name, kind in SCALARS.items():
            if name in node.attributes:
                return np.array(node.attributes[name], kind)
        return Unknown(f"the constant {spoken(node.outputs[0])}, which holds no dense numbers")

    def _branch(self, node: Node, step: Definition) -> Array | Unknown:
        """Value of the branch that a constant condition takes."""
        condition = self._at(definition(node.scope, node.operand(0)))
        if isinstance(condition, Unknown):
            return condition
        taken = self._taken_branch(step)
        missing = Unknown(f"the output {spoken(step.name)} of a branch that is not there")
        return missing if taken is None else self._at(taken)

    def _taken_branch(self, step: Definition) -> Definition | None:
        node = step.node
        condition = self._at(definition(node.scope, node.operand(0))) if node else Unknown("")
        if isinstance(condition, Unknown):
            return None
        return _branches(step).get("then_branch" if np.any(condition) else "else_branch")

    def _applied(self, node: Node, step: Definition) -> Array | Unknown:
        """Value of an operator; what it cannot do with its operands is a reason."""
        inputs = [self._at(definition(node.scope, name)) if name else None for name in node.inputs]
        missing = [value for value in inputs if isinstance(value, Unknown)]
        if missing:
            return missing[0]
        operands: list[Any] = inputs
        own = {name: self.store.read(tensor) for name, tensor in node.tensors.items()}
        attributes = {"outputs": len(node.outputs)} | node.attributes | own
        try:
            size = ITEM_BYTES * result_size(node.op, operands, attributes)
            require_size(size, self.store.max_bytes, f"the result {spoken(step.name)}")
            with np.errstate(all="ignore"):
                result = OPERATORS[node.op](operands, attributes)
        except GradlabError:
            raise
        # NumPy raises nearly every exception there is on operands that do not fit.
        except Exception as error:
            return Unknown(
                f"{spoken(step.name)}, which {node.op} cannot give ({spoken(str(error))})"
            )
        index = list(node.outputs).index(step.name)
        return np.asarray(result[index] if isinstance(result, list) else result)

    def _at(self, step: Definition) -> Array | Unknown:
        return self.known.get(step.key, Unknown(f"{spoken(step.name)}, which needs itself"))


def _largest(sources: Iterable[Sequence[Definition]]) -> tuple[Definition, ...]:
    """First and last of the largest among stored tensors; the others are places and shapes."""
    found = [step for steps in sources for step in steps]
    largest = max((math.prod(step.dims) for step in found), default=0)
    ends = [step for step in found if math.prod(step.dims) == largest]
    return (ends[0], ends[-1]) if ends else ()


def _ordered(wanted: Definition, skip: Callable[[Definition], bool]) -> list[Definition]:
    """What a value needs, each after what it needs itself; without recursion, for long chains."""
    order: list[Definition] = []
    seen: set[Key] = set()
    stack = [(wanted, False)]
    while stack:
        step, complete = stack.pop()
        if complete:
            order.append(step)
        elif step.key not in seen and not skip(step):
            seen.add(step.key)
            stack.append((step, True))
            stack.extend((needed, False) for needed in reversed(_needs(step)))
        if len(seen) > MAX_STEPS:
            raise ModelFileError(
                f"{spoken(wanted.name)} is computed by more than {MAX_STEPS} nodes: expected a "
                "stored weight; simplify the model"
            )
    return order


def _needs(step: Definition) -> list[Definition]:
    """Definitions that one value is directly computed from."""
    node = step.node
    if node is None or node.domain or (node.op != "If" and node.op not in OPERATORS):
        return []
    operands = [definition(node.scope, name) for name in node.inputs if name]
    return [*operands, *_branches(step).values()]


def _branches(step: Definition) -> dict[str, Definition]:
    """What a node If gives in each branch."""
    node = step.node
    index = 0 if node is None else list(node.outputs).index(step.name)
    graphs = {} if node is None else node.graphs
    return {
        name: definition(graph, graph.outputs[index])
        for name, graph in graphs.items()
        if index < len(graph.outputs)
    }
