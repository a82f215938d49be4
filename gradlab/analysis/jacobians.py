r"""Norms of the long-term Jacobians :math:`\partial h_t/\partial h_k = J_t J_{t-1} \cdots J_{k+1}`.

All products of one trajectory that end in the chosen times are carried together while k falls, so
that each step's Jacobian is applied once. Every product is kept as a matrix of order one and an
integer power of two: no lag over- or underflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.all_pairs.rows import dense_rows, pays
from gradlab.analysis.end_times import Anchors, end_times
from gradlab.analysis.products.compressed import DROPS, DroppedRowsGrowError
from gradlab.analysis.products.followed import followed
from gradlab.analysis.products.kernels import HALVED, SMALLEST_COMPRESSED, chosen_kernel
from gradlab.analysis.products.kernels import LONG as LONG_OF_SMALL
from gradlab.analysis.products.scaled import (
    InverseProducts,
    NormQueue,
    ScaledProducts,
    log_smallest,
)
from gradlab.analysis.products.small_chains import small_chain_rows
from gradlab.arrays import Array
from gradlab.cells.base import Cell, Linearization
from gradlab.errors import SettingError
from gradlab.records.jacobians import COLUMNS, JacobianProfile
from gradlab.records.trajectory import Trajectory

# Products carried at a time; larger stacks fall out of the cache and gain nothing.
STACK_BYTES = 1 << 20

# Sizes and lags from which on products are compressed, each alone: small ones have to be many.
COMPRESSED_SIZE, COMPRESSED_REACH = 96, 24
WORTH_COMPRESSING, FEW = 9000, 4
# Lag beyond which little is dropped from the beginning: parts dropped at all lags add up.
LONG = 400

# Columns of the profile for some sequences and end times.
Rows = Callable[
    [Cell, Trajectory, Int[Array, " batch"], Int[Array, " ends"], int, bool],
    Iterator[Float[Array, "columns pairs"]],
]


def jacobian_profile(
    cell: Cell,
    trajectory: Trajectory,
    *,
    max_lag: int | None = None,
    anchors: Anchors = "all",
    smallest: bool = True,
    spectral: bool = True,
    kernel: str = "auto",
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
    spectral
        Whether to measure spectral norms, and smallest singular values with them. Frobenius norms
        alone take a fraction of the time where all end times are asked for.
    kernel
        ``"numpy"``, ``"numba"`` for machine code where states are small (below 96 numbers, or 128
        and lags up to 128), or ``"auto"``: that where the extra ``fast`` is installed and NumPy
        would take more than about ten seconds. Both prove their norms in the same ways, machine
        code to 4e-13.

    Returns
    -------
    profile
        Natural logarithms for every pair. Padding enters no number. Norms are certified to agree
        with a full SVD of the rescaled product to 1e-10, and mostly do to 1e-12; that product
        itself carries a relative error of about lag · n · 2.2e-16 times the ratio of the product
        of norms to the norm of the product. A product of many units or steps (96 and 24, or 32 and
        1000, or what comes near) is kept by the directions that still count: what is dropped is
        estimated by random probes, so that there the 1e-10 is very likely and not proven
        (docs/theory.md, "Compressed products").
        From 16 units and 16 lags on, where half of the end times or more are wanted, products are
        taken by their halves and norms are proven to 1e-11 ("All pairs").

    Raises
    ------
    SettingError
        If an end time or ``max_lag`` is out of range.
    UnknownNameError
        If there is no such kernel.
    MissingExtraError
        If ``kernel="numba"`` and Numba cannot be imported.

    Notes
    -----
    Source: Pascanu, Mikolov and Bengio (2013), ICML, section 2. Cost: one N×N product a pair and a
    power step or, where that certifies nothing, an eigenvalue solve. For all end times, about
    T log T products and a few products of a matrix and a vector a pair; memory for T matrices, up
    to two gigabytes.
    """
    if max_lag is not None and max_lag < 1:
        raise SettingError(f"max_lag {max_lag}: expected at least 1")
    smallest = smallest and spectral
    kernel = kernel_for(cell, trajectory, max_lag, anchors, smallest=smallest, kernel=kernel)
    rows = _ROWS[kernel] if spectral else _frobenius_rows
    parts = [
        part
        for length in np.unique(trajectory.lengths)
        for part in _equal_lengths(cell, trajectory, int(length), max_lag, anchors, smallest, rows)
    ]
    table = np.concatenate(parts, axis=1)
    if not spectral:
        table[4] = np.nan
    table = table[:, np.lexsort((table[3], table[1], table[0]))]
    integers = {name: table[i].astype(np.int64) for i, name in enumerate(COLUMNS[:4])}
    return JacobianProfile(**integers, **dict(zip(COLUMNS[4:], table[4:], strict=True)))


