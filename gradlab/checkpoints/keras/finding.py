"""Recurrent layers of a Keras model, from where they lie to cells, with every assumption said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gradlab.arrays import Array
from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.chaining import chained
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.keras.cells import KINDS, KerasWeights, canonical, require_shapes
from gradlab.checkpoints.keras.config import KerasLayer, Model
from gradlab.checkpoints.keras.places import CellTensors, Located, Unnamed
from gradlab.checkpoints.keras.settings import GATED, extra_weights, refusal, settings_of
from gradlab.checkpoints.keras.stacking import unbroken
from gradlab.checkpoints.keras.words import Words
from gradlab.checkpoints.layers import StoredLayer
from gradlab.errors import ModelFileError

SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasModel:
    """What one file, or one live object, says of itself."""

    model: Model | None  # None: weights only
    located: Located
    unnamed: Sequence[Unnamed]  # every cell that lies in the file
    version: str | None
    modern: bool
    array: Callable[[str], Array]

    @property
    def described(self) -> bool:
        """Whether a configuration tells of the layers, and of what feeds them."""
        return self.model is not None and bool(self.model.layers)


@dataclass(slots=True)
class _Read:
    """What has been read so far."""

    layers: list[StoredLayer] = field(default_factory=list)
    left_out: list[KerasLayer] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unsaid: dict[str, list[str]] = field(default_factory=dict)  # kind: layers without settings


def find_layers(source: KerasModel, unsaid: Unsaid) -> Findings:
    """Recurrences of a Keras model.

    Parameters
    ----------
    source
        The model's layers and where their weights lie.
    unsaid
        Activations and version, for files that leave them out.

    Returns
    -------
    findings
        Layers in the model's order where its configuration is there, forward before backward.

    Raises
    ------
    ModelFileError
        If the weights of a layer are missing, or there is no recurrent layer at all.
    ShapeError
        If weights do not fit each other.
    """
    words = Words(source.version, source.modern, unsaid)
    read = _Read()
    for layer, tensors in _pairs(source):
        reason = refusal(layer, words) or _add(read, source, layer, tensors, words)
        if reason is not None:
            read.skipped.append(reason)
            read.left_out.append(layer)
    if not read.layers and not read.skipped:
        raise ModelFileError(_absence(source))
    layers, wiring = _stacked(source, read)
    return Findings(
        recurrences=[layer.recurrence(unsaid.dtype) for layer in layers],
        assumptions=[*wiring, *_notes(read, words)],
        skipped=read.skipped,
        heeded=frozenset(words.heeded),
    )


def _stacked(source: KerasModel, read: _Read) -> tuple[list[StoredLayer], list[str]]:
    """Layers with what feeds them: as described, or as their numbers and sizes make it likely."""
    if source.described:
        layers, cut = unbroken(read.layers, read.left_out)
        reads = (source.model.reads if source.model else {}) | cut
        names = {layer.name for layer in layers}
        return layers, [
            f"{name} reads {what}, not the network's input: its real input is for the caller to "
            "give"
            for name, what in reads.items()
            if name in names
        ]
    layers, notes = chained(read.layers)
    stacks = list(dict.fromkeys(layer.stack for layer in layers))
    if len(stacks) > 1:
        notes.append(
            f"the file holds weights only and does not say what feeds {', '.join(stacks)}: each is "
            "run on the inputs that fit it"
        )
    return layers, notes


def _pairs(source: KerasModel) -> list[tuple[KerasLayer, CellTensors | None]]:
    """Layers of the configuration, then cells in the file that it does not tell of."""
    layers = source.model.layers if source.model else []
    pairs = [(layer, source.located.get(layer.name)) for layer in layers]
    claimed = {name for tensors in source.located.values() for name in tensors.names}
    rest = [cell for cell in source.unnamed if cell.tensors.kernel not in claimed]
    return [*pairs, *((cell.layer, cell.tensors) for cell in rest)]


def _weights(source: KerasModel, layer: KerasLayer, tensors: CellTensors) -> KerasWeights:
    return KerasWeights(
        kind=KINDS[layer.class_name],
        kernel=source.array(tensors.kernel),
        recurrent=source.array(tensors.recurrent),
        bias=None if tensors.bias is None else source.array(tensors.bias),
        tensors=tensors,
    )


def _add(
    read: _Read,
    source: KerasModel,
    layer: KerasLayer,
    tensors: CellTensors | None,
    words: Words,
) -> str | None:
    """Add a layer; a phrase in its place if it has weights of another class."""
    if tensors is None:
        raise ModelFileError(
            f"{spoken(layer.name)} ({layer.class_name}) has no weights: expected "
            "kernel and recurrent_kernel; save the model after it is built"
        )
    weights = _weights(source, layer, tensors)
    reason = extra_weights(layer, weights)
    if reason is None:
        require_shapes(weights)
        arrays, names = canonical(weights)
        stored = StoredLayer(
            name=layer.name,
            kind=weights.kind,
            weights=arrays,
            tensors=names,
            settings=settings_of(layer, weights, words),
            layer=layer.layer,
            direction=layer.direction,
            stack=layer.stack,
        )
        read.layers.append(stored)
        option = "activation" if weights.kind == "rnn" else "recurrent_activation"
        if option not in (layer.config or {}) and not weights.is_cudnn_lstm:
            read.unsaid.setdefault(weights.kind, []).append(layer.name)
    return reason


def _notes(read: _Read, words: Words) -> list[str]:
    """A sentence for everything that the file does not say of its layers."""
    sentences = []
    if vanilla := read.unsaid.get("rnn"):
        taken = words.unsaid.nonlinearity
        how = "taken" if taken else "assumed"
        sentences.append(
            f"the file does not store the non-linearity of {', '.join(vanilla)}: "
            f"{taken or 'tanh'} {how} (option nonlinearity)"
        )
    gated = [name for kind in GATED for name in read.unsaid.get(kind, [])]
    if gated:
        sentences.append(_gates_note(gated, words))
    if words.slope_assumed:
        slope = "Keras 3's slope 1/6" if words.modern else "the slope 1/5 of Keras 1 and 2"
        sentences.append(
            f"the file does not store Keras's version: {slope} assumed for hard_sigmoid (option "
            "keras_version)"
        )
    if words.resets_assumed:
        where = "product" if words.resets_product() else "state"
        sentences.append(
            f"{', '.join(words.resets_assumed)}: no bias, whose shape would tell the reset: a "
            f"reset of the {where} assumed"
        )
    if read.layers and not words.unsaid.batch_first:
        sentences.append(
            "Keras reads (batch, time, features): inputs (time, batch, features) assumed (option "
            "batch_first)"
        )
    return sentences


def _gates_note(names: Sequence[str], words: Words) -> str:
    taken = words.gates()
    if words.unsaid.recurrent_activation is not None:
        return f"{', '.join(names)}: gates {taken} as told, candidates tanh assumed"
    reason = f" (the default of Keras {spoken(words.version)})" if words.version else ""
    return (
        f"the file does not store the activations of {', '.join(names)}: gates {taken}{reason} and "
        "candidates tanh assumed (option recurrent_activation)"
    )


def _absence(source: KerasModel) -> str:
    classes = list(dict.fromkeys(source.model.classes)) if source.model else []
    shown = ", ".join(map(spoken, classes[:SHOWN])) + (", …" if len(classes) > SHOWN else "")
    found = f"the layers {shown}" if classes else "weights of no recurrent layer"
    return f"the Keras model has {found}: expected SimpleRNN, LSTM or GRU layers among them"
