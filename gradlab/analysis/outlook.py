r"""What would change a network's rate: settings tried one at a time along the same inputs.

Recurrent weights of a vanilla or leaky layer are scaled by the factor nearest to 1 at which the
leading Lyapunov exponent is 0, and replaced by the orthogonal matrix nearest to them, the polar
factor :math:`U V^\top` of :math:`W = U \Sigma V^\top` (Higham 1986). A gate that keeps the state
has its bias raised; a leak is halved. Nothing is trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.meanfield import mean_field
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.gru import GRUCell
from gradlab.cells.leaky import LeakyCell
from gradlab.cells.lstm import LSTMCell
from gradlab.cells.minimal_gated import MinimalGatedCell
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.errors import DivergenceError
from gradlab.records.meanfield import MeanField
from gradlab.records.outlook import Change, Outlook
from gradlab.records.trajectory import Trajectory

SEQUENCES, STEPS = 2, 200  # that rates are measured along: enough to rank settings, in a second
FACTOR, DECADES = 2.0**0.5, 6  # factors of the search: up to 8, and down to 1/8
BISECTIONS = 6
SHIFTS = (1.0, 3.0)  # of the bias of the gate that keeps the state

Gated = GRUCell | LSTMCell | MinimalGatedCell


def outlook(cell: Cell, trajectory: Trajectory, *, theory: MeanField | None = None) -> Outlook:
    """Rates of a cell with one setting changed at a time.

    Parameters
    ----------
    cell
        Any cell; those without a setting to change have no changes.
    trajectory
        A run of it: its inputs and first states are used again, of the first two sequences and
        their first 200 steps.
    theory
        Mean field of the ensemble that the weights could be a draw of, which adds the critical gain
        it predicts.

    Returns
    -------
    outlook
        In the order gain (measured, predicted), orthogonal, forget_bias, leak. A gain is left out
        where no factor between 1/8 and 8 brings the exponent to 0. Rates are nats per step: -inf
        where the product is 0, inf where states leave the range of floats.
    """
    measured = partial(_rate, trajectory=_beginning(trajectory))
    rate = measured(cell)
    return Outlook(
        rate=rate,
        sequences=min(SEQUENCES, trajectory.batch),
        steps=min(STEPS, int(trajectory.lengths[:SEQUENCES].max())),
        changes=(
            *_gains(cell, measured, rate),
            *_predicted(theory, cell.hidden_size),
            *_tried(cell, measured),
        ),
    )


def _beginning(trajectory: Trajectory) -> Trajectory:
    """The steps that rates are measured along."""
    chosen = trajectory.select(np.arange(min(SEQUENCES, trajectory.batch)))
    return Trajectory(
        inputs=chosen.inputs[:STEPS],
        states=chosen.states[: STEPS + 1],
        z=chosen.z[:STEPS],
        lengths=np.minimum(chosen.lengths, STEPS),
    )


def _rate(cell: Cell, trajectory: Trajectory) -> float:
    """Leading exponent of a cell along the inputs of a run, from the run's first states."""
    try:
        run = rollout(
            cell,
            trajectory.inputs,
            initial_state=trajectory.states[0],
            lengths=trajectory.lengths,
        )
    except DivergenceError:
        return math.inf
    shortest = int(trajectory.lengths.min())
    return lyapunov_spectrum(cell, run, k=1, transient=shortest // 10).leading


def _gains(cell: Cell, measured: Callable[[Cell], float], rate: float) -> Iterator[Change]:
    if isinstance(cell, VanillaCell | LeakyCell) and rate != 0.0 and np.any(cell.W_hh):
        scaled = partial(_scaled, cell)
        found = _nearest_factor(lambda factor: measured(scaled(factor)), rate)
        if found is not None:
            yield Change(setting="gain", amount=found[0], rate=found[1], basis="measured")


def _scaled(cell: VanillaCell | LeakyCell, factor: float) -> Cell:
    return replace(cell, W_hh=factor * np.asarray(cell.W_hh, dtype=np.float64))


def _nearest_factor(rate_at: Callable[[float], float], rate: float) -> tuple[float, float] | None:
    """Factor nearest to 1 at which the rate changes its sign, and the rate there."""
    first = 1.0 if rate < 0.0 else -1.0  # more weight for more gradient, first
    for direction in (first, -first):
        low, previous = 0.0, rate
        for place in range(1, DECADES + 1):
            high = direction * place
            following = rate_at(FACTOR**high)
            if (following < 0.0) != (rate < 0.0):
                return _bisected(rate_at, (low, previous), (high, following))
            low, previous = high, following
    return None


def _bisected(
    rate_at: Callable[[float], float], near: tuple[float, float], far: tuple[float, float]
) -> tuple[float, float]:
    """Halve an interval of exponents of the factor, and return the better end."""
    for _ in range(BISECTIONS):
        middle = 0.5 * (near[0] + far[0])
        found = rate_at(FACTOR**middle)
        if (found < 0.0) == (near[1] < 0.0):
            near = middle, found
        else:
            far = middle, found
    place, rate = min(near, far, key=lambda end: abs(end[1]))
    return FACTOR**place, rate


def _predicted(theory: MeanField | None, hidden_size: int) -> Iterator[Change]:
    """The gain that theory calls critical, with what theory says of so few units."""
    if theory is None or not theory.gain > 0.0 or not math.isfinite(theory.critical_gain):
        return
    critical = mean_field(
        theory.activation,
        gain=theory.critical_gain,
        input_std=theory.input_std,
        bias_std=theory.bias_std,
        ensemble=theory.ensemble,
    )
    yield Change(
        setting="gain",
        amount=theory.critical_gain / theory.gain,
        rate=critical.lambda_1 + critical.bias(hidden_size),
        basis="predicted",
    )


def _tried(cell: Cell, measured: Callable[[Cell], float]) -> Iterator[Change]:
    """Settings that are tried at fixed amounts."""

    def change(setting: Any, amount: float, changed: Cell) -> Change:
        return Change(setting=setting, amount=amount, rate=measured(changed), basis="measured")

    if isinstance(cell, VanillaCell | LeakyCell) and np.any(cell.W_hh):
        orthogonal = replace(cell, W_hh=nearest_orthogonal(cell.W_hh))
        yield change("orthogonal", 1.0, orthogonal)
    if isinstance(cell, Gated) and getattr(cell, "coupled", None) != "forget":
        for shift in SHIFTS:
            yield change("forget_bias", shift, _remembering(cell, shift))
    if isinstance(cell, LeakyCell):
        yield change("leak", 0.5 * cell.leak, replace(cell, leak=0.5 * cell.leak))


def nearest_orthogonal(W: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Polar factor of a matrix: the orthogonal matrix nearest to it in the Frobenius norm."""
    left, _, right = np.linalg.svd(np.asarray(W, dtype=np.float64))
    return np.asarray(left @ right)


def _remembering(cell: GRUCell | LSTMCell | MinimalGatedCell, shift: float) -> Cell:
    """The cell with a bias that makes its gate keep more of the state."""
    if isinstance(cell, LSTMCell):
        return replace(cell, forget_bias=cell.forget_bias + shift)
    n, bias = cell.hidden_size, np.array(cell.b_x, dtype=np.float64)
    if isinstance(cell, MinimalGatedCell):
        bias[:n] -= shift
    else:
        bias[n : 2 * n] += shift if cell.update == "keep" else -shift
    return replace(cell, b_x=bias)
