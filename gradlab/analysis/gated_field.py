r"""Slow mode of random LSTM and GRU networks: how long a biased gate keeps the gradient.

Over the many steps that a gate near 1 remembers, everything else averages out. An LSTM's cell
state :math:`c' = f c + i \tilde c`, its candidate driven by :math:`h = o \tanh c`, then obeys
:math:`\delta c' = (f + A)\, \delta c`, where A is a random matrix of spectral radius

.. math:: a = g\, E[i]\, E[\varphi'(z)]\, E[o]\, E[\varphi'(c)],

since the mean over time of each factor is what acts on a slow perturbation; the other gates act
through c, h or the candidate, whose means are 0. The eigenvalues of f + A reach to f + a. For a
GRU, :math:`a = g\, E[1 - z]\, E[\varphi']\, E[r]`. Means are over pre-activations of variance
:math:`q = \sigma_x^2 + g^2 E h^2`. Without recurrent weights this is the constant error carousel
(Hochreiter and Schmidhuber 1997). Derivation and accuracy: docs/theory.md, "Designing a horizon".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradlab.analysis.meanfield import gaussian_mean
from gradlab.arrays import Array
from gradlab.cells.activations import activation as activation_named
from gradlab.cells.elementwise import Activation
from gradlab.errors import SettingError, unknown_name
from gradlab.records.gated_field import GatedField

GATED = ("lstm", "gru")
ROUNDS = 500
SETTLED = 1e-12
LARGEST_BIAS = 500.0  # beyond, what a gate loses leaves the range of floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One unit of infinitely many, at its forget bias and activation."""

    phi: Activation
    bias: float
    input_variance: float

    def gate(self, q: float, power: int, shift: float = 0.0) -> float:
        """E σ(z + shift)^power over pre-activations of variance q."""
        return gaussian_mean(lambda z: np.exp(-power * np.logaddexp(0.0, -(z + shift))), q)

    def lost(self, q: float) -> float:
        """1 - E f², of full relative accuracy however near f is to 1."""

        def share(z: Array) -> Array:
            kept = np.exp(_log_gate(z + self.bias))
            return np.asarray(np.exp(_log_gate(-z - self.bias)) * (1.0 + kept))

        return gaussian_mean(share, q)

    def square(self, q: float) -> float:
        """E φ²."""
        return gaussian_mean(lambda z: self.phi.function(z) ** 2, q, self.phi.kinks)

    def slope(self, q: float) -> float:
        """E φ'."""
        return gaussian_mean(self.phi.derivative, q, self.phi.kinks)


def gated_field(
    cell: str,
    *,
    forget_bias: float,
    gain: float = 1.0,
    input_std: float = 0.0,
    activation: str = "tanh",
) -> GatedField:
    """Theory of a random gated network without other biases.

    Parameters
    ----------
    cell
        ``"lstm"`` or ``"gru"``.
    forget_bias
        Bias of the gate that keeps the old state.
    gain
        g of every gate's recurrent block, Gaussian or orthogonal.
    input_std
        Standard deviation of the input's share of every pre-activation, fresh at each step.
    activation
        Of candidate and output: bounded, and odd, since states are to have mean 0.

    Returns
    -------
    prediction
        Good to some ten percent of the horizon while the feedback is small beside 1.

    Raises
    ------
    UnknownNameError
        If the cell or the activation is none of these.
    SettingError
        If the activation is not bounded, or a number is not finite.
    """
    if cell not in GATED:
        raise unknown_name("gated cell", cell, GATED)
    phi = activation_named(activation)
    if not phi.bounded:
        raise SettingError(f"activation {activation}: expected a bounded one for a gated cell")
    for name, value in (("forget_bias", forget_bias), ("gain", gain), ("input_std", input_std)):
        if not math.isfinite(value):
            raise SettingError(f"{name} is {value}: expected a finite number")
    if abs(forget_bias) > LARGEST_BIAS:
        raise SettingError(
            f"forget_bias is {forget_bias}: expected -{LARGEST_BIAS:g} to {LARGEST_BIAS:g}"
        )
    site = Site(phi=phi, bias=forget_bias, input_variance=input_std**2)
    q, feedback, reading = (_lstm if cell == "lstm" else _gru)(site, gain)
    logs = gaussian_mean(lambda z: _log_gate(z + forget_bias), q)
    squares = gaussian_mean(lambda z: _log_gate(z + forget_bias) ** 2, q)
    return GatedField(
        cell=cell,
        activation=activation,
        forget_bias=float(forget_bias),
        gain=float(gain),
        input_std=float(input_std),
        q=q,
        carry=math.exp(logs),
        spread=max(squares - logs**2, 0.0),
        feedback=gain * feedback,
        reading=reading,
    )


def _lstm(site: Site, gain: float) -> tuple[float, float, float]:
    """Variance of the pre-activations, the feedback at unit gain, and how h follows c."""

    def cell_variance(q: float) -> float:
        return site.gate(q, 2) * site.square(q) / site.lost(q)

    def following(q: float) -> float:
        output = site.gate(q, 2) * site.square(cell_variance(q))
        return site.input_variance + gain**2 * output

    q = _settled(following, site.input_variance)
    reading = site.gate(q, 1) * site.slope(cell_variance(q))
    return q, site.gate(q, 1) * site.slope(q) * reading, reading


def _gru(site: Site, gain: float) -> tuple[float, float, float]:
    """Variance of the gates' pre-activations, the feedback at unit gain, and 0: h is all."""

    def candidate_variance(q: float) -> float:
        return site.input_variance + site.gate(q, 2) * (q - site.input_variance)

    def following(q: float) -> float:
        replaced = site.gate(q, 2, -site.bias)
        state = replaced * site.square(candidate_variance(q)) / site.lost(q)
        return site.input_variance + gain**2 * state

    q = _settled(following, site.input_variance)
    replaced = site.gate(q, 1, -site.bias)
    return q, replaced * site.gate(q, 1) * site.slope(candidate_variance(q)), 0.0


def _settled(following: Callable[[float], float], start: float) -> float:
    """Fixed point of the variance, by iteration with damping."""
    q = start
    for _ in range(ROUNDS):
        step = following(q) - q
        q += 0.7 * step
        if abs(step) <= SETTLED * max(1.0, q):
            break
    return q


def _log_gate(z: Array) -> Array:
    """ln σ(z)."""
    return np.asarray(-np.logaddexp(0.0, -z))
