"""A right value, how to compute it, and how close it must be met."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.records.verification import Check

DERIVED = "closed form or identity, docs/theory.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One number that must come out.

    ``relative`` and ``absolute`` add up to the tolerance; infinities are met by themselves alone.
    """

    name: str
    compute: Callable[[], float]
    expected: float
    absolute: float = 0.0
    relative: float = 0.0
    source: str = DERIVED

    def check(self, group: str) -> Check:
        """Compute, and compare; a computation that fails is a check that fails."""
        message = ""
        try:
            computed = float(self.compute())
        except Exception as error:  # a broken installation may fail in any way: it is what we test
            computed, message = math.nan, f"{type(error).__name__}: {error}"
        finite = abs(self.expected) if math.isfinite(self.expected) else 0.0
        tolerance = self.absolute + self.relative * finite
        met = computed == self.expected or abs(computed - self.expected) <= tolerance
        return Check(
            name=self.name,
            group=group,
            computed=computed,
            expected=self.expected,
            tolerance=tolerance,
            passed=bool(met),
            source=self.source,
            message=message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Expectations that belong together; listed when they are wanted, not on import."""

    title: str
    expectations: Callable[[], Sequence[Expectation]]

    def checks(self) -> list[Check]:
        """Every expectation, computed."""
        return [entry.check(self.title) for entry in self.expectations()]


def lcg(seed: int, *shape: int) -> Float[Array, "..."]:
    """Numbers in [-1, 1) that any language can rebuild.

    x <- (1103515245 x + 12345) mod 2^31 from x = ``seed``; x / 2^30 - 1, row-major.

    Parameters
    ----------
    seed
        First x, which itself gives no number.
    shape
        Of the array.
    """
    x, values = seed, []
    for _ in range(math.prod(shape)):
        x = (1103515245 * x + 12345) % 2**31
        values.append(x / 2.0**30 - 1.0)
    return np.array(values).reshape(shape)
