"""Run folders made from closed forms, so that a figure's numbers are known before it is drawn."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True, kw_only=True)
class Decay:
    """A recurrence whose median norm is exp(rate l) below bounds that are exponentials, too.

    With gamma_w = e^rate and no slack it is W = gamma Q with the identity activation. From
    ``zero_from`` on the product is exactly zero, as for a nilpotent W.
    """

    name: str = "rnn"
    rate: float = math.log(0.9)
    gamma_w: float = 0.9
    saturation: float = 0.0
    onestep: float = 0.0
    alignment: float = 0.0
    spread: float = 0.0
    zero_from: int | None = None
    regime: str = "vanishing"
    contradicts: str | None = None
    hidden_size: int = 12
    sequences: int = 2

    def norm(self, lag: int, quantile: float = 0.0) -> float:
        if self.zero_from is not None and lag >= self.zero_from:
            return -math.inf
        return self.rate * lag + quantile * self.spread * math.sqrt(lag)

    def bound(self, rung: str, lag: int) -> float:
        height = math.log(self.gamma_w)
        if rung != "gamma":
            height -= self.saturation
        if rung in ("onestep", "blocks"):
            height -= self.onestep
        if rung == "blocks":
            height -= 0.5 * self.alignment
        return height * lag


WriteRun = Callable[..., Path]


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[spelled(cell) for cell in row] for row in rows])


def spelled(cell: object) -> object:
    return repr(cell) if isinstance(cell, float) else cell


def strict(value: object) -> object:
    """As the contract has it: null for undefined, infinities as strings."""
    if isinstance(value, Mapping):
        return {key: strict(entry) for key, entry in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


PROFILE = (
    "recurrence,lag,pairs,log_norm_min,log_norm_q05,log_norm_median,log_norm_mean,log_norm_q95,"
    "log_norm_max,log_frobenius_median,log_sigma_min_median,log_bound_gamma,log_bound_saturation,"
    "log_bound_onestep,log_bound_blocks"
).split(",")
PAIRS = "recurrence,sequence,t,k,lag,log_norm,log_frobenius,log_bound_gamma".split(",")
STEPS = (
    "recurrence,sequence,t,activation,derivative_mean,derivative_q05,derivative_q50,"
    "derivative_q95,derivative_max,saturated_share,log_jacobian_norm"
).split(",")
SPECTRUM = "recurrence,gate,index,singular_value,eigenvalue_re,eigenvalue_im".split(",")
RUNGS = ("gamma", "saturation_max", "saturation", "onestep", "blocks")


def profile_rows(decay: Decay, steps: int) -> list[list[object]]:
    rows: list[list[object]] = []
    for lag in range(1, steps + 1):
        quantiles = [decay.norm(lag, q) for q in (-2.0, -1.0, 0.0, 0.0, 1.0, 2.0)]
        bounds = [decay.bound(r, lag) for r in ("gamma", "saturation", "onestep", "blocks")]
        extra = [decay.norm(lag) + 0.5 * math.log(decay.hidden_size), decay.norm(lag)]
        rows.append([decay.name, lag, steps - lag + 1, *quantiles, *extra, *bounds])
    return rows


def pairs_rows(decay: Decay, steps: int, end_times: Sequence[int]) -> list[list[object]]:
    rows: list[list[object]] = []
    for sequence in range(decay.sequences):
        for t in end_times:
            for k in range(t - 1, -1, -1):
                norm = decay.norm(t - k)
                rows.append(
                    [decay.name, sequence, t, k, t - k, norm, norm, decay.bound("gamma", t - k)]
                )
    return rows


def steps_rows(decay: Decay, steps: int) -> list[list[object]]:
    rows: list[list[object]] = []
    for sequence in range(decay.sequences):
        for t in range(1, steps + 1):
            mean = 0.6 + 0.1 * math.sin(t / 5.0 + sequence)
            derivatives = [mean, mean - 0.4, mean, min(mean + 0.3, 0.95), 0.99 - 0.02 * sequence]
            rows.append([decay.name, sequence, t, "tanh", *derivatives, 0.08, decay.rate])
    return rows


SLOPES = "recurrence,activation,t_first,t_last,derivative_low,derivative_high,share".split(",")
UNITS = (
    "recurrence,activation,unit_first,unit_last,t_first,t_last,derivative_mean,derivative_sup,"
    "saturated_share"
).split(",")


def slopes_rows(decay: Decay, steps: int) -> list[list[object]]:
    """Halves of the steps: all units steep in the first, in the second one in four flat."""
    middle = steps // 2
    halves = ((1, middle, (0.0, 1.0)), (middle + 1, steps, (0.25, 0.75)))
    return [
        [decay.name, "tanh", first, last, 0.5 * place, 0.5 * place + 0.5, share]
        for first, last, shares in halves
        for place, share in enumerate(shares)
    ]


def units_rows(decay: Decay, steps: int) -> list[list[object]]:
    """Pairs of units: the first pair saturated throughout, the others ever steeper."""
    pairs = decay.hidden_size // 2
    return [
        [decay.name, "tanh", 2 * i, 2 * i + 1, t, t, i / pairs, 1.0, float(i == 0)]
        for t in range(1, steps + 1)
        for i in range(pairs)
    ]


def spectrum_rows(decay: Decay) -> list[list[object]]:
    size = decay.hidden_size
    rows: list[list[object]] = []
    for index in range(size):
        angle = 2.0 * math.pi * index / size
        radius = math.exp(min(decay.rate, 50.0)) if decay.rate > -50.0 else 0.0
        singular = decay.gamma_w * (1.0 - index / size)
        re, im = radius * math.cos(angle), radius * math.sin(angle)
        rows.append([decay.name, "", index, singular, re, im])
    return rows


def ladder_rows(decay: Decay, steps: int) -> list[list[object]]:
    rows: list[list[object]] = []
    for rung in RUNGS:
        named = "saturation" if rung == "saturation_max" else rung
        rows += [
            [decay.name, rung, "upper", lag, decay.bound(named, lag)] for lag in range(1, steps + 1)
        ]
    rows += [[decay.name, "exact", "exact", lag, decay.norm(lag)] for lag in range(1, steps + 1)]
    return rows


GRADIENT = (
    "recurrence,lag,log_term_norm_median,log_term_bound_median,share,cumulative_share"
).split(",")
GRADIENT_PAIRS = "recurrence,sequence,t,k,lag,log_term_norm,log_term_bound".split(",")
GATES = "recurrence,sequence,t,gate,mean,q05,q95".split(",")
PATHS = "recurrence,quantity,name,lag,value".split(",")


def gradient_rows(decay: Decay, steps: int) -> list[list[object]]:
    """One loss, at the last step: the term of lag l is the norm of the decay at l."""
    norms = [decay.norm(lag) for lag in range(steps)]
    total = sum(math.exp(norm) for norm in norms)
    rows: list[list[object]] = []
    held = 0.0
    for lag, norm in enumerate(norms):
        share = math.exp(norm) / total if total else math.nan
        held += share
        rows.append([decay.name, lag, norm, decay.bound("gamma", lag), share, held])
    return rows


def gradient_pairs_rows(decay: Decay, end_times: Iterable[int]) -> list[list[object]]:
    return [
        [decay.name, sequence, t, k, t - k, decay.norm(t - k), decay.bound("gamma", t - k)]
        for sequence in range(decay.sequences)
        for t in end_times
        for k in range(t, 0, -1)
    ]


def gates_rows(decay: Decay, steps: int) -> list[list[object]]:
    """An input gate half open, a forget gate that opens from 0.2 to 0.8."""
    means: dict[str, Callable[[int], float]] = {
        "i": lambda t: 0.5,
        "f": lambda t: 0.2 + 0.6 * (t - 1) / max(steps - 1, 1),
    }
    return [
        [decay.name, sequence, t, gate, mean(t), mean(t) - 0.1, mean(t) + 0.1]
        for gate, mean in means.items()
        for sequence in range(decay.sequences)
        for t in range(1, steps + 1)
    ]


def paths_rows(decay: Decay, steps: int) -> list[list[object]]:
    """The largest unit halves at every step, the median unit quarters; c has 3/4 of the share."""
    curves: dict[tuple[str, str], Callable[[int], float]] = {
        ("carry_log_norm", "f"): lambda lag: lag * math.log(0.5),
        ("carry_log_median", "f"): lambda lag: lag * math.log(0.25),
        ("share", "h"): lambda lag: 0.25,
        ("share", "c"): lambda lag: 0.75,
        ("log_norm", "measured"): decay.norm,
    }
    return [
        [decay.name, *names, lag, value(lag)]
        for names, value in curves.items()
        for lag in range(1, steps + 1)
    ]


PRODUCT_SPECTRUM = "recurrence,lag,index,log_singular_value".split(",")
DIRECTIONS = "recurrence,lag,sequences,participation_ratio,surviving".split(",")


def product_spectrum_rows(decay: Decay, steps: int) -> list[list[object]]:
    """Each direction decays by a nat a step faster than the one before it."""
    return [
        [decay.name, lag, index, decay.norm(lag) - index * lag]
        for lag in (1, 3, steps)
        for index in range(decay.hidden_size)
    ]


def directions_rows(decay: Decay, steps: int) -> list[list[object]]:
    sizes = {lag: [decay.norm(lag) - i * lag for i in range(decay.hidden_size)] for lag in (1, 3)}
    sizes[steps] = [decay.norm(steps)] + [-math.inf] * (decay.hidden_size - 1)
    return [
        [decay.name, lag, 2, 1.0, sum(size >= math.log(0.01) for size in own)]
        for lag, own in sizes.items()
    ]


LYAPUNOV = "recurrence,index,exponent,standard_error".split(",")
MEAN_FIELD = "recurrence,index,p,exponent".split(",")


def newman_exponent(decay: Decay, index: int) -> float:
    """Newman's law below the recurrence's rate: ln g + ln(1 - p) / 2."""
    return decay.rate + 0.5 * math.log(1.0 - (index + 0.5) / decay.hidden_size)


def lyapunov_rows(decay: Decay) -> list[list[object]]:
    """Exponents a little below Newman's law; the last one is lost where the product is zero."""
    rows: list[list[object]] = [
        [decay.name, index, newman_exponent(decay, index) - 0.01, 0.004]
        for index in range(decay.hidden_size)
    ]
    if decay.zero_from is not None:
        rows[-1][2:] = [-math.inf, math.nan]
    return rows


