"""Growth of a frame, batch by batch: means, their standard errors, their history."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.errors import SettingError

# Batches of one sequence at most, before neighbors are joined; and at least, before a stop.
MOST, LEAST = 40, 10


def batch_length(steps: int) -> int:
    """Steps of a batch: about the root of their number, so that batches grow in both ways."""
    return max(1, math.isqrt(steps), -(-steps // MOST))


class GrowthRecord:
    """Sums of logarithms over batches of steps, for one sequence after the other.

    Parameters
    ----------
    columns
        Number of exponents.
    batch
        Steps of a batch.
    stop_error
        Standard error at which no more is wanted; None: never.

    Raises
    ------
    SettingError
        If ``stop_error`` is not positive.
    """

    def __init__(self, columns: int, *, batch: int, stop_error: float | None) -> None:
        if stop_error is not None and not stop_error > 0.0:
            raise SettingError(f"stop_error {stop_error}: expected a positive number")
        self.columns, self.batch, self.stop_error = columns, batch, stop_error
        self.sequences: list[list[tuple[int, Float[Array, " k"]]]] = []
        self.log_det = 0.0
        self.done = False

    def begin(self) -> None:
        """Begin the next sequence."""
        self.sequences.append([])

    def add(self, growth: Float[Array, " k"], steps: int) -> None:
        """Write down one batch of the sequence."""
        batches = self.sequences[-1]
        batches.append((steps, growth))
        if len(batches) > MOST:
            self.sequences[-1] = [_joined(batches[i : i + 2]) for i in range(0, len(batches), 2)]
            self.batch *= 2
        if self.stop_error is not None and self._count >= LEAST:
            errors = self.standard_errors()
            self.done = bool((errors[~np.isnan(errors)] <= self.stop_error).all())

    def correct(self, growth: Float[Array, " k"]) -> None:
        """Add what was left over to the sequence's last batch."""
        if self.sequences[-1]:
            steps, known = self.sequences[-1][-1]
            self.sequences[-1][-1] = (steps, known + growth)

    def add_log_det(self, logs: Float[Array, " steps"]) -> None:
        """Add the steps' ln|det J|."""
        self.log_det += float(np.sum(logs))

    @property
    def steps(self) -> int:
        """Steps counted in all sequences."""
        return sum(steps for batches in self.sequences for steps, _ in batches)

    @property
    def exponents(self) -> Float[Array, " k"]:
        """Mean growth a step."""
        return np.asarray(self._flat()[1].sum(axis=0) / self.steps)

    def standard_errors(self) -> Float[Array, " k"]:
        """Standard errors of the exponents by the scatter of the batches; nan if unknown."""
        steps, growth = self._flat()
        count = len(steps)
        if count < 2:
            return np.full(self.columns, np.nan)
        with np.errstate(invalid="ignore"):
            deviations = growth - steps[:, None] * self.exponents
            return np.asarray(
                np.sqrt(count / (count - 1) * (deviations**2).sum(axis=0)) / self.steps
            )

    def by_sequence(self) -> Float[Array, "sequences k"]:
        """Mean growth a step of each sequence."""
        sums = [_joined(batches) for batches in self.sequences if batches]
        return np.stack([growth / steps for steps, growth in sums])

    def history(self) -> tuple[Int[Array, " records"], Float[Array, "records k"]]:
        """Estimates after every batch; a sequence that has ended stays as it was."""
        records = max(len(batches) for batches in self.sequences)
        steps, growth = np.zeros((records, 1)), np.zeros((records, self.columns))
        longest = np.zeros(records, dtype=np.int64)
        for batches in self.sequences:
            padded = batches + [(0, np.zeros(self.columns))] * (records - len(batches))
            own = np.cumsum([count for count, _ in padded])
            longest = np.maximum(longest, own)
            steps += own[:, None]
            growth += np.cumsum([sums for _, sums in padded], axis=0)
        return longest, growth / steps

    @property
    def _count(self) -> int:
        return sum(len(batches) for batches in self.sequences)

    def _flat(self) -> tuple[Int[Array, " batches"], Float[Array, "batches k"]]:
        rows = [row for batches in self.sequences for row in batches]
        growth = [growth for _, growth in rows]
        return np.array([steps for steps, _ in rows]), np.array(growth).reshape(-1, self.columns)


def _joined(batches: list[tuple[int, Float[Array, " k"]]]) -> tuple[int, Float[Array, " k"]]:
    return sum(steps for steps, _ in batches), np.sum([growth for _, growth in batches], axis=0)
