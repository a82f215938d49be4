"""Keras's words for activations, and its defaults; both have changed over the versions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from gradlab.checkpoints.archive import spoken
from gradlab.checkpoints.findings import Unsaid

# Keras's word: gradlab's. A word that is missing here is refused by name.
ACTIVATION_WORDS = {
    "tanh": "tanh",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "linear": "identity",
    "softsign": "softsign",
    "softplus": "softplus",
    "elu": "elu",
    "selu": "selu",
    "gelu": "gelu",
    "silu": "silu",
    "swish": "silu",
    "hard_tanh": "hard_tanh",
    "leaky_relu": "leaky_relu(0.2)",
}
HARD_SIGMOID = {False: "hard_sigmoid", True: "hard_sigmoid_6"}  # by whether it is Keras 3
LOGISTIC_SINCE = (2, 3)  # gates are logistic by default from here on
RESET_AFTER_SINCE = (2, 4)  # and a GRU resets the product


@dataclass(slots=True)
class Words:
    """Meaning of the words in one file, and what it took to tell.

    Parameters
    ----------
    version
        As the file has it, such as ``2.2.4-tf``; None if it has none.
    modern
        Whether the layout is that of Keras 3, which decides where there is no version.
    unsaid
        What the caller said.
    """

    version: str | None
    modern: bool
    unsaid: Unsaid
    heeded: set[str] = field(default_factory=set)
    slope_assumed: bool = False
    resets_assumed: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> tuple[int, int] | None:
        """Version as numbers; None if the file has none."""
        match = re.match(r"(\d{1,4})(?:\.(\d{1,4}))?", self.version or "")
        return (int(match[1]), int(match[2] or 0)) if match else None

    def is_keras_3(self) -> bool:
        """Whether hard_sigmoid has the slope 1/6; asked only where it matters."""
        if self.numbers is not None:
            return self.numbers >= (3, 0)
        if self.unsaid.keras_version is not None:
            self.heeded.add("keras_version")
            return self.unsaid.keras_version >= 3
        self.slope_assumed = True
        return self.modern

    def activation(self, word: object) -> str | None:
        """Gradlab's name of an activation in a configuration; None if there is none."""
        if word == "hard_sigmoid":
            return HARD_SIGMOID[self.is_keras_3()]
        # A function of the user's is serialized as an object, whatever its name.
        name = "linear" if word is None else word
        return ACTIVATION_WORDS.get(name) if isinstance(name, str) else None

    def gates(self) -> str:
        """Activation of the gates where the file does not say it."""
        given = self.unsaid.recurrent_activation
        if given is not None:
            self.heeded.add("recurrent_activation")
            return HARD_SIGMOID[self.is_keras_3()] if given == "hard_sigmoid" else given
        return HARD_SIGMOID[False] if self._before(LOGISTIC_SINCE) else "sigmoid"

    def vanilla(self) -> str:
        """Activation of a vanilla layer where the file does not say it."""
        self.heeded.add("nonlinearity")
        return self.unsaid.nonlinearity or "tanh"

    def resets_product(self) -> bool:
        """Whether a GRU resets the product by this version's default."""
        return not self._before(RESET_AFTER_SINCE)

    def _before(self, version: tuple[int, int]) -> bool:
        """Whether the file is of an older Keras; tf.keras had the later defaults early."""
        mixed = (self.version or "").endswith("-tf")
        return self.numbers is not None and not mixed and self.numbers < version


def spelled(word: Any) -> str:
    """A configuration's activation as it can stand in a message."""
    if isinstance(word, dict):
        inner = word.get("config")
        word = inner if isinstance(inner, str) else word.get("class_name")
    return spoken(word) if isinstance(word, str) else "of a lambda"
