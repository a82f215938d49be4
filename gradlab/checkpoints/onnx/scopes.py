"""The graph of an ONNX model with its subgraphs and functions, and what a name means where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.checkpoints.onnx.stored import Proto
from gradlab.errors import ModelFileError

MAX_DEPTH = 20  # of subgraphs and functions in each other
MAX_PASSES = 200  # of a value through scopes and functions
MAX_NODES = 200_000  # of the graph with all functions unfolded
FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS = range(1, 9)
ELSE = "else_branch"  # read behind the other branch, wherever the file has it
OWN_DOMAINS = ("", "ai.onnx")


@dataclass(slots=True, eq=False, kw_only=True)
class Scope:
    """One graph: the main one, a branch or body, or a function as it is called.

    ``bound`` are a function's formal inputs; ``outer`` is where a name is looked up next, None for
    the main graph and for functions, which see nothing around them.
    """

    label: str
    depth: int
    outer: Scope | None = None
    nodes: list[Node] = field(default_factory=list)
    producers: dict[str, Node] = field(default_factory=dict)
    tensors: dict[str, Proto] = field(default_factory=dict)
    inputs: dict[str, Proto] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    shapes: dict[str, Proto] = field(default_factory=dict)
    bound: Mapping[str, tuple[Scope, str]] = field(default_factory=dict)
    given: Mapping[str, Proto] = field(default_factory=dict)  # attributes of the call


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """One node, with the graphs inside it."""

    scope: Scope
    op: str
    domain: str
    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Proto] = field(default_factory=dict)
    graphs: dict[str, Scope] = field(default_factory=dict)
    body: Scope | None = None

    def operand(self, index: int) -> str:
        """Name of an input; empty where there is none."""
        return self.inputs[index] if index < len(self.inputs) else ""


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """Where a name gets its value: of a node, a stored tensor, or only when the model runs."""

    scope: Scope
    name: str
    node: Node | None = None
    tensor: Proto | None = None

    @property
    def key(self) -> tuple[Scope, str]:
        """What two lookups of one value share."""
        return self.scope, self.name

    @property
    def stored(self) -> Proto | None:
        """Tensor that holds the value, of the graph or of a constant node."""
        constant = self.node is not None and self.node.op == "Constant"
        return self.node.tensors.get("value") if self.node and constant else self.tensor

    @property
    def dims(self) -> tuple[int, ...]:
        """Shape of the stored tensor, as declared; empty if there is none."""
        return () if self.stored is None else tuple(self.stored.dims)


def definition(scope: Scope, name: str) -> Definition:
    """What defines a name, seen from a scope.

    Parameters
    ----------
    scope, name
        Where the name is used.

    Returns
    -------
    definition
        With neither node nor tensor if the value is an input, or is defined nowhere, as where
        functions pass a value round in a circle.
    """
    here = scope
    for _ in range(MAX_PASSES):
        if name in here.bound:
            here, name = here.bound[name]
        elif name in here.producers:
            node = here.producers[name]
            if node.body is None:
                return Definition(here, name, node=node)
            here, name = node.body, _result(node, node.body, name)
        elif name in here.tensors:
            return Definition(here, name, tensor=here.tensors[name])
        elif here.outer is None or name in here.inputs:
            break
        else:
            here = here.outer
    return Definition(here, name)


def every_node(scope: Scope) -> Iterator[Node]:
    """Nodes of a graph and of all graphs inside it, in the file's order."""
    for node in scope.nodes:
        yield node
        for inner in _inside(node):
            yield from every_node(inner)


def every_scope(scope: Scope) -> Iterator[Scope]:
    """A graph and all graphs inside it."""
    yield scope
    for node in scope.nodes:
        for inner in _inside(node):
            yield from every_scope(inner)


def _inside(node: Node) -> list[Scope]:
    return [*node.graphs.values(), *([] if node.body is None else [node.body])]


def _result(call: Node, body: Scope, name: str) -> str:
    """Name inside a function of what a call returns under another name."""
    index = list(call.outputs).index(name)
    return body.outputs[index] if index < len(body.outputs) else ""


