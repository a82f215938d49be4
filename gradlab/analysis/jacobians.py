r"""Norms of the long-term Jacobians :math:`\partial h_t/\partial h_k = J_t J_{t-1} \cdots J_{k+1}`.

All products of one trajectory that end in the chosen times are carried together while k falls, so
that each step's Jacobian is applied once. Every product is kept as a matrix of order one and an
integer power of two: no lag over- or underflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.analysis.inverse import InverseProducts
from gradlab.arrays import Array
from gradlab.cells.base import Cell, Linearization
from gradlab.errors import SettingError
from gradlab.linalg import log, rescale, spectral_norms
from gradlab.records.jacobians import COLUMNS, JacobianProfile
from gradlab.records.trajectory import Trajectory

LOG_2 = float(np.log(2.0))
# Products carried at a time; larger stacks fall out of the cache and gain nothing.
STACK_BYTES = 1 << 20

Anchors = str | int | Sequence[int]


def jacobian_profile(
    cell: Cell,
    trajectory: Trajectory,
    *,
    max_lag: int | None = None,
    anchors: Anchors = "all",
    smallest: bool = True,
) -> JacobianProfile:
    r"""Spectral and Frobenius norm of :math:`\partial h_t/\partial h_k` against t - k.

    Parameters
    ----------
    cell
        Any cell; only its Jacobians' actions are used.
    trajectory
        Where the Jacobians are taken.
    max_lag
        Longest lag; each end time's whole past if None.
    anchors
        End times t: ``"all"``, ``"last"`` (each sequence's own last step), a number of evenly
        spaced end times, or a sequence of end times in 1..T.
    smallest
        Whether to measure the smallest singular value too, from the product of the inverses; about
        doubles the work.

    Returns
    -------
    profile
        Natural logarithms for every pair. Padding enters no number. Norms agree with a full SVD of
        the rescaled product to 1e-12; that product itself carries a relative error of about
        lag · n · 2.2e-16 times the ratio of the product of norms to the norm of the product.

    Raises
    ------
    SettingError
        If an end time or ``max_lag`` is out of range.

    Notes
    -----
    Source: Pascanu, Mikolov and Bengio (2013), ICML, section 2. Cost: one N×N product a pair and a
    power step or, where that certifies nothing, an SVD.
    """
    if max_lag is not None and max_lag < 1:
        raise SettingError(f"max_lag {max_lag}: expected at least 1")
    parts = [
        part
        for length in np.unique(trajectory.lengths)
        for part in _equal_lengths(cell, trajectory, int(length), max_lag, anchors, smallest)
    ]
    table = np.concatenate(parts, axis=1)
    table = table[:, np.lexsort((table[3], table[1], table[0]))]
    integers = {name: table[i].astype(np.int64) for i, name in enumerate(COLUMNS[:4])}
    return JacobianProfile(**integers, **dict(zip(COLUMNS[4:], table[4:], strict=True)))


def end_times(length: int, anchors: Anchors) -> Int[Array, " ends"]:
    """End times of a sequence of the given length, ascending.

    Raises
    ------
    SettingError
        If they are not of the forms that `jacobian_profile` takes, or out of 1..length.
    """
    if anchors == "all":
        return np.arange(1, length + 1)
    if anchors == "last":
        return np.array([length])
    if isinstance(anchors, int) and anchors >= 1:
        return np.unique(np.ceil(np.arange(1, anchors + 1) * (length / anchors)).astype(np.int64))
    if isinstance(anchors, str | int) or len(anchors) == 0 or min(anchors) < 1:
        raise SettingError(
            f"anchors {anchors!r}: expected 'all', 'last', a number >= 1 or end times >= 1"
        )
    times = np.unique(np.asarray(anchors, dtype=np.int64))
    return times[times <= length]


def _equal_lengths(
    cell: Cell,
    trajectory: Trajectory,
    length: int,
    max_lag: int | None,
    anchors: Anchors,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Rows of all sequences of one length, in chunks whose products stay in the cache."""
    sequences = np.flatnonzero(trajectory.lengths == length)
    ends = end_times(length, anchors)
    if len(ends) == 0:
        return
    reach = min(length, max_lag or length)
    product_bytes = 8 * cell.state_size**2
    at_once = max(1, STACK_BYTES // product_bytes)
    for chosen in _chunks(sequences, max(1, at_once // min(len(ends), reach))):
        linearization = cell.linearize(trajectory.select(chosen))
        for some in _chunks(ends, max(1, at_once // len(chosen))):
            yield from _sweep(linearization, chosen, some, reach, smallest)


def _chunks(values: Int[Array, " n"], size: int) -> list[Int[Array, " part"]]:
    return [values[i : i + size] for i in range(0, len(values), size)]


def _sweep(
    linearization: Linearization,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Carry the products of all end times while k falls from the last of them."""
    carried = _Products(len(sequences), linearization[0].matrix().shape[-1], smallest)
    starting = set(ends.tolist())
    for k in range(int(ends[-1]) - 1, -1, -1):
        if k + 1 in starting:
            carried.begin(k + 1)
        carried.drop(carried.t - k > reach)
        if len(carried.t) == 0:
            continue
        carried.extend(linearization, k)
        yield carried.rows(sequences, k)


class _Products:
    """P_{t,k} transposed, for several end times t, as matrices of order one and exponents."""

    def __init__(self, batch: int, n: int, smallest: bool) -> None:
        self.t = np.empty(0, dtype=np.int64)
        self.transposed = np.empty((batch, 0, n, n))
        self.exponent = np.empty((batch, 0), dtype=np.int64)
        self.right = np.empty((batch, 0, n))
        self.inverse = InverseProducts(batch, n) if smallest else None

    def begin(self, t: int) -> None:
        """Take up the end time t with the identity."""
        batch, _, n, _ = self.transposed.shape
        identity = np.broadcast_to(np.eye(n), (batch, 1, n, n))
        self.t = np.append(self.t, t)
        self.transposed = np.concatenate([self.transposed, identity], axis=1)
        self.exponent = np.append(self.exponent, np.zeros((batch, 1), dtype=np.int64), axis=1)
        start = np.full((batch, 1, n), 1.0 / np.sqrt(n))
        self.right = np.concatenate([self.right, start], axis=1)
        if self.inverse is not None:
            self.inverse.begin()

    def drop(self, finished: Bool[Array, " ends"]) -> None:
        """Leave end times that have reached the longest lag."""
        if not finished.any():
            return
        kept = ~finished
        self.t, self.transposed = self.t[kept], self.transposed[:, kept]
        self.exponent, self.right = self.exponent[:, kept], self.right[:, kept]
        if self.inverse is not None:
            self.inverse.keep(kept)

    def extend(self, linearization: Linearization, k: int) -> None:
        """Multiply by the Jacobian of the step from k to k + 1."""
        batch, count, n, _ = self.transposed.shape
        side_by_side = self.transposed.transpose(0, 2, 1, 3).reshape(batch, n, count * n)
        pulled = linearization[k].apply_transpose(side_by_side)
        blocks = np.ascontiguousarray(pulled.reshape(batch, n, count, n).transpose(0, 2, 1, 3))
        self.transposed, exponent = rescale(blocks)
        self.exponent = self.exponent + exponent
        if self.inverse is not None:
            self.inverse.extend(linearization[k].matrix())

    def rows(
        self, sequences: Int[Array, " batch"], k: int
    ) -> Float[Array, "columns pairs"]:
        """Columns of the profile for every carried pair."""
        batch, count, n, _ = self.transposed.shape
        flat = self.transposed.reshape(batch * count, n, n)
        norms, right = spectral_norms(flat, self.right.reshape(batch * count, n))
        self.right = right.reshape(batch, count, n)
        scale = self.exponent.ravel() * LOG_2
        t = np.tile(self.t, batch)
        return np.stack(
            [
                np.repeat(sequences, count),
                t,
                np.full(batch * count, k),
                t - k,
                scale + log(norms),
                scale + log(np.linalg.norm(flat, axis=(1, 2))),
                self._log_sigma_min(norms),
            ]
        )

    def _log_sigma_min(self, norms: Float[Array, " pairs"]) -> Float[Array, " pairs"]:
        if self.inverse is None:
            return np.full(len(norms), np.nan)
        return np.where(norms == 0.0, -np.inf, self.inverse.log_sigma_min().ravel())
