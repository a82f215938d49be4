"""What is kept of the networks at one scale: sums, and rates for the bootstrap, however many."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array

AVERAGED = ("gamma_w", "rate", "bound_rate", "mean_field_rate")
MOST_KEPT = 2048  # rates of a level; of more, means of equally many neighbors are kept


class Level:
    """Networks with a finite rate at one scale, in a memory that they do not fill.

    Up to 2048 rates are kept as they are. Of more, the means of blocks are kept, of two neighbors,
    then of four, and so on: the mean of so many blocks, drawn with replacement, has the standard
    error of the mean of all networks, as the bootstrap needs it.
    """

    def __init__(self) -> None:
        self.count = 0
        self._sums = dict.fromkeys((*AVERAGED, "log_gamma_w"), 0.0)
        self._first = 0.0
        self._off, self._squares = 0.0, 0.0  # of rates, from the first
        self._kept = array("d")
        self._block = 1  # networks of a value that is kept
        self._open, self._held = 0.0, 0  # sum and number of a block that is not full yet

    def take(self, numbers: Mapping[str, float]) -> None:
        """Add a network; its rate is finite and its spectral norm above 0."""
        rate = numbers["rate"]
        self._first = self._first if self.count else rate
        self.count += 1
        for name in AVERAGED:
            self._sums[name] += numbers[name]
        self._sums["log_gamma_w"] += math.log(numbers["gamma_w"])
        self._off += rate - self._first
        self._squares += (rate - self._first) ** 2
        self._keep(rate)

    def mean(self, name: str) -> float:
        """Mean over the networks."""
        return self._sums[name] / self.count

    def standard_error(self) -> float:
        """Standard error of the mean rate; nan of a single network."""
        if self.count < 2:
            return np.nan
        spread = max(self._squares - self._off**2 / self.count, 0.0)
        return math.sqrt(spread / (self.count - 1) / self.count)

    def drawn_from(self) -> Float[Array, " kept"]:
        """Values whose mean, of so many drawn with replacement, stands for the mean rate."""
        kept = np.array(self._kept)
        return kept if self._block == 1 else kept + (self.mean("rate") - kept.mean())

    def _keep(self, rate: float) -> None:
        self._open, self._held = self._open + rate, self._held + 1
        if self._held < self._block:
            return
        self._kept.append(self._open / self._block)
        self._open, self._held = 0.0, 0
        if len(self._kept) > MOST_KEPT:
            self._halve()

    def _halve(self) -> None:
        """Keep means of neighbors; the last value, which has none, is begun anew."""
        pairs = np.array(self._kept[:MOST_KEPT]).reshape(-1, 2)
        self._open, self._held = self._kept[-1] * self._block, self._block
        self._kept = array("d", pairs.mean(axis=1).tolist())
        self._block *= 2
