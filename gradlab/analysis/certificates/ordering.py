"""Units in the order in which they drive each other, and scales that shrink a one-way coupling.

Where W is reducible, the infimum over scalings is not attained: each one-way coupling can be scaled
away, at the price of a growing condition of the scaling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array

# What is left of the coupling, against the rate of the groups themselves and against its own size.
EXCESS, SHARE, NILPOTENT_SHARE = 5e-7, 1e-9, 1e-3
# Nats between the first and the last unit: the constant stays in the range of floating point.
WIDEST = 300.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Strongly connected groups of units; a group of a higher level never drives a lower one."""

    label: Int[Array, " n"]
    level: Int[Array, " n"]  # of each unit's group: 0, 1, ...

    @property
    def members(self) -> list[Int[Array, " m"]]:
        """Units of every group."""
        return [np.flatnonzero(self.label == group) for group in range(int(self.label.max()) + 1)]

    @property
    def across(self) -> Bool[Array, "n n"]:
        """Where an entry leads from one group to another."""
        return np.asarray(self.label[:, None] != self.label[None, :])


def groups(majorant: Float[Array, "n n"]) -> Groups:
    """Groups of a non-negative matrix whose entry (i, j) leads from unit j to unit i."""
    from scipy.sparse.csgraph import connected_components

    drives = majorant > 0.0
    count, label = connected_components(drives, directed=True, connection="strong")
    between = np.zeros((count, count), dtype=bool)
    row, column = np.nonzero(drives)
    between[label[row], label[column]] = True
    np.fill_diagonal(between, False)
    return Groups(label=np.asarray(label, dtype=np.int64), level=_levels(between)[label])


def _levels(between: Bool[Array, "m m"]) -> Int[Array, " m"]:
    """Longest chain of groups that ends in each one."""
    level = np.zeros(len(between), dtype=np.int64)
    waiting = between.sum(axis=1)  # groups before this one that have no level yet
    depth, front = 0, np.flatnonzero(waiting == 0)
    while len(front):
        level[front] = depth
        waiting[front] = -1
        waiting -= between[:, front].sum(axis=1)
        depth, front = depth + 1, np.flatnonzero(waiting == 0)
    return level


def separated(order: Groups, inner: Float[Array, "n n"], base: float) -> Float[Array, " n"]:
    """Logarithms of scales that shrink what leads from one group to another.

    Parameters
    ----------
    order
        The groups.
    inner
        Non-negative matrix, scaled within the groups already.
    base
        Rate of the groups by themselves.

    Returns
    -------
    log_scale
        To be added to that within the groups; equal within each.
    """
    coupling = float(np.sum(inner, where=order.across))
    if coupling == 0.0:
        return np.zeros(len(inner))
    left = max(EXCESS * base, SHARE * coupling) if base > 0.0 else NILPOTENT_SHARE * coupling
    step = max(np.log(coupling / left), 0.0)
    return -np.asarray(order.level * min(step, WIDEST / int(order.level.max())))