def mean_field_rows(decay: Decay) -> list[list[object]]:
    return [
        [decay.name, i, (i + 0.5) / decay.hidden_size, newman_exponent(decay, i)]
        for i in range(decay.hidden_size)
    ]


def horizon_of(decay: Decay, steps: int) -> dict[str, Any]:
    thresholds = {
        "lag_half": math.log(0.5),
        "lag_1pct": math.log(0.01),
        "float16": -14 * math.log(2),
        "bfloat16": -126 * math.log(2),
        "float32": -126 * math.log(2),
        "float64": -1022 * math.log(2),
    }
    measured: dict[str, Any] = {
        name: next((lag for lag in range(1, steps + 1) if decay.norm(lag) < low), None)
        for name, low in thresholds.items()
    }
    predicted: dict[str, Any] = {
        name: math.ceil(low / decay.rate) if decay.rate < 0 else None
        for name, low in thresholds.items()
    }
    ceilings = {"float16": 16, "bfloat16": 128, "float32": 128, "float64": 1024}
    overflow: dict[str, Any] = {
        name: next(
            (lag for lag in range(1, steps + 1) if decay.norm(lag) > top * math.log(2)), None
        )
        for name, top in ceilings.items()
    }
    predicted["overflow"] = {
        name: math.ceil(top * math.log(2) / decay.rate) if decay.rate > 0 else None
        for name, top in ceilings.items()
    }
    return {**measured, "overflow": overflow, "predicted": predicted}


