"""What a pickled or scripted PyTorch module says beside its tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Archive, archive
from gradlab.checkpoints.pickled import Stub
from gradlab.checkpoints.pickled_tree import SCRIPTED, Named
from gradlab.checkpoints.recurrences import find_recurrences
from gradlab.checkpoints.told import Told, told

MANGLE = re.compile(r"\.___torch_mangle_\d+")
CONSTANT = re.compile(r'^  (?P<name>\w+) : Final\[(?:bool|str)\] = (?P<value>True|False|"\w*")$')
CONSTANTS = {"True": True, "False": False}

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
        constants = _constants(code(f"{path.replace('.', '/')}.py"), name)
        return told(MANGLE.sub("", module.name).removeprefix(SCRIPTED), constants)
    state = module.state if isinstance(module.state, Mapping) else {}
    return told(module.name, {str(name): value for name, value in state.items()})


def _constants(source: str, name: str) -> dict[str, object]:
    """Constants that the text of a script states of one of its classes."""
    lines = source.splitlines()
    header = f"class {name}(Module):"
    start = lines.index(header) + 1 if header in lines else len(lines)
    constants: dict[str, object] = {}
    for line in lines[start:]:
        if line and not line.startswith("  "):
            break
        match = CONSTANT.match(line)
        if match is not None:
            value = match["value"]
            constants[match["name"]] = CONSTANTS.get(value, value.strip('"'))
    return constants
