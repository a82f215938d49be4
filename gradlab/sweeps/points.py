"""One point of a sweep: its network, measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.ensembles import matrix_gain, mean_field_of, of_run
from gradlab.analysis.jacobians import jacobian_profile, kernel_for
from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.meanfield import mean_field
from gradlab.analysis.precision import precision_horizon
from gradlab.analysis.regime import regime
from gradlab.analysis.saturation import saturation
from gradlab.cells.base import Cell
from gradlab.cells.vanilla import VanillaCell
from gradlab.errors import DivergenceError, GradlabError, UnreachableTargetError
from gradlab.linalg import single_threaded_blas
from gradlab.norms import spectral_radius
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.sweep import PointProfile, PointResult
from gradlab.records.trajectory import Trajectory
from gradlab.sweeps.networks import run_of
from gradlab.sweeps.settings import PointSettings, settings_of

STATUS = {DivergenceError: "diverged", UnreachableTargetError: "unreachable"}
MEAN_FIELD_ENSEMBLES = {
    "gaussian": "gaussian",
    "uniform": "gaussian",
    "sparse": "gaussian",
    "orthogonal": "orthogonal",
}

Shown = Callable[[int, PointResult], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some points, as they are sent to a worker."""

    fixed: Mapping[str, Any]  # settings that all share
    points: tuple[tuple[int, Mapping[str, Any]], ...]  # with their places in the sweep
    total: int = 1  # points of the whole sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of a chunk, in its order."""

    outcomes: tuple[Any, ...]
    seconds: float
    failed: int


def measure_chunk(chunk: Chunk, shown: Shown) -> Measured:
    """Measure some points; the unit of work that is sent to a worker.

    Parameters
    ----------
    chunk
        The points.
    shown
        Form in which a point's result is to come back, made where it was measured.
    """
    started, failed, outcomes = time.perf_counter(), 0, []
    with single_threaded_blas():
        for index, point in chunk.points:
            result = measure_point({**chunk.fixed, **point}, parameters=point, total=chunk.total)
            failed += result.status != "ok"
            outcomes.append(shown(index, result))
    seconds = time.perf_counter() - started
    return Measured(outcomes=tuple(outcomes), seconds=seconds, failed=failed)


def measure_point(
    values: Mapping[str, Any], *, parameters: Mapping[str, Any], total: int = 1
) -> PointResult:
    """Result of a point; one that fails has a status and a message, and ends nothing.

    The number of all points decides with the work of each on the kernel of its norms.
    """
    try:
        found = _measure(settings_of(values), total)
    except GradlabError as error:
        found = {"status": STATUS.get(type(error), "refused"), "message": _one_line(error)}
    except Exception as error:  # a point that fails for any reason must not end the others
        found = {"status": "failed", "message": f"{type(error).__name__}: {_one_line(error)}"}
    return PointResult(parameters=dict(parameters), **found)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _measure(settings: PointSettings, total: int) -> dict[str, Any]:
    cell, run = run_of(settings)
    chosen: dict[str, Any] = {"anchors": settings.anchors, "max_lag": settings.max_lag}
    kernel = kernel_for(cell, run, **chosen, smallest=False, times=total)
    profile = jacobian_profile(cell, run, **chosen, smallest=False, kernel=kernel)
    ladder = bound_ladder(cell, run, profile=profile, block=None)
    verdict = regime(profile, ladder)
    curve = _curve(profile, ladder)
    horizon = precision_horizon(curve.lag, curve.log_norm_median, *verdict.trend)
    transient = settings.transient
    if transient is None:
        transient = int(run.lengths.min()) // 10
    measured = {
        **_weights(cell),
        "rate": verdict.rate,
        "rate_se": verdict.rate_se,
        "bound_rate": float(curve.log_bound_gamma[0] / curve.lag[0]),
        "mean_field_rate": _mean_field_rate(settings, cell, run),
        "saturated_share": saturation(
            cell, run, threshold=settings.threshold, strict=not settings.inclusive
        ).saturated_share,
        "lyapunov_leading": lyapunov_spectrum(cell, run, k=1, transient=transient).leading,
        "horizon_1pct": np.nan if horizon.lag_1pct is None else float(horizon.lag_1pct),
    }
    return {"measured": measured, "regime": verdict.name, "profile": curve}


def _weights(cell: Cell) -> dict[str, float]:
    """Norm and radius of the one recurrent matrix; nan for gated cells, which have several."""
    gamma_w = cell.gamma_factors()[0]
    W_hh = cell.recurrent_matrices().get("W_hh")
    return {
        "gamma_w": np.nan if gamma_w is None else gamma_w,
        "spectral_radius": np.nan if W_hh is None else spectral_radius(W_hh),
    }


def _mean_field_rate(settings: PointSettings, cell: Cell, run: Trajectory) -> float:
    """Predicted rate of a large random network of the same entries; nan where theory has none.

    Theory drives every unit with noise of its own; here the noise has the rank of the inputs, which
    it forgives as long as there are several.
    """
    if settings.model or settings.inputs:
        theory = mean_field_of(cell, run)
        return np.nan if theory is None else float(theory.lambda_1)
    ensemble = MEAN_FIELD_ENSEMBLES.get(settings.recurrent)
    noisy = settings.synthetic in ("gaussian", "white_noise", "zeros")
    if not isinstance(cell, VanillaCell) or ensemble is None or settings.bias != 0.0 or not noisy:
        return np.nan
    try:
        theory = mean_field(
            settings.activation,
            gain=matrix_gain(cell.W_hh),
            input_std=0.0 if settings.synthetic == "zeros" else settings.input_std,
            bias_std=settings.bias_std,
            ensemble=ensemble,
        )
    except GradlabError:
        return np.nan
    followed = of_run(theory, run)
    return np.nan if followed is None else float(followed.lambda_1)


def _curve(profile: JacobianProfile, ladder: BoundLadder) -> PointProfile:
    groups = profile.groups
    return PointProfile(
        lag=groups.lag,
        log_norm_median=groups.quantile(profile.log_norm, 0.5),
        log_norm_q05=groups.quantile(profile.log_norm, 0.05),
        log_norm_q95=groups.quantile(profile.log_norm, 0.95),
        log_bound_gamma=ladder.medians("gamma"),
    )