def summary_entry(decay: Decay, steps: int) -> dict[str, Any]:
    rate = -math.inf if decay.zero_from is not None else decay.rate
    return {
        "name": decay.name,
        "cell": "rnn",
        "layer": 0,
        "direction": "forward",
        "hidden_size": decay.hidden_size,
        "input_size": 3,
        "state_size": decay.hidden_size,
        "activation": "tanh",
        "gamma_w": decay.gamma_w,
        "gamma_a": 1.0,
        "spectral_radius": math.exp(min(decay.rate, 50.0)),
        "numerical_radius": decay.gamma_w,
        "henrici_departure": 0.0,
        "condition_number": 1.0,
        "gates": {},
        "certificates": {},
        "saturated_share": 0.08,
        "saturation": {
            "rule": "|h| > 0.97, strictly",
            "saturated_share": 0.08,
            "mean_derivative": 0.6,
            "dead_units": [],
            "kink_count": 0,
            "autodiff_zero_share": 0.0,
        },
        "regime": {
            "name": decay.regime,
            "rate": rate,
            "rate_low": rate - 0.004 if math.isfinite(rate) else rate,
            "rate_high": rate + 0.004 if math.isfinite(rate) else rate,
            "tolerance": math.log(10.0) / steps,
            "rule": "the whole interval of the rate lies beyond the tolerance",
            "transient_height": 0.0,
            "transient_lag": 0,
            "contradicts": decay.contradicts,
        },
        "horizon": horizon_of(decay, steps),
        "slack": {
            "saturation": decay.saturation * steps,
            "onestep": decay.onestep * steps,
            "alignment": decay.alignment * steps if decay.zero_from is None else math.inf,
        },
        "sequences": {
            "count": decay.sequences,
            "steps": steps,
            "length_min": steps,
            "length_max": steps,
            "synthetic": True,
            "description": "gaussian inputs with standard deviation 1.0",
        },
        "lyapunov": {"leading": None, "sum_rule_residual": None, "kaplan_yorke": None},
        "assumptions": [],
    }


