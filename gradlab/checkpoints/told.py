"""What a file, or a live module, says of a recurrent layer beside its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradlab.checkpoints.findings import Unsaid

TORCH_LAYERS = frozenset(
    f"torch.nn.modules.rnn.{name}"
    for name in ("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell")
)
NONLINEARITIES = {"RNN_TANH": "tanh", "RNN_RELU": "relu", "tanh": "tanh", "relu": "relu"}
TIME_FIRST = "(time, batch, features)"
BATCH_FIRST = "(batch, time, features)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Statements about one layer; None where nothing is said."""

    kind: str = ""  # its class by full name
    nonlinearity: str | None = None
    batch_first: bool | None = None

    @property
    def is_torch_layer(self) -> bool:
        """Whether the class is PyTorch's own, whose gates and equations are known."""
        return self.kind in TORCH_LAYERS


def told(kind: str, attributes: Mapping[str, object]) -> Told:
    """Statements of a module's attributes.

    Parameters
    ----------
    kind
        The module's class.
    attributes
        By name; of PyTorch's layers ``mode`` or ``nonlinearity``, and ``batch_first``.
    """
    given = [attributes.get(key) for key in ("mode", "nonlinearity")]
    known = [
        NONLINEARITIES[name] for name in given if isinstance(name, str) and name in NONLINEARITIES
    ]
    batch_first = attributes.get("batch_first")
    return Told(
        kind=kind,
        nonlinearity=known[0] if known else None,
        batch_first=batch_first if isinstance(batch_first, bool) else None,
    )


def told_sentences(layers: Mapping[str, Told], vanilla: Iterable[str], unsaid: Unsaid) -> list[str]:
    """What need not be assumed, since it is said.

    Parameters
    ----------
    layers
        Statements by the recurrence's name.
    vanilla
        Names of those that have a non-linearity of their own.
    unsaid
        What the caller said.
    """
    plain = set(vanilla)
    kinds = {name: entry.kind for name, entry in layers.items() if entry.is_torch_layer}
    shapes = {name: entry.nonlinearity for name, entry in layers.items() if name in plain}
    axes = {name: entry.batch_first for name, entry in layers.items()}
    return [
        *(f"{names}: {kind}, as the source says" for kind, names in _grouped(kinds)),
        *(
            f"{names}: non-linearity {shape}, as the source says"
            for shape, names in _grouped(shapes)
        ),
        *(f"{names}: {_axes(first, unsaid)}" for first, names in _grouped(axes)),
    ]


def _axes(batch_first: bool, unsaid: Unsaid) -> str:
    built = BATCH_FIRST if batch_first else TIME_FIRST
    said = f"built for inputs {built}, as the source says"
    if batch_first == unsaid.batch_first:
        return said
    return f"{said}; sequences are read as {BATCH_FIRST if unsaid.batch_first else TIME_FIRST} here"


def _grouped(values: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Names of equal values, joined; None is left out."""
    groups: dict[Any, list[str]] = {}
    for name, value in values.items():
        if value is not None:
            groups.setdefault(value, []).append(name)
    return [(value, ", ".join(names)) for value, names in groups.items()]
