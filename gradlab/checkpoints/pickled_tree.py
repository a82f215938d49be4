"""Nested dictionaries, lists and objects of a pickle to tensors by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.pickled import Stub
from gradlab.checkpoints.pickled_arrays import PickledArray, pickled_array
from gradlab.checkpoints.torch_objects import StridedTensor

Leaf: TypeAlias = StridedTensor | PickledArray
Path: TypeAlias = tuple[str, ...]

# Dictionaries around a state dict. They say what the dictionary is, not where in the model it is.
WRAPPER = re.compile(
    r"(state_?dict|model|net|network|module|weights|params|ema)"
    r"([_-](state|state_?dict|model|ema|weights|params))*",
)
AVERAGED = re.compile(r"(^|[_-])ema($|[_-])")
QUANTIZED = re.compile(r".*(\.quantized\.|\.classes\.rnn\.CellParams|^torch\.ScriptObject$).*")
SCRIPTED = "__torch__."
MAX_DEPTH = 16
MAX_MODULE_DEPTH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """Tensors by name, a phrase for each object that holds none, and the modules they belong to."""

    tensors: Mapping[str, Leaf]
    skipped: Sequence[str]
    modules: Mapping[str, Stub]  # by the prefix that its tensors' names share


@dataclass(slots=True, eq=False)
class _Found:
    """What a walk through the object met, with the way to it."""

    leaves: list[tuple[Path, Leaf]] = field(default_factory=list)
    stubs: list[tuple[Path, Stub]] = field(default_factory=list)
    modules: dict[Path, dict[str, Stub]] = field(default_factory=dict)


def named_tensors(root: object) -> Named:
    """Tensors of nested containers by name.

    Parameters
    ----------
    root
        What the pickle describes.

    Returns
    -------
    named
        Keys and attributes joined by dots, without wrapper dictionaries (``state_dict``,
        ``model``, ...). Where two networks share a name, the running average, or else the later
        one, keeps its wrapper's. Of a whole module the parameters and buffers are taken, under the
        names of its state dict, and its other attributes are left alone. Skipped:
        ``"best skipped (numpy.core.multiarray.scalar)"``.
    """
    found = _walk(root)
    tensors: dict[str, Leaf] = {}
    modules: dict[str, Stub] = {}
    skipped: list[str] = []
    for path, leaf in sorted(found.leaves, key=lambda item: _is_average(item[0])):
        short = _joined((*(part for part in path[:-1] if not _is_wrapper(part)), *path[-1:]))
        name = _joined(path) if short in tensors else short
        if name in tensors:
            skipped.append(f"{spoken(name)} skipped (named twice)")
            continue
        tensors[name] = leaf
        before = name.removesuffix(path[-1]) if path else ""
        for inside, module in found.modules.get(path[:-1], {}).items():
            modules.setdefault(before + inside, module)
    return Named(tensors, (*skipped, *_phrases(found)), modules)


def is_module(node: object) -> bool:
    """Whether an object is a PyTorch module: pickled whole, or part of a TorchScript archive."""
    return (
        isinstance(node, Stub)
        and isinstance(node.state, Mapping)
        and ("_parameters" in node.state or node.name.startswith(SCRIPTED))
    )


def _walk(root: object) -> _Found:
    """Tensors, stubs and modules in order; a container that occurs twice is entered once."""
    found = _Found()
    entered: set[int] = set()
    pending: list[tuple[Path, object]] = [((), root)]
    while pending:
        path, node = pending.pop()
        leaf = _leaf(node)
        if leaf is not None:
            found.leaves.append((path, leaf))
            continue
        if isinstance(node, Stub):
            found.stubs.append((path, node))
        if id(node) in entered or len(path) >= MAX_DEPTH:
            continue
        if is_module(node):
            children, found.modules[path] = _module_contents(node, entered)
        else:
            children = _children(node)
        if children:
            entered.add(id(node))
        pending.extend(((*path, key), value) for key, value in reversed(children))
    return found


def _leaf(node: object) -> Leaf | None:
    if isinstance(node, StridedTensor):
        return node
    return pickled_array(node) if isinstance(node, Stub) else None


def _children(node: object) -> list[tuple[str, object]]:
    if isinstance(node, Stub):
        return [] if QUANTIZED.match(node.name) else _children({**_attributes(node), **node.items})
    if isinstance(node, Mapping):
        return [(str(key), value) for key, value in node.items() if isinstance(key, str | int)]
    if isinstance(node, list | tuple):
        return [(str(index), value) for index, value in enumerate(node)]
    return []


def _attributes(stub: Stub) -> dict[object, object]:
    """State of an object: its attributes, or those and its slots; elements of an object array."""
    match stub.state:
        case dict() as attributes:
            return attributes
        case (None, dict() as slots):
            return slots
        case (dict() as attributes, dict() as slots):
            return {**attributes, **slots}
        case (int(), _, _, _, list() as elements):
            return dict(enumerate(elements))
    return {}


def _module_contents(
    root: object, entered: set[int]
) -> tuple[list[tuple[str, object]], dict[str, Stub]]:
    """Tensors of a module and of those inside it, as its state dict names them; and the modules."""
    contents: list[tuple[str, object]] = []
    modules: dict[str, Stub] = {}
    pending: list[tuple[str, object, int]] = [("", root, 0)]
    while pending:
        prefix, module, depth = pending.pop()
        if not isinstance(module, Stub) or id(module) in entered or depth > MAX_MODULE_DEPTH:
            continue
        entered.add(id(module))
        if QUANTIZED.match(module.name):
            contents.append((prefix.rstrip("."), module))
            continue
        modules[prefix] = module
        inner: list[tuple[str, object, int]] = []
        for name, value in _members(module):
            if is_module(value):
                inner.append((f"{prefix}{name}.", value, depth + 1))
            else:
                contents.append((f"{prefix}{name}", value))
        pending.extend(reversed(inner))
    return contents, modules


def _members(module: Stub) -> list[tuple[str, object]]:
    """Parameters, buffers and modules of one module; a script's are attributes like any others."""
    state = module.state if isinstance(module.state, Mapping) else {}
    if "_parameters" not in state:
        return [(name, value) for name, value in _children(state) if _is_member(value)]
    groups = (state.get(group) for group in ("_parameters", "_buffers", "_modules"))
    return [(name, value) for group in groups for name, value in _children(group)]


def _is_member(value: object) -> bool:
    odd = isinstance(value, Stub) and QUANTIZED.match(value.name) is not None
    return odd or is_module(value) or _leaf(value) is not None


def _phrases(found: _Found) -> list[str]:
    """A phrase for each object that holds no tensor and lies in none that has a phrase."""
    full = {path[:end] for path, _ in found.leaves for end in range(len(path))}
    told: set[Path] = set()
    phrases: list[str] = []
    for path, stub in found.stubs:
        inside = any(path[:end] in told for end in range(len(path)))
        if path in full or inside or path in found.modules:
            continue
        told.add(path)
        reason = "; quantized: save the float network" if QUANTIZED.match(stub.name) else ""
        place = spoken(".".join(path) or "the object")
        phrases.append(f"{place} skipped ({spoken(stub.name)}{reason})")
    return phrases


def _joined(path: Path) -> str:
    """Name of a way; beside modules that are spelled with slashes, as Haiku does, with one."""
    return ("/" if any("/" in part for part in path[:-1]) else ".").join(path)


def _is_wrapper(part: str) -> bool:
    return WRAPPER.fullmatch(part) is not None


def _is_average(path: Path) -> bool:
    return any(AVERAGED.search(part) for part in path[:-1])
