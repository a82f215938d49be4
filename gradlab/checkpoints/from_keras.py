"""A live Keras layer or model to a network; Keras is the caller's own import."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.stack import Network
from gradlab.checkpoints.archive import archive
from gradlab.checkpoints.findings import Unsaid
from gradlab.checkpoints.keras.config import KerasLayer, Step, model_of
from gradlab.checkpoints.keras.finding import KerasModel, find_layers
from gradlab.checkpoints.keras.places import CellTensors
from gradlab.checkpoints.loading import network_of
from gradlab.errors import ModelFileError

CONTAINER = "Keras object"
NAMES = ("kernel", "recurrent_kernel", "bias")


def from_keras(
    layer: Any,
    *,
    keras_version: int | None = None,
    batch_first: bool = False,
    dtype: str = "float64",
) -> Network:
    """Network of a Keras layer or model, of Keras 2 or 3 on any backend.

    Parameters
    ----------
    layer
        A built ``SimpleRNN``, ``LSTM``, ``GRU``, ``RNN`` or ``Bidirectional`` layer, or a model
        with such layers. Only its configuration and its weights are asked for.
    keras_version
        Major version of Keras, if the package that the layer is of does not tell.
    batch_first
        As in `load`.
    dtype
        Type the states are computed in, float64 or float32.

    Returns
    -------
    network
        The same cells as `load` gives for a file of this model.

    Raises
    ------
    ModelFileError
        If it is no Keras layer, is not built, or holds no recurrent layer.
    ShapeError
        If the weights of a layer do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    """
    if not hasattr(layer, "get_config") or not hasattr(layer, "get_weights"):
        raise ModelFileError(
            f"{type(layer).__name__} given: expected a Keras layer or model, with get_config and "
            "get_weights"
        )
    source, arrays = _described(layer)
    find = partial(find_layers, source)
    readers = {name: partial(arrays.__getitem__, name) for name in arrays}
    name = type(layer).__name__
    stored = archive(Path(name), CONTAINER, readers, find=find)
    unsaid = Unsaid(keras_version=keras_version, batch_first=batch_first, dtype=dtype)
    return network_of(stored, name, unsaid)


def _described(layer: Any) -> tuple[KerasModel, dict[str, Array]]:
    """The object's layers, and the arrays of their weights."""
    model = model_of(_serialized(layer))
    arrays: dict[str, Array] = {}
    located = {}
    for entry in model.layers:
        weights = _weights(layer, entry)
        names = [_name(entry, index) for index in range(len(weights))]
        arrays |= dict(zip(names, weights, strict=True))
        if len(names) > 1:
            located[entry.name] = CellTensors(
                kernel=names[0],
                recurrent=names[1],
                bias=names[2] if len(names) > 2 else None,
                others=tuple(names[3:]),
            )
    source = KerasModel(
        model=model,
        located=located,
        unnamed=(),
        version=_version(layer),
        modern=True,
        array=arrays.__getitem__,
    )
    return source, arrays


def _serialized(layer: Any, name: str | None = None) -> dict[str, Any]:
    """Class and configuration as Keras writes them into a file."""
    kind = type(layer)
    sublayers = getattr(layer, "layers", None)
    try:
        config = layer.get_config()
    except NotImplementedError:  # what Keras 2 says of a subclassed model
        config = {}
    if isinstance(sublayers, list) and not _lists_layers(config):
        config = _subclassed(layer, sublayers)
    named = {} if name is None else {"name": name}
    return {"class_name": kind.__name__, "module": kind.__module__, "config": config, **named}


def _lists_layers(config: Any) -> bool:
    return isinstance(config, list) or (isinstance(config, Mapping) and "layers" in config)


def _subclassed(model: Any, sublayers: Sequence[Any]) -> dict[str, Any]:
    """Configuration of a model whose own does not tell its layers, nor what feeds them."""
    call = [[[f"the call of {type(model).__name__}", 0, 0]]]
    attributes = _attributes(model)
    layers = [
        _serialized(sublayer, attributes.get(id(sublayer))) | {"inbound_nodes": call}
        for sublayer in sublayers
    ]
    return {"layers": layers, "input_layers": []}


def _attributes(model: Any) -> dict[int, str]:
    """Names of a model's attributes by the object they hold."""
    held = vars(model)
    kept = {**held.get("_modules", {}), **held}  # on PyTorch, Keras's layers are its modules
    return {id(value): name for name, value in kept.items() if not name.startswith("_")}


def _weights(layer: Any, entry: KerasLayer) -> list[Array]:
    held = layer
    for step in entry.steps:
        held = _inside(held, step)
    return [_array(weight) for weight in held.get_weights()]


def _inside(held: Any, step: Step) -> Any:
    if isinstance(step, str):
        inner = getattr(held, step, held)
        # The layers of cuDNN hold their weights themselves; their cell is a mere tuple of sizes.
        holds = hasattr(inner, "get_weights") or hasattr(inner, "cells")
        return inner if holds else held
    members = held.layers if step.container == "layers" else held.cells
    attributes = _attributes(held)
    return next(
        member for member in members if step.name in (member.name, attributes.get(id(member)))
    )


def _name(entry: KerasLayer, index: int) -> str:
    return f"{entry.name}/{NAMES[index] if index < len(NAMES) else f'weight_{index}'}"


def _array(weight: Any) -> Array:
    """Array of a weight; bfloat16, which NumPy does not know, as float32."""
    array = np.asarray(weight)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _version(layer: Any) -> str | None:
    """Version of the package that the layer's class is of, or that it is derived from."""
    for kind in type(layer).__mro__:
        package = sys.modules.get(kind.__module__.split(".")[0])
        version = getattr(package, "__version__", None)
        if kind.__module__.split(".")[0] in ("keras", "tf_keras") and isinstance(version, str):
            return version
    return None
