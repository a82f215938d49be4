"""Requirements on a saved run: thresholds on any key of its summary."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gradlab.errors import RunFolderError, SettingError, unknown_name
from gradlab.storage.folder import read_json

SUMMARY = "summary.json"
CONDITION = re.compile(r"\s*(?P<key>[^\s<>=!]+)\s*(?P<sign>>=|<=|==|!=)\s*(?P<value>\S.*?)\s*")
HORIZON = "horizon."


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What one key of every recurrence's summary must be.

    Raises
    ------
    SettingError
        If nothing is required, or a bound is no number.
    """

    key: str  # path in the recurrence's entry, such as regime.rate
    min: float | int | None = None
    max: float | int | None = None
    one_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    recurrence: str | None = None  # every one if None

    def __post_init__(self) -> None:
        """Check that there is something to compare with."""
        bounds = [bound for bound in (self.min, self.max) if bound is not None]
        if any(math.isnan(bound) for bound in bounds):
            raise SettingError(f"a bound on {self.key} is nan: expected a number")
        if not bounds and not self.one_of and not self.none_of:
            raise SettingError(f"nothing is required of {self.key}: expected min, max or one_of")

    @property
    def words(self) -> str:
        """The requirement in words."""
        parts = [f">= {self.min:g}"] if self.min is not None else []
        parts += [f"<= {self.max:g}"] if self.max is not None else []
        parts += [f"one of {', '.join(self.one_of)}"] if self.one_of else []
        parts += [f"none of {', '.join(self.none_of)}"] if self.none_of else []
        return f"{self.key} {' and '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One requirement of one recurrence, and whether it is met."""

    recurrence: str
    requirement: str
    found: str
    passed: bool


def check_run(
    folder: str | os.PathLike[str], requirements: Iterable[Requirement]
) -> tuple[Outcome, ...]:
    """Compare a saved run with what is required of it.

    Parameters
    ----------
    folder
        A run folder.
    requirements
        At least one.

    Returns
    -------
    outcomes
        In the order of the recurrences, then of the requirements. An undefined value, and one
        below a part that was not measured, meets nothing but ``null``; a horizon that was not
        reached counts as longer than the longest sequence.

    Raises
    ------
    RunFolderError
        If there is no run in the folder.
    SettingError
        If nothing is required.
    UnknownNameError
        If a key or a recurrence is not in the run.
    """
    wanted = list(requirements)
    if not wanted:
        raise SettingError("nothing is required of the run: expected at least one threshold")
    entries = _entries(Path(folder))
    names = [entry["name"] for entry in entries]
    for requirement in wanted:
        if requirement.recurrence is not None and requirement.recurrence not in names:
            raise unknown_name("recurrence", requirement.recurrence, names)
    return tuple(
        _outcome(entry, requirement)
        for entry in entries
        for requirement in wanted
        if requirement.recurrence in (None, entry["name"])
    )


def read_requirements(path: str | os.PathLike[str]) -> list[Requirement]:
    """Requirements of a TOML file: tables ``[[require]]`` with key, min, max, one_of, none_of.

    Raises
    ------
    SettingError
        If it is not TOML, or a table is not what it should be.
    UnknownNameError
        If a table has a key that means nothing.
    """
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{file} cannot be read: {error.strerror}; expected TOML") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} is not TOML ({error}): expected tables [[require]]") from error
    tables = document.pop("require", [])
    for key in document:
        raise unknown_name(f"key of {file}", key, ["require"])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SettingError(f"require in {file} is no list of tables: expected [[require]]")
    return [_requirement(file, table) for table in tables]


def parsed_requirement(text: str, recurrence: str | None = None) -> Requirement:
    """Requirement of a condition such as ``regime.rate <= -0.01`` or ``regime.name == vanishing``.

    Parameters
    ----------
    text
        ``KEY >= NUMBER``, ``KEY <= NUMBER``, ``KEY == WORDS`` or ``KEY != WORDS``; words are
        numbers, ``true``, ``false``, ``null`` for undefined, or names, with commas between. Entries
        of a list are counted from 0: ``outlook.changes.0.rate``.
    recurrence
        The one that it is about; every one if None.

    Raises
    ------
    SettingError
        If it has another form.
    """
    match = CONDITION.fullmatch(text)
    if match is None:
        raise SettingError(
            f"{text!r} is no condition: expected KEY >= NUMBER, KEY <= NUMBER, KEY == WORDS or "
            "KEY != WORDS"
        )
    key, sign, value = match["key"], match["sign"], match["value"]
    if sign in ("==", "!="):
        chosen = tuple(part.strip() for part in value.split(","))
        if sign == "==":
            return Requirement(key=key, recurrence=recurrence, one_of=chosen)
        return Requirement(key=key, recurrence=recurrence, none_of=chosen)
    try:
        bound = float(value)
    except ValueError as error:
        raise SettingError(f"{text!r} compares with {value!r}: expected a number") from error
    if sign == ">=":
        return Requirement(key=key, recurrence=recurrence, min=bound)
    return Requirement(key=key, recurrence=recurrence, max=bound)


