r"""Bounds on the Jacobian of an LSTM by the norms of its four blocks.

The Jacobian of (h, c) is :math:`\begin{pmatrix} R(Q + SA) & RSF \\ A & F \end{pmatrix}` (see
`LSTMStep`). A matrix of bounds on the norms of the blocks multiplies as the Jacobians do: the norm
of a product of Jacobians is at most the norm of the product of their majorants. Proofs:
docs/theory.md, "Bounds for gated cells".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.base import Majorant
from gradlab.cells.gates import row_blocks
from gradlab.cells.lstm_factors import LSTMFactors, LSTMFunctions
from gradlab.cells.lstm_steps import LSTMStep, LSTMWeights
from gradlab.linalg import norms_of
from gradlab.norms import spectral_norm

GATES = ("i", "f", "g", "o")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMNorms:
    """Spectral norms of an LSTM's recurrent weights."""

    i: float
    f: float
    g: float
    o: float
    writing: float  # of the blocks i, f and g below each other
    projection: float  # 1 without

    @classmethod
    def of(cls, weights: LSTMWeights) -> LSTMNorms:
        """Norms of the given weights."""
        gates = {name: spectral_norm(U) for name, U in row_blocks(weights.W_h, GATES).items()}
        writing = spectral_norm(weights.W_h[: 3 * len(weights.W_h) // 4])
        projection = 1.0 if weights.W_hr is None else spectral_norm(weights.W_hr)
        return cls(**gates, writing=writing, projection=projection)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LSTMRanges:
    """How large the parts of a step can be: suprema of absolute values over units and steps."""

    i: float
    f: float
    o: float
    slope_i: float  # of the gates' activation, over the pre-activations that can occur
    slope_f: float
    slope_o: float
    candidate: float
    squash: float
    cell: float | Float[Array, "*lead"]  # of the old cell state

    @classmethod
    def unlimited(cls, functions: LSTMFunctions, cell: float | Float[Array, "*lead"]) -> LSTMRanges:
        """Ranges that hold for all weights and inputs; inf where an activation is unbounded."""
        gate = functions.gate
        opened, turned = gate.sup_value, max(abs(1.0 - gate.low), abs(1.0 - gate.high))
        return cls(
            i=turned if functions.coupled == "input" else opened,
            f=turned if functions.coupled == "forget" else opened,
            o=opened,
            slope_i=gate.sup_derivative,
            slope_f=gate.sup_derivative,
            slope_o=gate.sup_derivative,
            candidate=functions.candidate.sup_value,
            squash=functions.squash.sup_value,
            cell=cell,
        )


def unbounded_part(functions: LSTMFunctions) -> str | None:
    """Why weights alone bound no step, in words; None if they do."""
    parts = {
        "gates": functions.gate,
        "candidate": functions.candidate,
        "output activation": functions.squash,
    }
    for part, phi in parts.items():
        if not phi.bounded:
            return f"the {part} ({phi.name}) can grow without limit: weights alone bound no step"
    return None


def lstm_rungs(
    *,
    weights: LSTMWeights,
    functions: LSTMFunctions,
    factors: LSTMFactors,
    steps: Callable[[], Iterable[LSTMStep]],
    cell: Float[Array, "time batch n"],
) -> Mapping[str, Callable[[], Majorant]]:
    """Bounds of all three levels along a run with the given old cell states, loosest first."""

    def by_weights() -> Majorant:
        ranges = LSTMRanges.unlimited(functions, np.abs(cell).max(axis=-1))
        matrices = range_majorant(ranges, functions, LSTMNorms.of(weights))
        return Majorant(matrices=matrices, constant=True)

    def by_gates() -> Majorant:
        return Majorant(matrices=gate_majorants(factors, LSTMNorms.of(weights)))

    def by_data() -> Majorant:
        return Majorant(matrices=data_majorants(steps()))

    loosest = {"lstm_weights": by_weights} if unbounded_part(functions) is None else {}
    return loosest | {"lstm_gates": by_gates, "lstm_data": by_data}


def data_majorants(
    steps: Iterable[LSTMStep],
) -> Float[Array, "time batch 2 2"]:
    """Norms of the four blocks of every step's own Jacobian; the tightest of the three levels."""
    return np.stack([_block_norms(step) for step in steps])


def gate_majorants(factors: LSTMFactors, norms: LSTMNorms) -> Float[Array, "time batch 2 2"]:
    r"""Bounds from the largest factor of every gate, :math:`a = \sum \max|\alpha_g| \|U_g\|`.

    Where it is smaller, a is :math:`\max_j (\sum_g \alpha_{g,j}^2)^{1/2} \|(U_i; U_f; U_g)\|`.
    """
    alpha_i, alpha_f, alpha_g, alpha_o = np.abs(factors.alpha).max(axis=-1)
    apart = alpha_i * norms.i + alpha_f * norms.f + alpha_g * norms.g
    # Squares of tiny factors would be lost: hypot does not form them.
    sizes = np.hypot(np.hypot(factors.alpha[0], factors.alpha[1]), factors.alpha[2])
    together = sizes.max(axis=-1) * norms.writing
    return _assembled(
        p=alpha_o * norms.o,
        s=np.abs(factors.S).max(axis=-1),
        a=np.minimum(apart, together),
        f=np.abs(factors.F).max(axis=-1),
        projection=norms.projection,
    )


def range_majorant(
    ranges: LSTMRanges, functions: LSTMFunctions, norms: LSTMNorms
) -> Float[Array, "*lead 2 2"]:
    """Bounds from the weights' norms and the ranges alone, one matrix for each cell bound."""
    cell = np.asarray(ranges.cell)[..., None]
    write, keep = np.full_like(cell, ranges.candidate), cell
    if functions.coupled == "forget":  # dc'/da_i = (g - c) i'
        write, keep = cell + ranges.candidate, np.zeros_like(cell)
    elif functions.coupled == "input":  # dc'/da_f = (c - g) f'
        write, keep = np.zeros_like(cell), cell + ranges.candidate
    alpha_i, alpha_f = write * ranges.slope_i, keep * ranges.slope_f
    alpha_g = ranges.i * functions.candidate.sup_derivative
    alpha_o = ranges.squash * ranges.slope_o
    p_i, p_f, p_o = _peephole_sizes(functions)
    whole = _assembled(
        p=np.full_like(cell, alpha_o * norms.o),
        s=np.full_like(cell, ranges.o * functions.squash.sup_derivative + alpha_o * p_o),
        a=alpha_i * norms.i + alpha_f * norms.f + alpha_g * norms.g,
        f=ranges.f + alpha_i * p_i + alpha_f * p_f,
        projection=norms.projection,
    )
    return whole[..., 0, :, :]


def _block_norms(step: LSTMStep) -> Float[Array, "batch 2 2"]:
    A = step.A()
    norms = np.empty((len(A), 2, 2))
    norms[:, 0, 0] = norms_of(step.weights.release(step.Q() + step.S[:, :, None] * A))
    norms[:, 1, 0] = norms_of(A)
    norms[:, 1, 1] = np.abs(step.F).max(axis=1)
    carried = step.S * step.F
    if step.weights.W_hr is None:
        norms[:, 0, 1] = np.abs(carried).max(axis=1)
    else:
        norms[:, 0, 1] = norms_of(step.weights.W_hr * carried[:, None, :])
    return norms


def _assembled(
    *,
    p: Float[Array, "*lead"],
    s: Float[Array, "*lead"],
    a: Float[Array, "*lead"],
    f: Float[Array, "*lead"],
    projection: float,
) -> Float[Array, "*lead 2 2"]:
    """[[r (p + s a), r s f], [a, f]]; inf beyond float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        above = [projection * (p + s * a), projection * s * f]
    whole = np.stack([np.stack(above, axis=-1), np.stack([a, f], axis=-1)], axis=-2)
    return np.where(np.isnan(whole), np.inf, whole)


def _peephole_sizes(functions: LSTMFunctions) -> tuple[float, float, float]:
    if functions.peepholes is None:
        return 0.0, 0.0, 0.0
    p_i, p_f, p_o = np.abs(functions.peepholes).max(axis=1).tolist()
    return p_i, p_f, p_o
