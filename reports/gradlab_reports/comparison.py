"""A comparison in words: the document ``compare.json`` as a sentence, tables and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradlab_reports.spelling import factor, plain, share, shortened
from gradlab_reports.tables import Table, number

HASH_DIGITS = 8
HASHED = {
    "sha256_weights": "SHA-256 of the network's weights",
    "sha256_inputs": "SHA-256 of the inputs",
}

HOW_TO_READ = (
    "The verdict of each label comes from its measured rate: the slope of the median log norm over "
    "the lags beyond the first quarter. Two rates differ if their nominal 95 % intervals do not "
    "overlap.",
    "A factor per step above 1 is a gradient that grows with the lag, one below 1 a gradient that "
    "fades; a lag is where the median norm falls below one half or 1 % for good.",
    "Norms are those of the Jacobian of the whole state: h alone, or (h, c) of an LSTM. The "
    "largest singular value is a property of the weights and no prediction; a gated cell has one "
    "for each gate, and none of them bounds its gradient.",
    "A label stands for one network. Other weights of the same kind, from another seed or another "
    "training, give another curve: the bands show end times and sequences, not networks.",
)


def finding(document: Mapping[str, Any]) -> str:
    """State in one sentence what the comparison found.

    Parameters
    ----------
    document
        ``compare.json``.

    Returns
    -------
    sentence
        The factor per step of every label, largest first, and which of them stands out, if its
        interval overlaps with no other.
    """
    ranked = _ranked(document)
    parts = [f"{_per_step(entry)} in {_named(entry)}" for entry in ranked]
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    return f"Each step back in time multiplies the gradient by {listed}{_standing_out(ranked)}."


def remarks(document: Mapping[str, Any]) -> list[str]:
    """Sentences on what makes the comparison less than fair, and on rules it contradicts."""
    entries = document["recurrences"]
    said = []
    if not document["same_inputs"]:
        said.append(
            "The runs read different sequences: what differs may be owed to these as well as to "
            "the weights."
        )
    said += _same_weights(entries)
    if "end_times" in document["differing"]:
        said.append("The medians are over different numbers of end times.")
    synthetic = [entry for entry in entries if (entry.get("sequences") or {}).get("synthetic")]
    if synthetic:
        words = dict.fromkeys(str(entry["sequences"]["description"]) for entry in synthetic)
        said.append(f"No real data: {'; '.join(words)}. With other inputs the rates may differ.")
    for entry in entries:
        if entry["regime"].get("contradicts"):
            said.append(f"False friend, {entry['label']}: {entry['regime']['contradicts']}.")
    return said


def _same_weights(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Labels of one recurrence of one network: the hash is that of the network's weights."""
    owners: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        own = (str(entry["sha256_weights"]), str(entry["recurrence"]))
        owners.setdefault(own, []).append(str(entry["label"]))
    return [
        f"{', '.join(labels[:-1])} and {labels[-1]} have the same weights, by their hash."
        for labels in owners.values()
        if len(labels) > 1
    ]


def verdicts_table(document: Mapping[str, Any]) -> Table:
    """One row a label: what it is, its verdict, how far its gradient reaches."""
    lag = document["common_lag"]
    return Table(
        title="Side by side",
        header=(
            "label",
            "cell",
            "units",
            "state",
            "regime",
            "per step",
            "nominal 95 % interval",
            "below ½ from lag",
            "below 1 % from lag",
            f"norm at lag {lag}",
        ),
        rows=[_row(entry) for entry in document["recurrences"]],
        note="A lag in brackets lies beyond the lags measured and is predicted from the rate.",
    )


def relative_table(document: Mapping[str, Any]) -> Table:
    """How each label differs from the first, and whether their intervals tell them apart."""
    first, *others = document["recurrences"]
    lag = document["common_lag"]
    return Table(
        title=f"Against {first['label']}",
        header=("label", "gradient per step", "rates", f"norm at lag {lag}", "below 1 % from"),
        rows=[_relative_row(first, other) for other in others],
        note="Factors are those of the label over those of the first. Rates whose nominal 95 % "
        "intervals overlap are not told apart by these sequences.",
    )


def weights_table(document: Mapping[str, Any]) -> Table:
    """Norms of the recurrent weights, gate by gate, with what the units and gates do."""
    rows = [
        (
            str(entry["label"]),
            _sigma(entry),
            _known(entry.get("spectral_radius")),
            share(number(entry.get("saturated_share"))),
            _half_lives(entry),
        )
        for entry in document["recurrences"]
    ]
    return Table(
        title="Weights and gates",
        header=(
            "label",
            "largest singular value",
            "spectral radius",
            "saturated units",
            "half-life of the gate alone",
        ),
        rows=rows,
        note="The half-life is in steps, and that of the direct path: of the product of the values "
        "by which a gate keeps the old state. Median over the units, with the least and the most. "
        "The gradient also runs through the recurrent weights, and may last longer or grow.",
    )


def differences_table(document: Mapping[str, Any]) -> Table:
    """Settings that are not the same for all labels, and the hashes of the weights."""
    entries = document["recurrences"]
    rows = [
        (_setting(name), *(_words(entry["differing"].get(name)) for entry in entries))
        for name in document["differing"]
    ]
    if any(entry["source"] != entry["label"] for entry in entries):
        rows.append(("weights from", *(_words(entry["source"]) for entry in entries)))
    hashes = ["sha256_weights"] + ([] if document["same_inputs"] else ["sha256_inputs"])
    rows += [
        (
            HASHED[name],
            *(f"{str(entry[name])[:HASH_DIGITS]}…" for entry in entries),
        )
        for name in hashes
    ]
    return Table(
        title="What differs",
        header=("setting", *(str(entry["label"]) for entry in entries)),
        rows=rows,
        note="Everything else has one value for all." + _shared_inputs(document),
    )