def _requirement(file: Path, table: Mapping[str, Any]) -> Requirement:
    known = [entry.name for entry in fields(Requirement)]
    for name in table:
        if name not in known:
            raise unknown_name(f"key of [[require]] in {file}", name, known)
    lists = {
        name: tuple(map(_word, value if isinstance(value, list) else [value]))
        for name, value in table.items()
        if name in ("one_of", "none_of")
    }
    if not isinstance(table.get("key"), str):
        raise SettingError(f"a table [[require]] in {file} has no key: expected a key of a summary")
    bounds = [table[name] for name in ("min", "max") if name in table]
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in bounds):
        raise SettingError(f"bounds on {table['key']} in {file} are {bounds}: expected numbers")
    return Requirement(**{**table, **lists})


def _entries(folder: Path) -> Sequence[Mapping[str, Any]]:
    document = read_json(folder / SUMMARY)
    entries = document.get("recurrences")
    if not isinstance(entries, list) or not entries:
        raise RunFolderError(
            f"{folder / SUMMARY} has no recurrences: expected the summary of a run; analyze again"
        )
    return entries


def _outcome(entry: Mapping[str, Any], requirement: Requirement) -> Outcome:
    value = _value(entry, requirement.key)
    longest = entry.get("sequences", {}).get("length_max")
    if value is None and requirement.key.startswith(HORIZON) and longest is not None:
        number, spoken = longest + 0.5, f"not reached within {longest} steps"
    else:
        number, spoken = _number(value), _spoken(value)
    return Outcome(
        recurrence=entry["name"],
        requirement=requirement.words,
        found=spoken,
        passed=_meets(number, value, requirement),
    )


def _meets(number: float | None, value: Any, requirement: Requirement) -> bool:
    if requirement.one_of and not _is_one_of(value, requirement.one_of):
        return False
    if _is_one_of(value, requirement.none_of):
        return False
    if requirement.min is None and requirement.max is None:
        return value is not None or bool(requirement.one_of)
    if number is None:
        return False
    low = -math.inf if requirement.min is None else requirement.min
    high = math.inf if requirement.max is None else requirement.max
    return low <= number <= high


def _is_one_of(value: Any, words: Sequence[str]) -> bool:
    """Whether one of the words spells a value of strict JSON; of numbers the size counts."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value] in words
    if isinstance(value, int | float):
        return any(float(value) == _as_number(word) for word in words)
    return str(value) in words


def _word(value: object) -> str:
    """A value of TOML as a condition spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _value(entry: Mapping[str, Any], key: str) -> Any:
    """What the summary holds under a key; None also below a part that was not measured."""
    found: Any = entry
    passed, left = "", key
    while left:
        step = _step(found, left)
        if step is None:
            raise unknown_name("key of the summary", key, _keys(found, passed))
        found = found[int(step)] if isinstance(found, list) else found[step]
        passed, left = f"{passed}{step}.", left[len(step) + 1 :]
        if found is None:
            return None
    if isinstance(found, Mapping):
        raise unknown_name("key of the summary", key, _keys(found, passed))
    return found


def _step(found: Any, left: str) -> str | None:
    """The next part of a path: the longest that is there, for names may hold dots themselves."""
    parts = left.split(".")
    if isinstance(found, list):
        return parts[0] if parts[0].isdecimal() and int(parts[0]) < len(found) else None
    if not isinstance(found, Mapping):
        return None
    steps = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((step for step in steps if step in found), None)


def _keys(found: Any, passed: str) -> list[str]:
    """Paths that lead one step further; the path so far where none does."""
    steps = list(found) if isinstance(found, Mapping) else []
    steps = [str(place) for place in range(len(found))] if isinstance(found, list) else steps
    return [f"{passed}{step}" for step in steps] or [passed.rstrip(".")]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if value in ("inf", "-inf") else None


def _spoken(value: Any) -> str:
    if value is None:
        return "undefined"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
