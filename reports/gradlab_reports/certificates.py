"""Certificates in words: what is proven of every input, beside what was measured of some."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gradlab_reports.tables import Table, number

NAMES = {
    "sigma_max": "sigma_max",
    "norm_1": "1-norm",
    "norm_inf": "infinity norm",
    "perron": "Perron root",
    "diagonal": "diagonal scaling",
    "lmi": "LMI",
    "gamma_lstm": "gamma_LSTM",
    "gamma_gru": "gamma_GRU",
}
EVERY_INPUT = "every input"
SEARCHED = ("diagonal", "lmi")
LETTERS = {"sigma_max": "σ_max", "rho": "ρ", "gamma_": "γ_", "<=": "≤", "...": "…"}
LISTED = 8  # units named in a sentence


def sentence(recurrence: Mapping[str, Any], *, searched: str = "") -> str:
    """Say in one sentence what is certified of a recurrence.

    Parameters
    ----------
    recurrence
        An entry of ``summary.json`` or of ``inspect --json``.
    searched
        How long was searched, as ``within 2 s``.

    Returns
    -------
    sentence
        In letters that every terminal has, without a full stop; empty where no certificate covers
        the cell.
    """
    certificates = recurrence.get("certificates") or {}
    if not certificates:
        return ""
    name = recurrence.get("strongest_certificate")
    if name is None:
        return f"no certificate: {'; '.join(str(c['status']) for c in certificates.values())}"
    found = certificates[name]
    if number(found["rate"]) < 1.0:
        return _vanishes(name, found, recurrence)
    return f"{_not_found(recurrence, searched)}; {_growth(name, found)}"


def _vanishes(name: str, found: Mapping[str, Any], recurrence: Mapping[str, Any]) -> str:
    rate, constant = upward(number(found["rate"])), upward(number(found["constant"]))
    words = (
        f"vanishes for {_holds_for(found)}: certified, r = {rate} "
        f"({NAMES.get(name, name)}), K = {constant}"
    )
    sigma_max = number(recurrence.get("gamma_w"))
    if sigma_max >= 1.0 and name != "sigma_max":
        words += f", although sigma_max = {sigma_max:.3g}"
    return words


def _not_found(recurrence: Mapping[str, Any], searched: str) -> str:
    """What is known where vanishing is not certified."""
    wanted = {name: c for name, c in recurrence["certificates"].items() if name in SEARCHED}
    skipped = [NAMES[name] for name, c in wanted.items() if c["status"] == "skipped"]
    how_long = searched if wanted and not skipped else ""
    opening = f"no certificate of vanishing found {how_long}".rstrip()
    floor = recurrence.get("certificate_floor")
    if floor is not None and number(floor["rate"]) >= 1.0:
        units = _units(floor["units"])
        return f"{opening}; none of this kind can exist: rho = {floor['rate']:.3g} with {units}"
    if skipped:
        return f"{opening} ({' and '.join(skipped)} not searched for)"
    if floor is not None:
        return f"{opening}; none below r = {_downward(number(floor['rate']))} can exist"
    return opening


def _units(units: Sequence[int]) -> str:
    listed = ", ".join(map(str, units[:LISTED]))
    more = f", ... ({len(units)} in all)" if len(units) > LISTED else ""
    noun = "unit" if len(units) == 1 else "units"
    return f"{noun} {listed}{more} at full slope and the others at the least"


def _growth(name: str, found: Mapping[str, Any]) -> str:
    rate = upward(number(found["rate"]))
    words = f"certified for {_holds_for(found)}: growth by at most r = {rate} a step"
    return f"{words} ({NAMES.get(name, name)})"


def _holds_for(found: Mapping[str, Any]) -> str:
    return str(found.get("holds_for") or EVERY_INPUT)


def upward(value: float) -> str:
    """Spell a positive bound with four digits, rounded up so that it stays one.

    A rate below 1 keeps as many digits as show that it is.
    """
    for digits in range(4, 17):
        words = _rounded(value, digits, math.ceil)
        if value >= 1.0 or float(words) < 1.0:
            return words
    return repr(value)


def _downward(value: float) -> str:
    return _rounded(value, 4, math.floor)


def _rounded(value: float, digits: int, direction: Any) -> str:
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    if unit == 0.0 or not math.isfinite(value / unit):
        return f"{value:.{digits}g}"
    # What is a rounding error above a short number is that number.
    return f"{direction(round(value / unit, 4)) * unit:.{digits}g}"


def remark(recurrence: Mapping[str, Any]) -> list[str]:
    """Sentence for a page, with its full stop and its letters; none without certificates."""
    words = _on_a_page(sentence(recurrence))
    if not words:
        return []
    if words.startswith("vanishes"):
        return [f"The gradient {words}."]
    return [f"{words[0].upper()}{words[1:]}."]


def _on_a_page(words: str) -> str:
    """The same words in the letters of a page."""
    for plain_letters, letters in LETTERS.items():
        words = words.replace(plain_letters, letters)
    return words


def certificates_table(recurrence: Mapping[str, Any]) -> Table | None:
    """Every certificate with its rate, constant, status and limits; None where there is none."""
    rows = [
        (
            _on_a_page(NAMES.get(name, name)),
            _or_dash(entry.get("rate")),
            _or_dash(entry.get("constant")),
            str(entry.get("status", "")),
            "–" if entry.get("rate") is None else _on_a_page(_holds_for(entry)),
        )
        for name, entry in (recurrence.get("certificates") or {}).items()
    ]
    if not rows:
        return None
    return Table(
        title="Certificates",
        header=("certificate", "rate r", "constant K", "status", "holds for"),
        rows=rows,
        note="Bounds, not measurements, and rounded up: the norm is at most K r^l at lag l. "
        "Below r = 1 the gradient vanishes; a rate above 1 only limits its growth.",
    )


def _or_dash(value: object) -> str:
    return "–" if value is None else upward(number(value))
