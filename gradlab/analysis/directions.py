"""In how many directions the gradient survives: the condition of the long product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from gradlab.analysis.graded import GradedProducts
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.errors import SettingError
from gradlab.records.directions import DirectionProfile
from gradlab.records.trajectory import Trajectory

# n^3 times the spectra that an automatic choice takes, and times the steps of the products: a few
# seconds each.
SPECTRA_WORK, STEPS_WORK = 6e7, 1.2e9
# At most as many sequences and lags, and lags that are worth more than a further sequence.
SEQUENCES, LAGS, FEW_LAGS = 4, 16, 8
# Longest lag of an automatic choice: every step has its overhead, however small the state.
LONGEST = 4096


def directions(
    cell: Cell,
    trajectory: Trajectory,
    *,
    lags: Sequence[int] | None = None,
    max_lag: int | None = None,
    sequences: int | None = None,
) -> DirectionProfile:
    r"""All singular values of :math:`\partial h_t/\partial h_k` against the lag.

    Parameters
    ----------
    cell
        Any cell.
    trajectory
        Where the Jacobians are taken; t is each sequence's last step.
    lags
        Lags to measure; up to 16 between 1 and the longest, in equal ratios, if None. Those beyond
        a sequence's length are left out.
    max_lag
        Longest of the lags that are chosen if none are given; 4096 if None.
    sequences
        How many sequences, from the first on; as many of the first 4 as keep the work small if
        None.

    Returns
    -------
    profile
        Relative errors of about lag · n · 2.2e-16 times the condition of the single steps, at any
        distance below the largest; what is not resolved to 1e-6 is nan.

    Raises
    ------
    SettingError
        If a lag or the number of sequences is below 1, or no sequence is as long as a lag.

    Notes
    -----
    The product is carried as an orthogonal matrix, a scale of its own for every row, and rows of
    unit length (see `GradedProducts`). Source of the graded factorization: Stewart (1995), "On
    graded QR decompositions of products of matrices", Electronic Transactions on Numerical Analysis
    3; derivation: docs/theory.md, "The condition of the product".
    """
    _check(lags, max_lag, sequences)
    n = cell.state_size
    longest = int(trajectory.lengths.max())
    reach = min(longest, max_lag or LONGEST) if lags is None else min(longest, max(lags))
    count = min(sequences or affordable_sequences(n, reach), trajectory.batch)
    wanted = spaced_lags(n, reach, count) if lags is None else np.unique(lags)
    chosen = np.arange(count)
    parts = []
    for length in np.unique(trajectory.lengths[:count]):
        own = wanted[wanted <= length]
        if len(own):
            same = chosen[trajectory.lengths[:count] == length]
            parts.append(_measured(cell, trajectory, same, own))
    if not parts:
        raise SettingError(
            f"lags {list(wanted)}: expected some within the sequences' longest, {longest} steps"
        )
    return _joined(parts)


def affordable(n: int) -> bool:
    """Whether a single spectrum of a state of n numbers takes no more than a few seconds."""
    return n**3 <= SPECTRA_WORK


def _check(lags: Sequence[int] | None, max_lag: int | None, sequences: int | None) -> None:
    given = {"lags": lags or None, "max_lag": max_lag, "sequences": sequences}
    if lags is not None and len(lags) == 0:
        raise SettingError("lags []: expected at least one")
    for name, value in given.items():
        if value is not None and np.min(value) < 1:
            raise SettingError(f"{name} {value}: expected 1 or more")


def affordable_sequences(n: int, reach: int) -> int:
    """How many of the first sequences keep the work small."""
    allowed = min(SPECTRA_WORK / FEW_LAGS, STEPS_WORK / reach) / n**3
    return int(np.clip(allowed, 1, SEQUENCES))


def spaced_lags(n: int, reach: int, sequences: int) -> Int[Array, " lags"]:
    """Lags in equal ratios, as many as the work allows, always with the longest."""
    count = int(np.clip(SPECTRA_WORK / n**3 / sequences, 2, LAGS))
    return np.unique(np.round(np.geomspace(1, reach, count)).astype(np.int64))


def _measured(
    cell: Cell,
    trajectory: Trajectory,
    sequences: Int[Array, " some"],
    lags: Int[Array, " lags"],
) -> DirectionProfile:
    """Spectra of sequences of equal length, by sequence, then lag."""
    run = trajectory.select(sequences)
    steps, products = cell.linearize(run), GradedProducts(run.batch, cell.state_size)
    values = np.empty((run.batch, len(lags), cell.state_size))
    ceiling = np.empty((run.batch, len(lags)))
    for lag in range(1, int(lags[-1]) + 1):
        products.extend(steps[run.steps - lag].matrix())
        if lag in lags:
            place = np.searchsorted(lags, lag)
            values[:, place], ceiling[:, place] = products.log_singular_values()
    return DirectionProfile(
        sequence=np.repeat(sequences, len(lags)),
        t=np.full(ceiling.size, run.steps),
        lag=np.tile(lags, run.batch),
        log_singular_values=values.reshape(-1, cell.state_size),
        log_ceiling=ceiling.ravel(),
    )


def _joined(parts: Sequence[DirectionProfile]) -> DirectionProfile:
    """All parts, by sequence, then lag."""
    names = ("sequence", "t", "lag", "log_singular_values", "log_ceiling")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    order = np.lexsort((columns["lag"], columns["sequence"]))
    return DirectionProfile(**{name: column[order] for name, column in columns.items()})
