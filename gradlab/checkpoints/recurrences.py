"""From tensors by name to recurrent layers: what each one is, and what fits what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradlab.arrays import Array, require_finite
from gradlab.cells.stack import Recurrence
from gradlab.cells.vanilla import VanillaCell
from gradlab.checkpoints.archive import Tensors, spoken
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.keys import PROJECTION, Place, stacks_of, weight_names
from gradlab.checkpoints.parametrizations import EffectiveTensors, effective_tensors
from gradlab.errors import ModelFileError, ShapeError

GATED = {3: "a GRU", 4: "an LSTM"}  # by the number of row blocks of W_hh
MASKED_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """The recurrences of a file, what was assumed about them, and what was left out and why."""

    recurrences: Sequence[Recurrence]
    assumptions: Sequence[str]
    skipped: Sequence[str]


def find_recurrences(stored: Tensors, *, activation: str, dtype: str) -> Findings:
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
        Stacks in the file's order; within a stack layer by layer, forward before backward. Stacks
        that hold anything but vanilla layers are among ``skipped``, a phrase for each.

    Raises
    ------
    ShapeError
        If the tensors of a layer, or the layers of a stack, do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite; the file's own tensor is named.
    ModelFileError
        If a layer lacks its input weights, or a stack a layer.
    """
    effective = effective_tensors(stored, weight_names(stored))
    layers = _LayerReader(effective, activation, dtype)
    skipped: list[str] = []
    recurrences: list[Recurrence] = []
    for stack in stacks_of((*effective.readers, *effective.unreadable)):
        reasons = [reason for place in stack if (reason := layers.unsupported(place))]
        skipped.extend(reasons)
        if not reasons:
            cells = [layers.cell(place) for place in stack]
            _require_chain(stack, cells)
            recurrences.extend(map(_recurrence, stack, cells))
    return Findings(recurrences=recurrences, assumptions=layers.assumptions, skipped=skipped)


def _recurrence(place: Place, cell: VanillaCell) -> Recurrence:
    return Recurrence(
        name=place.name,
        cell=cell,
        layer=place.layer or 0,
        direction="backward" if place.backward else "forward",
        stack=place.stack,
    )


class _LayerReader:
    """Reads single layers and collects what had to be assumed."""

    def __init__(self, effective: EffectiveTensors, activation: str, dtype: str) -> None:
        self.effective = effective
        self.activation = activation
        self.dtype = dtype
        self.assumptions: list[str] = []

    def unsupported(self, place: Place) -> str | None:
        """Reason why this version cannot read a layer, if there is one."""
        for key in (place.key, place.input_key):
            if key in self.effective.unreadable:
                return f"{place.name}: {self.effective.unreadable[key]}"
        if place.sibling(PROJECTION) in self.effective.readers:
            return f"{place.name} is an LSTM with a projection ({place.sibling(PROJECTION)})"
        rows, columns = self.shapes(place)[0]
        if rows == columns:
            return None
        gates = rows // columns
        kind = GATED.get(gates, f"a cell of {gates} gates")
        return f"{place.name} is {kind} ({spoken(place.key)} has shape ({rows}, {columns}))"

    def shapes(self, place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of recurrent and input weight, which belong together."""
        if place.input_key not in self.effective.readers:
            raise ModelFileError(
                f"{spoken(place.key)} has no {spoken(place.input_key)} beside it: expected the "
                "input weights of the same layer; save the whole layer"
            )
        recurrent, inputs = (self.effective.readers[k]() for k in (place.key, place.input_key))
        whole = recurrent.ndim == inputs.ndim == 2 and recurrent.size > 0 and inputs.size > 0
        if not whole or len(recurrent) != len(inputs) or recurrent.shape[0] % recurrent.shape[1]:
            raise ShapeError(
                f"{spoken(place.key)} has shape {recurrent.shape} and {spoken(place.input_key)} "
                f"{inputs.shape}: expected (N, N) and (N, D), or as many rows for each gate"
            )
        return recurrent.shape, inputs.shape

    def cell(self, place: Place) -> VanillaCell:
        """Vanilla layer at a place."""
        W_hh, W_xh = self.weight(place.key, "W_hh"), self.weight(place.input_key, "W_xh")
        b_h = self.bias(place, len(W_hh))
        self.assume_unmasked(place, W_hh)
        arrays = {"W_hh": W_hh, "W_xh": W_xh, "b_h": b_h}
        with np.errstate(over="ignore"):
            cast = {name: array.astype(self.dtype) for name, array in arrays.items()}
        for name, array in cast.items():
            require_finite(f"{name} of {place.name} in {self.dtype}", array)
        return VanillaCell(**cast, activation=self.activation, dtype=self.dtype)

    def weight(self, key: str, role: str) -> Array:
        """Finite float64 values of one tensor."""
        if key in self.effective.notes:
            self.assumptions.append(self.effective.notes[key])
        named = key if key.endswith(role) else f"{key} ({role})"
        return real_numbers(named, self.effective.readers[key]())

    def bias(self, place: Place, n: int) -> Array:
        """Sum of the biases that are stored, zeros if none is."""
        found = [key for key in place.bias_keys if key in self.effective.readers]
        if not found:
            self.assumptions.append(f"{place.name} has no bias in the file: zeros used")
        elif len(found) < len(place.bias_keys):
            self.assumptions.append(f"{place.name} has only one bias in the file, {found[0]}")
        total = np.zeros(n)
        for key in found:
            bias = self.weight(key, "b_h")
            if bias.shape != (n,):
                raise ShapeError(
                    f"{spoken(key)} has shape {bias.shape} and {spoken(place.key)} ({n}, {n}): "
                    f"expected ({n},)"
                )
            total += bias
        return total

    def assume_unmasked(self, place: Place, W_hh: Array) -> None:
        """Say so when a weight looks like the masked copy that weight dropping leaves behind."""
        zero = W_hh == 0.0
        if place.key in self.effective.notes or zero.all() or not zero.diagonal().any():
            return
        if (share := float(zero.mean())) >= MASKED_SHARE:
            self.assumptions.append(
                f"{share:.0%} of {place.key} are exactly 0, as in a sparse matrix or in the masked "
                "copy of a weight-dropped layer: taken as it is, since no raw matrix is beside it"
            )


def _require_chain(stack: Sequence[Place], cells: Sequence[VanillaCell]) -> None:
    """Each layer reads what the directions of the layer below give, side by side."""
    outputs: dict[int, int] = {}
    for place, cell in zip(stack, cells, strict=True):
        layer = place.layer or 0
        outputs[layer] = outputs.get(layer, 0) + cell.hidden_size
    features = {0: cells[0].input_size}
    for place, cell in zip(stack, cells, strict=True):
        layer = place.layer or 0
        wanted = features[0] if layer == 0 else outputs[layer - 1]
        if cell.input_size != wanted:
            below = "the other direction reads" if layer == 0 else f"layer {layer - 1} gives"
            raise ShapeError(
                f"{spoken(place.input_key)} has shape {cell.W_xh.shape} and {below} {wanted} "
                f"features: expected ({cell.hidden_size}, {wanted})"
            )
