"""The numbers of a page, as tables of words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradlab as gl
from gradlab_reports.rungs import KINDS, RUNGS, Rung
from gradlab_reports.spelling import factor, plain, share

if TYPE_CHECKING:
    import pandas as pd

LONG = 32  # characters of a cell that may stand in two lines


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: the first column names the row."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @property
    def wraps(self) -> bool:
        """Whether cells hold sentences, which one line each would push out of sight."""
        return any(len(cell) > LONG for row in self.rows for cell in row[1:])


SPECTRUM = {
    "gamma_w": "largest singular value, γ_w = σ_max",
    "spectral_radius": "spectral radius ρ",
    "numerical_radius": "numerical radius",
    "henrici": "Henrici departure from normality",
    "condition_number": "condition number",
    "kreiss": "Kreiss constant, a lower value",
}
SATURATION = {
    "mean_derivative": "mean derivative φ′ (needs no threshold)",
    "kink_count": "pre-activations exactly at a kink",
    "zero_share": "share with derivative exactly 0",
    "autodiff_zero_share": "share whose derivative an automatic differentiation rounds to 0",
}


def number(value: object) -> float:
    """Return a number of a strict JSON document: null is nan, infinities are strings."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except ValueError:
        return math.nan


def ladder_table(ladder: pd.DataFrame, facts: Mapping[str, Any] | None = None) -> Table | None:
    """Rungs of the bound ladder at the longest lag of the last end time.

    Parameters
    ----------
    ladder
        Rows of ``ladder.csv`` of one recurrence.
    facts
        Entry ``ladder`` of a recurrence's summary: steps of a block, and why rungs are absent.

    Returns
    -------
    table
        One row a rung, from the loosest upper bound to what was measured and on to the loosest
        lower bound, with the slack to the next upper rung and its cause; None without rows.
    """
    if ladder.empty:
        return None
    lag = int(ladder["lag"].max())
    rungs = ladder[ladder["lag"] == lag]
    values = dict(zip(rungs["rung"], rungs["log_bound"].astype(float), strict=True))
    rows = [
        _rung_row(str(rung), str(kind), lag, values)
        for rung, kind in zip(rungs["rung"], rungs["kind"], strict=True)
    ]
    return Table(
        title=f"Ladder of bounds at lag {lag}",
        header=("rung", "kind", f"at lag {lag}", "per step", "slack to the next (nats)", "cause"),
        rows=rows,
        note="Medians over the sequences. A slack of 2.3 nats is a factor of 10. No bound is a "
        "measurement: the truth lies between the lowest upper and the highest lower one."
        + _ladder_facts(facts or {}),
    )


def _ladder_facts(facts: Mapping[str, Any]) -> str:
    """What a block is, and why rungs are missing, in sentences."""
    said = ""
    if facts.get("block"):
        said += f" Blocks are of {facts['block']} steps."
    for rung, reason in (facts.get("absent") or {}).items():
        said += f" Not here: {RUNGS.get(rung, Rung(words=rung)).words}; {reason}."
    return said


def _rung_row(rung: str, kind: str, lag: int, values: Mapping[str, float]) -> tuple[str, ...]:
    own = RUNGS.get(rung, Rung(words=rung))
    value = values[rung]
    slack = next((value - values[name] for name in own.follows if name in values), math.nan)
    known = not math.isnan(slack)
    return (
        own.words,
        KINDS.get(kind, kind),
        factor(value),
        "× " + factor(value / lag),
        plain(slack) if known else "",
        own.cause if known else "",
    )


def horizon_table(horizon: Mapping[str, Any]) -> Table | None:
    """Lags from which the median norm stays below or above a level, measured and predicted.

    Parameters
    ----------
    horizon
        Entry ``horizon`` of a recurrence's summary.

    Returns
    -------
    table
        Levels that are neither reached nor predicted to be are left out; None if all are.
    """
    predicted, overflow = horizon.get("predicted") or {}, horizon.get("overflow") or {}
    events = {"lag_half": "below one half", "lag_1pct": "below 1 %"}
    told = [(words, horizon.get(key), predicted.get(key)) for key, words in events.items()]
    for name, limits in gl.FLOAT_FORMATS.items():
        words = f"below {name} ({factor(limits.log_smallest_normal, 2)})"
        told.append((words, horizon.get(name), predicted.get(name)))
    for name, limits in gl.FLOAT_FORMATS.items():
        words = f"beyond {name} ({factor(limits.log_largest, 2)})"
        told.append((words, overflow.get(name), predicted.get(f"overflow_{name}")))
    rows = [
        (words, _lag(seen, "not within the lags measured"), _lag(expected, "never"))
        for words, seen, expected in told
        if seen is not None or expected is not None
    ]
    if not rows:
        return None
    return Table(
        title="Horizons",
        header=("the median norm stays", "measured: from lag", "predicted from the rate: lag"),
        rows=rows,
        note="Levels are the smallest normal and the largest finite number of each format.",
    )


