"""A grid of random networks, each analyzed on its own, over any executor."""

from __future__ import annotations

import hashlib
import itertools
import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.ensembles import matrix_gain
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.meanfield import mean_field
from gradlab.analysis.precision import precision_horizon
from gradlab.analysis.regime import regime
from gradlab.analysis.saturation import saturation
from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.rollout import rollout
from gradlab.engine.synthetic import synthetic_sequences
from gradlab.errors import (
    DivergenceError,
    GradlabError,
    SettingError,
    UnreachableTargetError,
    WorkerError,
    unknown_name,
)
from gradlab.linalg import log, single_threaded_blas, spectral_radius
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.sweep import PointProfile, PointResult, SweepResult
from gradlab.records.trajectory import Trajectory

CHUNKS_A_JOB = 32  # enough to even out the load and to stop soon, few enough to cost little
STATUS = {DivergenceError: "diverged", UnreachableTargetError: "unreachable"}
MEAN_FIELD_ENSEMBLES = {
    "gaussian": "gaussian",
    "uniform": "gaussian",
    "sparse": "gaussian",
    "orthogonal": "orthogonal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSettings:
    """Everything that shapes one point: a random network, its inputs, its analysis."""

    hidden_size: int = 64
    input_size: int = 8
    recurrent: str = "gaussian"
    gain: float = 1.0
    gamma: float | None = None
    radius: float | None = None
    density: float = 0.1
    activation: str = "tanh"
    bias: float = 0.0
    bias_std: float = 0.0
    synthetic: str = "gaussian"
    input_std: float = 0.5
    length: int = 100
    batch: int = 4
    anchors: str | int = "last"
    threshold: float = 0.97
    dtype: str = "float64"
    seed: int = 0


def grid(**axes: Iterable[Any]) -> list[dict[str, Any]]:
    """All combinations of the given values, the last axis running fastest.

    Parameters
    ----------
    axes
        Values by the setting's name, see `PointSettings`.

    Returns
    -------
    points
        One mapping a point, in a fixed order.
    """
    values = {name: [_plain(value) for value in axis] for name, axis in axes.items()}
    return [
        dict(zip(values, combination, strict=True))
        for combination in itertools.product(*values.values())
    ]


def sweep(
    points: Sequence[Mapping[str, Any]],
    *,
    executor: Executor | None = None,
    jobs: int = 1,
    on_done: Callable[[int], None] | None = None,
    **fixed: Any,
) -> SweepResult:
    """Analyze a random network at every point.

    Parameters
    ----------
    points
        Settings of every point, as `grid` makes them; all with the same names.
    executor
        Any executor of ``concurrent.futures``; overrides ``jobs``.
    jobs
        Processes, with one BLAS thread each; 1 computes in this process.
    on_done
        Called with the number of points just finished.
    fixed
        Settings that all points share.

    Returns
    -------
    result
        In the order of the points, with the same bits whatever ``jobs`` and ``executor`` are: a
        point's random stream is derived from its seed and settings alone. A point that fails has a
        status and a message; the sweep goes on.

    Raises
    ------
    UnknownNameError
        If there is no setting of a name.
    SettingError
        If there is no point, or their names differ.
    WorkerError
        If a worker process dies.
    """
    settings = [_settings({**fixed, **point}) for point in _checked(points)]
    chunks = _chunks(settings, max(1, jobs) * CHUNKS_A_JOB)
    with _pool(executor, jobs) as pool:
        measured = _measured(chunks, pool, on_done or _ignore)
    results = [
        PointResult(parameters=dict(point), **outcome)
        for point, outcome in zip(points, measured, strict=True)
    ]
    shared = {name: value for name, value in asdict(settings[0]).items() if name not in points[0]}
    return SweepResult(points=tuple(results), fixed=shared)


def random_stream(settings: PointSettings) -> np.random.Generator:
    """Generator that depends on a point's seed and settings, and on nothing else."""
    text = json.dumps(asdict(settings), sort_keys=True)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.default_rng(np.random.SeedSequence([settings.seed, *words.tolist()]))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _ignore(count: int) -> None:
    """Progress that nobody watches."""


def _checked(points: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    if not points:
        raise SettingError("the grid has no points: expected at least one value an axis")
    if any(set(point) != set(points[0]) for point in points):
        raise SettingError("the points have different settings: expected the same names in all")
    return points


def _settings(values: Mapping[str, Any]) -> PointSettings:
    known = [entry.name for entry in fields(PointSettings)]
    for name in values:
        if name not in known:
            raise unknown_name("setting of a sweep", name, known)
    return PointSettings(**values)


def _chunks(settings: list[PointSettings], wanted: int) -> list[list[PointSettings]]:
    size = max(1, -(-len(settings) // wanted))
    return [settings[i : i + size] for i in range(0, len(settings), size)]


def _pool(executor: Executor | None, jobs: int) -> AbstractContextManager[Executor | None]:
    if executor is not None or jobs <= 1:
        return nullcontext(executor)
    import multiprocessing

    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    return ProcessPoolExecutor(
        max_workers=jobs, mp_context=context, initializer=_leave_interrupts_to_the_parent
    )


def _leave_interrupts_to_the_parent() -> None:
    """Keep Ctrl-C from ending workers with tracebacks: the parent cancels what has not begun."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _measured(
    chunks: list[list[PointSettings]], pool: Executor | None, on_done: Callable[[int], None]
) -> list[dict[str, Any]]:
    """Outcomes of all points, in order."""
    results: list[list[dict[str, Any]]] = [[] for _ in chunks]
    if pool is None:
        for index, chunk in enumerate(chunks):
            for settings in chunk:
                results[index] += measure_chunk([settings])
                on_done(1)
    else:
        for index, outcomes in _sent(chunks, pool):
            results[index] = outcomes
            on_done(len(outcomes))
    return list(itertools.chain.from_iterable(results))


def _sent(
    chunks: list[list[PointSettings]], pool: Executor
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Outcomes of the chunks as their workers finish."""
    futures = {pool.submit(measure_chunk, chunk): index for index, chunk in enumerate(chunks)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenExecutor as error:
        raise WorkerError(
            "a worker process ended before its work was done, perhaps for want of memory: nothing "
            "was written; use fewer jobs or smaller networks"
        ) from error
    finally:
        for future in futures:
            future.cancel()


def measure_chunk(chunk: Sequence[PointSettings]) -> list[dict[str, Any]]:
    """Outcomes of some points; the unit of work that is sent to a worker."""
    with single_threaded_blas():
        return [_outcome(settings) for settings in chunk]


def _outcome(settings: PointSettings) -> dict[str, Any]:
    try:
        return _measure(settings)
    except GradlabError as error:
        return {"status": STATUS.get(type(error), "refused"), "message": str(error)}
    except Exception as error:  # a point that fails for any reason must not end the others
        return {"status": "failed", "message": f"{type(error).__name__}: {error}"}


def _measure(settings: PointSettings) -> dict[str, Any]:
    rng = random_stream(settings)
    cell = _cell(settings, rng)
    run = _run(settings, cell, rng)
    profile = jacobian_profile(cell, run, anchors=settings.anchors, smallest=False)
    ladder = bound_ladder(cell, run, profile=profile, block=None)
    verdict = regime(profile, ladder)
    curve = _curve(profile, ladder)
    horizon = precision_horizon(curve.lag, curve.log_norm_median, *verdict.trend)
    gamma_w, gamma_a = cell.gamma_factors()
    measured = {
        "gamma_w": gamma_w,
        "spectral_radius": spectral_radius(cell.W_hh),
        "rate": verdict.rate,
        "rate_se": verdict.rate_se,
        "bound_rate": float(log(np.asarray(gamma_w * gamma_a))),
        "mean_field_rate": _mean_field_rate(settings, cell),
        "saturated_share": saturation(cell, run, threshold=settings.threshold).saturated_share,
        "lyapunov_leading": lyapunov_spectrum(
            cell, run, k=1, transient=int(run.lengths.min()) // 10
        ).leading,
        "horizon_1pct": np.nan if horizon.lag_1pct is None else float(horizon.lag_1pct),
    }
    return {"measured": measured, "regime": verdict.name, "profile": curve}


def _run(settings: PointSettings, cell: VanillaCell, rng: np.random.Generator) -> Trajectory:
    sequences = synthetic_sequences(
        settings.synthetic,
        length=settings.length,
        batch=settings.batch,
        input_size=settings.input_size,
        rng=rng,
        std=settings.input_std,
    )
    return rollout(cell, sequences.inputs, lengths=sequences.lengths)


def _cell(settings: PointSettings, rng: np.random.Generator) -> VanillaCell:
    return VanillaCell.initialize(
        input_size=settings.input_size,
        hidden_size=settings.hidden_size,
        recurrent=settings.recurrent,
        gain=settings.gain,
        gamma=settings.gamma,
        radius=settings.radius,
        density=settings.density,
        activation=settings.activation,
        bias=settings.bias,
        bias_std=settings.bias_std,
        dtype=settings.dtype,
        rng=rng,
    )


def _mean_field_rate(settings: PointSettings, cell: VanillaCell) -> float:
    """Predicted rate of a large random network of the same entries; nan where theory has none.

    Theory drives every unit with noise of its own; here the noise has the rank of the inputs, which
    it forgives as long as there are several.
    """
    ensemble = MEAN_FIELD_ENSEMBLES.get(settings.recurrent)
    noisy = settings.synthetic in ("gaussian", "white_noise", "zeros")
    if ensemble is None or settings.bias != 0.0 or not noisy:
        return float("nan")
    input_std = 0.0 if settings.synthetic == "zeros" else settings.input_std
    try:
        theory = mean_field(
            settings.activation,
            gain=matrix_gain(cell.W_hh),
            input_std=input_std,
            bias_std=settings.bias_std,
            ensemble=ensemble,
        )
    except GradlabError:
        return float("nan")
    return float(theory.lambda_1)


def _curve(profile: JacobianProfile, ladder: BoundLadder) -> PointProfile:
    groups = profile.groups
    return PointProfile(
        lag=groups.lag,
        log_norm_median=groups.quantile(profile.log_norm, 0.5),
        log_norm_q05=groups.quantile(profile.log_norm, 0.05),
        log_norm_q95=groups.quantile(profile.log_norm, 0.95),
        log_bound_gamma=ladder.medians("gamma"),
    )
