"""Products of a chain that begin or end at one time, with their Gram matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.analysis.all_pairs.chains import Chain
from gradlab.analysis.products.scaled import HIGH, LOG_2, LOW
from gradlab.arrays import Array
from gradlab.linalg import log, over_power


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfProducts:
    """Products of order one, their Gram matrices, and what the products are multiplied by."""

    products: Float[Array, "count n n"]
    grams: Float[Array, "count n n"]
    log_scale: Float[Array, " count"]

    @property
    def flat(self) -> Float[Array, "count entries"]:
        """The Gram matrices as vectors."""
        return self.grams.reshape(len(self.grams), -1)

    @property
    def log_frobenius(self) -> Float[Array, " count"]:
        """ln of the products' Frobenius norms."""
        return self.log_scale + 0.5 * log(np.trace(self.grams, axis1=1, axis2=2))


def products_after(chain: Chain, middle: int, last: int) -> HalfProducts:
    """A_t = K_{t-1} ... K_middle for t = middle + 1 .. last, and AᵀA."""
    products, grams, scales = _room(last - middle, chain.size)
    scale = 0.0
    for i in range(last - middle):
        j = middle + i
        products[i] = chain.push(j, products[i - 1]) if i else chain.matrix(j)
        scale += into_range(products[i])
        scales[i] = scale
        np.matmul(products[i].T, products[i], out=grams[i])
    return HalfProducts(products=products, grams=grams, log_scale=scales)


def products_before(
    chain: Chain, middle: int, first: int, at_once: int
) -> Iterator[tuple[range, HalfProducts]]:
    """B_k = K_{middle-1} ... K_k and BBᵀ, while k falls to first; a part's room is used again."""
    room = _room(min(at_once, middle - first), chain.size)
    last, scale = room[0][:0, 0], 0.0
    for start in range(middle - 1, first - 1, -at_once):
        some = range(start, max(first - 1, start - at_once), -1)
        products, grams, scales = (part[: len(some)] for part in room)
        for i, k in enumerate(some):
            products[i] = chain.pull(k, last) if k < middle - 1 else chain.matrix(k)
            scale += into_range(products[i])
            scales[i], last = scale, products[i]
            np.matmul(products[i], products[i].T, out=grams[i])
        yield some, HalfProducts(products=products, grams=grams, log_scale=scales)


def _room(count: int, n: int) -> tuple[Array, Array, Array]:
    return np.empty((count, n, n)), np.empty((count, n, n)), np.zeros(count)


def into_range(product: Float[Array, "n n"]) -> float:
    """Divide in place by a power of two where the size has left order one; ln of that power.

    A product that is zero or not finite is left as it is.
    """
    if LOW < float(np.vdot(product, product)) < HIGH:
        return 0.0
    largest = float(np.abs(product).max())
    if not 0.0 < largest < np.inf:
        return 0.0
    exponent = np.asarray(np.frexp(largest)[1], dtype=np.int64)
    product[:] = over_power(product, exponent)
    return float(exponent) * LOG_2
