"""What the measurements mean for a training: which lags learn, in which formats, what changes it.

Words only: every number was measured or predicted by the analysis and saved with the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gradlab as gl
from gradlab_reports.spelling import factor, plain, share
from gradlab_reports.tables import Table, number

CHANGES = {
    "gain": "W_hh × {amount}",
    "orthogonal": "W_hh replaced by the orthogonal matrix nearest to it",
    "forget_bias": "+ {amount} on the bias of the gate that keeps the state",
    "leak": "leak halved, to {amount}",
}
WHY = {
    ("gain", "measured"): ", the factor nearest to 1 whose rate is 0",
    ("gain", "predicted"): ", the critical gain of theory",
}
FAR = 100  # times the steps measured: no lag is told beyond
BASIS = {
    "measured": "measured, along the same inputs",
    "predicted": "predicted, by mean-field theory",
}


def sentences(recurrence: Mapping[str, Any]) -> list[str]:
    """Say what the gradient's reach means for a training.

    Parameters
    ----------
    recurrence
        An entry of ``summary.json``.

    Returns
    -------
    sentences
        Which lags get a gradient, which number format is left first, what the loss's own gradient
        says, and what clipping can and cannot do; each only where the run holds the numbers.
    """
    said = [
        _reach(recurrence),
        _formats(recurrence.get("horizon") or {}),
        _held(recurrence.get("gradient") or {}),
        _clipping(recurrence),
    ]
    return [words for words in said if words]


def _reach(recurrence: Mapping[str, Any]) -> str:
    regime, horizon = str(recurrence["regime"]["name"]), recurrence.get("horizon") or {}
    lag, longest = horizon.get("lag_1pct"), (recurrence.get("sequences") or {}).get("length_max")
    if lag is not None:
        return (
            f"From lag {lag} on, steps get less than 1 % of the gradient (measured): what lies "
            "further back hardly moves the weights, however large the whole gradient is."
        )
    if regime == "vanishing":
        predicted = (horizon.get("predicted") or {}).get("lag_1pct")
        if predicted is not None:
            return (
                "All lags measured get more than 1 % of the gradient; from lag "
                f"{predicted} on they would get less (predicted from the measured rate)."
            )
    if regime == "exploding":
        return (
            "The gradient grows with the lag: the steps furthest back outweigh the recent ones, "
            "and the weights move with them."
        )
    if regime == "near-critical" and longest is not None:
        return f"Every lag up to {longest} gets a gradient of much the same size (measured)."
    return ""


def _formats(horizon: Mapping[str, Any]) -> str:
    """The format that is left first, below and above."""
    predicted, overflow = horizon.get("predicted") or {}, horizon.get("overflow") or {}
    below = {n: (horizon.get(n), predicted.get(n)) for n in gl.FLOAT_FORMATS}
    above = {n: (overflow.get(n), predicted.get(f"overflow_{n}")) for n in gl.FLOAT_FORMATS}
    parts = [_first_left(below, "underflows"), _first_left(above, "overflows")]
    said = [part for part in parts if part]
    if not said:
        return "The gradient stays inside the range of every number format at all lags measured."
    known = any(part.startswith("float16 underflows") for part in said)
    scaling = " Loss scaling moves an underflow to a later lag and leaves the rate as it is."
    return " ".join(said) + (scaling if known else "")


def _first_left(lags: Mapping[str, tuple[Any, Any]], event: str) -> str:
    told = {
        name: (seen, "measured") if seen is not None else (expected, "predicted")
        for name, (seen, expected) in lags.items()
        if seen is not None or expected is not None
    }
    if not told:
        return ""
    groups: dict[tuple[int, str], list[str]] = {}
    for name, (lag, basis) in told.items():
        groups.setdefault((int(lag), basis), []).append(name)
    (first, *others) = sorted(groups.items())
    (lag, basis), names = first
    words = f"{' and '.join(names)} {event} first, at lag {lag} ({basis})"
    rest = [f"{' and '.join(names)} at lag {lag} ({basis})" for (lag, basis), names in others]
    return f"{words}{', then ' if rest else ''}{', '.join(rest)}."


def _held(gradient: Mapping[str, Any]) -> str:
    if gradient.get("lag_90") is None:
        return ""
    return (
        f"Of this loss's gradient, the lags 0 to {gradient['lag_90']} hold 90 % and the lags 0 to "
        f"{gradient.get('lag_99')} hold 99 % (measured, sum of the norms of its terms)."
    )


def _clipping(recurrence: Mapping[str, Any]) -> str:
    height = number((recurrence.get("gradient") or {}).get("log_total_norm"))
    effect = (
        "Clipping shortens the whole gradient and keeps its direction: it tames steps that are too "
        "long, and gives no gradient back to lags that have lost theirs."
    )
    if math.isfinite(height):
        norm, clipped = factor(height), ""
        if height > 0.0:
            clipped = f"one of 1 would leave {share(math.exp(-height))} of its length, and "
        return (
            f"The gradient of W_hh over these sequences has norm {norm} (measured). Of clip "
            f"thresholds, {clipped}one above {norm} would change nothing, unless other weights add "
            f"to the norm. {effect}"
        )
    return effect if str(recurrence["regime"]["name"]) == "exploding" else ""


def changes_table(outlook: Mapping[str, Any]) -> Table | None:
    """Rates with one setting changed at a time.

    Parameters
    ----------
    outlook
        Entry ``outlook`` of a recurrence's summary.

    Returns
    -------
    table
        The network as it is comes first; None where nothing was tried.
    """
    changes = outlook.get("changes") or []
    if not changes:
        return None
    beyond = FAR * int(outlook.get("steps") or 1)
    rows = [_row("as it is", outlook, "measured", beyond)]
    rows += [_change_row(change, beyond) for change in changes]
    steps = f"{outlook.get('sequences')} sequences of up to {outlook.get('steps')} steps"
    return Table(
        title="What would change it",
        header=("one setting changed", "gradient per step", "1 % is left at", "how it is known"),
        rows=rows,
        note=f"Rates are leading Lyapunov exponents over the first {steps}: those of almost every "
        "direction, where the verdict's is that of the largest norm. Lags follow from the rate "
        "alone. Starts for another training, not advice: with another setting this network "
        "computes something else.",
    )


def _change_row(change: Mapping[str, Any], beyond: int) -> tuple[str, ...]:
    setting, basis = str(change.get("setting")), str(change.get("basis"))
    words = CHANGES.get(setting, setting).format(amount=_amount(change.get("amount")))
    return _row(words + WHY.get((setting, basis), ""), change, basis, beyond)


def _amount(value: object) -> str:
    amount = number(value)
    return f"{amount:g}" if amount.is_integer() else plain(amount)


def _row(words: str, entry: Mapping[str, Any], basis: str, beyond: int) -> tuple[str, ...]:
    lag = entry.get("lag_1pct")
    reach = "no lag" if lag is None else f"lag {lag}"
    if lag is not None and lag > beyond:
        reach = f"beyond lag {beyond}"  # so small a rate is 0, by what so few steps can tell
    return (words, "× " + factor(number(entry.get("rate"))), reach, BASIS.get(basis, basis))
