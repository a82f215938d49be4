"""Which of several layers feeds which, where only their names and sizes can tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gradlab.checkpoints.layers import StoredLayer

NUMBERED = re.compile(r"(?P<base>.*?)(_(?P<number>\d{1,6}))?", re.ASCII)


def chained(layers: Sequence[StoredLayer]) -> tuple[list[StoredLayer], list[str]]:
    """Layers of one numbered series, ``lstm``, ``lstm_1``, ``lstm_2``, put in one stack.

    Parameters
    ----------
    layers
        Each in a stack of its own; the two directions of one share theirs.

    Returns
    -------
    layers
        Those whose numbers follow each other and whose sizes fit, as layers 0, 1, … of the first
        one's stack; all others as they were.
    assumptions
        A sentence for each stack so made.
    """
    place: dict[str, tuple[str, int]] = {}
    sentences = []
    for series in _series(layers):
        for run in _fitting(series, layers):
            place |= {stack: (run[0], number) for number, stack in enumerate(run)}
            if len(run) > 1:
                sentences.append(
                    f"the file does not say which layer feeds which: {' -> '.join(run)} assumed, "
                    "by their numbers and sizes"
                )
    moved = [replace(e, stack=place[e.stack][0], layer=place[e.stack][1]) for e in layers]
    first = {stack: index for index, stack in enumerate(dict.fromkeys(e.stack for e in layers))}
    moved.sort(key=lambda e: (first[e.stack], e.layer, e.direction == "backward"))
    return moved, sentences


def _series(layers: Sequence[StoredLayer]) -> list[list[str]]:
    """Stacks whose names differ by a number only, by number."""
    groups: dict[str, dict[int, str]] = {}
    for stack in dict.fromkeys(entry.stack for entry in layers):
        match = NUMBERED.fullmatch(stack)
        base, number = (match["base"], match["number"]) if match else (stack, None)
        groups.setdefault(base, {})[-1 if number is None else int(number)] = stack
    return [[group[number] for number in sorted(group)] for group in groups.values()]


def _fitting(series: Sequence[str], layers: Sequence[StoredLayer]) -> list[list[str]]:
    """The series cut where a layer does not read what the one before gives."""
    runs: list[list[str]] = []
    for stack in series:
        if runs and _width(runs[-1][-1], layers) == _features(stack, layers):
            runs[-1].append(stack)
        else:
            runs.append([stack])
    return runs


def _width(stack: str, layers: Sequence[StoredLayer]) -> int:
    return sum(entry.output_size for entry in layers if entry.stack == stack)


def _features(stack: str, layers: Sequence[StoredLayer]) -> int:
    return next(entry for entry in layers if entry.stack == stack).input_size
