"""A Keras model's configuration to its recurrent layers: which there are, and which feeds which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gradlab.checkpoints.archive import spoken

# What hands its input on, where a network is only run.
PASSING = frozenset(
    "Dropout SpatialDropout1D GaussianDropout GaussianNoise AlphaDropout ActivityRegularization "
    "Masking InputLayer Identity".split()
)
PACKAGES = ("keras", "tf_keras", "tensorflow")
RECURRENT = re.compile(r"LSTM|GRU|RNN", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Member:
    """One of several layers or cells of a model: its own name, and its class counted in order."""

    container: str
    name: str
    counted: str


Step: TypeAlias = str | Member  # an attribute, or one of several


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasLayer:
    """One recurrent layer in one direction, as the configuration describes it."""

    name: str
    class_name: str
    steps: tuple[Step, ...]  # from the model down to what holds the weights
    config: Mapping[str, Any] | None = None  # None: a file of weights only
    stack: str = ""
    layer: int = 0
    direction: str = "forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a layer reads: the network's input, a recurrent layer, or another layer's output."""

    stack: str = ""
    layer: int = -1
    other: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """Recurrent layers in the model's order, and what those read that do not read its input."""

    layers: list[KerasLayer] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)  # by the layer's name
    classes: list[str] = field(default_factory=list)  # of every layer, for messages


def model_of(description: Mapping[str, Any]) -> Model:
    """Recurrent layers of a model or of a single layer.

    Parameters
    ----------
    description
        ``class_name`` and ``config``, as Keras serializes them.

    Returns
    -------
    model
        Without layers for a subclassed model, whose configuration does not list any.
    """
    walk = _Walk(Model())
    config = description.get("config")
    if _sublayers(config) is None and isinstance(config, dict) and "name" in config:
        walk.layer(description, (), "", Feed())
    else:
        walk.model(description, (), "", Feed())
    return walk.found


