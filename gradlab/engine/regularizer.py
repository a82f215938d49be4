"""A penalty on gradients that lose or gain length from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.errors import SettingError
from gradlab.records.trajectory import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CarryPenalty:
    """Value of the penalty, and its gradient by the weights it acts on."""

    value: float
    gradients: Mapping[str, Array]


def carry_penalty(
    cell: Cell, run: Trajectory, adjoints: Float[Array, "times batch n"]
) -> CarryPenalty:
    r"""Penalty :math:`\Omega` on the change of the gradient's norm over each step.

    .. math:: \Omega = \sum_{k=1}^{T-1} \left( \frac{\lVert J_{k+1}^T a_{k+1}\rVert}
        {\lVert a_{k+1}\rVert} - 1 \right)^2, \quad a_k = \frac{dL}{dh_k},

    as a mean over the sequences. Steps that no gradient reaches (a = 0) add nothing.

    Parameters
    ----------
    cell
        A cell with a single recurrent matrix ``W_hh``.
    run
        A run of it.
    adjoints
        Total derivatives of the loss by the states, as a backward pass gives them.

    Returns
    -------
    penalty
        Its gradient is the immediate one: states and adjoints count as constants.

    Raises
    ------
    SettingError
        If the cell has no single recurrent matrix.

    Notes
    -----
    Source: Pascanu, Mikolov and Bengio (2013), "On the difficulty of training recurrent neural
    networks", ICML, section 3.3, equations 9 and 10.
    """
    if "W_hh" not in cell.parameters:
        raise SettingError(
            f"the penalty omega acts on W_hh, the {cell.kind} cell has "
            f"{', '.join(cell.parameters)}: expected a vanilla or leaky cell, or omega 0"
        )
    linearization = cell.linearize(run)
    value, gradient = 0.0, np.zeros(cell.parameters["W_hh"].shape)
    for step in range(1, run.steps):
        unit = _unit(adjoints[step + 1].astype(np.float64))[:, :, None]
        pulled = linearization[step].apply_transpose(unit)[:, :, 0]
        length = np.linalg.norm(pulled, axis=1)
        excess = np.where(unit.any(axis=(1, 2)), length - 1.0, 0.0)
        value += float(excess @ excess)
        ((left, _),) = linearization.recurrent_terms(step, unit)
        weights = 2.0 * excess / np.where(length > 0.0, length, 1.0)
        gradient += (left[:, :, 0] * weights[:, None]).T @ pulled
    dtype = cell.parameters["W_hh"].dtype
    return CarryPenalty(
        value=value / run.batch, gradients={"W_hh": (gradient / run.batch).astype(dtype)}
    )


def _unit(vectors: Float[Array, "batch n"]) -> Float[Array, "batch n"]:
    """Vectors of unit length, by entries scaled to order one; zeros stay zero."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(largest > 0.0, largest, 1.0)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(length > 0.0, length, 1.0))
