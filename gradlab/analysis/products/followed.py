"""Norms of the products of one sequence that end in one time, each as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from jaxtyping import Float

from gradlab.analysis.products.compressed import CompressedProduct
from gradlab.analysis.products.scaled import InverseProducts, log_smallest
from gradlab.arrays import Array
from gradlab.cells.base import LinearStep
from gradlab.records.jacobians import COLUMNS


def followed(
    steps: Iterator[LinearStep],
    size: int,
    drop: float,
    *,
    sequence: int,
    end: int,
    reach: int,
    smallest: bool,
) -> Iterator[Float[Array, "columns lags"]]:
    """Columns of the profile, from lag 1 on.

    Parameters
    ----------
    steps
        Jacobians, from that of the end time back.
    size
        Length of the state.
    drop
        What a compression may drop, see `CompressedProduct`.
    sequence, end, reach
        Which products: up to lag ``reach``.
    smallest
        Whether to measure the smallest singular values.

    Raises
    ------
    DroppedRowsGrowError
        If a product cannot be compressed after all.
    """
    product = CompressedProduct(size, drop)
    inverse = _Inverse(size, drop) if smallest else None
    before = 0
    for lag, step in enumerate(islice(steps, reach), start=1):
        product.extend(step)
        if inverse is not None:
            inverse.extend(step)
        if product.full or lag == reach or (inverse is not None and inverse.full):
            log_norm, log_frobenius = product.take()
            log_sigma_min = np.nan if inverse is None else inverse.log_sigma_min()
            yield _columns(sequence, end, before, log_norm, log_frobenius, log_sigma_min)
            before = lag


def _columns(
    sequence: int,
    end: int,
    before: int,
    log_norm: Float[Array, " lags"],
    log_frobenius: Float[Array, " lags"],
    log_sigma_min: Float[Array, " lags"] | float,
) -> Float[Array, "columns lags"]:
    columns = np.empty((len(COLUMNS), len(log_norm)))
    columns[0], columns[1] = sequence, end
    columns[3] = np.arange(before + 1, before + 1 + len(log_norm))
    columns[2] = end - columns[3]
    columns[4], columns[5] = log_norm, log_frobenius
    columns[6] = np.where(log_norm == -np.inf, -np.inf, log_sigma_min)
    # Rounding may leave the smaller of two equal numbers a little above the larger.
    columns[6] = np.minimum(columns[6], log_norm)
    return columns


class _Inverse:
    """The inverse of the product, which tells the smallest singular value."""

    def __init__(self, size: int, drop: float) -> None:
        self.product = CompressedProduct(size, drop)
        self.inverses = InverseProducts(self.product)
        self.inverses.renew(np.zeros(0, dtype=bool), begin=True)
        self.log_scale: list[Float[Array, "1 1"]] = []
        self.verdict: list[Float[Array, "1 1"]] = []

    @property
    def full(self) -> bool:
        """Whether norms have to be taken before the next step."""
        return self.product.full

    def extend(self, step: LinearStep) -> None:
        """Multiply by the inverse of an earlier step's Jacobian."""
        self.inverses.extend(step)
        self.log_scale.append(self.inverses.log_scale)
        self.verdict.append(self.inverses.verdict)

    def log_sigma_min(self) -> Float[Array, " lags"]:
        """Of all steps since the last call: ln, -inf of a rank loss, nan where not resolved."""
        log_norm, _ = self.product.take()
        log_scale, verdict = np.concatenate(self.log_scale), np.concatenate(self.verdict)
        self.log_scale, self.verdict = [], []
        return log_smallest(verdict[:, 0], log_scale[:, 0] + log_norm)
