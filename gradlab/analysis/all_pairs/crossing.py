"""Norms of all products A B of products A that begin at one time and products B that end there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.analysis.all_pairs.half_products import HalfProducts
from gradlab.analysis.all_pairs.paired_norms import EPSILON, paired_norms
from gradlab.arrays import Array
from gradlab.linalg import certified_norms, log

# Bytes of a vector for each pair of a group.
VECTOR_BYTES = 1 << 18
# Estimated error of a Frobenius norm from Gram matrices beyond which the product is formed.
INEXACT = 1e-12
# Share of ‖G‖ ‖H‖ below which a squared norm is in doubt whatever is done: the factors' own
# rounding is 1e-6 of the product or more.
LOST = 1e-20
# Bytes of products formed at a time, and the most of them.
FORMED_BYTES, MOST_FORMED = 1 << 20, 256
# Share of a fixed direction in every start, which else might have no part of the leading one.
MIXED_IN = 0.03


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormsAcross:
    """Logarithms of norms by B and A; the spectral ones nan if they were not asked for."""

    log_norm: Float[Array, "b a"]
    log_frobenius: Float[Array, "b a"]
    formed: Bool[Array, "b a"]  # pairs whose product was needed


def norms_across(
    after: HalfProducts,
    before: HalfProducts,
    wanted: Bool[Array, "b a"],
    start: Float[Array, " n"] | None,
) -> NormsAcross:
    """Norms of the wanted products A B.

    Parameters
    ----------
    after, before
        A and B.
    wanted
        Pairs that count: the others may be anything.
    start
        A direction between the factors to look for the leading ones from; Frobenius norms alone if
        None.

    Notes
    -----
    ‖AB‖_F² is the inner product of AᵀA and BBᵀ, whose rounding error is relative to the product of
    their norms. Where that tells too little, or no spectral norm is proven, AB is formed.
    """
    squares = before.flat @ after.flat.T
    size = np.outer(*(np.sqrt(np.vecdot(half.flat, half.flat)) for half in (before, after)))
    norms = np.full_like(squares, np.nan)
    wanted = wanted & (squares > LOST * size)
    formed = wanted & ~(0.5 * EPSILON * size <= INEXACT * squares)
    if start is None:
        for some in _few(np.argwhere(formed), after.grams[0].nbytes):
            squares[tuple(some.T)] = _squares(_products(after, before, some))
    else:
        _spectral(after, before, wanted, start, squares, size, norms, formed)
    scale = before.log_scale[:, None] + after.log_scale
    return NormsAcross(
        log_norm=scale + log(norms),
        log_frobenius=scale + 0.5 * log(np.maximum(squares, 0.0)),
        formed=formed,
    )


def _spectral(
    after: HalfProducts,
    before: HalfProducts,
    wanted: Bool[Array, "b a"],
    start: Float[Array, " n"],
    squares: Float[Array, "b a"],
    size: Float[Array, "b a"],
    norms: Float[Array, "b a"],
    formed: Bool[Array, "b a"],
) -> None:
    """Write norms group by group of A; also what is formed for them.

    A group starts from the directions that the last one ended with.
    """
    b, n = len(squares), len(start)
    at_once = max(1, VECTOR_BYTES // (8 * n * b))
    noise = MIXED_IN * unit(np.sin(np.arange(1.0, n + 1.0) ** 2))
    directions = start @ before.grams
    for first in range(0, len(after.grams), at_once):
        group = slice(first, first + at_once)
        if not wanted[:, group].any():
            break
        paired = paired_norms(
            after.grams[group],
            before.grams,
            squares[:, group],
            size[:, group],
            unit(directions) + noise,
        )
        norms[:, group], directions = paired.norms, paired.middle[:, -1]
        formed[:, group] |= wanted[:, group] & ~paired.certified
        for some in _few(np.argwhere(formed[:, group]), after.grams[0].nbytes):
            middle = paired.middle[tuple(some.T)]
            _form(after, before, some + np.array([0, first]), middle, squares, norms)


def _form(
    after: HalfProducts,
    before: HalfProducts,
    pairs: Int[Array, "some 2"],
    middle: Float[Array, "some n"],
    squares: Float[Array, "b a"],
    norms: Float[Array, "b a"],
) -> None:
    """Write the norms of some products that are formed."""
    stack, place = _products(after, before, pairs), tuple(pairs.T)
    squares[place] = _squares(stack)
    left = np.matvec(after.products[place[1]], middle)
    norms[place] = certified_norms(stack, unit(np.vecmat(left, stack)), squares[place]).norms


def _products(
    after: HalfProducts, before: HalfProducts, pairs: Int[Array, "some 2"]
) -> Float[Array, "some n n"]:
    return np.asarray(after.products[pairs[:, 1]] @ before.products[pairs[:, 0]])


def _squares(stack: Float[Array, "some n n"]) -> Float[Array, " some"]:
    return np.asarray(np.vecdot(flat := stack.reshape(len(stack), -1), flat))


def _few(pairs: Int[Array, "many 2"], matrix_bytes: int) -> list[Int[Array, "some 2"]]:
    at_once = min(MOST_FORMED, max(1, FORMED_BYTES // matrix_bytes))
    return [pairs[i : i + at_once] for i in range(0, len(pairs), at_once)]


def unit(x: Float[Array, "*many n"]) -> Float[Array, "*many n"]:
    """Brought to unit length; zeros stay."""
    length = np.sqrt(np.vecdot(x, x))[..., None]
    return np.asarray(x / np.where(length > 0.0, length, 1.0))
