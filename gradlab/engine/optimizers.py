"""Optimizers as pure functions of weights, gradients and a state that a file can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

from gradlab.arrays import Array
from gradlab.errors import SettingError, ShapeError, unknown_name

Arrays: TypeAlias = Mapping[str, Array]
STEPS = "steps"


@runtime_checkable
class Optimizer(Protocol):
    """A rule that makes new weights of a gradient; it holds settings and no state."""

    @property
    def name(self) -> str:
        """Spelling in files and options."""

    def start(self, weights: Arrays) -> dict[str, Array]:
        """State before the first step."""

    def update(
        self, weights: Arrays, gradients: Arrays, state: Arrays
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Weights and state after one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SGD:
    """Gradient descent with momentum: v ← μ v + g, w ← w - α v.

    Source: Polyak (1964), "Some methods of speeding up the convergence of iteration methods", USSR
    Computational Mathematics and Mathematical Physics 4, with g not scaled by 1 - μ.
    """

    learning_rate: float = 1e-2
    momentum: float = 0.0
    name: ClassVar[str] = "sgd"

    def __post_init__(self) -> None:
        """Check the settings."""
        _require_positive("learning_rate", self.learning_rate)
        _require_share("momentum", self.momentum)

    def start(self, weights: Arrays) -> dict[str, Array]:
        """Velocities of zero."""
        return _zeros("velocity", weights)

    def update(
        self, weights: Arrays, gradients: Arrays, state: Arrays
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Weights and velocities after one step."""
        _require_same(weights, gradients)
        after = {
            f"velocity.{name}": self.momentum * state[f"velocity.{name}"] + g
            for name, g in gradients.items()
        }
        moved = {
            name: w - self.learning_rate * after[f"velocity.{name}"] for name, w in weights.items()
        }
        return moved, after


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam:
    """Adam: steps of the mean gradient over the root of the mean square, both corrected for zeros.

    Source: Kingma and Ba (2015), "Adam: a method for stochastic optimization", ICLR, algorithm 1.
    """

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    name: ClassVar[str] = "adam"

    def __post_init__(self) -> None:
        """Check the settings."""
        _require_positive("learning_rate", self.learning_rate)
        _require_positive("epsilon", self.epsilon)
        _require_share("beta_1", self.beta_1)
        _require_share("beta_2", self.beta_2)

    def start(self, weights: Arrays) -> dict[str, Array]:
        """Means of zero, no steps."""
        return {
            **_zeros("mean", weights),
            **_zeros("square", weights),
            STEPS: np.array(0, dtype=np.int64),
        }

    def update(
        self, weights: Arrays, gradients: Arrays, state: Arrays
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Weights and means after one step."""
        _require_same(weights, gradients)
        steps = int(state[STEPS]) + 1
        after: dict[str, Array] = {STEPS: np.array(steps, dtype=np.int64)}
        moved = {}
        for name, g in gradients.items():
            mean = self.beta_1 * state[f"mean.{name}"] + (1.0 - self.beta_1) * g
            square = self.beta_2 * state[f"square.{name}"] + (1.0 - self.beta_2) * g * g
            unbiased = mean / (1.0 - self.beta_1**steps)
            size = np.sqrt(square / (1.0 - self.beta_2**steps)) + self.epsilon
            moved[name] = weights[name] - self.learning_rate * unbiased / size
            after[f"mean.{name}"], after[f"square.{name}"] = mean, square
        return moved, after


@dataclass(frozen=True, slots=True, kw_only=True)
class RMSProp:
    """RMSProp: the gradient over the root of its running mean square.

    s ← ρ s + (1 - ρ) g², w ← w - α g / (√s + ε). Source: Tieleman and Hinton (2012), lecture 6.5
    of "Neural networks for machine learning".
    """

    learning_rate: float = 1e-3
    decay: float = 0.9
    epsilon: float = 1e-8
    name: ClassVar[str] = "rmsprop"

    def __post_init__(self) -> None:
        """Check the settings."""
        _require_positive("learning_rate", self.learning_rate)
        _require_positive("epsilon", self.epsilon)
        _require_share("decay", self.decay)

    def start(self, weights: Arrays) -> dict[str, Array]:
        """Mean squares of zero."""
        return _zeros("square", weights)

    def update(
        self, weights: Arrays, gradients: Arrays, state: Arrays
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Weights and mean squares after one step."""
        _require_same(weights, gradients)
        moved, after = {}, {}
        for name, g in gradients.items():
            square = self.decay * state[f"square.{name}"] + (1.0 - self.decay) * g * g
            after[f"square.{name}"] = square
            moved[name] = weights[name] - self.learning_rate * g / (np.sqrt(square) + self.epsilon)
        return moved, after


OPTIMIZERS: Mapping[str, type[SGD] | type[Adam] | type[RMSProp]] = {
    "sgd": SGD,
    "adam": Adam,
    "rmsprop": RMSProp,
}


def optimizer(name: str, **settings: Any) -> Optimizer:
    """Optimizer of that name.

    Parameters
    ----------
    name
        ``sgd``, ``adam`` or ``rmsprop``.
    settings
        Fields of `SGD`, `Adam` or `RMSProp`; defaults where absent.

    Raises
    ------
    UnknownNameError
        If there is no such optimizer, or it has no such setting.
    SettingError
        If a setting is out of range.
    """
    if name not in OPTIMIZERS:
        raise unknown_name("optimizer", name, OPTIMIZERS)
    rule = OPTIMIZERS[name]
    known = [field.name for field in fields(rule)]
    for setting in settings:
        if setting not in known:
            raise unknown_name(f"setting of {name}", setting, known)
    made: Optimizer = rule(**settings)
    return made


def _zeros(prefix: str, weights: Arrays) -> dict[str, Array]:
    return {f"{prefix}.{name}": np.zeros_like(array) for name, array in weights.items()}


def _require_same(weights: Arrays, gradients: Arrays) -> None:
    if set(weights) != set(gradients):
        raise ShapeError(
            f"gradients of {', '.join(gradients)} for the weights {', '.join(weights)}: expected "
            "the same names"
        )


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise SettingError(f"{name} {value}: expected a finite number above 0")


def _require_share(name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise SettingError(f"{name} {value}: expected a number from 0 to below 1")