MANIFEST: dict[str, Any] = {
    "schema": 1,
    "gradlab": "0.1.0",
    "versions": {"python": "3.11.2", "numpy": "2.4.6", "scipy": "1.17.1"},
    "blas": "openblas 0.3.31",
    "cpu_count": 2,
    "argv": ["gradlab", "report", "vanishing", "-o", "out"],
    "seed": 0,
    "dtype": "float64",
    "settings": {"anchors": "auto", "threshold": 0.97, "block": 8},
    "assumptions": ["the file does not store the activation: tanh was assumed"],
    "sha256": {"weights": "ab" * 32, "inputs": "cd" * 32},
    "start": "2026-01-02T03:04:05Z",
    "wall_seconds": 1.25,
}


def write_run_folder(
    folder: Path,
    *decays: Decay,
    steps: int = 60,
    pairs: bool = True,
    partial: bool = False,
    end_times: Sequence[int] | None = None,
) -> Path:
    folder.mkdir(parents=True)
    chosen = decays or (Decay(),)
    summary = {"schema": 1, "recurrences": [strict(summary_entry(d, steps)) for d in chosen]}
    (folder / "manifest.json").write_text(json.dumps(MANIFEST, allow_nan=False))
    (folder / "summary.json").write_text(json.dumps(summary, allow_nan=False))
    times = end_times or range(1, steps + 1)
    tables: dict[str, tuple[Sequence[str], Callable[[Decay], list[list[object]]]]] = {
        "lag_profile.csv": (PROFILE, lambda d: profile_rows(d, steps)),
        "steps.csv": (STEPS, lambda d: steps_rows(d, steps)),
        "slopes.csv": (SLOPES, lambda d: slopes_rows(d, steps)),
        "units.csv": (UNITS, lambda d: units_rows(d, steps)),
        "spectrum.csv": (SPECTRUM, spectrum_rows),
        "ladder.csv": (
            ("recurrence", "rung", "kind", "lag", "log_bound"),
            lambda d: ladder_rows(d, steps),
        ),
    }
    if pairs:
        tables["pairs.csv"] = (PAIRS, lambda d: pairs_rows(d, steps, times))
    if partial:
        tables |= {
            "gradient.csv": (GRADIENT, lambda d: gradient_rows(d, steps)),
            "gradient_pairs.csv": (GRADIENT_PAIRS, lambda d: gradient_pairs_rows(d, times)),
            "gates.csv": (GATES, lambda d: gates_rows(d, steps)),
            "paths.csv": (PATHS, lambda d: paths_rows(d, steps)),
            "lyapunov.csv": (LYAPUNOV, lyapunov_rows),
            "product_spectrum.csv": (PRODUCT_SPECTRUM, lambda d: product_spectrum_rows(d, steps)),
            "directions.csv": (DIRECTIONS, lambda d: directions_rows(d, steps)),
            "mean_field.csv": (MEAN_FIELD, mean_field_rows),
        }
    for name, (header, rows_of) in tables.items():
        write_csv(folder / name, header, [row for d in chosen for row in rows_of(d)])
    return folder


