"""Rows of a Jacobian profile where most end times of a sequence are wanted."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.analysis.all_pairs.chains import InverseChain, JacobianChain
from gradlab.analysis.all_pairs.halving import all_pairs
from gradlab.analysis.products.scaled import log_smallest
from gradlab.arrays import Array
from gradlab.cells.base import Linearization
from gradlab.records.jacobians import COLUMNS

# Sizes and lags from which on halves pay, and the share of end times that has to be wanted.
LEAST_SIZE, LEAST_REACH, SHARE = 16, 16, 0.5
# Bytes of the matrices that halves keep, beyond which products are carried one by one.
MOST_BYTES = 1 << 31


def pays(n: int, reach: int, ends: Int[Array, " ends"]) -> bool:
    """Whether all pairs together are cheaper than the wanted end times one by one."""
    large = n >= LEAST_SIZE and reach >= LEAST_REACH
    dense = len(ends) >= SHARE * int(ends[-1])
    return large and dense and kept_bytes(n, reach, ends) <= MOST_BYTES


def kept_bytes(n: int, reach: int, ends: Int[Array, " ends"]) -> int:
    """Bytes of the matrices kept at the first cut, for a product and its Gram matrix each."""
    return 8 * n**2 * min(int(ends[-1]), 2 * reach)


def dense_rows(
    linearization: Linearization,
    sequence: int,
    ends: Int[Array, " ends"],
    reach: int,
    *,
    smallest: bool | None,
) -> tuple[Float[Array, "columns pairs"], Int[Array, " doubtful"]]:
    """Rows of one sequence by halves of the product, and end times that are to be done otherwise.

    Frobenius norms alone if ``smallest`` is None. End times to be done otherwise have a pair whose
    product is zero, or so much smaller than its halves that rounding counts: paths that are lost
    beside others in a half may lead in the whole.
    """
    length = int(ends[-1])
    chain = JacobianChain(linearization, length)
    tables = all_pairs(chain, length, reach, spectral=smallest is not None)
    doubtful = tables.doubtful
    log_sigma_min = np.full_like(tables.log_norm, np.nan)
    if smallest:
        log_sigma_min, unsure = _log_sigma_min(linearization, length, reach)
        doubtful = doubtful | unsure
    t, lag = np.arange(length + 1)[:, None], np.arange(reach + 1)
    kept = np.asarray(np.isin(t, ends) & (lag >= 1) & (lag <= t))
    again = np.asarray((doubtful & kept).any(axis=1))
    t, lag = np.nonzero(kept & ~again[:, None])
    columns = np.empty((len(COLUMNS), len(t)))
    columns[0], columns[1], columns[2], columns[3] = sequence, t, t - lag, lag
    columns[4], columns[5] = tables.log_norm[t, lag], tables.log_frobenius[t, lag]
    # Rounding may leave the smaller of two equal numbers a little above the larger.
    columns[6] = np.minimum(log_sigma_min[t, lag], columns[4])
    return columns, np.flatnonzero(again)


def _log_sigma_min(
    linearization: Linearization, length: int, reach: int
) -> tuple[Float[Array, "times lags"], Bool[Array, "times lags"]]:
    """ln of the smallest singular values, from the inverses, and where these are in doubt."""
    chain = InverseChain(linearization, length)
    tables = all_pairs(chain, length, reach, spectral=True)
    verdicts = chain.verdict(reach)
    return log_smallest(verdicts, tables.log_norm), tables.doubtful & (verdicts == 0.0)
