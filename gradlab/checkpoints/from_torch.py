"""A live PyTorch module to a network; PyTorch is the caller's own import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.cells.stack import Network
from gradlab.checkpoints.archive import Tensors, archive, spoken
from gradlab.checkpoints.findings import Findings, Unsaid
from gradlab.checkpoints.loading import network_of
from gradlab.checkpoints.recurrences import find_recurrences
from gradlab.checkpoints.told import Told, told
from gradlab.errors import ModelFileError

CONTAINER = "PyTorch module"
TOLD = ("mode", "nonlinearity", "batch_first")
PACKED = {"ScriptObject": "quantized: give the float network"}
PARAMETRIZED = "torch.nn.utils.parametrize"  # the module of classes that parametrizing makes
REBUILT = ("_WeightNorm", "_SpectralNorm")  # from their parts, without a step of power iteration


def from_torch(
    module: Any,
    *,
    nonlinearity: str | None = None,
    batch_first: bool = False,
    dtype: str = "float64",
) -> Network:
    """Network of the recurrent layers of a PyTorch module.

    Nothing is run: the weights are copied to the CPU, on whatever device and in whatever type they
    are, and the module stays as it is.

    Parameters
    ----------
    module
        An ``nn.RNN``, ``nn.LSTM``, ``nn.GRU`` or one of the ``*Cell`` classes, any module that
        contains some, or a state dict.
    nonlinearity
        Activation of vanilla cells of the caller's own classes; PyTorch's layers say theirs.
    batch_first
        As in `load`.
    dtype
        Type the states are computed in, float64 or float32.

    Returns
    -------
    network
        The cells that `load` gives for a file of the module's state dict; what the module says of
        its non-linearities and its batch axis is used in place of an assumption.

    Raises
    ------
    ModelFileError
        If it is no module, or holds no recurrent layer, or a weight without values.
    ShapeError
        If the weights of a layer do not fit each other.
    NonFiniteError
        If a weight is NaN or infinite.
    """
    tensors = dict(_tensors(module))
    effective, notes = _effective(module, tensors)
    readers = {name: partial(_array, name, tensor) for name, tensor in effective.items()}
    source = type(module).__name__
    kinds = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in effective.items()}
    stored = archive(Path(source), CONTAINER, readers, _odd(module), kinds=kinds)
    find = partial(_find, stored.tensors, _told(module), notes)
    unsaid = Unsaid(nonlinearity=nonlinearity, batch_first=batch_first, dtype=dtype)
    return network_of(replace(stored, find=find), source, unsaid)


def _state(module: Any) -> Mapping[str, Any]:
    state = module.state_dict() if callable(getattr(module, "state_dict", None)) else module
    if not isinstance(state, Mapping):
        raise ModelFileError(
            f"{type(module).__name__} given: expected a PyTorch module or its state dict"
        )
    return state


def _tensors(module: Any) -> Iterator[tuple[str, Any]]:
    for name, value in _state(module).items():
        if hasattr(value, "detach"):
            yield str(name), value


def _odd(module: Any) -> list[str]:
    """A phrase for each entry of the state dict that is no tensor: packed weights, extra state."""
    return [
        f"{spoken(str(name))} skipped ({PACKED.get(type(value).__name__, type(value).__name__)})"
        for name, value in _state(module).items()
        if not hasattr(value, "detach")
    ]


def _modules(module: Any) -> list[tuple[str, Any]]:
    """Modules inside, by the prefix of their tensors' names."""
    if not callable(getattr(module, "named_modules", None)):
        return []
    return [(f"{name}." if name else "", inner) for name, inner in module.named_modules()]


def _told(module: Any) -> dict[str, Told]:
    return {
        prefix: told(_kind(type(inner)), {name: getattr(inner, name, None) for name in TOLD})
        for prefix, inner in _modules(module)
    }


def _kind(kind: type[Any]) -> str:
    """Full name of a class; parametrizing makes a subclass of no other content."""
    named = kind.__mro__[1] if kind.__module__ == PARAMETRIZED else kind
    return f"{named.__module__}.{named.__qualname__}"


def _effective(module: Any, tensors: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Tensors with the weights in use in place of parts that would not tell them by themselves."""
    effective = dict(tensors)
    notes: list[str] = []
    for prefix, inner in _modules(module):
        for weight, steps in dict(getattr(inner, "parametrizations", {})).items():
            parts = f"{prefix}parametrizations.{weight}."
            if _is_rebuilt(steps):
                continue
            effective = {name: x for name, x in effective.items() if not name.startswith(parts)}
            effective[f"{prefix}{weight}"] = getattr(inner, weight)
            names = ", ".join(type(step).__name__ for step in steps)
            notes.append(f"{prefix}{weight} is what its parametrization gives ({names})")
    return effective, notes


def _is_rebuilt(steps: Any) -> bool:
    """Whether the parts of one parametrized weight tell it, as they are taken to in a file."""
    [step, *further] = steps
    kind = type(step).__name__
    exponential = kind == "_Orthogonal" and step.orthogonal_map.name == "matrix_exp"
    square = exponential and len(set(step.shape)) == 1 and getattr(step, "base", None) is not None
    return not further and (kind in REBUILT or square)


def _find(
    tensors: Tensors, known: Mapping[str, Told], notes: list[str], unsaid: Unsaid
) -> Findings:
    found = find_recurrences(tensors, unsaid, known)
    return replace(found, assumptions=(*found.assumptions, *notes))


def _array(name: str, tensor: Any) -> Array:
    """Values of a tensor; a type that NumPy does not know, such as bfloat16, as float32."""
    if getattr(tensor, "is_meta", False):
        raise ModelFileError(f"{spoken(name)} is on the meta device: expected a weight with values")
    if getattr(tensor, "is_quantized", False):
        raise ModelFileError(f"{spoken(name)} is quantized: give the float network")
    try:
        values = tensor.detach().cpu()
        return np.array(values.numpy())
    except TypeError:
        return np.array(values.float().numpy())
    except (RuntimeError, NotImplementedError) as error:  # sharded, sparse, not yet initialized
        raise ModelFileError(
            f"{spoken(name)} gives no values ({spoken(str(error))}): expected a dense tensor"
        ) from error
