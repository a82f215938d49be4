"""The activations of a recurrent ONNX node, with the numbers that they consume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradlab.cells.activations import activation
from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.onnx.scopes import Node
from gradlab.errors import GradlabError, ModelFileError

DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


@dataclass(frozen=True, slots=True)
class Numbered:
    """A function that takes alpha, and beta if there are two defaults; None where it has none."""

    family: str
    defaults: tuple[float | None, ...]


# By lower-case name: runtimes do not mind the case.
PLAIN = {name: name for name in ("relu", "tanh", "sigmoid", "softsign", "softplus")}
NUMBERED = {
    "leakyrelu": Numbered("leaky_relu", (0.01,)),
    "elu": Numbered("elu", (1.0,)),
    "hardsigmoid": Numbered("hard_sigmoid", (0.2, 0.5)),
    # The text gives these no default that runtimes keep to.
    "thresholdedrelu": Numbered("thresholded_relu", (None,)),
    "scaledtanh": Numbered("scaled_tanh", (None, None)),
    "affine": Numbered("affine", (None, None)),
}


def activations(node: Node, kind: str, directions: int) -> list[tuple[str, ...]]:
    """Activations of every direction, by gradlab's names.

    Parameters
    ----------
    node
        The recurrent node.
    kind
        RNN, GRU or LSTM.
    directions
        1 or 2.

    Returns
    -------
    names
        For each direction f of an RNN, f and g of a GRU, f, g and h of an LSTM. The lists
        ``activation_alpha`` and ``activation_beta`` are consumed in order, by the functions that
        take them only.

    Raises
    ------
    ModelFileError
        If a function is none of the format's, lacks a number, or there are too few or too many.
    """
    defaults = DEFAULTS[kind]
    spelled: Sequence[str] = node.attributes.get("activations") or defaults * directions
    if len(spelled) != directions * len(defaults):
        raise ModelFileError(
            f"it has {len(spelled)} activations ({spoken(', '.join(spelled))}), where {kind} takes "
            f"{directions * len(defaults)}"
        )
    numbers = [iter(node.attributes.get(f"activation_{name}", ())) for name in ("alpha", "beta")]
    names = [_named(name, numbers) for name in spelled]
    size = len(defaults)
    return [tuple(names[size * d : size * (d + 1)]) for d in range(directions)]


def _named(spelled: str, numbers: Sequence[Iterator[float]]) -> str:
    """Name of one activation; takes its numbers off the lists."""
    name = spelled.lower()
    if name in PLAIN:
        return PLAIN[name]
    if name not in NUMBERED:
        raise ModelFileError(f"its activation {spoken(spelled)} is none that ONNX defines")
    found = NUMBERED[name]
    values = [
        next(stored, default) for stored, default in zip(numbers, found.defaults, strict=False)
    ]
    if None in values:
        raise ModelFileError(f"its activation {spelled} lacks activation_alpha or activation_beta")
    member = f"{found.family}({', '.join(map(repr, values))})"
    try:
        return ALIASES.get(member) or activation(member).name
    except GradlabError as error:
        raise ModelFileError(f"its activation {spelled} is {error}") from error


# Members with the default numbers under the names that everything else knows them by.
ALIASES: Mapping[str, str] = {
    "leaky_relu(0.01)": "leaky_relu", "elu(1.0)": "elu", "hard_sigmoid(0.2, 0.5)": "hard_sigmoid"
}  # fmt: skip