def write_sweep_folder(
    folder: Path, gammas: Sequence[float], *, seeds: int = 3, steps: int = 40
) -> Path:
    """A sweep of W = gamma Q under the identity: the measured rate is the bound's rate."""
    folder.mkdir(parents=True)
    header = (
        "gamma,hidden_size,seed,gamma_w,spectral_radius,rate,rate_se,bound_rate,mean_field_rate,"
        "saturated_share,lyapunov_leading,horizon_1pct,regime,status,message"
    ).split(",")
    points: list[tuple[object, ...]] = []
    profiles: list[tuple[object, ...]] = []
    for gamma, seed in itertools.product(gammas, range(seeds)):
        bound, rate = math.log(gamma), math.log(gamma) - 0.1 - 0.01 * seed
        numbers = (gamma, gamma, rate, 0.01, bound, bound - 0.11, 0.1, rate, 50.0)
        for lag in range(1, steps + 1):
            norm = rate * lag
            profiles.append((len(points), lag, norm, norm - 0.1, norm + 0.1, bound * lag))
        points.append((gamma, 8, seed, *numbers, "vanishing", "ok", ""))
    write_csv(folder / "sweep.csv", header, points)
    names = "point,lag,log_norm_median,log_norm_q05,log_norm_q95,log_bound_gamma".split(",")
    write_csv(folder / "sweep_profiles.csv", names, profiles)
    return folder


COMPARED = (
    "label,recurrence,lag,pairs,log_norm_median,log_norm_q05,log_norm_q95,log_bound_gamma,"
    "log_bound_onestep,log_bound_blocks"
).split(",")


def compared_rows(decay: Decay, steps: int) -> list[list[object]]:
    return [
        [
            *(decay.name, "rnn", lag, steps - lag + 1),
            *(decay.norm(lag, q) for q in (0.0, -1.0, 1.0)),
            *(decay.bound(rung, lag) for rung in ("gamma", "onestep", "blocks")),
        ]
        for lag in range(1, steps + 1)
    ]


def compared_entry(decay: Decay, steps: int, common_lag: int) -> dict[str, Any]:
    entry = summary_entry(decay, steps)
    left_out = ("name", "saturation", "lyapunov", "certificates")
    return {
        "label": decay.name,
        "recurrence": "rnn",
        **{name: value for name, value in entry.items() if name not in left_out},
        "log_norm_at_common_lag": decay.norm(common_lag),
        "longest_lag": steps,
        "differing": {"seed": len(decay.name), "sequences.length_max": steps},
        "source": f"{decay.name}.pt",
        "sha256_weights": f"{len(decay.name):02d}" * 32,
        "sha256_inputs": "cd" * 32,
    }


def write_comparison_folder(
    folder: Path, *decays: Decay, lengths: Sequence[int] | None = None, same_inputs: bool = True
) -> Path:
    """A comparison of closed forms, whose labels are their names."""
    folder.mkdir(parents=True)
    steps = lengths or [60] * len(decays)
    both = list(zip(decays, steps, strict=True))
    document = {
        "schema": 1,
        "kind": "comparison",
        "labels": [decay.name for decay in decays],
        "common_lag": min(steps),
        "same_inputs": same_inputs,
        "differing": ["seed", "sequences.length_max"],
        "recurrences": [strict(compared_entry(decay, n, min(steps))) for decay, n in both],
    }
    (folder / "manifest.json").write_text(json.dumps(MANIFEST, allow_nan=False))
    (folder / "compare.json").write_text(json.dumps(document, allow_nan=False))
    rows = [row for decay, n in both for row in compared_rows(decay, n)]
    write_csv(folder / "compare.csv", COMPARED, rows)
    return folder


@pytest.fixture(scope="session")
def decay() -> type[Decay]:
    """The closed form that a sample run is made from."""
    return Decay


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Write a run folder below the test's own folder: ``write_run(name, *decays, steps=60)``."""

    def write(name: str, *decays: Decay, **how: Any) -> Path:
        return write_run_folder(tmp_path / name, *decays, **how)

    return write


@pytest.fixture(scope="session")
def write_once(tmp_path_factory: pytest.TempPathFactory) -> WriteRun:
    """Write a run folder that several tests read."""

    def write(name: str, *decays: Decay, **how: Any) -> Path:
        return write_run_folder(tmp_path_factory.mktemp(name) / "run", *decays, **how)

    return write


@pytest.fixture
def write_sweep(tmp_path: Path) -> WriteRun:
    """Write a sweep folder below the test's own folder."""

    def write(name: str, gammas: Sequence[float], **how: Any) -> Path:
        return write_sweep_folder(tmp_path / name, gammas, **how)

    return write


@pytest.fixture
def write_compared(tmp_path: Path) -> WriteRun:
    """Write a comparison's folder below the test's own: ``write_compared(name, *decays)``."""

    def write(name: str, *decays: Decay, **how: Any) -> Path:
        return write_comparison_folder(tmp_path / name, *decays, **how)

    return write
