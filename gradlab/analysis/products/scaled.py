r"""Long products of Jacobians and of their inverses, extended step by step for several end times.

The inverses are there for the smallest singular value: a product of many Jacobians loses it to
rounding (in float64 it is noise below 1e-16 of the largest), but the product of the inverses holds
the same number as its *largest* one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.cells.base import LinearStep
from gradlab.linalg import log, over_power, rescale, spectral_norms

LOG_2 = float(np.log(2.0))
EPSILON = float(np.finfo(np.float64).eps)
# Estimated relative error of the inverses' product above which a value is called unresolved.
RESOLUTION = 1e-6
# Entries of an inverse whose matrix is as good as singular: no digit of it is told.
BEYOND = 1e100
# An exponent below all others, and a shift that makes any column vanish beside the largest.
LEAST, LEAST_SHIFT = -(2**62), -2000
# Squared lengths of rows beyond which they are rescaled, and the powers of two between rows that
# share an exponent.
LOW, HIGH, NEAR = 2.0**-128, 2.0**128, 48
SHORTEST = 2.0**-900
# Power steps on the last of several matrices of a chain, for a start that suits all of them.
REFINEMENTS, WORTH_REFINING = 2, 4
# Norms taken at a time: enough to make the calls cheap, few enough to stay in the cache.
MATRICES, MATRIX_BYTES = 64, 1 << 20


@runtime_checkable
class Pull(Protocol):
    """What a product is multiplied by from the right: the part of a step that pulls back."""

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """Transposed action."""


class ScaledProducts:
    """P_{t,k} for several end times t: rows near one in size, and powers of two.

    Row i belongs to unit i at time t. Rows are pulled back independently of each other, so that
    each may have an exponent of its own, and no unit's gradient is lost beside a larger one. They
    are looked at in every step and rescaled only where one leaves 2**-64 .. 2**64; rows that are
    near each other then share an exponent.
    """

    def __init__(self, batch: int, n: int) -> None:
        self.batch = batch
        self.rows = np.empty((batch, 0, n, n))
        self.exponent = np.empty((batch, 0, n), dtype=np.int64)
        self.empty = np.empty((batch, 0, n))  # 1 where a row is zero, and so stays zero
        self.level = True  # whether the rows of each product share an exponent

    def renew(self, kept: Bool[Array, " ends"], *, begin: bool) -> None:
        """Leave the products not kept, and begin one more with the identity if asked to."""
        if begin or not kept.all():
            for name in ("rows", "exponent", "empty"):
                setattr(self, name, _renewed(getattr(self, name), kept, begin))

    def extend(self, step: Pull) -> None:
        """Multiply every product by the Jacobian of an earlier step."""
        if self.rows.shape[1] == 0:
            return
        before = self.rows
        lengths = self._pull(step)
        shortest = np.minimum.reduce(lengths, axis=None)
        longest = np.maximum.reduce(lengths, axis=None)
        if not (shortest > SHORTEST and longest < np.inf):
            # A step of extreme size may have lost digits: take it again from rows of order one.
            self.rows = before
            self._rescale()
            self._pull(step)
            self._rescale()
        elif not (shortest > LOW and longest < HIGH):
            self._rescale()

    def _pull(self, step: Pull) -> Float[Array, "batch ends n"]:
        """Multiply by J; squared lengths of the rows, or 1 of those that were zero before."""
        batch, count, n, _ = self.rows.shape
        pulled = pulled_rows(step, self.rows.reshape(batch, count * n, n))
        self.rows = pulled.reshape(batch, count, n, n)
        with np.errstate(over="ignore"):
            return np.asarray(np.vecdot(self.rows, self.rows) + self.empty)

    def _rescale(self) -> None:
        size = np.abs(self.rows).max(axis=3)
        present = size > 0.0
        absolute = np.where(present, self.exponent + np.frexp(size)[1], LEAST)
        common = absolute.max(axis=2, keepdims=True)
        near = (absolute >= common - NEAR) | ~present
        level = near.all(axis=2, keepdims=True)
        target = np.where(present & ~level, absolute, common)
        shift = np.where(present, self.exponent - target, 0)
        # Products may wait for their norms: theirs are other arrays.
        self.rows = over_power(self.rows, -shift[..., None])
        self.exponent = np.where(present, self.exponent - shift, common)
        self.exponent = np.where(common == LEAST, 0, self.exponent)
        self.empty = (~present).astype(np.float64)
        self.level = bool((self.exponent == self.exponent[:, :, :1]).all())

    def assembled(self) -> tuple[Float[Array, "batch ends n n"], Float[Array, "batch ends"]]:
        """Matrices of order one, and the logarithms of their scales."""
        if self.level:
            return self.rows, self.exponent[:, :, 0] * LOG_2
        present = self.empty == 0.0
        scale = np.where(present, self.exponent, LEAST).max(axis=2)
        shift = np.where(present, self.exponent - scale[:, :, None], 0)
        whole = self.rows * np.ldexp(1.0, np.maximum(shift, LEAST_SHIFT))[..., None]
        return whole, np.where(scale == LEAST, 0, scale) * LOG_2


def pulled_rows(
    step: Pull, rows: Float[Array, "batch m n"], out: Float[Array, "batch m n"] | None = None
) -> Float[Array, "batch m n"]:
    """Rows times J, in new memory or in ``out``: rows of gradients pulled back by a step."""
    # Asked for by name: a step is made at every lag, and checking it for a protocol costs as much.
    by_rows: Callable[[Array, Array | None], Array] | None = getattr(step, "pull_rows", None)
    if by_rows is not None:
        return by_rows(rows, out)
    columns = step.apply_transpose(rows.transpose(0, 2, 1)).transpose(0, 2, 1)
    if out is None:
        return np.ascontiguousarray(columns)
    out[...] = columns
    return out


@runtime_checkable
class Products(Protocol):
    """What inverses are collected in."""

    batch: int

    def renew(self, kept: Bool[Array, " ends"], *, begin: bool) -> None:
        """Leave the products not kept, and begin one more with the identity if asked to."""

    def extend(self, step: Pull) -> None:
        """Multiply every product by one more step."""


Carried = TypeVar("Carried", bound=Products)


class InverseProducts(Generic[Carried]):
    """Inverses of several products that are extended by the same Jacobians, transposed.

    `verdict` is 0 where the inverse tells the smallest singular value; -inf once a step had a row
    or column of zeros (an exact rank loss); nan once the accumulated estimate n · eps · cond(J) of
    the relative error passes 1e-6. The rows of each J are brought to unit length first: that part
    of the condition, diag(phi'), inverts without error.
    """

    def __init__(self, products: Carried) -> None:
        batch = products.batch
        self.products = products
        self.log_scale = np.empty((batch, 0))
        self.error = np.empty((batch, 0))
        self.singular = np.empty((batch, 0), dtype=bool)
        self.inverted: tuple[Array, UnitRowInverse] | None = None

    @property
    def verdict(self) -> Float[Array, "batch ends"]:
        """What may be said of each product's smallest singular value."""
        return verdict(self.error, self.singular)

    def renew(self, kept: Bool[Array, " ends"], *, begin: bool) -> None:
        """Leave the products not kept, and begin one more with the identity if asked to."""
        self.products.renew(kept, begin=begin)
        for name in ("log_scale", "error", "singular"):
            setattr(self, name, _renewed(getattr(self, name), kept, begin))

    def extend(self, step: LinearStep) -> None:
        """Multiply every product by J from the right, its inverse by J⁻¹ from the left."""
        rows, factors = self._rows(step)
        inverse = rows.scaled(factors)
        self.products.extend(WeightedInverse(inverse=rows.inverse, weights=inverse.weights))
        self.log_scale = self.log_scale + inverse.log_scale[:, None]
        self.error = self.error + rows.error[:, None]
        self.singular = self.singular | inverse.lost[:, None]

    def _rows(self, step: LinearStep) -> tuple[UnitRowInverse, Float[Array, "batch n"]]:
        """J = diag(factors) times what is inverted; that is kept as long as it is the same."""
        if not isinstance(step, RowScaled):
            J = step.matrix()
            return UnitRowInverse.of(J), np.ones(J.shape[:2])
        W, factors = step.row_scaled
        if self.inverted is None or self.inverted[0] is not W:
            self.inverted = W, UnitRowInverse.of(W[None])
        return self.inverted[1], factors


@runtime_checkable
class RowScaled(Protocol):
    """A step that is a fixed matrix with scaled rows."""

    @property
    def row_scaled(self) -> tuple[Float[Array, "n n"], Float[Array, "batch n"]]:
        """W and d of J = diag(d) W."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitRowInverse:
    """J = diag(lengths) B with rows of unit length in B, whose inverse is here."""

    inverse: Float[Array, "batch n n"]
    log_lengths: Float[Array, "batch n"]
    lost: Bool[Array, " batch"]  # an exact rank loss
    error: Float[Array, " batch"]  # relative error of the inverse

    @classmethod
    def of(cls, J: Float[Array, "batch n n"]) -> UnitRowInverse:
        """Inverse with an estimate of its error, inf where there is none."""
        B, log_lengths, lost = unit_rows(J)
        inverse, singular = _inverses(B)
        condition = np.linalg.norm(B, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
        error = np.where(singular, np.inf, J.shape[-1] * EPSILON * condition)
        return cls(inverse=inverse, log_lengths=log_lengths, lost=lost, error=error)

    def scaled(self, factors: Float[Array, "steps n"]) -> ScaledInverse:
        """Inverse of diag(factors) J."""
        log_rows = self.log_lengths + log(np.where(factors == 0.0, 1.0, np.abs(factors)))
        shortest = log_rows.min(axis=1)
        return ScaledInverse(
            weights=np.copysign(np.exp(shortest[:, None] - log_rows), factors),
            log_scale=-shortest,
            lost=self.lost | (factors == 0.0).any(axis=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledInverse:
    """B⁻¹ diag(weights) exp(log_scale), with weights up to one."""

    weights: Float[Array, "steps n"]
    log_scale: Float[Array, " steps"]
    lost: Bool[Array, " steps"]  # an exact rank loss


def verdict(
    error: Float[Array, "*shape"], singular: Bool[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """What may be said of a smallest singular value: 0 if it is told, -inf if it is zero, nan."""
    return np.where(singular, -np.inf, np.where(error <= RESOLUTION, 0.0, np.nan))


def log_smallest(
    verdicts: Float[Array, "*shape"], log_inverse: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """ln of smallest singular values, from the norms of the inverses."""
    with np.errstate(invalid="ignore"):  # nan, not resolved: an inverse out of range
        return np.where(np.isneginf(verdicts), -np.inf, verdicts - log_inverse)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedInverse:
    """B⁻¹ diag(weights), as what the transposed inverses are multiplied by."""

    inverse: Float[Array, "some n n"]  # one for all sequences, or one for each
    weights: Float[Array, "batch n"]

    def apply_transpose(self, U: Float[Array, "batch n m"]) -> Float[Array, "batch n m"]:
        """B⁻¹ diag(weights) U."""
        rows = U.transpose(0, 2, 1) * self.weights[:, None, :]
        return np.asarray((rows @ self.inverse.transpose(0, 2, 1)).transpose(0, 2, 1))


class NormQueue:
    """Norms of matrices that come step by step, taken of many at a time.

    Each slot's matrices belong to one chain of products P, whose leading left direction settles:
    the next power step starts where the last one ended.
    """

    def __init__(self, batch: int, slots: int, n: int) -> None:
        self.left = np.full((batch, slots, n), 1.0 / np.sqrt(n))
        self.waiting: list[tuple[Int[Array, " some"], Float[Array, "batch some rows n"]]] = []
        self.count = self.bytes = 0

    @property
    def full(self) -> bool:
        """Whether enough matrices wait."""
        return self.count >= MATRICES or self.bytes >= MATRIX_BYTES

    def put(self, slots: Int[Array, " some"], stack: Float[Array, "batch some rows n"]) -> None:
        """Let one step's matrices wait; they must not change any more."""
        self.waiting.append((slots, stack))
        self.count += stack.shape[0] * stack.shape[1]
        self.bytes += stack.nbytes

    def take(self) -> Float[Array, "norms matrices"]:
        """ln of the spectral and of the Frobenius norm, step by step; nothing waits any more."""
        rows, n = self.waiting[-1][1].shape[2:]
        parts = [stack.reshape(-1, rows, n) for _, stack in self.waiting]
        flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
        frobenius = np.vecdot(entries := flat.reshape(len(flat), -1), entries)
        self._refine()
        start = [self.left[:, slots].reshape(-1, rows) for slots, _ in self.waiting]
        norms, left = spectral_norms(flat.transpose(0, 2, 1), np.concatenate(start), frobenius)
        slots, stack = self.waiting[-1]
        self.left[:, slots] = left[len(flat) - stack.shape[0] * stack.shape[1] :].reshape(
            *stack.shape[:2], rows
        )
        self.waiting, self.count, self.bytes = [], 0, 0
        return log(np.stack([norms, np.sqrt(frobenius)]))

    def _refine(self) -> None:
        """Bring the directions near to those of the last matrices, which the others share."""
        slots, stack = self.waiting[-1]
        if len(self.waiting) < WORTH_REFINING:
            return
        self.left[:, slots] = refined(self.left[:, slots], stack)


def refined(
    left: Float[Array, "*some rows"], matrix: Float[Array, "*some rows n"]
) -> Float[Array, "*some rows"]:
    """Unit vectors nearer to the leading left directions, by power steps."""
    u = left
    for _ in range(REFINEMENTS):
        u = np.matvec(matrix, np.vecmat(u, matrix))
        length = np.sqrt(np.vecdot(u, u))[..., None]
        u = np.where(length > 0.0, u / np.where(length > 0.0, length, 1.0), left)
    return u


def _renewed(array: Array, kept: Bool[Array, " ends"], begin: bool) -> Array:
    """Array along axis 1 without the entries not kept, and with an identity (or 0) if begun."""
    rest = array if kept.all() else array[:, kept]
    if not begin:
        return rest
    fresh: Array = np.eye(array.shape[-1]) if array.ndim == 4 else np.zeros(())
    shape = (array.shape[0], 1, *array.shape[2:])
    return np.concatenate([rest, np.broadcast_to(fresh, shape).astype(array.dtype)], axis=1)


def _inverses(
    B: Float[Array, "batch n n"],
) -> tuple[Float[Array, "batch n n"], Bool[Array, " batch"]]:
    """Inverses, and which matrices have none within reach: theirs is the identity."""
    eye = np.eye(B.shape[-1])
    try:
        inverse, singular = np.linalg.inv(B), np.zeros(len(B), dtype=bool)
    except np.linalg.LinAlgError:
        with np.errstate(divide="ignore"):  # a determinant below float64
            sign, log_det = np.linalg.slogdet(B)
        singular = (sign == 0.0) | np.isneginf(log_det)
        inverse = np.linalg.inv(np.where(singular[:, None, None], eye, B))
    singular = singular | ~(np.abs(inverse).max(axis=(1, 2)) < BEYOND)
    return np.where(singular[:, None, None], eye, inverse), singular


def unit_rows(
    J: Float[Array, "batch n n"],
) -> tuple[Float[Array, "batch n n"], Float[Array, "batch n"], Bool[Array, " batch"]]:
    """Rows brought to unit length, the logarithms of their lengths, and exact rank losses.

    Powers of two come out first, so that rows of 1e-300 keep their digits.
    """
    scaled, exponent = rescale(J[:, :, None, :])
    rows = scaled[:, :, 0, :]
    length = np.sqrt(np.vecdot(rows, rows))
    lost = (length == 0.0).any(axis=1) | (np.abs(J).max(axis=1) == 0.0).any(axis=1)
    safe = np.where(length == 0.0, 1.0, length)
    return rows / safe[:, :, None], log(safe) + exponent * LOG_2, lost
