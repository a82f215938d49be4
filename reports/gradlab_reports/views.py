"""Numbers into words: what a page says, as plain data for a template."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradlab_reports.downloads import Download
from gradlab_reports.spelling import factor, plain, share, shortened, with_minus
from gradlab_reports.tables import Table, number


@dataclass(frozen=True, kw_only=True)
class FigureView:
    """A figure on a page: its own markup, or a note that stands for it."""

    markup: str
    finding: str
    caption: str
    note: str = ""
    wide: bool = False
    file: str = ""  # its picture beside the page
    hover: str = ""  # numbers to tell at the pointer, JSON


@dataclass(frozen=True, kw_only=True)
class KeyNumber:
    """A number to take away, with the words under it."""

    value: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """Everything a page says of one recurrence."""

    anchor: str
    name: str
    facts: str
    regime: str
    tone: str
    rate: str
    verdict: str
    false_friend: str
    bound: str
    remarks: Sequence[str]
    numbers: Sequence[KeyNumber]
    meaning: Sequence[str]
    changes: Table | None
    figures: Sequence[FigureView]
    tables: Sequence[Table]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole report."""

    title: str
    sections: Sequence[Section]
    assumptions: Sequence[str]
    provenance: Sequence[tuple[str, str]]
    downloads: Sequence[Download] = ()
    left_out: str = ""


REGIME_WORDS = {
    "vanishing": "The gradient vanishes",
    "exploding": "The gradient explodes",
    "near-critical": "The gradient keeps its level, neither vanishing nor exploding with the lag",
    "undecided": "The measurement does not decide whether the gradient vanishes or explodes",
}
LEFT = "from so many steps back on, less than 1 % of the gradient is left"
TONES = {"vanishing": "shrink", "exploding": "grow", "near-critical": "steady"}


def verdict(recurrence: Mapping[str, Any]) -> str:
    """State in one sentence what the gradient of a recurrence does.

    Parameters
    ----------
    recurrence
        An entry of ``summary.json``.

    Returns
    -------
    sentence
        The regime, the measured factor per step with its interval, and the lag that matters.
    """
    regime = recurrence["regime"]
    rate = number(regime["rate"])
    opening = REGIME_WORDS.get(str(regime["name"]), f"The regime is {regime['name']}")
    if rate == -math.inf:
        return f"{opening} completely: {regime['rule']}."
    middle = f": each step back in time multiplies it by {factor(rate)}{_interval(regime)}"
    if math.isnan(rate):
        middle = ": no rate could be measured"
    return f"{opening}{middle}{_reach(recurrence)}."


def _interval(regime: Mapping[str, Any]) -> str:
    low, high = number(regime.get("rate_low")), number(regime.get("rate_high"))
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f" (nominal 95 % interval {factor(low)} to {factor(high)})"


def _reach(recurrence: Mapping[str, Any]) -> str:
    """The horizon that belongs to the regime, as the end of a sentence."""
    horizon, name = recurrence.get("horizon") or {}, recurrence["regime"]["name"]
    if name == "vanishing":
        return _reach_down(horizon)
    if name == "exploding":
        overflow = horizon.get("overflow") or {}
        lags = [(lag, kind) for kind, lag in overflow.items() if lag is not None]
        if lags:
            lag, kind = min(lags)
            return f", so that it overflows {kind} from lag {lag} on"
    return ""


def _reach_down(horizon: Mapping[str, Any]) -> str:
    lag = horizon.get("lag_1pct")
    if lag is not None:
        return f", so that less than 1 % of it is left from lag {lag} on"
    predicted = (horizon.get("predicted") or {}).get("lag_1pct")
    if predicted is not None:
        return f", so that at this rate less than 1 % of it would be left from lag {predicted} on"
    return ""


def false_friend(recurrence: Mapping[str, Any]) -> str:
    """Return the rule of thumb that the measurement contradicts, as a sentence, or nothing."""
    words = str(recurrence["regime"].get("contradicts") or "")
    return words if not words or words.endswith(".") else f"{words}."


def remarks(recurrence: Mapping[str, Any]) -> list[str]:
    """Sentences after the verdict: the rule that fired, a transient, synthetic inputs."""
    regime, sequences = recurrence["regime"], recurrence.get("sequences") or {}
    said = []
    if number(regime["rate"]) != -math.inf and regime.get("rule"):
        rule = with_minus(str(regime["rule"]))
        said.append(f"Rule of the verdict: {rule} (rates in natural logarithms).")
    height = number(regime.get("transient_height"))
    if height > 0.0:
        said.append(
            f"Before it falls, the median norm reaches {factor(height)} at lag "
            f"{regime.get('transient_lag')}."
        )
    if sequences.get("synthetic"):
        words = str(sequences.get("description", "no description"))
        words = words if "synthetic" in words else f"synthetic inputs ({words})"
        said.append(f"No real data: {words}; with other inputs the rate may differ.")
    return said


