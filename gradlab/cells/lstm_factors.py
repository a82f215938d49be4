r"""Elementwise factors of an LSTM step, from which its Jacobian and its gradient are made.

With :math:`a_g` the pre-activations of the gates, :math:`c'` the new cell state and
:math:`m = o \odot \psi(c')` the output before a projection,

.. math::
   dc' = \sum_{g \in i,f,g} \alpha_g \, da_g + F \, dc, \qquad dm = \alpha_o \, da_o + S \, dc',

where the peepholes' part of :math:`da` along c and c' is counted in F and S.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import blocks

# Pre-activations whose factors are computed at a time: few enough to stay in the cache.
BLOCK_BYTES = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMFactors:
    """Factors of the steps of a run."""

    alpha: Float[Array, "4 steps batch n"]  # dc'/da_i, dc'/da_f, dc'/da_g and dm/da_o
    F: Float[Array, "steps batch n"]  # dc'/dc at fixed h
    S: Float[Array, "steps batch n"]  # dm/dc' at fixed h

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> LSTMFactors:
        """Room for steps whose cell states have the given shape."""
        return cls(
            alpha=np.empty((4, *shape), dtype=dtype),
            F=np.empty(shape, dtype=dtype),
            S=np.empty(shape, dtype=dtype),
        )

    def at(self, steps: slice) -> LSTMFactors:
        """Views of some steps."""
        return LSTMFactors(alpha=self.alpha[:, steps], F=self.F[steps], S=self.S[steps])


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
        a: Float[Array, "steps batch rows"],
        c: Float[Array, "steps batch n"],
        c_next: Float[Array, "steps batch n"],
    ) -> LSTMFactors:
        """Factors of steps with the given pre-activations, old and new cell states."""
        whole = LSTMFactors.empty(c.shape, c.dtype)
        block = max(1, BLOCK_BYTES // max(1, a[:1].nbytes))
        scratch = np.empty((3, min(block, len(a)), *c.shape[1:]), dtype=c.dtype)
        with np.errstate(over="ignore"):
            for start in range(0, len(a), block):
                part = slice(start, start + block)
                self.write_factors(a[part], c[part], c_next[part], whole.at(part), scratch)
        return whole

    def write_factors(
        self,
        a: Float[Array, "steps batch rows"],
        c: Float[Array, "steps batch n"],
        c_next: Float[Array, "steps batch n"],
        out: LSTMFactors,
        scratch: Float[Array, "3 room batch n"],
    ) -> None:
        """Same as `factors`, into arrays that are there; the caller silences overflow."""
        _, _, a_g, a_o = blocks(a, 4)
        alpha_i, alpha_f, alpha_g, alpha_o = out.alpha
        g, value, slope = scratch[:, : len(a)]
        self.candidate.write_both(a_g, g, alpha_g)
        self._write_cell_path(a, c, out, g, value, slope)
        self.gate.write_both(a_o, out.S, slope)
        self.squash.write_both(c_next, value, g)
        np.multiply(value, slope, out=alpha_o)
        np.multiply(out.S, g, out=out.S)
        if self.peepholes is not None:
            p_i, p_f, p_o = self.peepholes
            np.add(out.F, alpha_i * p_i + alpha_f * p_f, out=out.F)
            np.add(out.S, alpha_o * p_o, out=out.S)

    def _write_cell_path(
        self, a: Array, c: Array, out: LSTMFactors, g: Array, i: Array, slope: Array
    ) -> None:
        """Factors of i, f and g, and the forget gate as F; ``alpha_g`` holds the slope of g."""
        a_i, a_f, _, _ = blocks(a, 4)
        alpha_i, alpha_f, alpha_g, _ = out.alpha
        if self.coupled == "input":
            self.gate.write_both(a_f, out.F, slope)
            alpha_i[...] = 0.0
            np.multiply(c - g, slope, out=alpha_f)
            np.subtract(1.0, out.F, out=i)
        elif self.coupled == "forget":
            self.gate.write_both(a_i, i, slope)
            np.multiply(g - c, slope, out=alpha_i)
            alpha_f[...] = 0.0
            np.subtract(1.0, i, out=out.F)
        else:
            self.gate.write_both(a_f, out.F, slope)
            np.multiply(c, slope, out=alpha_f)
            self.gate.write_both(a_i, i, slope)
            np.multiply(g, slope, out=alpha_i)
        np.multiply(i, alpha_g, out=alpha_g)
