"""From tensors by name to recurrent layers: what each one is, and what fits what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Recurrence
from gradlab.cells.vanilla import VanillaCell
from gradlab.checkpoints.archive import Tensors, spoken
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.gated import ASSUMED, gated_cell
from gradlab.checkpoints.keys import Place, multiplicative_layers, stacks_of, weight_names
from gradlab.checkpoints.layers import cast
from gradlab.checkpoints.parametrizations import EffectiveTensors, effective_tensors
from gradlab.checkpoints.told import Told, told_sentences
from gradlab.errors import ModelFileError, ShapeError

GATED = {"gru": "a GRU", "lstm": "an LSTM"}
MASKED_SHARE = 0.1
DEFAULT_NONLINEARITY = "tanh"


def find_recurrences(
    stored: Tensors, unsaid: Unsaid, told: Mapping[str, Told] | None = None
) -> Findings:
    """Recurrent layers among tensors that are named the way PyTorch or gradlab does.

    Parameters
    ----------
    stored
        Tensors by name; only those of recurrent layers are read.
    unsaid
        Non-linearity of the vanilla layers (gated ones have PyTorch's), and type of the states.
    told
        What is said of a layer beside its tensors, by the prefix of their names; it goes before
        what the caller says.

    Returns
    -------
    findings
        Stacks in the file's order; within a stack layer by layer, forward before backward. Stacks
        that hold anything but RNN, LSTM and GRU layers are among ``skipped``, a phrase for each.

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
    layers = _LayerReader(effective, unsaid, told or {})
    odd = multiplicative_layers(effective.readers)
    skipped = [
        f"{spoken(prefix.rstrip('./') or name)} is a multiplicative LSTM ({spoken(name)})"
        for prefix, name in odd.items()
    ]
    recurrences: list[Recurrence] = []
    for stack in stacks_of((*effective.readers, *effective.unreadable)):
        if stack[0].prefix in odd:
            continue
        layers.held.clear()
        reasons = [reason for place in stack if (reason := layers.unsupported(place))]
        skipped.extend(reasons)
        if not reasons:
            cells = [layers.cell(place) for place in stack]
            _require_chain(stack, cells)
            recurrences.extend(map(layers.recurrence, stack, cells))
    return Findings(
        recurrences=recurrences,
        assumptions=(
            *unsaid_of(recurrences, unsaid, None if told is None else layers.known),
            *layers.assumptions,
        ),
        skipped=skipped,
        heeded=frozenset({"nonlinearity"} if _untold(recurrences, layers.known) else ()),
    )


def unsaid_of(
    recurrences: Sequence[Recurrence], unsaid: Unsaid, known: Mapping[str, Told] | None = None
) -> list[str]:
    """What files that hold tensors by name leave out, and what is taken for it.

    Parameters
    ----------
    recurrences
        The layers found.
    unsaid
        What the caller said.
    known
        What is said of them all the same, by name; None where files of this kind say nothing.
    """
    said = known or {}
    names: dict[str, list[str]] = {}
    for entry in recurrences:
        names.setdefault(entry.cell.kind, []).append(entry.name)
    doubtful = {
        kind: [name for name in names.get(kind, []) if not said.get(name, Told()).is_torch_layer]
        for kind in ASSUMED
    }
    sentences = [
        f"{', '.join(found)}: {ASSUMED[kind]}" for kind, found in doubtful.items() if found
    ]
    untold = _untold(recurrences, said)
    if untold and unsaid.nonlinearity is None:
        sentences.append(
            f"the file does not store the non-linearity of {', '.join(untold)}: "
            f"{DEFAULT_NONLINEARITY} assumed (option nonlinearity)"
        )
    if known is not None and not _axes_known(recurrences, said):
        sentences.extend(batch_axis(unsaid))
    return [*told_sentences(said, names.get("rnn", []), unsaid), *sentences]


def batch_axis(unsaid: Unsaid) -> list[str]:
    """What is taken for the batch axis that a file of weights does not store."""
    if unsaid.batch_first:
        return []
    return [
        "the file does not store the batch axis: inputs (time, batch, features) assumed "
        "(option batch_first)"
    ]


def _axes_known(recurrences: Sequence[Recurrence], known: Mapping[str, Told]) -> bool:
    return all(known.get(entry.name, Told()).batch_first is not None for entry in recurrences)


def _untold(recurrences: Sequence[Recurrence], known: Mapping[str, Told]) -> list[str]:
    """Names of the vanilla layers of whose non-linearity nothing is said."""
    return [
        entry.name
        for entry in recurrences
        if entry.cell.kind == "rnn" and known.get(entry.name, Told()).nonlinearity is None
    ]


class _LayerReader:
    """Reads single layers and collects what had to be assumed."""

    def __init__(
        self, effective: EffectiveTensors, unsaid: Unsaid, told: Mapping[str, Told]
    ) -> None:
        self.effective = effective
        self.activation = unsaid.nonlinearity or DEFAULT_NONLINEARITY
        self.dtype = unsaid.dtype
        self.told = told
        self.known: dict[str, Told] = {}  # by the recurrence's name
        self.assumptions: list[str] = []
        self.held: dict[str, Array] = {}  # of the stack at hand, so that each is read once

    def array(self, key: str) -> Array:
        """Tensor of the stack at hand, as it is stored."""
        if key not in self.held:
            self.held[key] = self.effective.readers[key]()
        return self.held[key]

    def recurrence(self, place: Place, cell: Cell) -> Recurrence:
        """A layer under its name, with the tensors it came from."""
        keys = [key for key in place.keys if key in self.effective.readers]
        sources = [source for key in keys for source in self.effective.sources(key)]
        kinds = [self.effective.stored.kind(name, self.held.get(name)) for name in sources]
        if place.prefix in self.told:
            self.known[place.name] = self.told[place.prefix]
        return Recurrence(
            name=place.name,
            cell=cell,
            layer=place.layer or 0,
            direction="backward" if place.backward else "forward",
            stack=place.stack,
            tensors=tuple(sources),
            stored_dtype=", ".join(dict.fromkeys(kinds)),
        )

    def unsupported(self, place: Place) -> str | None:
        """Reason why this version cannot read a layer, if there is one."""
        for key in (place.key, place.input_key, place.projection_key):
            if key in self.effective.unreadable:
                return f"{place.name}: {self.effective.unreadable[key]}"
        rows, columns = self.shapes(place)[0]
        kind = self.kind(place)
        found = f"{spoken(place.key)} has shape ({rows}, {columns})"
        if kind is None:
            return f"{place.name} is a cell of {rows // columns} gates ({found})"
        if kind != "rnn" and not place.spelling.ordered:
            return (
                f"{place.name} is {GATED[kind]} whose key does not tell the gates' order ({found})"
            )
        return None

    def kind(self, place: Place) -> str | None:
        """Kind of the cell, by the row blocks of its recurrent weight; None if unknown."""
        if place.projection_key in self.effective.readers:
            return "lstm"
        rows, columns = self.shapes(place)[0]
        return {1: "rnn", 3: "gru", 4: "lstm"}.get(rows // columns)

    def shapes(self, place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of recurrent and input weight, which belong together."""
        if place.input_key not in self.effective.readers:
            raise ModelFileError(
                f"{spoken(place.key)} has no {spoken(place.input_key)} beside it: expected the "
                "input weights of the same layer; save the whole layer"
            )
        recurrent, inputs = (self.array(key) for key in (place.key, place.input_key))
        whole = recurrent.ndim == inputs.ndim == 2 and recurrent.size > 0 and inputs.size > 0
        if place.projection_key in self.effective.readers:
            self.require_projection(place, recurrent, inputs)
        elif not whole or len(recurrent) != len(inputs) or len(recurrent) % recurrent.shape[1]:
            raise ShapeError(
                f"{spoken(place.key)} has shape {recurrent.shape} and {spoken(place.input_key)} "
                f"{inputs.shape}: expected (N, N) and (N, D), or as many rows for each gate"
            )
        return recurrent.shape, inputs.shape

    def require_projection(self, place: Place, recurrent: Array, inputs: Array) -> None:
        """Refuse a projection that does not fit the weights beside it."""
        shape = self.array(place.projection_key).shape
        rows = 4 * shape[1] if len(shape) == 2 else 0
        if rows == 0 or recurrent.shape != (rows, shape[0]) or inputs.shape[:1] != (rows,):
            raise ShapeError(
                f"{spoken(place.projection_key)} has shape {shape}, {spoken(place.key)} "
                f"{recurrent.shape} and {spoken(place.input_key)} {inputs.shape}: expected (P, N), "
                "(4 N, P) and (4 N, D) of an LSTM with a projection"
            )

    def cell(self, place: Place) -> Cell:
        """Layer at a place."""
        kind = self.kind(place)
        recurrent, inputs = self.weight(place.key, "W_hh"), self.weight(place.input_key, "W_xh")
        biases = self.biases(place, len(recurrent))
        self.assume_unmasked(place, recurrent)
        if kind is not None and kind != "rnn":
            weights = dict(zip(("W_x", "W_h"), (inputs, recurrent), strict=True))
            return gated_cell(
                kind, cast(weights | self.extras(place, biases), place.name, self.dtype), self.dtype
            )
        total = np.zeros(len(recurrent))
        for bias in biases:
            total += 0.0 if bias is None else bias
        arrays: dict[str, Any] = dict(
            cast({"W_hh": recurrent, "W_xh": inputs, "b_h": total}, place.name, self.dtype)
        )
        activation = self.told.get(place.prefix, Told()).nonlinearity or self.activation
        return VanillaCell(**arrays, activation=activation, dtype=self.dtype)

    def extras(self, place: Place, biases: Sequence[Array | None]) -> dict[str, Array]:
        """Weights of a gated layer that a file may lack."""
        keys = {"W_hr": place.projection_key, "peepholes": place.peephole_key}
        found = {
            name: self.weight(key, name)
            for name, key in keys.items()
            if key in self.effective.readers
        }
        named = zip(("b_x", "b_h"), biases, strict=True)
        return found | {name: bias for name, bias in named if bias is not None}

    def weight(self, key: str, role: str) -> Array:
        """Finite float64 values of one tensor."""
        if key in self.effective.notes:
            self.assumptions.append(self.effective.notes[key])
        named = key if key.endswith(role) else f"{key} ({role})"
        return real_numbers(named, self.array(key))

    def biases(self, place: Place, n: int) -> list[Array | None]:
        """Biases that the layer's spelling has, in order; None for one that is not stored."""
        found = [key for key in place.bias_keys if key in self.effective.readers]
        if not found:
            self.assumptions.append(f"{place.name} has no bias in the file: zeros used")
        elif len(found) < len(place.bias_keys):
            self.assumptions.append(f"{place.name} has only one bias in the file, {found[0]}")
        return [self.bias(place, key, n) if key in found else None for key in place.bias_keys]

    def bias(self, place: Place, key: str, n: int) -> Array:
        """One bias."""
        bias = self.weight(key, "b_h")
        if bias.shape != (n,):
            shape = self.array(place.key).shape
            raise ShapeError(
                f"{spoken(key)} has shape {bias.shape} and {spoken(place.key)} {shape}: "
                f"expected ({n},)"
            )
        return bias

    def assume_unmasked(self, place: Place, W_hh: Array) -> None:
        """Say so when a weight looks like the masked copy that weight dropping leaves behind."""
        zero = W_hh == 0.0
        columns = W_hh.shape[1]
        square = zero.reshape(-1, columns, columns) if len(zero) % columns == 0 else zero[None]
        on_diagonal = square.diagonal(axis1=1, axis2=2).any()
        if place.key in self.effective.notes or zero.all() or not on_diagonal:
            return
        if (share := float(zero.mean())) >= MASKED_SHARE:
            self.assumptions.append(
                f"{share:.0%} of {place.key} are exactly 0, as in a sparse matrix or in the masked "
                "copy of a weight-dropped layer: taken as it is, since no raw matrix is beside it"
            )


def _require_chain(stack: Sequence[Place], cells: Sequence[Cell]) -> None:
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
            rows = len(next(iter(cell.parameters.values())))
            raise ShapeError(
                f"{spoken(place.input_key)} has shape ({rows}, {cell.input_size}) and {below} "
                f"{wanted} features: expected ({rows}, {wanted})"
            )