def rate_words(recurrence: Mapping[str, Any]) -> str:
    """Spell the measured factor per step."""
    return f"× {factor(number(recurrence['regime']['rate']))} per step"


def tone(recurrence: Mapping[str, Any]) -> str:
    """Return the name of the color that a regime has on a page."""
    return TONES.get(str(recurrence["regime"]["name"]), "open")


def key_numbers(recurrence: Mapping[str, Any]) -> list[KeyNumber]:
    """Three or four numbers to take away, the measured ones first."""
    rate = number(recurrence["regime"]["rate"])
    numbers = [
        KeyNumber(
            value="× " + factor(rate), meaning=f"measured per step back (rate {plain(rate)} nats)"
        )
    ]
    lag = (recurrence.get("horizon") or {}).get("lag_1pct")
    if lag is not None:
        numbers.append(KeyNumber(value=f"lag {lag}", meaning=LEFT))
    held = (recurrence.get("gradient") or {}).get("lag_90")
    if held is not None:
        words = "the lags up to here hold 90 % of the loss's gradient"
        numbers.append(KeyNumber(value=f"lag {held}", meaning=words))
    gamma = number(recurrence.get("gamma_w"))
    if not math.isnan(gamma):
        numbers.append(
            KeyNumber(value=plain(gamma), meaning="γ_w = σ_max of the weights: enters the bound")
        )
    saturated = number(recurrence.get("saturated_share"))
    if not math.isnan(saturated):
        rule = (recurrence.get("saturation") or {}).get("rule", "rule not saved")
        each = "each gate by its own rule" if ";" in str(rule) else rule
        words = f"of the units saturated ({each})"
        numbers.append(KeyNumber(value=share(saturated), meaning=words))
    return numbers


def facts(recurrence: Mapping[str, Any]) -> str:
    """Describe a recurrence in one line."""
    parts = [str(recurrence.get("cell", "recurrence"))]
    if recurrence.get("activation"):
        parts.append(str(recurrence["activation"]))
    if recurrence.get("hidden_size") is not None:
        parts.append(f"{recurrence['hidden_size']} units")
    if recurrence.get("input_size") is not None:
        parts.append(f"{recurrence['input_size']} input features")
    if recurrence.get("layer") is not None:
        parts.append(f"layer {recurrence['layer']}, {recurrence.get('direction', 'forward')}")
    sequences = recurrence.get("sequences") or {}
    if sequences:
        parts.append(_sequence_words(sequences))
    return " · ".join(parts)


def _sequence_words(sequences: Mapping[str, Any]) -> str:
    count, low, high = (sequences.get(key) for key in ("count", "length_min", "length_max"))
    length = f"{high}" if low == high else f"{low} to {high}"
    noun = "sequence" if count == 1 else "sequences"
    return f"{count} {noun} of {length} steps"


def page_title(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Name the page after where the weights came from, if that says more than a single name."""
    source = str(manifest.get("source") or "")
    names = [str(recurrence["name"]) for recurrence in summary["recurrences"]]
    if not source or names == [source]:
        return "Gradient dynamics"
    return shortened(source.replace("\\", "/").rstrip("/").rpartition("/")[2] or source, 80)


def provenance_rows(document: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten a manifest into rows of key and words, in its own order."""
    rows: list[tuple[str, str]] = []
    for key, value in document.items():
        name = f"{prefix}{key}"
        if name in ("assumptions", "schema"):
            continue
        if isinstance(value, Mapping):
            rows += provenance_rows(value, f"{name}.")
        else:
            rows.append((name, _provenance_words(name, value)))
    return rows


def _provenance_words(name: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        words = [str(entry) for entry in value]
        return shlex.join(words) if name == "argv" else ", ".join(words)
    return str(value)


def all_assumptions(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Every assumption made, once, in the order in which it was made."""
    said = [str(words) for words in manifest.get("assumptions") or []]
    for recurrence in summary["recurrences"]:
        said += [str(words) for words in recurrence.get("assumptions") or []]
    return list(dict.fromkeys(said))
