r"""Norms of the products :math:`K_{t-1} \cdots K_k` for all k < t, by halves.

A product over a time m inside is P = A B, A from m to t and B from k to m. Then
:math:`\lVert P \rVert_F^2` is the inner product of :math:`A^T A` and :math:`B B^T`, and the
spectral norm is found from these two as well: no product of the pairs across m is formed. The pairs
on either side of m are done in the same way, so that a chain of T matrices takes about T log T
products of matrices instead of T²/2.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.analysis.all_pairs.chains import Chain
from gradlab.analysis.all_pairs.crossing import norms_across, unit
from gradlab.analysis.all_pairs.half_products import into_range, products_after, products_before
from gradlab.analysis.all_pairs.tables import PairTables
from gradlab.arrays import Array
from gradlab.linalg import certified_norms, log

# Steps whose pairs are done product by product.
SHORT = 8
# Bytes of products that end in the middle, at a time, and the most of them.
MATRIX_BYTES, MOST_AT_ONCE = 1 << 21, 32
# Share of a chain, at its middle, within which the best place to cut is looked for.
CHOICE = 0.1


def all_pairs(chain: Chain, length: int, reach: int, *, spectral: bool) -> PairTables:
    """Norms of all products of at most ``reach`` of the first ``length`` matrices of a chain.

    Parameters
    ----------
    chain
        The matrices.
    length, reach
        End times are 1..length, lags 1..reach.
    spectral
        Whether to take the spectral norms too, each certified.

    Returns
    -------
    tables
        Logarithms of norms, and which of them are in doubt.

    Notes
    -----
    Derivation: docs/theory.md, "All pairs". Memory: ``length`` matrices.
    """
    sweep = _Sweep(chain, length, reach, spectral)
    sweep.segment(0, length)
    scales = np.concatenate([[0.0], np.cumsum(chain.log_scales[:length])])
    t, lag = np.arange(length + 1)[:, None], np.arange(reach + 1)
    total = scales[t] - scales[np.maximum(t - lag, 0)]
    sweep.tables.log_norm += total
    sweep.tables.log_frobenius += total
    return sweep.tables


class _Sweep:
    def __init__(self, chain: Chain, length: int, reach: int, spectral: bool) -> None:
        self.chain, self.spectral = chain, spectral
        self.tables = PairTables(length, reach, chain.size)
        self.forward, self.backward = _directions(chain, length)

    def segment(self, first: int, last: int) -> None:
        """All pairs first <= k < t <= last."""
        if last - first <= SHORT:
            for k in range(first, last):
                self._formed(k, min(last, k + self.tables.reach))
            return
        middle = self._middle(first, last)
        self.segment(first, middle)
        self.segment(middle, last)
        # What is further from the middle than the reach has no partner across it.
        first, last = (
            max(first, middle - self.tables.reach + 1),
            min(last, middle + self.tables.reach - 1),
        )
        if first < middle < last:
            self._across(first, middle, last)
            self.tables.estimate_errors(first, middle, last)

    def _middle(self, first: int, last: int) -> int:
        """Where past and future have the least orthogonal directions, which cost digits."""
        start = (first + last + 1) // 2
        places = np.arange(start, start + 1 + int(CHOICE * (last - first)))
        aligned = np.vecdot(self.forward[places], self.backward[places])
        return int(places[np.argmax(np.abs(aligned))])

    def _formed(self, k: int, last: int) -> None:
        """Products that begin at k and end at times up to the last."""
        stack = np.empty((last - k, self.chain.size, self.chain.size))
        scale = np.zeros(len(stack))
        for i in range(len(stack)):
            stack[i] = self.chain.push(k + i, stack[i - 1]) if i else self.chain.matrix(k)
            scale[i:] += into_range(stack[i])
        squares = np.vecdot(flat := stack.reshape(len(stack), -1), flat)
        lag = np.arange(1, len(stack) + 1)
        self.tables.counts["short"] += len(stack)
        self.tables.log_frobenius[k + lag, lag] = scale + 0.5 * log(squares)
        if self.spectral:
            start = np.repeat(self.backward[k][None], len(stack), axis=0)
            norms = certified_norms(stack, start, squares).norms
            self.tables.log_norm[k + lag, lag] = scale + log(norms)

    def _across(self, first: int, middle: int, last: int) -> None:
        """Pairs k < middle < t."""
        after = products_after(self.chain, middle, last)
        at_once = min(MOST_AT_ONCE, max(1, MATRIX_BYTES // (8 * self.chain.size**2)))
        start = self.backward[middle] if self.spectral else None
        for some, before in products_before(self.chain, middle, first, at_once):
            lag = np.arange(middle + 1, last + 1) - np.array(some)[:, None]
            wanted = lag <= self.tables.reach
            found = norms_across(after, before, wanted, start)
            place = (lag + np.array(some)[:, None])[wanted], lag[wanted]
            self.tables.log_norm[place] = found.log_norm[wanted]
            self.tables.log_frobenius[place] = found.log_frobenius[wanted]
            formed = int(np.count_nonzero(found.formed))
            self.tables.counts["formed"] += formed
            self.tables.counts["halves"] += len(place[0]) - formed


def _directions(
    chain: Chain, length: int
) -> tuple[Float[Array, "times n"], Float[Array, "times n"]]:
    """Unit vectors at every time, pushed from the beginning and pulled from the end."""
    rng = np.random.default_rng(0)
    forward, backward = (unit(rng.standard_normal((length + 1, chain.size))) for _ in range(2))
    for j in range(length):
        forward[j + 1] = _renewed(chain.push(j, forward[j][:, None])[:, 0], forward[j + 1])
        i = length - 1 - j
        backward[i] = _renewed(chain.pull(i, backward[i + 1][None])[0], backward[i])
    return forward, backward


def _renewed(x: Float[Array, " n"], fallback: Float[Array, " n"]) -> Float[Array, " n"]:
    """x brought to unit length, or another vector where it has none."""
    largest = float(np.abs(x).max())
    return unit(x / largest) if 0.0 < largest < np.inf else fallback
