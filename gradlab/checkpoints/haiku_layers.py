"""Haiku's recurrent cores among tensors by name, ``module/parameter``.

A core is known by its module's name, which by default is its class's: ``lstm``, ``gru``,
``vanilla_rnn``. Its LSTM has one matrix for inputs and state in the order i, g, f, o and adds 1 to
the forget gate when it runs; its GRU resets before the product and overwrites by z; its vanilla RNN
rectifies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.checkpoints.archive import Tensors, spoken
from gradlab.checkpoints.chaining import chained
from gradlab.checkpoints.element_types import real_numbers
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.layers import StoredLayer
from gradlab.errors import ShapeError

FORGET_BIAS = 1.0
LSTM_ORDER = (0, 2, 1, 3)  # blocks i, g, f, o to i, f, g, o
GRU_ORDER = (1, 0, 2)  # blocks z, r, a to r, z, n

Read = Callable[[Mapping[str, Array]], tuple[dict[str, Array], dict[str, Any]]]


def find_haiku(tensors: Tensors, unsaid: Unsaid) -> Findings:
    """Recurrences of Haiku among tensors by name.

    Parameters
    ----------
    tensors
        Names end in a module's name and a parameter's; only those of recurrent cores are read.
    unsaid
        Type of the states.

    Returns
    -------
    findings
        None if no name is Haiku's.

    Raises
    ------
    ShapeError
        If the weights of a core are not of its shapes.
    NonFiniteError
        If a weight is NaN or infinite.
    """
    found = [_stored(kind, module, tensors) for kind in KINDS for module in _modules(kind, tensors)]
    layers, chain = chained(found)
    return Findings(
        recurrences=[layer.recurrence(unsaid.dtype) for layer in layers],
        assumptions=[_said(layer) for layer in layers] + chain,
        skipped=(),
    )


def _said(layer: StoredLayer) -> str:
    return f"{layer.name}: read as Haiku's {SPOKEN[layer.kind]}"


def _modules(kind: str, tensors: Tensors) -> list[str]:
    """Paths of the modules that have a core's parameters and its name."""
    first, *others = PARAMETERS[kind]
    paths = [name.removesuffix(f"/{first}") for name in tensors if name.endswith(f"/{first}")]
    return [
        path
        for path in paths
        if WORDS[kind] in path.rpartition("/")[2].lower()
        and all(f"{path}/{other}" in tensors for other in others if not other.endswith("b"))
    ]


def _stored(kind: str, module: str, tensors: Tensors) -> StoredLayer:
    keys = {name: f"{module}/{name}" for name in PARAMETERS[kind] if f"{module}/{name}" in tensors}
    arrays = {name: real_numbers(key, tensors[key]) for name, key in keys.items()}
    try:
        weights, settings = READERS[kind](arrays)
    except (ValueError, IndexError) as error:
        shapes = ", ".join(f"{spoken(key)} {arrays[name].shape}" for name, key in keys.items())
        raise ShapeError(f"{shapes}: expected the shapes of Haiku's {SPOKEN[kind]}") from error
    name = ".".join(part for part in module.split("/") if part != "~")
    return StoredLayer(
        name=name,
        kind=kind,
        weights=weights,
        tensors={key: key for key in keys.values()},
        settings=settings,
        stack=name,
        stored_dtype=tensors.kinds(keys.values()),
    )


def _lstm(arrays: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Inputs first, then the state, in one matrix."""
    joint = _reordered(arrays["linear/w"].T, LSTM_ORDER)
    n = len(joint) // 4
    weights = {"W_x": joint[:, : joint.shape[1] - n], "W_h": joint[:, joint.shape[1] - n :]}
    if "linear/b" in arrays:
        weights["b_x"] = _reordered(arrays["linear/b"], LSTM_ORDER)
    return weights, {"forget_bias": FORGET_BIAS}


def _gru(arrays: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    named = {"W_x": arrays["w_i"].T, "W_h": arrays["w_h"].T}
    named |= {"b_x": arrays["b"]} if "b" in arrays else {}
    weights = {name: _reordered(array, GRU_ORDER) for name, array in named.items()}
    return weights, {"reset": "before", "update": "overwrite"}


def _vanilla(arrays: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    weights = {"W_hh": arrays["linear_1/w"].T, "W_xh": arrays["linear/w"].T}
    bias = sum(
        (arrays[name] for name in ("linear/b", "linear_1/b") if name in arrays),
        start=np.zeros(len(weights["W_hh"])),
    )
    return weights | {"b_h": np.asarray(bias)}, {"activation": "relu"}


def _reordered(array: Array, order: tuple[int, ...]) -> Array:
    blocks = np.split(array, len(order))
    return np.concatenate([blocks[index] for index in order])


READERS: Mapping[str, Read] = MappingProxyType({"rnn": _vanilla, "lstm": _lstm, "gru": _gru})
KINDS = tuple(READERS)
PARAMETERS = MappingProxyType(
    {
        "rnn": ("linear/w", "linear_1/w", "linear/b", "linear_1/b"),
        "lstm": ("linear/w", "linear/b"),
        "gru": ("w_h", "w_i", "b"),
    }
)
WORDS = MappingProxyType({"rnn": "rnn", "lstm": "lstm", "gru": "gru"})
SPOKEN = MappingProxyType(
    {
        "rnn": "VanillaRNN, which rectifies",
        "lstm": "LSTM, which adds 1 to the forget gate",
        "gru": "GRU, with the reset before the product and z overwriting the old state",
    }
)