def class_of(entry: object) -> str:
    """Class of a serialized object; one that is not Keras's own keeps its package before it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("class_name"), str):
        return ""
    name, module, registered = (
        entry["class_name"],
        entry.get("module"),
        entry.get("registered_name"),
    )
    if isinstance(module, str):
        own = module.split(".")[0] in PACKAGES
    else:
        own = registered is None  # a class of the user's script is registered without a module
    return name if own else f"{module or 'custom'}.{name}"


def snake(class_name: str) -> str:
    """The name that Keras makes of a class for a path: GRUCell to gru_cell."""
    name = re.sub(r"\W+", "", re.split(r"[.>]", class_name)[-1])
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


class _Walk:
    """Goes through nested models and wrappers, keeping what feeds what."""

    def __init__(self, found: Model) -> None:
        self.found = found
        self.taken: set[tuple[str, int]] = set()

    def model(self, entry: Mapping[str, Any], at: tuple[Step, ...], name: str, feed: Feed) -> Feed:
        """Layers of a model inside another, or of the whole; returns what its output is."""
        config = entry.get("config")
        entries = _sublayers(config) or []
        members = _members("layers", entries)
        wired = isinstance(config, dict) and "input_layers" in config
        feeds: dict[str, Feed] = {}
        entering = feed
        for sublayer, member in zip(entries, members, strict=True):
            if wired:
                another = Feed(other=f"another input of {name}") if name and feeds else entering
                feed = _source(sublayer, feeds, another)
            feed = self.layer(sublayer, (*at, member), name, feed)
            feeds[member.name] = feed
        outputs = _histories(config.get("output_layers")) if isinstance(config, dict) else []
        return feeds.get(outputs[0], Feed(other=name)) if outputs else feed

    def layer(
        self, entry: Mapping[str, Any], at: tuple[Step, ...], prefix: str, feed: Feed
    ) -> Feed:
        """One layer of any kind; returns what its output is."""
        kind, config = class_of(entry), entry.get("config")
        own = _name_of(entry)
        name = f"{prefix}.{own}" if prefix else own
        self.found.classes.append(kind)
        if _sublayers(config) is not None:
            return self.model(entry, at, name, feed)
        if not isinstance(config, dict):
            return Feed(other=f"{name} ({kind})")
        if kind in PASSING:
            return feed
        if kind == "Bidirectional":
            return self.both(config, at, name, feed)
        if isinstance(config.get("layer"), dict):
            steps = Feed(other=f"the steps of {name}")
            self.layer({**config["layer"], "name": name}, (*at, "layer"), "", steps)
            return Feed(other=f"{name} ({kind})")
        if "cell" in config or RECURRENT.search(kind) or "recurrent_initializer" in config:
            return self.recurrent(entry, at, name, feed)
        return Feed(other=f"{name} ({kind})")

    def both(self, config: Mapping[str, Any], at: tuple[Step, ...], name: str, feed: Feed) -> Feed:
        """Two layers side by side, in opposite directions."""
        forward = config.get("layer")
        if not isinstance(forward, dict) or not isinstance(forward.get("config"), dict):
            return Feed(other=name)
        backward = config.get("backward_layer")
        if not isinstance(backward, dict):
            turned = {"go_backwards": not forward["config"].get("go_backwards", False)}
            backward = {**forward, "config": {**forward["config"], **turned}}
        stacked = "cells" in _config(forward["config"].get("cell"))
        outputs = []
        for part, layer in (("forward", forward), ("backward", backward)):
            free = not stacked and part == "backward"
            output = self.recurrent(layer, (*at, f"{part}_layer"), f"{name}.{part}", feed, free)
            outputs.append(output)
        side_by_side = config.get("merge_mode", "concat") == "concat" and not stacked
        forward_first = not forward["config"].get("go_backwards", False)
        # Bidirectional turns the backward output round again: only the other one tells.
        return outputs[0] if side_by_side and forward_first else Feed(other=f"{name} (merged)")

    def recurrent(
        self,
        entry: Mapping[str, Any],
        at: tuple[Step, ...],
        name: str,
        feed: Feed,
        beside: bool = False,
    ) -> Feed:
        """One recurrent layer, of one cell or several; ``beside`` another that reads the same."""
        config = _config(entry)
        cell = config.get("cell")
        cells = _config(cell).get("cells")
        backward = bool(config.get("go_backwards", False))
        first = KerasLayer(
            name=name,
            class_name=class_of(cell) or class_of(entry),
            steps=(*at, "cell"),
            config=_config(cell) if isinstance(cell, dict) else config,
            direction="backward" if backward else "forward",
        )
        for layer in _stacked(first, cells) if isinstance(cells, list) else [first]:
            placed = self.placed(layer, feed, beside, name)
            self.found.layers.append(placed)
            feed = Feed(stack=placed.stack, layer=placed.layer)
        if config.get("return_sequences", False) and not backward:
            return feed
        what = "the last state" if not config.get("return_sequences", False) else "the reverse"
        return Feed(other=f"{what} of {name}")

    def placed(self, layer: KerasLayer, feed: Feed, beside: bool, own: str) -> KerasLayer:
        """The layer on the stack that feeds it, or on a stack of its own name."""
        place = (feed.stack, feed.layer + 1)
        first = self.found.layers[-1] if beside else None
        if first is not None:
            return replace(layer, stack=first.stack, layer=first.layer)
        if feed.stack and place not in self.taken:
            self.taken.add(place)
            return replace(layer, stack=feed.stack, layer=place[1])
        other = feed.other or (f"the sequence of {feed.stack}" if feed.stack else "")
        if other:
            self.found.reads[layer.name] = spoken(other)
        return replace(layer, stack=own.removesuffix(".forward"))


def _stacked(first: KerasLayer, cells: Sequence[Any]) -> list[KerasLayer]:
    """The cells of one recurrent layer, each reading the one below."""
    known = [cell for cell in cells if isinstance(cell, dict)]
    members = _members("cells", known)
    names = [member.name or member.counted for member in members]
    distinct = len(set(names)) == len(names)
    return [
        replace(
            first,
            name=f"{first.name}.{name if distinct else index}",
            class_name=class_of(cell),
            steps=(*first.steps, member),
            config=_config(cell),
        )
        for index, (cell, member, name) in enumerate(zip(known, members, names, strict=True))
    ]


def _sublayers(config: object) -> list[Any] | None:
    """Serialized layers of a model; a list in older files, inside a dictionary in newer ones."""
    layers = config.get("layers") if isinstance(config, dict) else config
    if not isinstance(layers, list):
        return None
    return [layer for layer in layers if isinstance(layer, dict)]


def _members(container: str, entries: Sequence[Mapping[str, Any]]) -> list[Member]:
    counts: dict[str, int] = {}
    members = []
    for entry in entries:
        base = snake(class_of(entry))
        count = counts.get(base, 0)
        counts[base] = count + 1
        counted = f"{base}_{count}" if count else base
        members.append(Member(container, _name_of(entry), counted))
    return members


def _name_of(entry: Mapping[str, Any]) -> str:
    name = entry.get("name") or _config(entry).get("name") or snake(class_of(entry))
    return spoken(str(name))


def _config(entry: object) -> Mapping[str, Any]:
    config = entry.get("config") if isinstance(entry, dict) else None
    return config if isinstance(config, dict) else {}


def _source(entry: Mapping[str, Any], feeds: Mapping[str, Feed], default: Feed) -> Feed:
    """What a layer of a wired model reads: the first tensor of its only call."""
    nodes = entry.get("inbound_nodes") or []
    if class_of(entry) == "InputLayer" or not nodes:
        return default
    histories = _histories(nodes[0])
    if len(nodes) > 1 or not histories:
        return Feed(other="several inputs" if histories else "an unknown layer")
    return feeds.get(histories[0], Feed(other=histories[0]))


def _histories(node: object) -> list[str]:
    """Names of the layers whose tensors a node reads, in order; two spellings over the years."""
    if isinstance(node, dict):
        held = node.get("keras_history")
        parts = [held] if held is not None else [node.get(key) for key in ("args", "config")]
        return [name for part in parts for name in _histories(part)]
    if isinstance(node, list | tuple):
        if len(node) >= 3 and isinstance(node[0], str) and isinstance(node[1], int):
            return [node[0]]
        return [name for part in node for name in _histories(part)]
    return []
