r"""What the gates do to the gradient of a gated cell.

The path :math:`\partial c_t/\partial c_k = \prod_j \mathrm{diag}(f_j)` through an LSTM's forget
gates is exact where the output gate is shut or the recurrent weights are 0 (Hochreiter and
Schmidhuber 1997, "Long short-term memory", Neural Computation 9: the constant error carousel);
otherwise the gradient also runs through the gates, and may grow although this path decays.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.errors import SettingError
from gradlab.linalg import log, rescale
from gradlab.records.gates import CarryGate, GateDynamics, GateValues
from gradlab.records.lags import LagGroups
from gradlab.records.trajectory import Trajectory


def gate_dynamics(cell: Cell, trajectory: Trajectory) -> GateDynamics:
    """Direct paths through time, and the parts of the state that the gradient flows through.

    Parameters
    ----------
    cell
        Any cell.
    trajectory
        Padding enters no number.

    Returns
    -------
    dynamics
        ``carry`` by gate: f of an LSTM, the kept share of a GRU or minimal gated unit, the constant
        1 - a of a leaky layer. ``shares`` by part of the state: h and c of an LSTM. ``values`` by
        gate, candidates among them.

    Notes
    -----
    Cost: one action of the transposed Jacobian a step on as many vectors as the output is long.
    """
    carried = cell.carry(trajectory)
    lag, shares = _shares(cell, trajectory)
    return GateDynamics(
        carry={name: _carry_gate(values, trajectory) for name, values in carried.items()},
        lag=lag,
        shares=shares,
        values=_values(cell, trajectory),
    )


def forget_bias_for_half_life(steps: float | int) -> float:
    r"""Forget bias with which an undisturbed cell state halves in the given number of steps.

    Parameters
    ----------
    steps
        Wished half-life, > 0 steps.

    Returns
    -------
    bias
        :math:`\sigma^{-1}(2^{-1/\text{steps}})`, the pre-activation of a logistic gate.

    Raises
    ------
    SettingError
        If the half-life is not a positive finite number.
    """
    if not 0.0 < steps < math.inf:
        raise SettingError(f"half-life of {steps} steps: expected a positive number")
    rate = math.log(2.0) / steps
    return -rate - math.log(-math.expm1(-rate))


def half_life_of_forget_bias(bias: float | int) -> float:
    r"""Steps in which an undisturbed cell state halves, :math:`\ln 2 / -\ln \sigma(b)`.

    Parameters
    ----------
    bias
        Pre-activation of a logistic forget gate.

    Returns
    -------
    steps
        inf where -ln σ(b) underflows.
    """
    decay = math.log1p(math.exp(-abs(bias))) + max(-bias, 0.0)  # -ln sigma(b), without overflow
    return math.log(2.0) / decay if decay > 0.0 else math.inf


def _carry_gate(values: Float[Array, "time batch n"], trajectory: Trajectory) -> CarryGate:
    logs = log(np.abs(values.astype(np.float64)))
    products = [
        np.cumsum(logs[:length, sequence][::-1], axis=0)
        for sequence, length in enumerate(trajectory.lengths)
    ]
    lags = np.concatenate([np.arange(1, length + 1) for length in trajectory.lengths])
    stacked = np.concatenate(products)
    groups, by_unit = LagGroups.of(lags), LagGroups.of(np.repeat(lags, stacked.shape[1]))
    return CarryGate(
        mean_log=logs[trajectory.valid].mean(axis=0),
        lag=groups.lag,
        log_norm=groups.quantile(stacked.max(axis=1), 0.5),
        log_median=by_unit.quantile(stacked.ravel(), 0.5),
    )


def _values(cell: Cell, trajectory: Trajectory) -> dict[str, GateValues]:
    """Distribution over units of every gate; nothing for cells without gates."""
    if "W_hh" in cell.recurrent_matrices():
        return {}
    sequence, t = np.nonzero(trajectory.valid.T)
    gates = {
        name: part.value[t, sequence].astype(np.float64)
        for name, part in cell.nonlinearities(trajectory).items()
    }
    quantiles = {name: np.quantile(gate, (0.05, 0.95), axis=1) for name, gate in gates.items()}
    return {
        name: GateValues(
            sequence=sequence,
            t=t + 1,
            mean=gate.mean(axis=1),
            q05=quantiles[name][0],
            q95=quantiles[name][1],
        )
        for name, gate in gates.items()
    }


def _shares(cell: Cell, trajectory: Trajectory) -> tuple[Int[Array, " lags"], dict[str, Array]]:
    """Lags, and the mean share of every part of the state."""
    parts = cell.state_parts
    longest = int(trajectory.lengths.max())
    sums, counts = np.zeros((len(parts), longest)), np.zeros(longest)
    for length in np.unique(trajectory.lengths):
        chosen = np.flatnonzero(trajectory.lengths == length)
        own = _shares_of_equal_lengths(cell, trajectory.select(chosen))
        sums[:, :length] += np.where(np.isnan(own), 0.0, own).sum(axis=2)
        counts[:length] += (~np.isnan(own[0])).sum(axis=1)
    with np.errstate(invalid="ignore"):
        means = sums / counts
    return np.arange(1, longest + 1), dict(zip(parts, means, strict=True))


def _shares_of_equal_lengths(
    cell: Cell, trajectory: Trajectory
) -> Float[Array, "parts lags batch"]:
    """Shares of the squared norm of dh_T/ds_k, for T the last step."""
    steps = cell.linearize(trajectory)
    parts = list(cell.state_parts.values())
    read = cell.output(np.eye(cell.state_size))
    U = np.broadcast_to(read, (trajectory.batch, *read.shape))
    shares = np.full((len(parts), trajectory.steps, trajectory.batch), np.nan)
    for k in range(trajectory.steps - 1, -1, -1):
        U, _ = rescale(steps[k].apply_transpose(U))
        squares = (U**2).sum(axis=2)
        total = squares.sum(axis=1)
        alive = total > 0.0
        for index, part in enumerate(parts):
            shares[index, trajectory.steps - 1 - k, alive] = (
                squares[alive, part].sum(axis=1) / total[alive]
            )
    return shares
