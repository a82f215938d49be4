"""The document ``summary.json`` as lines for people: the verdict first, then the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH = 13  # of the names before the evidence
FORMATS = ("float16", "bfloat16", "float32", "float64")


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """Lines that say what was found, recurrence by recurrence.

    Parameters
    ----------
    summary
        The document, as a saved run holds it: strict JSON, natural logarithms per step.

    Returns
    -------
    lines
        None is wrapped; the first of each recurrence is its verdict.
    """
    entries = summary["recurrences"]
    evidence = [line for entry in entries for line in ("", entry["name"], *_evidence(entry))]
    return [*verdict_lines(entries), *evidence]


def verdict_lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The verdict on each recurrence as its page opens with it, and what it contradicts."""
    from gradlab_reports.views import verdict

    return [f"{entry['name']}: {verdict(entry)}{_contradiction(entry)}" for entry in entries]


def _contradiction(entry: Mapping[str, Any]) -> str:
    """Rule of thumb that the measurement contradicts, as a second sentence."""
    friend = entry["regime"]["contradicts"]
    return f" False friend: {friend}." if friend else ""


def _evidence(entry: Mapping[str, Any]) -> Iterator[str]:
    regime = entry["regime"]
    low, high = _spelled(regime["rate_low"]), _spelled(regime["rate_high"])
    yield _line("rate", f"{_spelled(regime['rate'])}, nominal 95 % interval {low} to {high}")
    yield _line("rule", regime["rule"])
    if regime["transient_lag"]:
        height = _spelled(regime["transient_height"])
        yield _line(
            "transient", f"rises by {height} nats, highest at lag {regime['transient_lag']}"
        )
    yield _line("weights", _weights(entry))
    if certified := _certified(entry):
        yield _line("certificate", certified)
    yield _line("reach", _reach(entry["horizon"]))
    yield from (_line(*exit_) for exit_ in _exits(entry["horizon"]))
    if entry.get("directions"):
        yield _line("directions", _directions(entry["directions"], entry["state_size"]))
    if entry["gradient"]:
        yield _line("gradient", _gradient(entry["gradient"]))
    if entry["lyapunov"]:
        yield _line("lyapunov", _lyapunov(entry["lyapunov"]))
    if entry.get("mean_field"):
        yield _line("theory", _theory(entry["mean_field"], entry["hidden_size"]))
    if half_lives := _half_lives(entry["gates"]):
        yield _line("half-life", half_lives)
    yield _line("saturation", _saturation(entry["saturation"]))
    yield _line("bound slack", _slack(entry["slack"]))
    yield _line("sequences", _sequences(entry["sequences"]))


def _line(name: str, text: str) -> str:
    return f"  {name.ljust(WIDTH)}{text}"


def _certified(entry: Mapping[str, Any]) -> str:
    from gradlab_reports.certificates import sentence

    return sentence(entry)


def _weights(entry: Mapping[str, Any]) -> str:
    sizes = f"N = {entry['hidden_size']}, D = {entry['input_size']}"
    if entry["gamma_w"] is None:
        norms = {name: gate["sigma_max"] for name, gate in entry["gates"].items()}
        known = (f"{name} {_spelled(norm)}" for name, norm in norms.items() if norm is not None)
        return f"{entry['cell']}, sigma_max by gate: {', '.join(known)} (no bound), {sizes}"
    sigma, radius = _spelled(entry["gamma_w"]), _spelled(entry["spectral_radius"])
    return f"sigma_max {sigma}, spectral radius {radius}, {entry['activation']}, {sizes}"


def _reach(horizon: Mapping[str, Any]) -> str:
    return ", ".join(
        f"below {share} for good {_when(horizon[key], horizon['predicted'][key])}"
        for key, share in (("lag_half", "1/2"), ("lag_1pct", "1 %"))
    )


def _exits(horizon: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Formats that the norm leaves, measured or predicted; nothing about those it never leaves."""
    predicted = horizon["predicted"]
    for way, measured, prefix in (
        ("underflow", horizon, ""),
        ("overflow", horizon["overflow"], "overflow_"),
    ):
        lags = {name: (measured[name], predicted[prefix + name]) for name in FORMATS}
        left = [f"{name} {_when(*both)}" for name, both in lags.items() if both != (None, None)]
        if left:
            yield way, ", ".join(left)


def _gradient(gradient: Mapping[str, Any]) -> str:
    lags = (f"{share} % within lag {_lag(gradient[f'lag_{share}'])}" for share in (50, 90, 99))
    ratio = _spelled(gradient["cancellation_ratio"])
    return f"{', '.join(lags)} (of its terms' norms); cancellation ratio {ratio}"


def _lyapunov(measured: Mapping[str, Any]) -> str:
    leading, error = _spelled(measured["leading"]), _spelled(measured["leading_standard_error"])
    dimension = _spelled(measured["kaplan_yorke"])
    return (
        f"leading exponent {leading} (standard error {error}), Kaplan-Yorke dimension {dimension}; "
        f"{measured['count']} of {measured['state_size']} exponents, {measured['dynamics']}"
    )


def _theory(predicted: Mapping[str, Any], units: int) -> str:
    low, high = (_spelled(predicted[f"lambda_1_{end}"]) for end in ("low", "high"))
    return (
        f"random networks like it ({predicted['ensemble']}, gain {_spelled(predicted['gain'])}): "
        f"rate {_spelled(predicted['lambda_1'])}, of {units} units {low} to {high}"
    )


def _lag(lag: int | None) -> str:
    return "undefined" if lag is None else str(lag)


def _half_lives(gates: Mapping[str, Any]) -> str:
    """Half-lives of the gates that keep the old state; nothing where there is none."""
    parts = []
    for name, gate in gates.items():
        if "half_life_median" in gate:
            low, middle, high = (
                _spelled(gate[f"half_life_{which}"]) for which in ("min", "median", "max")
            )
            parts.append(f"{name} {middle} steps (median; units from {low} to {high})")
    return ", ".join(parts)


def _when(measured: int | None, predicted: int | None) -> str:
    if measured is not None:
        return f"from lag {measured}"
    return "never" if predicted is None else f"from lag {predicted} (predicted)"


def _saturation(saturation: Mapping[str, Any]) -> str:
    share, mean = _spelled(saturation["saturated_share"]), _spelled(saturation["mean_derivative"])
    return f"share {share} ({saturation['rule']}), mean derivative {mean}"


def _directions(directions: Mapping[str, Any], n: int) -> str:
    surviving = _number(directions["surviving"])
    kept = "unresolved how many" if math.isnan(surviving) else f"{surviving:g}"
    ratio = _spelled(directions["participation_ratio"])
    lag = directions["lag"]
    return f"{kept} of {n} keep 1 % or more at lag {lag}, participation ratio {ratio}"


def _slack(slack: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{cause} {_spelled(nats)}" for cause, nats in slack.items())
    return f"{parts} (nats at the longest lag)"


def _sequences(sequences: Mapping[str, Any]) -> str:
    low, high = sequences["length_min"], sequences["length_max"]
    steps = f"{low}" if low == high else f"{low} to {high}"
    return f"{sequences['count']} of {steps} steps; {sequences['description']}"


def _number(value: float | str | None) -> float:
    """The float behind a value of strict JSON."""
    return math.nan if value is None else float(value)


def _spelled(value: float | str | None) -> str:
    number = _number(value)
    return "undefined" if math.isnan(number) else f"{number:.4g}"
