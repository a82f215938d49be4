"""Norms of products of small Jacobians, one chain after the other in machine code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.products.scaled import (
    UnitRowInverse,
    log_smallest,
    verdict,
)
from gradlab.arrays import Array
from gradlab.cells.base import Cell, Linearization
from gradlab.records.trajectory import Trajectory

# Matrices held at a time, of steps and of products.
BLOCK_BYTES = 1 << 21


def small_chain_rows(
    cell: Cell,
    trajectory: Trajectory,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Columns of the profile for some end times of sequences that have them all."""
    at_once = max(1, BLOCK_BYTES // (8 * cell.state_size**2))
    for sequence in sequences:
        alone = trajectory if trajectory.batch == 1 else trajectory.select(np.array([sequence]))
        steps = _Steps(cell.linearize(alone), cell.state_size)
        for first in range(0, len(ends), at_once):
            some = ends[first : first + at_once]
            yield _columns(steps, int(sequence), some, reach, smallest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """Steps low <= k < end, the last first: J = diag(factors) M, with one M or one a step."""

    low: int
    end: int
    matrices: Float[Array, "some n n"]
    factors: Float[Array, "steps n"]


class _Steps:
    """The Jacobians of one sequence, in blocks."""

    def __init__(self, linearization: Linearization, size: int) -> None:
        self.linearization, self.scaled = linearization, linearization.row_scaled
        numbers = size if self.scaled is not None else size**2  # of a step
        self.most = max(1, BLOCK_BYTES // (8 * numbers))
        self.inverted: UnitRowInverse | None = None

    def blocks(self, ends: Int[Array, " ends"], reach: int) -> Iterator[_Block]:
        """Steps in the reach of some end times, from the last on."""
        lowest, highest = max(0, int(ends[0]) - reach), int(ends[-1])
        for end in range(highest, lowest, -self.most):
            low = max(lowest, end - self.most)
            if ((ends > low) & (ends - reach < end)).any():
                yield self._block(low, end)

    def _block(self, low: int, end: int) -> _Block:
        if self.scaled is None:
            steps = [self.linearization[k] for k in range(end - 1, low - 1, -1)]
            matrices = np.array([step.matrix()[0] for step in steps], dtype=np.float64)
            factors = np.ones(matrices.shape[:2])
        else:
            W, slopes = self.scaled
            matrices = np.array(W[None], dtype=np.float64, order="C")
            factors = np.array(slopes[low:end, 0][::-1], dtype=np.float64, order="C")
        return _Block(low=low, end=end, matrices=matrices, factors=factors)

    def inverses(self, block: _Block) -> UnitRowInverse:
        """Inverses of a block's matrices; of the one matrix of all blocks only once."""
        if self.inverted is None or self.scaled is None:
            self.inverted = UnitRowInverse.of(block.matrices)
        return self.inverted


class _Chains:
    """Products that end in several times, with the logarithms of their norms at every lag."""

    def __init__(self, ends: Int[Array, " ends"], reach: int, n: int) -> None:
        count = len(ends)
        self.ends, self.reach = ends, reach
        self.rows = np.tile(np.eye(n), (count, 1, 1))
        self.exponent = np.zeros((count, n), dtype=np.int64)
        self.left = np.full((count, n), 1.0 / np.sqrt(n))
        self.log_norm, self.log_frobenius = np.full((2, count, reach), np.nan)
        self.path = np.zeros((count, reach), dtype=np.int64)

    def extend(self, block: _Block) -> None:
        """Multiply every product by the steps of a block that are in its reach."""
        from gradlab.analysis.products.compiled.chains import follow

        for i, t in enumerate(self.ends.tolist()):
            first, last = max(0, block.end - t), block.end - max(block.low, t - self.reach)
            if first >= last:
                continue
            lags = slice(t - block.end + first, t - block.end + last)
            follow(
                self.rows[i],
                self.exponent[i],
                self.left[i],
                block.matrices if len(block.matrices) == 1 else block.matrices[first:last],
                block.factors[first:last],
                self.log_norm[i, lags],
                self.log_frobenius[i, lags],
                self.path[i, lags],
            )


class _Inverses:
    """Transposed inverses of the same products, as in `products.scaled.InverseProducts`."""

    def __init__(self, ends: Int[Array, " ends"], reach: int, n: int) -> None:
        self.chains = _Chains(ends, reach, n)
        self.log_scale, self.error = np.zeros((2, int(ends[-1])))
        self.lost = np.zeros(int(ends[-1]), dtype=bool)

    def extend(self, block: _Block, inverse: UnitRowInverse) -> None:
        """Multiply by the inverses of a block's steps."""
        scaled, places = inverse.scaled(block.factors), slice(block.low, block.end)
        self.log_scale[places] = scaled.log_scale[::-1]
        self.error[places], self.lost[places] = inverse.error[::-1], scaled.lost[::-1]
        matrices = np.ascontiguousarray(inverse.inverse.transpose(0, 2, 1))
        self.chains.extend(
            _Block(low=block.low, end=block.end, matrices=matrices, factors=scaled.weights)
        )

    def log_sigma_min(self) -> Float[Array, "ends reach"]:
        """ln of the smallest singular values of the products themselves."""
        found = np.full_like(self.chains.log_norm, np.nan)
        for i, t in enumerate(self.chains.ends.tolist()):
            steps = slice(max(0, t - self.chains.reach), t)
            log_scale, error, lost = (
                np.cumsum(values[steps][::-1]) for values in (self.log_scale, self.error, self.lost)
            )
            log_inverse = self.chains.log_norm[i, : len(error)] + log_scale
            found[i, : len(error)] = log_smallest(verdict(error, lost > 0), log_inverse)
        return found


def _columns(
    steps: _Steps, sequence: int, ends: Int[Array, " ends"], reach: int, smallest: bool
) -> Float[Array, "columns pairs"]:
    n = steps.linearization[0].matrix().shape[1]
    chains, inverses = _Chains(ends, reach, n), _Inverses(ends, reach, n) if smallest else None
    for block in steps.blocks(ends, reach):
        chains.extend(block)
        if inverses is not None:
            inverses.extend(block, steps.inverses(block))
    log_norm = chains.log_norm
    log_sigma_min = np.full_like(log_norm, np.nan) if inverses is None else inverses.log_sigma_min()
    log_sigma_min = np.where(log_norm == -np.inf, -np.inf, log_sigma_min)
    t, lag = np.meshgrid(ends, np.arange(1, reach + 1), indexing="ij")
    columns = np.stack(
        [
            np.full(t.shape, sequence),
            t,
            t - lag,
            lag,
            log_norm,
            chains.log_frobenius,
            # Rounding may leave the smaller of two equal numbers a little above the larger.
            np.minimum(log_sigma_min, log_norm),
        ]
    )
    return np.asarray(columns[:, lag <= t])
