r"""Bounds on the absolute row sums of the Jacobian of units that mix old state and candidate.

With kept share k and candidate n, :math:`h' = (1 - k) \odot n + k \odot h`, row j of the
Jacobian has absolute sum at most :math:`k_j + (1 - k_j)\,\psi_j`, where :math:`\psi_j` depends on
the weights alone as long as :math:`|h| \le H`. Proof: docs/theory.md, "Bounds for gated cells". It
rests on logistic gates, :math:`|dk/da| = k(1 - k)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.base import Majorant
from gradlab.cells.elementwise import Activation
from gradlab.cells.gates import NO_GAMMA
from gradlab.cells.linear_steps import LinearSteps, TermStep
from gradlab.records.trajectory import Trajectory

Reach = float | Float[Array, "*lead"]  # H


@runtime_checkable
class MixingCell(Protocol):
    """A cell whose new state lies between the old one and a candidate."""

    @property
    def recurrent_activation(self) -> str:
        """Activation of the gates."""

    @property
    def phi(self) -> Activation:
        """Activation of the candidate."""

    def row_bounds(self, reach: Reach) -> Float[Array, "*lead n"]:
        """ψ while no |h| exceeds the reach."""

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """Kept share, by the gate that sets it."""


def row_bounded_steps(
    cell: MixingCell, trajectory: Trajectory, at: Callable[[int], TermStep]
) -> LinearSteps:
    """Steps of a run with the rung ``gru_rows``, or the reason why it is absent."""
    reason = absent_rows(cell.recurrent_activation, cell.phi)
    if reason is not None:
        absent = {"gamma": NO_GAMMA, "gru_rows": reason}
        return LinearSteps(trajectory.steps, at, absent_bounds=absent)
    return LinearSteps(
        trajectory.steps,
        at,
        majorants={"gru_rows": lambda: row_majorant(cell, trajectory)},
        absent_bounds={"gamma": NO_GAMMA},
    )


def row_majorant(cell: MixingCell, trajectory: Trajectory) -> Majorant:
    """Largest row sums of every step; from the ∞-norm to the spectral one it costs √N."""
    (kept,) = cell.carry(trajectory).values()
    seen = np.abs(trajectory.states).max(axis=(0, 2)).astype(np.float64)
    psi = cell.row_bounds(np.maximum(seen, cell.phi.sup_value))
    rows = mixed_rows(kept.astype(np.float64), psi)
    return Majorant(matrices=rows[:, :, None, None], log_factor=0.5 * float(np.log(psi.shape[-1])))


def absent_rows(recurrent_activation: str, candidate: Activation) -> str | None:
    """Why there is no such bound, in words; None if there is one."""
    if recurrent_activation != "sigmoid":
        return (
            f"the proof needs gates whose slope is z (1 - z), and those of {recurrent_activation} "
            "have another"
        )
    if not candidate.bounded:
        return f"the candidate ({candidate.name}) can grow without limit: so can the state"
    return None


def candidate_rows_after(
    U_r: Float[Array, "n n"], U_n: Float[Array, "n n"], b_n: Float[Array, " n"], reach: Reach
) -> Float[Array, "*lead n"]:
    r"""Row sums of diag(r) U_n + diag(q r (1 - r)) U_r with q = U_n h + b_n, over all r.

    Parameters
    ----------
    U_r, U_n
        Recurrent weights of the reset gate and of the candidate.
    b_n
        Bias inside the reset.
    reach
        H.
    """
    rows = _row_sums(U_n)
    with np.errstate(over="ignore"):
        return _over_gate(rows, (_lifted(reach) * rows + np.abs(b_n)) * _row_sums(U_r))


def candidate_rows_before(
    U_r: Float[Array, "n n"], U_n: Float[Array, "n n"], reach: Reach
) -> Float[Array, "*lead n"]:
    """Row sums of U_n (diag(r) + diag(h r (1 - r)) U_r), over all r and all h within H."""
    with np.errstate(over="ignore"):
        read = _over_gate(np.ones(len(U_r)), _lifted(reach) * _row_sums(U_r))
        return np.asarray(read @ np.abs(U_n).T)


def row_bounds(
    U_z: Float[Array, "n n"],
    beta: Float[Array, "*lead n"],
    candidate: Activation,
    reach: Reach,
) -> Float[Array, "*lead n"]:
    r"""ψ, from the update gate's weights and the candidate's row sums β.

    Parameters
    ----------
    U_z
        Recurrent weights of the gate that mixes.
    beta
        From `candidate_rows_after` or `candidate_rows_before`.
    candidate
        Its activation; that of tanh, of slope 1 - n², has a tighter form.
    reach
        H, at least the supremum of |φ|.
    """
    u = _row_sums(U_z)
    with np.errstate(over="ignore"):  # a bound beyond float64 is inf
        if not candidate.name.startswith("tanh"):
            reached = _lifted(reach) + candidate.sup_value
            return np.asarray(u * reached + candidate.sup_derivative * beta)
        # The largest of u x + beta (1 - x²) over x = |n| in [0, 1].
        inside = u <= 2.0 * beta
        vertex = u * (u / (4.0 * np.where(inside & (beta > 0.0), beta, 1.0)))
        return np.asarray(u * _lifted(reach) + np.where(inside, beta + vertex, u))


def mixed_rows(
    kept: Float[Array, "time batch n"], psi: Float[Array, "batch n"]
) -> Float[Array, "time batch"]:
    """Largest k + (1 - k) ψ over the units: the bound on a step's Jacobian in the ∞-norm."""
    with np.errstate(invalid="ignore"):
        rows = kept + (1.0 - kept) * psi
    return np.asarray(np.where(np.isfinite(psi), rows, np.inf).max(axis=-1))


def _over_gate(a: Float[Array, " n"], m: Float[Array, "*lead n"]) -> Float[Array, "*lead n"]:
    """The largest of a r + m r (1 - r) over r in [0, 1]."""
    inside = m > a
    finite = np.where(inside & np.isfinite(m), m, 1.0)
    peak = (a + finite) * ((a + finite) / (4.0 * finite))
    return np.where(inside, np.where(np.isfinite(m), peak, np.inf), a)


def _row_sums(U: Float[Array, "n n"]) -> Float[Array, " n"]:
    return np.asarray(np.abs(U).sum(axis=1))


def _lifted(reach: Reach) -> Float[Array, "*lead 1"]:
    return np.asarray(reach, dtype=np.float64)[..., None]
