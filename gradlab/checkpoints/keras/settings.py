"""What a Keras layer computes with its weights: activations and the reset, said or assumed."""

from __future__ import annotations

from typing import Any

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.keras.cells import KINDS, KerasWeights
from gradlab.checkpoints.keras.config import KerasLayer
from gradlab.checkpoints.keras.words import Words, spelled

REASONS = {
    "ConvLSTM": "its recurrent weights are convolutions",
    "conv_lstm": "its recurrent weights are convolutions",
    "CuDNNGRU": "its layout is not known well enough: load it into a GRU layer with Keras 2 and "
    "save that",
    "Peephole": "where its peephole weights lie is not known",
}
UNKNOWN = "gradlab does not know the class"
GATED = ("lstm", "gru")


def refusal(layer: KerasLayer, words: Words) -> str | None:
    """Reason why a layer cannot be read, as a phrase; None if it can.

    Parameters
    ----------
    layer
        As the configuration, or the file's names and shapes, describe it.
    words
        What the file's words mean.
    """
    named = f"{spoken(layer.name)} ({spoken(layer.class_name)})"
    if layer.class_name not in KINDS:
        known = (why for part, why in REASONS.items() if part in layer.class_name)
        return f"{named} cannot be read: {next(known, UNKNOWN)}"
    for option in ("activation", "recurrent_activation"):
        word = (layer.config or {}).get(option)
        if word is not None and words.activation(word) is None:
            return f"{named} has the {option} {spelled(word)}, which gradlab does not know"
    return None


def extra_weights(layer: KerasLayer, weights: KerasWeights) -> str | None:
    """Phrase for weights that no layer of this class has; None if there are none."""
    if weights.is_cudnn_gru:
        return f"{spoken(layer.name)} (CuDNNGRU) cannot be read: {REASONS['CuDNNGRU']}"
    if weights.tensors.others:
        names = ", ".join(map(spoken, weights.tensors.others))
        return f"{spoken(layer.name)} ({layer.class_name}) has weights beyond its class ({names})"
    return None


def settings_of(layer: KerasLayer, weights: KerasWeights, words: Words) -> dict[str, Any]:
    """Further arguments of the layer's cell.

    Parameters
    ----------
    layer
        One that `refusal` lets pass.
    weights
        Its arrays: the bias's shape tells a GRU's reset, and a cuDNN layout its activations.
    words
        What the file's words mean, and what is taken where it has none.
    """
    config = layer.config or {}
    if layer.class_name == "CuDNNLSTM" or weights.is_cudnn_lstm:
        return {"activation": "tanh", "recurrent_activation": "sigmoid"}
    if weights.kind == "rnn":
        said = "activation" in config
        return {"activation": words.activation(config["activation"]) if said else words.vanilla()}
    gates = config.get("recurrent_activation")
    settings = {
        "activation": words.activation(config.get("activation", "tanh")),
        "recurrent_activation": words.gates()
        if "recurrent_activation" not in config
        else words.activation(gates),
    }
    return settings | ({"reset": _reset(layer, weights, words)} if weights.kind == "gru" else {})


def _reset(layer: KerasLayer, weights: KerasWeights, words: Words) -> str:
    """A bias of two rows resets the product; without a bias the configuration tells."""
    if weights.bias is not None:
        return "after" if weights.bias.ndim == 2 else "before"
    said = (layer.config or {}).get("reset_after")
    if said is None:
        words.resets_assumed.append(layer.name)
        return "after" if words.resets_product() else "before"
    return "after" if said else "before"
