r"""Lyapunov exponents: the rates of the singular values of :math:`J_t \cdots J_1` as t grows.

A frame of orthonormal columns is carried along the trajectory; the triangular factors that keep its
columns apart tell how volumes grow. See docs/theory.md, "Lyapunov spectra".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sized
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.analysis.frame_factors import HouseholderFactor
from gradlab.analysis.growth import GrowthRecord, batch_length
from gradlab.analysis.tangent_frames import LONGEST, Push, TangentFrame
from gradlab.arrays import Array, require_finite
from gradlab.cells.base import Cell
from gradlab.errors import SettingError, ShapeError
from gradlab.linalg import sign_fixed_qr
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.records.trajectory import Trajectory

DRIVEN, AUTONOMOUS, GIVEN = "driven by inputs", "autonomous", "given Jacobians"
WHOLE, REACHED = "all steps", "standard error reached"
MISSED = "standard error not reached"
# Steps of a batch where the number of steps is not known before the end.
UNKNOWN_BATCH = 8


def lyapunov_spectrum(
    cell: Cell,
    trajectory: Trajectory,
    *,
    k: int | None = None,
    transient: int = 0,
    rng: np.random.Generator | None = None,
    initial_frame: Float[Array, "_ columns"] | None = None,
    stop_error: float | None = None,
) -> LyapunovSpectrum:
    r"""Lyapunov exponents of a cell along its trajectories.

    Parameters
    ----------
    cell
        Any cell; the exponents are those of its whole state, (h, c) for an LSTM.
    trajectory
        Where the Jacobians are taken. Each sequence carries a frame of its own, and each of its
        counted steps has the same weight.
    k
        Number of exponents, from the largest on; as many as ``initial_frame`` has columns, or all
        of them, if None.
    transient
        Steps at the start of each sequence that turn the frame and do not count. A sequence that is
        no longer is left out.
    rng
        For the random orthonormal frame; of seed 0 if None.
    initial_frame
        Columns to begin with instead; they are made orthonormal. A frame that holds an eigenvector
        need not find the largest exponents: the random one does.
    stop_error
        Stop once every standard error is at most this, after ten batches at least; the rest of the
        steps is not used. Go through all if None.

    Returns
    -------
    spectrum
        Within 1e-10 of those by a Householder factorization at every step. ``dynamics`` says
        whether the inputs change with time (conditional exponents, of a network driven by them) or
        not (exponents of an autonomous map).

    Raises
    ------
    SettingError
        If ``k``, ``transient`` or ``stop_error`` is out of range, or the frame's columns are
        dependent.
    ShapeError
        If the frame does not fit the state.

    Notes
    -----
    Cost: one product of the Jacobian with N×k columns a step, and a Cholesky factorization every
    few steps. Source: Benettin, Galgani, Giorgilli and Strelcyn (1980), Meccanica 15, 9-30; the
    sum rule is Liouville's.
    """
    frame = _initial_frame(cell.state_size, k, rng, initial_frame)
    longest = int(trajectory.lengths.max()) - _checked_transient(transient)
    if longest < 1:
        raise SettingError(
            f"transient {transient}: expected fewer steps than the longest sequence has, "
            f"{int(trajectory.lengths.max())}"
        )
    record = GrowthRecord(frame.shape[1], batch=batch_length(longest), stop_error=stop_error)
    for sequence in np.flatnonzero(trajectory.lengths > transient):
        if not record.done:
            linearization = cell.linearize(trajectory.select(np.array([sequence])))
            used = _carry(frame, (step.apply for step in linearization), transient, record)
            if len(frame) == frame.shape[1]:
                record.add_log_det(linearization.log_abs_det()[transient : transient + used, 0])
    return _spectrum(record, len(frame), transient, _dynamics(trajectory))


def lyapunov_from_jacobians(
    jacobians: Float[Array, "time n n"] | Iterable[Array],
    *,
    k: int | None = None,
    transient: int = 0,
    rng: np.random.Generator | None = None,
    initial_frame: Float[Array, "_ columns"] | None = None,
    stop_error: float | None = None,
) -> LyapunovSpectrum:
    """Lyapunov exponents of a product of given matrices.

    Parameters
    ----------
    jacobians
        Real matrices in the order of time, rows as outputs: one array, or any iterable, which is
        read once and not kept.
    k, transient, rng, initial_frame, stop_error
        As `lyapunov_spectrum` takes them.

    Returns
    -------
    spectrum
        With the ``dynamics`` "given Jacobians".

    Raises
    ------
    SettingError
        If there are no matrices left after the transient, or as `lyapunov_spectrum` does.
    ShapeError
        If they are not square and of equal size.
    NonFiniteError
        If an entry is NaN or infinite.
    """
    matrices = iter(jacobians)
    first = next(matrices, None)
    if first is None:
        raise SettingError("no Jacobians: expected at least one matrix")
    first = _checked_jacobian(first, 0, None)
    frame = _initial_frame(len(first), k, rng, initial_frame)
    count = len(jacobians) - _checked_transient(transient) if isinstance(jacobians, Sized) else None
    batch = UNKNOWN_BATCH if count is None else batch_length(max(1, count))
    record = GrowthRecord(frame.shape[1], batch=batch, stop_error=stop_error)
    whole = itertools.chain([first], matrices)
    checked = (_checked_jacobian(J, index, len(first)) for index, J in enumerate(whole))
    counted = (
        _with_log_dets(checked, record, transient) if len(first) == frame.shape[1] else checked
    )
    _carry(frame, (partial(np.matmul, J) for J in counted), transient, record)
    if record.steps == 0:
        raise SettingError(f"transient {transient}: expected fewer steps than there are Jacobians")
    return _spectrum(record, len(first), transient, GIVEN)


def kaplan_yorke(exponents: Float[Array, " k"], state_size: int) -> float:
    """Kaplan-Yorke dimension: how many exponents, in falling order, sum to 0 or more.

    Parameters
    ----------
    exponents
        The largest ones, in any order, nats per step; -inf is allowed.
    state_size
        How many there are in all.

    Returns
    -------
    dimension
        Interpolated linearly in the exponent that makes the sum negative; ``state_size`` if none
        does; nan if none of those given does and there are more.

    Notes
    -----
    Source: Frederickson, Kaplan, Yorke and Yorke (1983), J. Differential Equations 49, 185-207.
    """
    ordered = np.sort(exponents)[::-1]
    sums = np.cumsum(ordered)
    negative = np.flatnonzero(sums < 0.0)
    if len(negative) == 0:
        return float(state_size) if len(exponents) == state_size else math.nan
    j = int(negative[0])
    return j + float(sums[j - 1] / -ordered[j]) if j else 0.0


def entropy_rate(exponents: Float[Array, " k"], state_size: int) -> float:
    """Sum of the positive exponents, nats per step; nan if there may be more than those given.

    By Pesin's formula an upper bound of the Kolmogorov-Sinai entropy of an autonomous map.
    """
    if len(exponents) < state_size and exponents.min() > 0.0:
        return math.nan
    return float(exponents[exponents > 0.0].sum())


def _carry(
    frame: Float[Array, "n k"], pushes: Iterator[Push], transient: int, record: GrowthRecord
) -> int:
    """Carry a frame through the steps, writing down the growth after the transient.

    Returns
    -------
    used
        Steps counted.
    """
    tangent = TangentFrame(frame)
    for left in range(transient, 0, -LONGEST):
        tangent.push(list(itertools.islice(pushes, min(left, LONGEST))))
    if transient:
        tangent.orthonormalize()
    record.begin()
    used = 0
    while not record.done and (steps := list(itertools.islice(pushes, record.batch))):
        record.add(tangent.push(steps), len(steps))
        used += len(steps)
    record.correct(tangent.orthonormalize())
    return used


def _spectrum(
    record: GrowthRecord, state_size: int, transient: int, dynamics: str
) -> LyapunovSpectrum:
    exponents = record.exponents
    status = WHOLE if record.stop_error is None else (REACHED if record.done else MISSED)
    residual = math.nan
    if len(exponents) == state_size:
        total, log_det = float(exponents.sum()), record.log_det / record.steps
        residual = 0.0 if total == log_det else abs(total - log_det)
    history_steps, history = record.history()
    return LyapunovSpectrum(
        exponents=exponents,
        standard_errors=record.standard_errors(),
        history_steps=history_steps,
        history=history,
        by_sequence=record.by_sequence(),
        state_size=state_size,
        steps=record.steps,
        transient=transient,
        dynamics=dynamics,
        status=status,
        kaplan_yorke=kaplan_yorke(exponents, state_size),
        entropy_rate=entropy_rate(exponents, state_size),
        sum_rule_residual=residual,
    )


def _initial_frame(
    n: int,
    k: int | None,
    rng: np.random.Generator | None,
    initial_frame: Float[Array, "_ columns"] | None,
) -> Float[Array, "n k"]:
    columns = n if initial_frame is None else initial_frame.shape[1]
    count = columns if k is None else k
    if not 1 <= count <= n:
        raise SettingError(f"k {count}: expected 1 to {n}, the size of the state")
    if initial_frame is None:
        generator = np.random.default_rng(0) if rng is None else rng
        return sign_fixed_qr(generator.standard_normal((n, count)))[0]
    if initial_frame.shape != (n, count):
        raise ShapeError(
            f"initial_frame has shape {initial_frame.shape}: expected ({n}, {count}), a row for "
            "each part of the state and a column for each exponent"
        )
    require_finite("initial_frame", initial_frame)
    log_pivots, Q, _ = HouseholderFactor()(np.asarray(initial_frame, dtype=np.float64))
    if np.isneginf(log_pivots).any():
        column = int(np.flatnonzero(np.isneginf(log_pivots))[0])
        raise SettingError(
            f"initial_frame: column {column} depends on the others; expected independent columns"
        )
    return Q


def _checked_transient(transient: int) -> int:
    if transient < 0:
        raise SettingError(f"transient {transient}: expected 0 or more steps")
    return transient


def _checked_jacobian(J: Any, index: int, n: int | None) -> Float[Array, "n n"]:
    matrix = np.asarray(J)
    wanted = matrix.shape[0] if n is None and matrix.ndim else n
    if matrix.shape != (wanted, wanted) or not wanted:
        size = "(n, n)" if n is None else f"({n}, {n})"
        raise ShapeError(f"Jacobian {index} has shape {matrix.shape}: expected {size}")
    if np.iscomplexobj(matrix):
        raise SettingError(f"Jacobian {index} is complex: expected real matrices")
    require_finite(f"Jacobian {index}", matrix)
    return np.asarray(matrix, dtype=np.float64)


def _with_log_dets(
    matrices: Iterable[Array], record: GrowthRecord, transient: int
) -> Iterator[Float[Array, "n n"]]:
    for index, J in enumerate(matrices):
        if index >= transient:
            record.add_log_det(np.asarray(np.linalg.slogdet(J)[1:]))
        yield J


def _dynamics(trajectory: Trajectory) -> str:
    """Whether any sequence's inputs change while it lasts."""
    changes = (trajectory.inputs[1:] != trajectory.inputs[:-1]).any(axis=2)
    return DRIVEN if (changes & trajectory.valid[1:]).any() else AUTONOMOUS