def title(document: Mapping[str, Any]) -> str:
    """Name the page after its labels."""
    labels = [shortened(str(label), 32) for label in document["labels"]]
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def assumptions(document: Mapping[str, Any]) -> list[str]:
    """Every assumption once, with the labels that it was made for unless those are all."""
    entries = document["recurrences"]
    labels: dict[str, list[str]] = {}
    for entry in entries:
        for words in entry.get("assumptions") or []:
            labels.setdefault(str(words), []).append(str(entry["label"]))
    return [
        words if len(named) == len(entries) else f"{', '.join(named)}: {words}"
        for words, named in labels.items()
    ]


def all_tables(document: Mapping[str, Any]) -> list[Table]:
    """Tables of a page, the verdicts first."""
    return [
        verdicts_table(document),
        relative_table(document),
        weights_table(document),
        differences_table(document),
    ]


def _ranked(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Entries by falling rate; of equal or undefined ones the first stays first."""

    def rate(entry: Mapping[str, Any]) -> float:
        value = number(entry["regime"]["rate"])
        return -math.inf if math.isnan(value) else value

    return sorted(document["recurrences"], key=rate, reverse=True)


def _per_step(entry: Mapping[str, Any]) -> str:
    return factor(number(entry["regime"]["rate"]))


def _named(entry: Mapping[str, Any]) -> str:
    return f"{entry['label']} ({entry['regime']['name']})"


def _standing_out(ranked: Sequence[Mapping[str, Any]]) -> str:
    """End of the sentence: who reaches furthest, unless the intervals leave it open."""
    first, second = ranked[0], ranked[1]
    apart = number(first["regime"].get("rate_low")) > number(second["regime"].get("rate_high"))
    if not apart:
        return f"; the intervals of {first['label']} and {second['label']} overlap"
    if first["regime"]["name"] == "exploding":
        return f": it grows fastest in {first['label']}"
    return f": it reaches furthest in {first['label']}"


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    regime, horizon = entry["regime"], entry.get("horizon") or {}
    predicted = horizon.get("predicted") or {}
    low, high = number(regime.get("rate_low")), number(regime.get("rate_high"))
    return (
        str(entry["label"]),
        " ".join(str(entry[name]) for name in ("cell", "activation") if entry.get(name)),
        str(entry["hidden_size"]),
        str(entry["state_size"]),
        str(regime["name"]),
        f"× {_per_step(entry)}",
        f"{factor(low)} to {factor(high)}",
        _lag(horizon.get("lag_half"), predicted.get("lag_half")),
        _lag(horizon.get("lag_1pct"), predicted.get("lag_1pct")),
        factor(number(entry["log_norm_at_common_lag"])),
    )


def _relative_row(first: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    rates = [number(entry["regime"]["rate"]) for entry in (first, other)]
    norms = [number(entry["log_norm_at_common_lag"]) for entry in (first, other)]
    lags = [number((entry.get("horizon") or {}).get("lag_1pct")) for entry in (first, other)]
    return (
        str(other["label"]),
        _ratio(*rates),
        "told apart" if _apart(first, other) else "overlap",
        _ratio(*norms),
        _steps_later(lags[1] - lags[0]),
    )


def _ratio(first: float, other: float) -> str:
    """Factor between two logarithms; a dash where both are infinite or one is unknown."""
    difference = other - first
    return "–" if math.isnan(difference) else f"× {factor(difference)}"


def _apart(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    ends = [
        (number(entry["regime"].get("rate_low")), number(entry["regime"].get("rate_high")))
        for entry in (first, other)
    ]
    return ends[0][0] > ends[1][1] or ends[1][0] > ends[0][1]


def _steps_later(steps: float) -> str:
    """How much further a gradient reaches; a dash where one of the lags was not measured."""
    if math.isnan(steps):
        return "–"
    if steps == 0:
        return "the same lag"
    noun = "step" if abs(steps) == 1 else "steps"
    return f"{abs(steps):g} {noun} {'further' if steps > 0 else 'less far'}"


def _lag(measured: object, predicted: object) -> str:
    if measured is not None:
        return str(measured)
    return "never" if predicted is None else f"({predicted})"


def _sigma(entry: Mapping[str, Any]) -> str:
    if entry.get("gamma_w") is not None:
        return _known(entry["gamma_w"])
    known = {
        name: number(gate.get("sigma_max"))
        for name, gate in (entry.get("gates") or {}).items()
        if "note" not in gate  # of the stack of all gates, which bounds nothing
    }
    return ", ".join(f"{name} {plain(value)}" for name, value in known.items()) or "–"


def _known(value: object) -> str:
    return "–" if value is None else plain(number(value), 4)


def _half_lives(entry: Mapping[str, Any]) -> str:
    """Half-lives of the gates that keep the old state; a dash where there are none."""
    parts = [
        f"{name} {_steps(gate, 'median')} ({_steps(gate, 'min')} to {_steps(gate, 'max')})"
        for name, gate in (entry.get("gates") or {}).items()
        if gate.get("half_life_median") is not None
    ]
    return ", ".join(parts) or "–"


def _steps(gate: Mapping[str, Any], which: str) -> str:
    return plain(number(gate.get(f"half_life_{which}")))


def _shared_inputs(document: Mapping[str, Any]) -> str:
    return " The sequences are the same, by their hash." if document["same_inputs"] else ""


def _setting(name: str) -> str:
    return name.replace("_", " ").replace(".", ": ")


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_words(each)}" for name, each in value.items())
    return "none" if value is None else str(value)
