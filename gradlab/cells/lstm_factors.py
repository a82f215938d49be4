r"""Elementwise factors of an LSTM step, from which its Jacobian and its gradient are made.

With :math:`a_g` the pre-activations of the gates, :math:`c'` the new cell state and
:math:`m = o \odot \psi(c')` the output before a projection,

.. math::
   dc' = \sum_{g \in i,f,g} \alpha_g \, da_g + F \, dc, \qquad dm = \alpha_o \, da_o + S \, dc',

where the peepholes' part of :math:`da` along c and c' is counted in F and S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.activations import Activation
from gradlab.cells.gates import blocks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMFactors:
    """Factors of the steps of a run; leading axes are those of the pre-activations."""

    alpha: Float[Array, "*lead 4 n"]  # dc'/da_i, dc'/da_f, dc'/da_g and dm/da_o
    F: Float[Array, "*lead n"]  # dc'/dc at fixed h
    S: Float[Array, "*lead n"]  # dm/dc' at fixed h


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMFunctions:
    """The elementwise part of an LSTM: activations, coupling of gates, peepholes."""

    gate: Activation  # of i, f and o
    candidate: Activation  # of g
    squash: Activation  # of the cell state on its way out
    coupled: str | None  # "forget": f = 1 - i; "input": i = 1 - f
    peepholes: Float[Array, "3 n"] | None  # i, f, o

    def input_and_forget(
        self, a_i: Float[Array, "*lead n"], a_f: Float[Array, "*lead n"]
    ) -> tuple[Float[Array, "*lead n"], Float[Array, "*lead n"]]:
        """Gates i and f from their pre-activations."""
        if self.coupled == "forget":
            i = self.gate.function(a_i)
            return i, 1.0 - i
        f = self.gate.function(a_f)
        return (1.0 - f if self.coupled == "input" else self.gate.function(a_i)), f

    def factors(
        self,
        a: Float[Array, "*lead rows"],
        c: Float[Array, "*lead n"],
        c_next: Float[Array, "*lead n"],
    ) -> LSTMFactors:
        """Factors of steps with the given pre-activations, old and new cell states."""
        a_i, a_f, a_g, a_o = blocks(a, 4)
        g, g_slope = self.candidate.value_and_slope(a_g)
        o, o_slope = self.gate.value_and_slope(a_o)
        tau, tau_slope = self.squash.value_and_slope(c_next)
        alpha = np.empty((*c.shape[:-1], 4, c.shape[-1]), dtype=c.dtype)
        i, F = self._cell_path(a_i, a_f, c, g, alpha)
        np.multiply(i, g_slope, out=alpha[..., 2, :])
        np.multiply(tau, o_slope, out=alpha[..., 3, :])
        S = o * tau_slope
        if self.peepholes is not None:
            p_i, p_f, p_o = self.peepholes
            F = F + alpha[..., 0, :] * p_i + alpha[..., 1, :] * p_f
            S = S + alpha[..., 3, :] * p_o
        return LSTMFactors(alpha=alpha, F=F, S=S)

    def _cell_path(
        self, a_i: Array, a_f: Array, c: Array, g: Array, alpha: Array
    ) -> tuple[Array, Array]:
        """Gates i and f; fills in the factors of their pre-activations."""
        if self.coupled == "forget":
            i, i_slope = self.gate.value_and_slope(a_i)
            alpha[..., 0, :], alpha[..., 1, :] = (g - c) * i_slope, 0.0
            return i, 1.0 - i
        f, f_slope = self.gate.value_and_slope(a_f)
        if self.coupled == "input":
            alpha[..., 0, :], alpha[..., 1, :] = 0.0, (c - g) * f_slope
            return 1.0 - f, f
        i, i_slope = self.gate.value_and_slope(a_i)
        np.multiply(g, i_slope, out=alpha[..., 0, :])
        np.multiply(c, f_slope, out=alpha[..., 1, :])
        return i, f
