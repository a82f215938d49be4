"""Keys of recurrent weights taken apart: prefix, layer, direction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.checkpoints.archive import spoken
from gradlab.errors import AmbiguousModelError, ModelFileError

RECURRENT_KEY = re.compile(
    r"(?P<prefix>.*?)(?P<weight>weight_hh|w_hh|W_hh|W_h)"
    r"(?P<suffix>(_l(?P<layer>\d{1,6})(?P<reverse>_reverse)?)?)",
    re.ASCII,
)
# Optimizers keep tensors of the weights' own shapes, some of them under the weights' own names.
MOMENT = re.compile(r"(^|[./])(exp_avg|exp_avg_sq|max_exp_avg_sq|square_avg|momentum_buffer)[./]")

# Weights that only a multiplicative LSTM has: its state is multiplied by the input's before the
# gates, and everything else about it has an LSTM's names and shapes.
MULTIPLICATIVE = re.compile(
    r"(?P<prefix>(.*[./])?)(wm[hx]|w_m[hx]|w_m[ih]h|weight_m[hi]h?)(_l\d+(_reverse)?)?([./]\w+)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """The names that go with one way of spelling the recurrent weight."""

    input_weight: str
    biases: tuple[str, ...]  # of the input side, then of the recurrent side
    projection: str = "W_hr"
    peepholes: str = "peepholes"
    ordered: bool = True  # whether the order of a gated layer's row blocks is known
    common: bool = False  # a word that other modules use too: only beside its input weight


SPELLINGS = {
    "weight_hh": Spelling("weight_ih", ("bias_ih", "bias_hh"), projection="weight_hr"),
    "w_hh": Spelling("w_ih", ("b_ih", "b_hh"), projection="w_hr", common=True),
    "W_hh": Spelling("W_xh", ("b_h",), ordered=False),
    "W_h": Spelling("W_x", ("b_x", "b_h"), common=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One recurrent weight, by what its key says."""

    key: str
    prefix: str
    spelling: Spelling
    suffix: str
    layer: int | None  # None: a single cell, which has no layers
    backward: bool

    @property
    def stack(self) -> str:
        """Prefix without what joins it to the rest of the key."""
        return self.prefix.rstrip("./_")

    @property
    def name(self) -> str:
        """Name of the recurrence: ``rnn.l0.reverse``, ``l0``, ``encoder.cell``, ``cell``."""
        if self.layer is None:
            return self.stack or "cell"
        parts = (self.stack, f"l{self.layer}", "reverse" if self.backward else "")
        return ".".join(part for part in parts if part)

    def sibling(self, weight: str) -> str:
        """Key of another tensor of the same layer and direction."""
        return f"{self.prefix}{weight}{self.suffix}"

    @property
    def input_key(self) -> str:
        """Key of the input weight."""
        return self.sibling(self.spelling.input_weight)

    @property
    def projection_key(self) -> str:
        """Key of an LSTM's projection."""
        return self.sibling(self.spelling.projection)

    @property
    def peephole_key(self) -> str:
        """Key of an LSTM's peephole weights."""
        return self.sibling(self.spelling.peepholes)

    @property
    def bias_keys(self) -> tuple[str, ...]:
        """Keys of the biases."""
        return tuple(self.sibling(bias) for bias in self.spelling.biases)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of all tensors that a layer of this spelling may have."""
        return (self.input_key, self.key, *self.bias_keys, self.projection_key, self.peephole_key)


def weight_names(names: Iterable[str]) -> list[str]:
    """Names without those of optimizer moments."""
    return [name for name in names if not MOMENT.search(name)]


def multiplicative_layers(names: Iterable[str]) -> dict[str, str]:
    """Prefixes of multiplicative LSTMs, and a tensor of each by which it is known."""
    matches = ((name, MULTIPLICATIVE.fullmatch(name)) for name in names)
    found: dict[str, str] = {}
    for name, match in matches:
        if match is not None:
            found.setdefault(match["prefix"], name)
    return found


def stacks_of(names: Iterable[str]) -> list[list[Place]]:
    """Recurrent weights among the names, grouped by the layers that feed each other.

    Parameters
    ----------
    names
        Tensor names in the file's order.

    Returns
    -------
    stacks
        In order of appearance; within one layer by layer, forward before backward.

    Raises
    ------
    ModelFileError
        If a layer, or the forward direction of one, is missing.
    AmbiguousModelError
        If two keys would give one layer of one network.
    """
    groups: dict[str, list[Place]] = {}
    known = list(names)
    there = set(known)
    for name in known:
        place = _place(name)
        if place is not None and (not place.spelling.common or place.input_key in there):
            groups.setdefault(place.prefix, []).append(place)
    for group in groups.values():
        group.sort(key=lambda place: (place.layer or 0, place.backward))
        _require_distinct(group)
        _require_every_layer(group)
    return list(groups.values())


def _place(key: str) -> Place | None:
    match = RECURRENT_KEY.fullmatch(key)
    if match is None:
        return None
    return Place(
        key=key,
        prefix=match["prefix"],
        spelling=SPELLINGS[match["weight"]],
        suffix=match["suffix"],
        layer=None if match["layer"] is None else int(match["layer"]),
        backward=match["reverse"] is not None,
    )


def _require_distinct(group: list[Place]) -> None:
    kinds = {place.layer is None for place in group}
    if len({place.name for place in group}) < len(group) or len(kinds) > 1:
        keys = ", ".join(spoken(place.key) for place in group)
        raise AmbiguousModelError(
            f"the keys {keys} name one layer in two ways: expected one spelling; leave the other "
            "keys out"
        )


def _require_every_layer(group: list[Place]) -> None:
    forward = [place.layer or 0 for place in group if not place.backward]
    backward = {place.layer or 0 for place in group if place.backward}
    if forward != list(range(len(forward))) or not backward <= set(forward):
        keys = ", ".join(spoken(place.key) for place in group)
        raise ModelFileError(
            f"the keys {keys} leave out a layer or its forward direction: expected every layer "
            "from 0 on; the file holds a part of a network only"
        )