def _lag(value: object, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def spectrum_table(recurrence: Mapping[str, Any]) -> Table:
    """Summary of the recurrent weights; those of gates have a table of their own."""
    rows = [
        (words, plain(number(recurrence[key]), 5))
        for key, words in SPECTRUM.items()
        if recurrence.get(key) is not None
    ]
    if recurrence.get("power_lag"):
        height = factor(number(recurrence["power_height"]), 5)
        rows.append(("largest norm of a power", f"{height} at lag {recurrence['power_lag']}"))
    return Table(title="Recurrent weights", header=("quantity", "value"), rows=rows)


def gates_table(recurrence: Mapping[str, Any]) -> Table | None:
    """What is known of every gate: its weights, its ends, and how long it keeps the state.

    Parameters
    ----------
    recurrence
        An entry of ``summary.json``.

    Returns
    -------
    table
        One row a gate; None for cells without gates.
    """
    gates = recurrence.get("gates") or {}
    if not gates:
        return None
    header = (
        "gate",
        "σ_max",
        "spectral radius",
        "saturated low",
        "saturated high",
        "half-life (steps)",
    )
    return Table(
        title="Gates",
        header=header,
        rows=[_gate_row(str(name), values) for name, values in gates.items()],
        note=_gates_note(recurrence.get("state_shares") or {}),
    )


def _gate_row(name: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    known = {key: number(value) for key, value in values.items() if value is not None}
    norms = (
        plain(known[key], 4) if key in known else "" for key in ("sigma_max", "spectral_radius")
    )
    ends = (share(known[key]) if key in known else "" for key in ("low_share", "high_share"))
    return (name, *norms, *ends, _half_life(known))


def _half_life(known: Mapping[str, float]) -> str:
    if "half_life_median" not in known:
        return ""
    low, middle, high = (plain(known[f"half_life_{which}"]) for which in ("min", "median", "max"))
    return f"{middle} (units: {low} to {high})"


def _gates_note(shares: Mapping[str, Any]) -> str:
    """Words under the table: what its columns mean, and which part of the state is taken."""
    said = (
        "The half-life is that of the direct path, the product of a gate's values; the gradient "
        "may take others. No gate's σ_max bounds the gradient."
    )
    if len(shares) < 2:
        return said
    places = {"first_lag": "at lag 1", "last_lag": "at the longest lag"}
    flows = (
        f"{words} "
        + " and ".join(f"{share(number(part.get(key)))} is in {n}" for n, part in shares.items())
        for key, words in places.items()
    )
    return f"{said} Of the square of the gradient, {', '.join(flows)}."


def gradient_table(gradient: Mapping[str, Any]) -> Table | None:
    """The gradient of the loss in numbers.

    Parameters
    ----------
    gradient
        Entry ``gradient`` of a recurrence's summary.

    Returns
    -------
    table
        None without a loss.
    """
    if not gradient:
        return None
    rows = [
        (f"lags that hold {held} % of its terms", _up_to(gradient.get(f"lag_{held}")))
        for held in (50, 90, 99)
    ]
    rows += [
        ("norm of the sum of all terms", factor(number(gradient.get("log_total_norm")))),
        ("sum of their norms", factor(number(gradient.get("log_sum_of_norms")))),
        ("cancellation ratio", plain(number(gradient.get("cancellation_ratio")))),
    ]
    return Table(
        title="Gradient of the loss",
        header=("quantity", "value"),
        rows=rows,
        note="Lags hold shares of the sum of norms. The ratio of the two norms is 1 where all "
        "terms point the same way, and near 0 where they cancel.",
    )


def _up_to(lag: object) -> str:
    return "undefined" if lag is None else f"0 to {lag}"


def saturation_table(saturation: Mapping[str, Any]) -> Table:
    """Saturation with the rule it was counted by."""
    rule = str(saturation.get("rule", "not saved"))
    saturated = share(number(saturation.get("saturated_share")))
    rows = [(f"saturated share, by the rule {rule}", saturated)]
    for key, words in SATURATION.items():
        if saturation.get(key) is not None:
            value = number(saturation[key])
            rows.append((words, share(value) if key.endswith("share") else plain(value)))
    dead = saturation.get("dead_units")
    if isinstance(dead, list):
        rows.append(("dead units (derivative 0 at every step)", _units(dead)))
    return Table(title="Saturation", header=("quantity", "value"), rows=rows)


def _units(units: Sequence[object]) -> str:
    if not units:
        return "none"
    shown = ", ".join(str(unit) for unit in units[:12])
    return f"{len(units)}: {shown}" + (", …" if len(units) > 12 else "")


def slack_table(slack: Mapping[str, Any]) -> Table | None:
    """Slack of the weights' bound over the measured median, by cause."""
    words = {
        "saturation": "saturation",
        "onestep": "one-step structure",
        "alignment": "alignment across steps",
    }
    rows = [
        (name, plain(number(slack[key])), factor(number(slack[key])))
        for key, name in words.items()
        if slack.get(key) is not None
    ]
    if not rows:
        return None
    return Table(
        title="Slack of the bound by cause",
        header=("cause", "nats", "as a factor"),
        rows=rows,
        note="At the longest lag: from the weights' bound down to the measured norm.",
    )
