r"""Whether a matrix could be a draw of a random ensemble, and what theory says of its network.

The draw is recognized by quantities that theory knows to order one. With W scaled to
:math:`\lVert W \rVert_F^2 = N`: the singular values follow the quarter circle law (Marchenko and
Pastur 1967), the largest one that of Tracy and Widom, or they are all equal; :math:`\mathrm{tr} W`
and :math:`\mathrm{tr} W^2 - 1` are of order 1, and so is :math:`\sum W_{ij}/\sqrt N`.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from gradlab.analysis.meanfield import HOMOGENEOUS, at_rest, mean_field
from gradlab.arrays import Array
from gradlab.cells.activations import activation
from gradlab.cells.base import Cell
from gradlab.cells.vanilla import VanillaCell
from gradlab.linalg import log_euclidean_norm, singular_values
from gradlab.records.meanfield import MeanField, largest_singular_value
from gradlab.records.trajectory import Trajectory

FEWEST_UNITS = 16  # below, any matrix might be a draw
# Of 1890 Gaussian, uniform and Haar draws of 16 to 256 units none passed four fifths of these.
DEVIATIONS = 5.0  # of a quantity of standard deviation 1
SQUARED_TRACE = 7.0
BULK = 3.0  # N times the mean distance from the quarter circle law
EQUAL = 1e-3  # relative spread of the singular values of an orthogonal matrix
SMALL = 0.1  # times the predicted standard deviation: no pre-activation is larger by then
CENTERED = 4.0  # standard errors that the mean drive over units may lie from 0


def mean_field_of(cell: Cell, trajectory: Trajectory) -> MeanField | None:
    """Theory of the random network that a cell and its inputs could be a draw of.

    Parameters
    ----------
    cell
        Any cell.
    trajectory
        A run of it: the input's and the bias' share of the pre-activations are measured along it,
        padding left out.

    Returns
    -------
    prediction
        With the gain ‖W_hh‖_F/√N of the very matrix, the input's variance over time and the squared
        mean over time, both averaged over units. None where there is no theory: cells that are not
        vanilla or clip, matrices that no ensemble would draw, fewer than 16 units, pre-activations
        driven off zero on average, runs that theory leads elsewhere (`of_run`).

    Notes
    -----
    Theory drives every unit with noise of its own; here it has the rank of the inputs.
    """
    if not isinstance(cell, VanillaCell) or cell.clip is not None:
        return None
    ensemble = random_ensemble(np.asarray(cell.W_hh, dtype=np.float64))
    drive = _drive(cell, trajectory)
    mean = drive.mean(axis=0)
    error = float(mean.std()) / math.sqrt(len(mean))
    if ensemble is None or abs(float(mean.mean())) > CENTERED * error:
        return None
    theory = mean_field(
        cell.activation,
        gain=matrix_gain(cell.W_hh),
        input_std=math.sqrt(float(drive.var(axis=0).mean())),
        bias_std=math.sqrt(float((mean**2).mean())),
        ensemble=ensemble,
    )
    return of_run(theory, trajectory)


def of_run(theory: MeanField, trajectory: Trajectory) -> MeanField | None:
    """What theory says of the state that a run is in, which need not be the one it predicts.

    Parameters
    ----------
    theory
        Of states that are off zero, however slightly.
    trajectory
        A run of a vanilla cell.

    Returns
    -------
    prediction
        That of the fixed point where every state is exactly 0, as without input: chaos never starts
        there. None where the slope has a kink at it, and where pre-activations stay far smaller
        than predicted: the run is too short, or its state is another.
    """
    largest = float(np.abs(trajectory.z[trajectory.valid]).max(initial=0.0))
    if largest == 0.0:
        smooth = 0.0 not in activation(theory.activation).kinks
        return at_rest(theory) if smooth else None
    matters = theory.activation not in HOMOGENEOUS and math.isfinite(theory.q)
    return None if matters and largest < SMALL * math.sqrt(theory.q) else theory


def matrix_gain(W: Float[Array, "n n"]) -> float:
    """g = ‖W‖_F/√N: the standard deviation of entries of mean 0, times √N."""
    return float(np.exp(log_euclidean_norm(W)) / np.sqrt(len(W)))


def random_ensemble(W: Float[Array, "n n"]) -> str | None:
    """Ensemble that could have drawn a matrix, up to its scale: a test, with its errors.

    Parameters
    ----------
    W
        Finite.

    Returns
    -------
    ensemble
        ``"gaussian"`` stands for all entries that are independent with mean 0 and the same
        variance. None for everything else, and for fewer than 16 units.
    """
    n, gain = len(W), matrix_gain(W)
    if n < FEWEST_UNITS or not 0.0 < gain < math.inf:
        return None
    V = W / gain
    squared_trace = float(np.sum(V * V.T))
    if abs(np.trace(V)) > DEVIATIONS or abs(squared_trace - 1.0) > SQUARED_TRACE:
        return None
    concentrated = float(np.sum(V**4)) > 0.5 * n
    if concentrated or abs(V.sum()) > DEVIATIONS * math.sqrt(n):
        return None
    return _ensemble_of_spectrum(singular_values(V))


def _ensemble_of_spectrum(sigma: Float[Array, " n"]) -> str | None:
    n = len(sigma)
    if sigma[-1] > (1.0 - EQUAL) * sigma[0]:
        return "orthogonal"
    mean, spread = largest_singular_value(n)
    largest = abs(float(sigma[0]) - mean) <= DEVIATIONS * spread
    bulk = float(np.abs(sigma - _quarter_circle(n)).sum()) <= BULK
    return "gaussian" if largest and bulk else None


def _quarter_circle(n: int) -> Float[Array, " n"]:
    """Quantiles of the density √(4 - x²)/π on [0, 2], the largest first."""
    x = np.linspace(0.0, 2.0, 4001)
    below = (0.5 * x * np.sqrt(4.0 - x**2) + 2.0 * np.arcsin(0.5 * x)) / math.pi
    return np.interp(1.0 - (np.arange(n) + 0.5) / n, below, x)


def _drive(cell: VanillaCell, trajectory: Trajectory) -> Float[Array, "steps units"]:
    """What inputs and bias add to the pre-activations, at all valid steps."""
    inputs = trajectory.inputs[trajectory.valid].astype(np.float64)
    return np.asarray(inputs @ cell.W_xh.T + np.asarray(cell.b_h))
