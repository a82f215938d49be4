"""What a verification computed, what was expected, and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gradlab.records.frames import frame
from gradlab.records.notebook import rows_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One number beside its right value."""

    name: str
    group: str
    computed: float  # nan: the computation failed, and ``message`` says how
    expected: float
    tolerance: float  # largest absolute difference that passes
    passed: bool
    source: str  # where the right value comes from
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All checks of a run, in a fixed order."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """Checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def to_list(self) -> list[Mapping[str, Any]]:
        """Entries with the keys name, computed, expected, tolerance and pass, and what is beside.

        Non-finite numbers are as Python has them; strict JSON spells them as text.
        """
        entries = (asdict(check) for check in self.checks)
        return [{"pass" if k == "passed" else k: v for k, v in entry.items()} for entry in entries]

    def _repr_html_(self) -> str:
        """Table for notebooks, a row a check."""
        header = ("check", "computed", "expected", "tolerance", "passed", "source")
        rows = [
            (each.name, each.computed, each.expected, each.tolerance, each.passed, each.source)
            for each in self.checks
        ]
        return rows_html(type(self).__name__, header, rows)

    def to_frame(self) -> pd.DataFrame:
        """One row a check."""
        columns = self.to_list()
        return frame(**{name: [entry[name] for entry in columns] for name in columns[0]})
