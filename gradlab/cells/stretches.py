"""Backward passes in stretches of steps: what one of them leaves is used while it is at hand.

The derivatives by the pre-activations of a long run are larger than any cache, and enter nothing
but sums over the steps. So the sweep fills the same room again and again, and the sums grow by one
matrix product a stretch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array

# Rows, one a step and sequence, of a matrix product over a stretch: enough for full speed.
ROWS = 1024


def stretches(steps: int, length: int) -> list[slice]:
    """Steps 0..steps in stretches of so many, the last one first."""
    length = max(1, length)
    return [slice(max(0, stop - length), stop) for stop in range(steps, 0, -length)]


def entering(upstream: Float[Array, "time batch n"]) -> list[Array | None]:
    """What enters the adjoint of each state t = 0..T from outside; None where that is zero.

    To add zeros would take as long as to add anything else.
    """
    busy: list[bool] = np.any(upstream, axis=(1, 2)).tolist()
    return [None, *(own if some else None for own, some in zip(upstream, busy, strict=True))]


def add_terms(total: dict[str, Array], terms: Mapping[str, Array]) -> None:
    """Add gradients by name to those of the stretches before."""
    for name, term in terms.items():
        if name in total:
            np.add(total[name], term, out=total[name])
        else:
            total[name] = term
