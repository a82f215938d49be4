"""The sweep over spectral norms as a whole: rates by level, theory beside them, zero crossings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.analysis.meanfield import mean_field
from gradlab.analysis.zero_crossing import (
    interval,
    resampled_means,
    rising_fit,
    slope,
    zero_crossing,
)
from gradlab.arrays import Array
from gradlab.errors import GradlabError
from gradlab.records.meanfield import MeanField, largest_singular_value
from gradlab.records.sweep import MEASURED
from gradlab.records.sweep_analysis import SweepAnalysis, SweepCurve
from gradlab.storage.sweep_tables import sweep_rows, sweep_settings
from gradlab.sweeps.levels import AVERAGED, Level
from gradlab.sweeps.points import MEAN_FIELD_ENSEMBLES
from gradlab.sweeps.settings import COUNTS, DEFAULTS, REALS

SCALES = ("gamma", "radius", "gain")
RESULTS = frozenset((*MEASURED, "regime", "status", "message"))
MOST_BANDS = 100  # curves with a band of theory, which takes a third of a second each


@dataclass(slots=True)
class _Group:
    levels: dict[float, Level] = field(default_factory=dict)
    left_out: int = 0


def analyze_sweep(
    folder: Path | str, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> SweepAnalysis:
    """Measured rates against ln gamma_w, with theory, and where they cross zero.

    Parameters
    ----------
    folder
        Of a sweep whose tables are written; read row by row, in a memory that grows with the places
        of the grid and not with the networks at each.
    resamples, confidence, seed
        Of the bootstrap over the networks of each level.

    Returns
    -------
    analysis
        One curve for every combination of settings other than seed and scale (the first of gamma,
        radius and gain that was swept). None for cells without a spectral norm of their own. Bands
        of theory are left out where there are more than a hundred curves.

    Raises
    ------
    RunFolderError
        If there is no table, or it is damaged.
    """
    folder = Path(folder)
    scale, groups = _gathered(sweep_rows(folder))
    shared = sweep_settings(folder) if len(groups) <= MOST_BANDS else None
    rng = np.random.default_rng(seed)
    curves = [
        _curve(dict(names), group, shared, resamples, confidence, rng)
        for names, group in groups.items()
        if group.levels
    ]
    return SweepAnalysis(
        scale=scale, curves=tuple(curves), confidence=confidence, resamples=resamples, seed=seed
    )


def _gathered(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[str, dict[tuple[tuple[str, Any], ...], _Group]]:
    scale, others = "", []
    groups: dict[tuple[tuple[str, Any], ...], _Group] = {}
    for row in rows:
        if not groups:
            scale = next((name for name in SCALES if name in row), "")
            others = [name for name in row if name not in RESULTS | {scale, "seed"}]
        if not scale:
            break
        names = tuple((name, _typed(name, row[name])) for name in others)
        _take(groups.setdefault(names, _Group()), float(row[scale]), row)
    return scale, groups


def _take(group: _Group, level: float, row: Mapping[str, Any]) -> None:
    numbers = {name: float(row[name]) for name in AVERAGED}
    if math.isfinite(numbers["rate"]) and numbers["gamma_w"] > 0.0:
        group.levels.setdefault(level, Level()).take(numbers)
    else:
        group.left_out += 1


def _typed(name: str, text: Any) -> Any:
    if name in COUNTS:
        return None if str(text) == "nan" else int(text)
    return float(text) if name in REALS else text


def _curve(
    parameters: dict[str, Any],
    group: _Group,
    shared: Mapping[str, Any] | None,
    resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> SweepCurve:
    levels = sorted(group.levels.values(), key=lambda level: level.mean("log_gamma_w"))
    x, rate = (_means(levels, name) for name in ("log_gamma_w", "rate"))
    counts = np.array([level.count for level in levels])
    weights = counts.astype(np.float64)
    fitted = rising_fit(rate, weights)
    predicted, bound = (_means(levels, name) for name in ("mean_field_rate", "bound_rate"))
    settings = None if shared is None else {**DEFAULTS, **shared, **parameters}
    low, high, predicted_zero = _theory(settings, x, predicted)
    return SweepCurve(
        parameters=parameters,
        gamma_w=np.exp(x),
        points=counts,
        rate=rate,
        rate_se=np.array([level.standard_error() for level in levels]),
        fitted_rate=fitted,
        bound_rate=bound,
        mean_field_rate=predicted,
        mean_field_low=low,
        mean_field_high=high,
        zero_gamma=_exp(zero_crossing(x, fitted)),
        slope=slope(x, rate, weights),
        **_intervals(x, levels, weights, resamples, confidence, rng),
        mean_field_gamma=predicted_zero,
        bound_gamma=float(np.exp(np.mean(x - bound))),
        left_out=group.left_out,
    )


def _intervals(
    x: Float[Array, " levels"],
    levels: Sequence[Level],
    weights: Float[Array, " levels"],
    resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Ends of the intervals; nan where there is nothing to resample."""
    names = ("zero_gamma_low", "zero_gamma_high", "slope_low", "slope_high")
    if all(level.count == 1 for level in levels):
        return dict.fromkeys(names, np.nan)
    means = resampled_means([level.drawn_from() for level in levels], resamples, rng)
    zeros = np.array([zero_crossing(x, rising_fit(row, weights)) for row in means])
    slopes = np.array([slope(x, row, weights) for row in means])
    low, high = interval(zeros, confidence)
    ends = (_exp(low), _exp(high), *interval(slopes, confidence))
    return dict(zip(names, ends, strict=True))


def _theory(
    settings: Mapping[str, Any] | None,
    x: Float[Array, " levels"],
    predicted: Float[Array, " levels"],
) -> tuple[Float[Array, " levels"], Float[Array, " levels"], float]:
    """Band of networks of this size about theory, and the spectral norm where theory is at 0."""
    low, high = np.full(len(x), np.nan), np.full(len(x), np.nan)
    zero = np.nan
    if settings is None or settings["model"] or settings["inputs"]:
        return low, high, zero
    n, steps = int(settings["hidden_size"]), int(settings["length"])
    for index in np.flatnonzero(np.isfinite(predicted)):
        theory = _field(settings, math.exp(x[index]), n)
        if theory is None or math.isnan(theory.kappa):
            continue
        half = 2.0 / n + 3.0 * theory.deviation(n, steps)
        center = predicted[index] + theory.bias(n)
        low[index], high[index] = center - half, center + half
        zero = theory.critical_gain * theory.sigma_max(n)[0] / theory.gain
    return low, high, float(zero)


def _field(settings: Mapping[str, Any], gamma_w: float, n: int) -> MeanField | None:
    """Theory of the ensemble whose expected spectral norm is this."""
    ensemble = MEAN_FIELD_ENSEMBLES[settings["recurrent"]]
    one = largest_singular_value(n)[0] if ensemble == "gaussian" else 1.0
    still = settings["synthetic"] == "zeros"
    try:
        return mean_field(
            settings["activation"],
            gain=gamma_w / one,
            input_std=0.0 if still else settings["input_std"],
            bias_std=settings["bias_std"],
            ensemble=ensemble,
        )
    except GradlabError:
        return None


def _means(levels: Sequence[Level], name: str) -> Float[Array, " levels"]:
    return np.array([level.mean(name) for level in levels])


def _exp(x: float) -> float:
    return math.exp(x) if x < math.inf else math.inf
