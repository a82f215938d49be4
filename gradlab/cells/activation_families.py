"""Activations with numbers of their own, spelled with them: ``hard_sigmoid(0.25, 0.5)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.elementwise import SMOOTH, Activation
from gradlab.errors import SettingError


@dataclass(frozen=True, slots=True)
class Family:
    """How many numbers a member has, and how it is made of them."""

    count: int
    member: Callable[..., Activation]


def hard_sigmoid(alpha: float, beta: float, name: str | None = None) -> Activation:
    """Straight line from 0 to 1, clip(alpha z + beta, 0, 1).

    Parameters
    ----------
    alpha
        Slope, above 0: 1/5 in ONNX and in older Keras (``hard_sigmoid``), 1/6 in PyTorch and in
        Keras 3 (``hard_sigmoid_6``).
    beta
        Value at 0.
    name
        Spelling; ``hard_sigmoid(alpha, beta)`` if None, which `activation` understands.

    Raises
    ------
    SettingError
        If ``alpha`` is not a positive number.
    """
    if not (0.0 < alpha < math.inf and math.isfinite(beta)):
        raise SettingError(f"hard_sigmoid({alpha}, {beta}): expected finite numbers, alpha > 0")
    low, high = -beta / alpha, (1.0 - beta) / alpha
    return Activation(
        name=name or f"hard_sigmoid({alpha!r}, {beta!r})",
        function=lambda z: np.clip(alpha * z + beta, 0.0, 1.0),
        derivative=lambda z: alpha * ((z > low) & (z < high)),
        sup_derivative=alpha,
        kink=f"0 at z = {low:g} and z = {high:g}",
        kinks=(low, high),
        low=0.0,
        high=1.0,
    )


def leaky_relu(alpha: float) -> Activation:
    """z for z > 0, alpha z elsewhere; the slope at 0 is alpha.

    Raises
    ------
    SettingError
        If ``alpha`` is not finite.
    """
    _require_finite("leaky_relu", alpha)
    return Activation(
        name=f"leaky_relu({alpha!r})",
        function=lambda z: np.where(z > 0.0, z, alpha * z),
        derivative=lambda z: np.where(z > 0.0, 1.0, alpha),
        sup_derivative=max(1.0, abs(alpha)),
        inf_derivative=min(1.0, alpha),
        kink=f"{alpha:g} at z = 0",
        kinks=(0.0,),
        low=-math.inf if alpha > 0.0 else 0.0,
    )


def elu(alpha: float) -> Activation:
    """z for z > 0, alpha (e^z - 1) elsewhere; the slope at 0 is alpha.

    Raises
    ------
    SettingError
        If ``alpha`` is not finite.
    """
    _require_finite("elu", alpha)
    return Activation(
        name=f"elu({alpha!r})",
        function=lambda z: np.where(z > 0.0, z, alpha * np.expm1(np.minimum(z, 0.0))),
        derivative=lambda z: np.where(z > 0.0, 1.0, alpha * np.exp(np.minimum(z, 0.0))),
        sup_derivative=max(1.0, abs(alpha)),
        inf_derivative=min(0.0, alpha),
        kink=f"{alpha:g} at z = 0",
        kinks=(0.0,),
        low=min(0.0, -alpha),
    )


def thresholded_relu(alpha: float) -> Activation:
    """z for z > alpha, 0 elsewhere: it jumps at alpha, where the slope is taken as 0.

    Raises
    ------
    SettingError
        If ``alpha`` is not finite.
    """
    _require_finite("thresholded_relu", alpha)
    return Activation(
        name=f"thresholded_relu({alpha!r})",
        function=lambda z: np.where(z > alpha, z, 0.0),
        derivative=lambda z: (z > alpha) * 1.0,
        sup_derivative=1.0,
        kink=f"0 at z = {alpha:g}, where the value jumps",
        kinks=(alpha,),
        low=min(0.0, alpha),
    )


def scaled_tanh(alpha: float, beta: float) -> Activation:
    """alpha tanh(beta z).

    Raises
    ------
    SettingError
        If a number is not finite.
    """
    _require_finite("scaled_tanh", alpha, beta)
    return Activation(
        name=f"scaled_tanh({alpha!r}, {beta!r})",
        function=lambda z: alpha * np.tanh(beta * z),
        derivative=lambda z: alpha * beta * squared_sech(beta * z),
        sup_derivative=abs(alpha * beta),
        inf_derivative=min(0.0, alpha * beta),
        kink=SMOOTH,
        low=-abs(alpha),
        high=abs(alpha),
    )


def affine(alpha: float, beta: float) -> Activation:
    """alpha z + beta.

    Raises
    ------
    SettingError
        If a number is not finite.
    """
    _require_finite("affine", alpha, beta)
    return Activation(
        name=f"affine({alpha!r}, {beta!r})",
        function=lambda z: alpha * z + beta,
        derivative=lambda z: np.full_like(z, alpha),
        sup_derivative=abs(alpha),
        inf_derivative=alpha,
        kink=SMOOTH,
    )


def squared_sech(z: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """4 E/(1 + E)² with E = exp(-2|z|): it does not cancel where tanh is nearly 1."""
    decay = np.exp(-2.0 * np.abs(z))
    return np.asarray(4.0 * decay / (1.0 + decay) ** 2)


def _require_finite(name: str, *numbers: float) -> None:
    if not all(map(math.isfinite, numbers)):
        spelled = ", ".join(map(repr, numbers))
        raise SettingError(f"{name}({spelled}): expected finite numbers")


FAMILIES = {
    "hard_sigmoid": Family(2, hard_sigmoid),
    "leaky_relu": Family(1, leaky_relu),
    "elu": Family(1, elu),
    "thresholded_relu": Family(1, thresholded_relu),
    "scaled_tanh": Family(2, scaled_tanh),
    "affine": Family(2, affine),
}
