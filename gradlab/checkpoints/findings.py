"""What a reader is told beyond the file, and what it finds in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gradlab.cells.stack import Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """What the caller says of things that a file may leave out; None where nothing was said."""

    nonlinearity: str | None = None
    recurrent_activation: str | None = None
    keras_version: int | None = None
    batch_first: bool = False
    dtype: str = "float64"

    def given(self) -> list[str]:
        """Options that were given and could change what the weights mean."""
        names = ("nonlinearity", "recurrent_activation", "keras_version")
        return [name for name in names if getattr(self, name) is not None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """The recurrences of a file, what was assumed about them, and what was left out and why.

    ``heeded`` names the options of `Unsaid` that had something to act on: the loader tells the user
    of every other one that was given.
    """

    recurrences: Sequence[Recurrence]
    assumptions: Sequence[str]
    skipped: Sequence[str]
    heeded: frozenset[str] = field(default=frozenset())


Find: TypeAlias = Callable[[Unsaid], Findings]