def kernel_for(
    cell: Cell,
    trajectory: Trajectory,
    max_lag: int | None = None,
    anchors: Anchors = "all",
    *,
    smallest: bool = True,
    kernel: str = "auto",
    times: int = 1,
) -> str:
    """The kernel that `jacobian_profile` takes, for a number of calls like this.

    Raises
    ------
    GradlabError
        As `jacobian_profile` has them.
    """
    lengths, counts = np.unique(trajectory.lengths, return_counts=True)
    pairs = sum(
        int(count) * int(np.minimum(end_times(int(length), anchors), max_lag or length).sum())
        for length, count in zip(lengths, counts, strict=True)
    )
    longest, size = int(lengths[-1]), cell.state_size
    reach, products = min(longest, max_lag or longest), pairs * (1 + smallest) * times
    if kernel == "auto" and size >= HALVED and pays(size, reach, end_times(longest, anchors)):
        return "numpy"
    return chosen_kernel(kernel, size=size, reach=reach, products=products)


def _equal_lengths(
    cell: Cell,
    trajectory: Trajectory,
    length: int,
    max_lag: int | None,
    anchors: Anchors,
    smallest: bool,
    rows: Rows,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Rows of all sequences of one length."""
    sequences = np.flatnonzero(trajectory.lengths == length)
    ends = end_times(length, anchors)
    if len(ends):
        reach = min(length, max_lag or length)
        yield from rows(cell, trajectory, sequences, ends, reach, smallest)


def _numpy_rows(
    cell: Cell,
    trajectory: Trajectory,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Rows by halves of the sequences where that pays."""
    if pays(cell.state_size, reach, ends):
        yield from _rows_by_halves(cell, trajectory, sequences, ends, reach, smallest)
    else:
        yield from _stacked_rows(cell, trajectory, sequences, ends, reach, smallest)


def _frobenius_rows(
    cell: Cell,
    trajectory: Trajectory,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Rows whose spectral norms may be anything."""
    if pays(cell.state_size, reach, ends):
        yield from _rows_by_halves(cell, trajectory, sequences, ends, reach, None)
    else:
        yield from _stacked_rows(cell, trajectory, sequences, ends, reach, smallest)


def _rows_by_halves(
    cell: Cell,
    trajectory: Trajectory,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool | None,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Rows sequence by sequence; Frobenius norms alone if ``smallest`` is None.

    End times with a pair in doubt are done once more from products of their own.
    """
    for sequence in sequences:
        chosen = np.array([sequence])
        steps = cell.linearize(trajectory.select(chosen))
        rows, doubtful = dense_rows(steps, int(sequence), ends, reach, smallest=smallest)
        yield rows
        if len(doubtful):
            yield from _stacked_rows(cell, trajectory, chosen, doubtful, reach, bool(smallest))


def _stacked_rows(
    cell: Cell,
    trajectory: Trajectory,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Rows in chunks whose products stay in the cache."""
    product_bytes = 8 * cell.state_size**2
    alone = _worth_compressing(cell.state_size, reach, len(sequences) * len(ends))
    at_once = 1 if alone else max(1, STACK_BYTES // product_bytes)
    for chosen in _chunks(sequences, max(1, at_once // min(len(ends), reach))):
        linearization = cell.linearize(trajectory.select(chosen))
        for some in _chunks(ends, max(1, at_once // len(chosen))):
            yield from _swept(linearization, chosen, some, reach, smallest, alone)


_ROWS: Mapping[str, Rows] = {"numpy": _numpy_rows, "numba": small_chain_rows}


def _worth_compressing(size: int, reach: int, products: int) -> bool:
    """Whether each product is followed alone: small ones only if they are long, or few."""
    if size >= COMPRESSED_SIZE:
        return reach >= COMPRESSED_REACH
    few_or_long = products <= FEW or reach >= LONG_OF_SMALL
    return size >= SMALLEST_COMPRESSED and few_or_long and size * reach >= WORTH_COMPRESSING


def _chunks(values: Int[Array, " n"], size: int) -> list[Int[Array, " part"]]:
    return [values[i : i + size] for i in range(0, len(values), size)]


def _swept(
    linearization: Linearization,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
    compressed: bool,
) -> list[Float[Array, "columns pairs"]]:
    """All rows of some end times; once more with less dropped, or nothing, where that grew."""
    if compressed:
        for drop in DROPS[reach > LONG :]:
            try:
                one = int(sequences[0]), int(ends[0])
                return list(_followed(linearization, drop, *one, reach, smallest))
            except DroppedRowsGrowError:
                pass
    return list(_sweep(linearization, sequences, ends, reach, smallest))


def _followed(
    linearization: Linearization, drop: float, sequence: int, end: int, reach: int, smallest: bool
) -> Iterator[Float[Array, "columns lags"]]:
    """Rows of one end time, whose product is compressed."""
    size = linearization[0].matrix().shape[1]
    steps = (linearization[k] for k in range(end - 1, -1, -1))
    reach = min(reach, end)
    return followed(steps, size, drop, sequence=sequence, end=end, reach=reach, smallest=smallest)


def _sweep(
    linearization: Linearization,
    sequences: Int[Array, " batch"],
    ends: Int[Array, " ends"],
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns pairs"]]:
    """Carry the products of all end times while k falls from the last of them."""
    batch, n, _ = linearization[0].matrix().shape
    products = ScaledProducts(batch, n)
    inverses = InverseProducts(ScaledProducts(batch, n)) if smallest else None
    measured = _Measurements(sequences, ends, n)
    starting = set(ends.tolist())
    t = np.empty(0, dtype=np.int64)
    lowest = max(0, int(ends[0]) - reach)
    for k in range(int(ends[-1]) - 1, lowest - 1, -1):
        kept = t - k <= reach
        if (begin := k + 1 in starting) or not kept.all():
            t = np.append(t[kept], [k + 1] if begin else []).astype(np.int64)
            for carried in (products, inverses):
                if carried is not None:
                    carried.renew(kept, begin=begin)
        if len(t):  # between far apart end times nothing is carried
            products.extend(linearization[k])
            if inverses is not None:
                inverses.extend(linearization[k])
            measured.put(t, k, products, inverses)
        if measured.full or (k == lowest and measured.pairs):
            yield measured.rows()


class _Measurements:
    """Products that wait for their norms, which are taken of many at a time."""

    def __init__(self, sequences: Int[Array, " batch"], ends: Int[Array, " ends"], n: int) -> None:
        self.sequences, self.ends = sequences, ends
        self.norms = NormQueue(len(sequences), len(ends), n)
        self.inverse_norms = NormQueue(len(sequences), len(ends), n)
        self.pairs: list[tuple[Int[Array, " ends"], int]] = []
        self.log_scale: list[Float[Array, "batch ends"]] = []
        self.inverse: list[tuple[Float[Array, "batch ends"], Float[Array, "batch ends"]]] = []

    @property
    def full(self) -> bool:
        """Whether enough products wait."""
        return self.norms.full

    def put(
        self,
        t: Int[Array, " ends"],
        k: int,
        products: ScaledProducts,
        inverses: InverseProducts[ScaledProducts] | None,
    ) -> None:
        """Let the products P_{t,k} wait, with their inverses."""
        slots = np.searchsorted(self.ends, t)
        self.pairs.append((t, k))
        whole, log_scale = products.assembled()
        self.norms.put(slots, whole)
        self.log_scale.append(log_scale)
        if inverses is not None:
            whole, log_scale = inverses.products.assembled()
            self.inverse_norms.put(slots, whole)
            self.inverse.append((log_scale + inverses.log_scale, inverses.verdict))

    def rows(self) -> Float[Array, "columns pairs"]:
        """Columns of the profile for all that wait."""
        log_norm, log_frobenius = self.norms.take()
        batch = len(self.sequences)
        scale = np.concatenate([scale.ravel() for scale in self.log_scale])
        columns = np.empty((len(COLUMNS), len(scale)))
        columns[0] = np.concatenate([np.repeat(self.sequences, len(t)) for t, _ in self.pairs])
        columns[1] = np.concatenate([t if batch == 1 else np.tile(t, batch) for t, _ in self.pairs])
        counts = [batch * len(t) for t, _ in self.pairs]
        columns[2] = np.repeat([k for _, k in self.pairs], counts)
        columns[3] = columns[1] - columns[2]
        columns[4], columns[5] = scale + log_norm, scale + log_frobenius
        columns[6] = np.where(log_norm == -np.inf, -np.inf, self._log_sigma_min())
        # Rounding may leave the smaller of two equal numbers a little above the larger.
        columns[6] = np.minimum(columns[6], columns[4])
        self.pairs, self.log_scale, self.inverse = [], [], []
        return columns

    def _log_sigma_min(self) -> Float[Array, " pairs"] | float:
        if not self.inverse:
            return np.nan
        log_norm = self.inverse_norms.take()[0]
        log_scale, verdict = (
            np.concatenate([part[place].ravel() for part in self.inverse]) for place in (0, 1)
        )
        return log_smallest(verdict, log_scale + log_norm)