def main_scope(model: Proto) -> Scope:
    """Graph of a model, with subgraphs and functions as scopes of their own.

    Raises
    ------
    ModelFileError
        If graphs nest too deeply, as functions that call themselves do, or unfold to too many
        nodes.
    """
    return _Builder(model).graph(model.graph, "", None, 0)


class _Builder:
    """Builds scopes and counts nodes."""

    def __init__(self, model: Proto) -> None:
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.count = 0

    def graph(self, graph: Proto, label: str, outer: Scope | None, depth: int) -> Scope:
        scope = Scope(label=label, depth=depth, outer=outer)
        scope.given = {} if outer is None else outer.given
        scope.tensors = {tensor.name: tensor for tensor in graph.initializer}
        scope.inputs = {value.name: value for value in graph.input}
        scope.shapes = {value.name: value for value in graph.value_info}
        scope.outputs = [value.name for value in graph.output]
        return self.filled(scope, graph.node)

    def function(self, function: Proto, call: Node, own: Mapping[str, Proto]) -> Scope:
        scope = Scope(label=f"{call.scope.label}{call.name}/", depth=call.scope.depth + 1)
        scope.outputs = list(function.output)
        scope.bound = {
            formal: (call.scope, actual)
            for formal, actual in zip(function.input, call.inputs, strict=False)
            if actual
        }
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        scope.given = {**defaults, **own}
        return self.filled(scope, function.node)

    def filled(self, scope: Scope, nodes: Sequence[Proto]) -> Scope:
        if scope.depth > MAX_DEPTH:
            raise ModelFileError(
                f"the graphs nest deeper than {MAX_DEPTH} levels: expected fewer, as exporters "
                "write them; the file is damaged"
            )
        self.count += len(nodes)
        if self.count > MAX_NODES:
            raise ModelFileError(
                f"the graph unfolds to more than {MAX_NODES} nodes: expected fewer; the file is "
                "damaged"
            )
        for stored in nodes:
            node = self.node(scope, stored)
            scope.nodes.append(node)
            scope.producers.update(dict.fromkeys(filter(None, node.outputs), node))
        return scope

    def node(self, scope: Scope, stored: Proto) -> Node:
        node = Node(
            scope=scope,
            op=stored.op_type,
            domain="" if stored.domain in OWN_DOMAINS else stored.domain,
            name=stored.name,
            inputs=list(stored.input),
            outputs=list(stored.output),
        )
        own = {
            attribute.name: resolved
            for attribute in stored.attribute
            if (resolved := _resolved(attribute, scope)) is not None
        }
        for name, attribute in sorted(own.items(), key=lambda item: item[0] == ELSE):
            self.take(node, name, attribute)
        function = self.functions.get((stored.domain, stored.op_type, stored.overload))
        if function is not None:
            node.body = self.function(function, node, own)
        return node

    def take(self, node: Node, name: str, attribute: Proto) -> None:
        """Sort an attribute by what it holds."""
        if attribute.type == GRAPH:
            label = f"{node.scope.label}{node.name}.{name}/"
            scope = node.scope
            node.graphs[name] = self.graph(attribute.g, label, scope, scope.depth + 1)
        elif attribute.type == TENSOR:
            node.tensors[name] = attribute.t
        elif attribute.type in VALUES:
            node.attributes[name] = VALUES[attribute.type](attribute)


def _resolved(attribute: Proto, scope: Scope) -> Proto | None:
    """Attribute itself, or the one of the function's call that it refers to."""
    return scope.given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute


def _shortest(number: float) -> float:
    """The decimal that people wrote: 0.2, where 32 bits hold 0.20000000298."""
    return float(str(np.float32(number)))


VALUES: Mapping[int, Callable[[Proto], Any]] = {
    FLOAT: lambda attribute: _shortest(attribute.f),
    INT: lambda attribute: int(attribute.i),
    STRING: lambda attribute: attribute.s.decode("utf-8", "replace"),
    FLOATS: lambda attribute: [_shortest(number) for number in attribute.floats],
    INTS: lambda attribute: list(attribute.ints),
    STRINGS: lambda attribute: [text.decode("utf-8", "replace") for text in attribute.strings],
}
