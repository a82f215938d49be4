"""What a pickled or scripted PyTorch module says beside its tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive
from gradlab.checkpoints.pickled import Stub
from gradlab.checkpoints.pickled_tree import SCRIPTED, Named
from gradlab.checkpoints.recurrences import find_recurrences
from gradlab.checkpoints.told import TORCH_LAYERS, Told, told

MANGLE = re.compile(r"\.___torch_mangle_\d+")
CONSTANT = re.compile(r'^  (?P<name>\w+) : Final\[(?:bool|str)\] = (?P<value>True|False|"\w*")$')
CONSTANTS = {"True": True, "False": False}
# A trace has no constants. Of PyTorch's own layers it has the call, whose last argument is the
# batch axis, or the operations of a single cell.
CALL = re.compile(
    r"torch\.rnn_(?P<mode>tanh|relu)\(|torch\.(?P<nonlinearity>tanh|relu)\(torch\.add_?\("
)
LAYOUT = re.compile(
    r"torch\.(?:rnn_tanh|rnn_relu|lstm|gru)\(\w+, \w+, \w+, (?:True|False), \d+, [\d.e+-]+, "
    r"(?:True|False), (?:True|False), (?P<batch_first>True|False)\)$"
)

Code = Callable[[str], str]
"""Source text of a script by the path of its file below ``code/``; empty if there is none."""


def told_of(modules: Mapping[str, Stub], code: Code = lambda path: "") -> dict[str, Told]:
    """Statements of the modules that own a recurrent weight.

    Parameters
    ----------
    modules
        By the prefix of their tensors' names.
    code
        Where the scripts of a TorchScript archive are; they are read as text, never compiled.

    Returns
    -------
    told
        By the same prefix.
    """
    return {prefix: _told(module, code) for prefix, module in modules.items() if _recurrent(module)}


def torch_archive(
    path: Path,
    container: str,
    readers: Mapping[str, Callable[[], Array]],
    named: Named,
    told: Mapping[str, Told],
) -> Archive:
    """Archive whose layers are found by the names of the tensors, and by what modules say.

    Parameters
    ----------
    path, container, readers
        As for ``archive``.
    named
        What the pickle holds.
    told
        What is said of layers, by the prefix of their tensors' names.
    """
    kinds = {name: leaf.kind for name, leaf in named.tensors.items()}
    stored = archive(path, container, readers, named.skipped, kinds=kinds)
    if not told:
        return stored
    return replace(stored, find=partial(find_recurrences, stored.tensors, told=told))


def _recurrent(module: Stub) -> bool:
    return any(name.startswith("weight_hh") for name in _own(module))


def _own(module: Stub) -> list[str]:
    state = module.state if isinstance(module.state, Mapping) else {}
    parameters = state.get("_parameters", state)
    return [str(name) for name in parameters] if isinstance(parameters, Mapping) else []


def _told(module: Stub, code: Code) -> Told:
    if module.name.startswith(SCRIPTED):
        path, _, name = module.name.rpartition(".")
        lines = _class_lines(code(f"{path.replace('.', '/')}.py"), name)
        kind = MANGLE.sub("", module.name).removeprefix(SCRIPTED)
        traced = _traced(lines) if kind in TORCH_LAYERS else {}
        return told(kind, traced | _constants(lines))
    state = module.state if isinstance(module.state, Mapping) else {}
    return told(module.name, {str(name): value for name, value in state.items()})


def _class_lines(source: str, name: str) -> list[str]:
    """Lines of one of the classes in the text of a script."""
    lines = source.splitlines()
    header = f"class {name}(Module):"
    start = lines.index(header) + 1 if header in lines else len(lines)
    return list(takewhile(lambda line: not line or line.startswith("  "), lines[start:]))


def _constants(lines: Iterable[str]) -> dict[str, object]:
    """Constants that a class states."""
    constants: dict[str, object] = {}
    for line in lines:
        match = CONSTANT.match(line)
        if match is not None:
            value = match["value"]
            constants[match["name"]] = CONSTANTS.get(value, value.strip('"'))
    return constants


def _traced(lines: Iterable[str]) -> dict[str, object]:
    """What the one call in a traced layer of PyTorch's says."""
    found: dict[str, object] = {}
    for line in lines:
        for match in (CALL.search(line), LAYOUT.search(line)):
            said = {} if match is None else match.groupdict()
            found |= {key: CONSTANTS.get(value, value) for key, value in said.items() if value}
    return found
