r"""Activations with their derivative, the derivative's supremum and a stated convention at kinks.

Derivatives are computed from the pre-activation ``z`` in a form that does not cancel: ``1 - h**2``
from a rounded ``h`` is exactly zero from ``|z| = 19.06`` on, the true derivative is not.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells import kernels
from gradlab.cells.activation_families import FAMILIES, hard_sigmoid, squared_sech
from gradlab.cells.elementwise import SMOOTH, Activation
from gradlab.errors import SettingError, unknown_name

LEAK = 0.01
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805
GELU_SLOPE_SUP = 0.5 * (1.0 + math.erf(1.0)) + math.exp(-1.0) / math.sqrt(math.pi)
SILU_SLOPE_SUP = 1.0998393201288104
# Slopes of GELU and SiLU at z and -z add up to 1: the infimum is 1 less the supremum.


def _sigmoid(z: Float[Array, "..."]) -> Float[Array, "..."]:
    decay = np.exp(-np.abs(z))
    lower = decay / (1.0 + decay)
    return np.where(z >= 0.0, 1.0 - lower, lower)


def _sigmoid_slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    decay = np.exp(-np.abs(z))
    return decay / (1.0 + decay) ** 2


def _erf(z: Float[Array, "..."]) -> Float[Array, "..."]:
    from scipy.special import erf

    return np.asarray(erf(z))


def _erf_slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return np.asarray(2.0 / math.sqrt(math.pi) * np.exp(-(z**2)))


def _normal_cdf(z: Float[Array, "..."]) -> Float[Array, "..."]:
    from scipy.special import ndtr

    return np.asarray(ndtr(z))


def _gelu_slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return _normal_cdf(z) + z * np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)


def _silu_slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return _sigmoid(z) * (1.0 + z * _sigmoid(-z))


def _softplus(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def _elu(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0)))


def _elu_slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return np.where(z > 0.0, 1.0, np.exp(np.minimum(z, 0.0)))


def _selu(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return SELU_SCALE * np.where(z > 0.0, z, SELU_ALPHA * np.expm1(np.minimum(z, 0.0)))


def _selu_slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    return SELU_SCALE * np.where(z > 0.0, 1.0, SELU_ALPHA * np.exp(np.minimum(z, 0.0)))


_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)

_ALL = (
    Activation(
        name="tanh", function=np.tanh, derivative=squared_sech,
        sup_derivative=1.0, kink=SMOOTH, low=-1.0, high=1.0,
        slope_from_output=lambda h: 1.0 - h**2, kernel=kernels.TANH,
        log_slope=lambda z: math.log(4.0) - 2.0 * np.logaddexp(z, -z),
    ),
    Activation(
        name="relu", function=lambda z: np.maximum(z, 0.0), derivative=lambda z: (z > 0.0) * 1.0,
        sup_derivative=1.0, kink="0 at z = 0", kinks=(0.0,), low=0.0,
    ),
    Activation(
        name="leaky_relu", function=lambda z: np.where(z > 0.0, z, LEAK * z),
        derivative=lambda z: np.where(z > 0.0, 1.0, LEAK),
        sup_derivative=1.0, inf_derivative=LEAK, kink=f"{LEAK} at z = 0", kinks=(0.0,),
    ),
    Activation(
        name="identity", function=lambda z: z, derivative=np.ones_like,
        sup_derivative=1.0, inf_derivative=1.0, kink=SMOOTH,
    ),
    Activation(
        name="sigmoid", function=_sigmoid, derivative=_sigmoid_slope,
        sup_derivative=0.25, kink=SMOOTH, low=0.0, high=1.0,
        slope_from_output=lambda h: h * (1.0 - h), kernel=kernels.SIGMOID,
        log_slope=lambda z: -2.0 * np.logaddexp(0.5 * z, -0.5 * z),
    ),
    Activation(
        name="hard_tanh", function=lambda z: np.clip(z, -1.0, 1.0),
        derivative=lambda z: (np.abs(z) < 1.0) * 1.0,
        sup_derivative=1.0, kink="0 at |z| = 1", kinks=(-1.0, 1.0), low=-1.0, high=1.0,
    ),
    Activation(
        name="erf", function=_erf, derivative=_erf_slope,
        sup_derivative=_TWO_OVER_ROOT_PI, kink=SMOOTH, low=-1.0, high=1.0,
        log_slope=lambda z: math.log(_TWO_OVER_ROOT_PI) - z**2,
    ),
    Activation(
        name="softsign", function=lambda z: z / (1.0 + np.abs(z)),
        derivative=lambda z: (1.0 + np.abs(z)) ** -2,
        sup_derivative=1.0, kink=SMOOTH, low=-1.0, high=1.0,
    ),
    Activation(
        name="softplus", function=_softplus, derivative=_sigmoid,
        sup_derivative=1.0, kink=SMOOTH, low=0.0,
    ),
    Activation(
        name="gelu", function=lambda z: z * _normal_cdf(z), derivative=_gelu_slope,
        sup_derivative=GELU_SLOPE_SUP, inf_derivative=1.0 - GELU_SLOPE_SUP, kink=SMOOTH,
    ),
    Activation(
        name="silu", function=lambda z: z * _sigmoid(z), derivative=_silu_slope,
        sup_derivative=SILU_SLOPE_SUP, inf_derivative=1.0 - SILU_SLOPE_SUP, kink=SMOOTH,
    ),
    Activation(
        name="elu", function=_elu, derivative=_elu_slope,
        sup_derivative=1.0, kink=SMOOTH, low=-1.0,
    ),
    Activation(
        name="selu", function=_selu, derivative=_selu_slope,
        sup_derivative=SELU_SCALE * SELU_ALPHA, kink="scale * alpha at z = 0", kinks=(0.0,),
        low=-SELU_SCALE * SELU_ALPHA,
    ),
    hard_sigmoid(0.2, 0.5, "hard_sigmoid"),
    hard_sigmoid(1.0 / 6.0, 0.5, "hard_sigmoid_6"),
)  # fmt: skip

ACTIVATIONS = {entry.name: entry for entry in _ALL}
_MEMBER = re.compile(r"(\w+)\(([^()]*)\)")


def activation(name: str) -> Activation:
    """Activation of that name.

    Parameters
    ----------
    name
        One of the keys of ``ACTIVATIONS``, or a member of a family with its numbers, as
        ``hard_sigmoid(0.25, 0.5)``.

    Returns
    -------
    activation
        Function, derivative from ``z``, supremum of the derivative, convention at kinks.

    Raises
    ------
    UnknownNameError
        If there is none of that name; the nearest is named.
    """
    found = ACTIVATIONS.get(name) or _member(name)
    if found is None:
        raise unknown_name("activation", name, ACTIVATIONS)
    return found


@lru_cache(maxsize=64)
def clipped(name: str, limit: float | int | None) -> Activation:
    """Activation whose argument is clipped to ± limit first; the plain one if None.

    The slope is 0 from the limit on, so that a clipped unit counts as saturated. The supremum of
    the slope stays that of the whole line: an upper bound.

    Raises
    ------
    UnknownNameError
        If there is no such activation.
    SettingError
        If the limit is not a positive number.
    """
    phi = activation(name)
    if limit is None:
        return phi
    if not 0.0 < limit < math.inf:
        raise SettingError(f"clip {limit}: expected a positive number")
    values = phi.function(np.linspace(-limit, limit, 1001))
    return replace(
        phi,
        name=f"{name} of its argument clipped to {limit:g}",
        function=lambda z: phi.function(np.clip(z, -limit, limit)),
        derivative=lambda z: np.where(np.abs(z) < limit, phi.derivative(z), 0.0),
        inf_derivative=min(phi.inf_derivative, 0.0),
        kink=f"{phi.kink}; 0 at |z| = {limit:g}",
        kinks=(*phi.kinks, -limit, limit),
        low=float(values.min()),
        high=float(values.max()),
        slope_from_output=None,
        log_slope=None,
        kernel=None,
    )


def _member(name: str) -> Activation | None:
    """Member of a family, by its spelling; None if it is not one."""
    match = _MEMBER.fullmatch(name)
    if match is None or match[1] not in FAMILIES:
        return None
    family = FAMILIES[match[1]]
    try:
        numbers = [float(number) for number in match[2].split(",")]
    except ValueError:
        return None
    return family.member(*numbers) if len(numbers) == family.count else None
