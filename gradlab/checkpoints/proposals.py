"""Arrays that could be a recurrent layer though their names do not say so, as a mapping to edit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradlab.checkpoints.archive import Tensors, spoken
from gradlab.checkpoints.keys import weight_names
from gradlab.checkpoints.mapping import GATES
from gradlab.errors import GradlabError

KINDS = {1: "rnn", 2: "mgu", 3: "gru", 4: "lstm"}
MOST = 8  # proposals: a file with more candidates is better mapped by someone who knows it
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A matrix that could be recurrent, and what could belong to it."""

    kind: str
    recurrent: str
    inputs: str
    biases: tuple[str, ...]
    transposed: bool


def stored_shapes(tensors: Tensors) -> dict[str, Shape]:
    """Shapes of the arrays that can be read, optimizer moments left out."""
    shapes: dict[str, Shape] = {}
    for name in weight_names(tensors):
        try:
            shapes[name] = tensors[name].shape
        except GradlabError:
            continue  # what cannot be read cannot be proposed; whoever maps it is told why
    return shapes


def proposals(shapes: Mapping[str, Shape]) -> list[Proposal]:
    """Matrices with as many rows as 1 to 4 square blocks, or columns, and an input weight.

    Parameters
    ----------
    shapes
        Of the arrays by name.

    Returns
    -------
    proposals
        In the file's order, no array in two of them; at most `MOST`.
    """
    found: list[Proposal] = []
    taken: set[str] = set()
    for name, shape in shapes.items():
        for transposed in (False, True):
            free = {key: s for key, s in shapes.items() if key not in taken and key != name}
            proposal = _proposal(name, shape, free, transposed)
            if proposal and name not in taken and len(found) < MOST:
                found.append(proposal)
                taken |= {name, proposal.inputs, *proposal.biases}
    return found


def _proposal(
    name: str, shape: Shape, others: Mapping[str, Shape], transposed: bool
) -> Proposal | None:
    if len(shape) != 2 or 0 in shape:
        return None
    columns, rows = shape if transposed else shape[::-1]
    kind = KINDS.get(rows // columns) if rows % columns == 0 else None
    axis = 1 if transposed else 0
    inputs = [key for key, s in others.items() if len(s) == 2 and s[axis] == rows]
    if kind is None or not inputs or (transposed and kind == "rnn"):
        return None
    biases = [key for key, s in others.items() if s == (rows,)]
    return Proposal(
        kind=kind,
        recurrent=name,
        inputs=_nearest(name, inputs)[0],
        biases=tuple(_nearest(name, biases)[:2]),
        transposed=transposed,
    )


def _nearest(name: str, names: Sequence[str]) -> list[str]:
    """Names by the length of the beginning that they share with one, the file's order kept."""
    shared = {key: _common(name, key) for key in names}
    longest = max(shared.values(), default=0)
    return [key for key in names if shared[key] == longest]


def _common(one: str, other: str) -> int:
    """Number of characters at the beginning that two names share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def as_toml(found: Sequence[Proposal], shapes: Mapping[str, Shape]) -> str:
    """Mapping to edit, with every array of the file in its comments.

    Parameters
    ----------
    found
        What might be layers; a table for an RNN to fill in if there is none.
    shapes
        Of the arrays by name.
    """
    head = [
        "# A mapping from the arrays of a file to recurrent layers: check each line, then pass it",
        "# with --map. gates: the order of the blocks in the arrays. transposed: arrays are",
        "# (inputs, gates x N). Arrays in the file:",
        *(f"#   {spoken(name)} {shape}" for name, shape in shapes.items()),
    ]
    return "\n".join([*head, *(_table(number, entry) for number, entry in enumerate(found))]) + "\n"


def _table(number: int, entry: Proposal) -> str:
    gated = entry.kind in GATES
    lines = ["", "[[recurrence]]", f'name = "{entry.kind}.{number}"', f'cell = "{entry.kind}"']
    if gated:
        lines.append(f"gates = {json.dumps(list(GATES[entry.kind]))}")
    if entry.kind == "gru":
        lines += ['reset = "after"  # or "before"', 'update = "keep"  # or "overwrite"']
    if not gated:
        lines.append('activation = "tanh"')
    roles = ("W_h", "W_x") if gated else ("W_hh", "W_xh")
    biases = dict(zip(("b_x", "b_h") if gated else ("b_h",), entry.biases, strict=False))
    weights = dict(zip(roles, (entry.recurrent, entry.inputs), strict=True)) | biases
    lines += [f"transposed = {str(entry.transposed).lower()}", "[recurrence.weights]"]
    return "\n".join([*lines, *(f"{role} = {json.dumps(key)}" for role, key in weights.items())])
