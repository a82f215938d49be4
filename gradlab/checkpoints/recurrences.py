"""From tensors by name to recurrent layers: which key is what, and what fits what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.stack import Recurrence
from gradlab.cells.vanilla import VanillaCell
from gradlab.checkpoints.archive import real_numbers, spoken
from gradlab.checkpoints.parametrizations import EffectiveTensors, effective_tensors
from gradlab.errors import AmbiguousModelError, ModelFileError, NonFiniteError, ShapeError

RECURRENT_KEY = re.compile(
    r"(?P<prefix>.*?)(?P<weight>weight_hh|W_hh)(?P<suffix>(_l(?P<layer>\d{1,6}))?(?P<reverse>_reverse)?)",
    re.ASCII,
)
# Optimizers keep tensors of the weights' own shapes, some of them under the weights' own names.
MOMENT = re.compile(r"(^|[./])(exp_avg|exp_avg_sq|max_exp_avg_sq|square_avg|momentum_buffer)[./]")
GATED = {3: "GRU", 4: "LSTM"}  # by the number of row blocks of W_hh
MASKED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Spelling:
    """The names that go with one way of spelling the recurrent weight."""

    input_weight: str
    biases: tuple[str, ...]


SPELLINGS = {
    "weight_hh": Spelling("weight_ih", ("bias_ih", "bias_hh")),
    "W_hh": Spelling("W_xh", ("b_h",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One recurrent weight by its key, taken apart."""

    key: str
    prefix: str
    weight: str
    suffix: str
    layer: int | None
    backward: bool

    @property
    def stack(self) -> str:
        """Prefix without what joins it to the key."""
        return self.prefix.rstrip("./_")

    @property
    def name(self) -> str:
        """Name of the recurrence: prefix, layer, direction."""
        layer = "" if self.layer is None else f"l{self.layer}"
        parts = (self.stack, layer, "reverse" if self.backward else "")
        named = ".".join(part for part in parts if part)
        return named if self.stack or layer else ".".join(filter(None, ("cell", named)))

    def sibling(self, weight: str) -> str:
        """Key of another tensor of the same layer and direction."""
        return f"{self.prefix}{weight}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """The recurrences of a file, what was assumed about them, and what was left out and why."""

    recurrences: Sequence[Recurrence]
    assumptions: Sequence[str]
    skipped: Sequence[str]


class _Unsupported(ModelFileError):
    """A layer that is recurrent and cannot be read by this version."""


def find_recurrences(stored: Mapping[str, Array], *, activation: str, dtype: str) -> Findings:
    """Vanilla recurrent layers among tensors that are named the way PyTorch or gradlab does.

    Parameters
    ----------
    stored
        Tensors by name; only those of recurrent layers are read.
    activation
        The layers' non-linearity.
    dtype
        Type the states will be computed in.

    Returns
    -------
    findings
        Stacks in the file's order; within a stack layer by layer, forward before backward.

    Raises
    ------
    ShapeError
        If the tensors of a layer, or the layers of a stack, do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite; the file's own tensor is named.
    ModelFileError
        If a layer lacks its input weights, or a stack a layer.
    """
    effective = effective_tensors({k: v for k, v in stored.items() if not MOMENT.search(k)})
    return Findings(recurrences=(), assumptions=(), skipped=())
