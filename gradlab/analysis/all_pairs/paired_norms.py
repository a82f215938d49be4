"""Spectral norms of all products A B of some matrices A and some B, without forming a product.

Lanczos steps for all pairs at once: each A meets the vectors of all B and each B those of all A, so
that what would be a matrix times a vector for every pair is a product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradlab.analysis.all_pairs.tridiagonal import all_below, largest_eigenvalue, leading_vector
from gradlab.arrays import Array

EPSILON = float(np.finfo(np.float64).eps)
# Relative error of a norm that is proven.
PROVEN = 1e-11
# Rounding of what is computed from Gram matrices, in units of eps ‖G‖ ‖H‖: measured below 1.
ROUNDING = 8.0
LEAST_STEPS, MOST_STEPS = 4, 21
# Steps after which values are looked at.
CHECKS = (2, 3, 4, 5, 7, 9, 12, 16, MOST_STEPS)
# Pairs left whose products are formed in less time than more steps would take.
FEW = 8
# Share of a direction that is rounding noise, relative to the value.
VANISHED = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedNorms:
    """Largest singular values of all products A B, by B and A."""

    norms: Float[Array, "b a"]
    middle: Float[Array, "b a n"]  # y, between the factors: A y is the left singular vector
    certified: Bool[Array, "b a"]


def paired_norms(
    G: Float[Array, "a n n"],
    H: Float[Array, "b n n"],
    frobenius: Float[Array, "b a"],
    size: Float[Array, "b a"],
    start: Float[Array, "b n"],
) -> PairedNorms:
    r"""Leading singular values of P = A B from the Gram matrices :math:`A^T A` and :math:`B B^T`.

    Parameters
    ----------
    G, H
        The Gram matrices :math:`A^T A` and :math:`B B^T`, of order one.
    frobenius
        Squared Frobenius norms of all products, tr(G H).
    size
        Products of the Frobenius norms of G and H, to which rounding errors are proportional.
    start
        Directions between the factors to start from, for each B.

    Returns
    -------
    paired
        Norms proven to 1e-11 where ``certified``, lower bounds elsewhere.

    Notes
    -----
    Lanczos' recurrence for :math:`P P^T`, with each left vector u = A y kept as y and g = G y: the
    operator is H G, self-adjoint in the inner product of G. Derivation: docs/theory.md, "All
    pairs".
    """
    # Gram matrices that hide a product leave numbers far out of range: nothing is proven there.
    with np.errstate(all="ignore"):
        return _paired_norms(_Lanczos(G, H, start), frobenius, size)


def _paired_norms(
    run: _Lanczos, frobenius: Float[Array, "b a"], size: Float[Array, "b a"]
) -> PairedNorms:
    G, H = run.G, run.H
    result = PairedNorms(
        norms=np.zeros(frobenius.shape),
        middle=np.empty((*frobenius.shape, G.shape[-1])),
        certified=np.zeros(frobenius.shape, dtype=bool),
    )
    values = np.zeros(frobenius.shape)
    most = max(1, min(MOST_STEPS, G.shape[-1] // 2))
    remaining = np.ones(frobenius.shape, dtype=bool)
    for steps in [check for check in CHECKS if check < most] + [most]:
        b, a = (int(np.flatnonzero(remaining.any(axis=1 - axis))[-1]) + 1 for axis in (0, 1))
        run.restrict(b, a)
        run.advance(steps)
        found, here = run.values(), remaining[:b, :a]
        proven, hopeless = _judged(run, found, frobenius[:b, :a], size[:b, :a], most - steps)
        ended = here & (proven | hopeless | (steps == most))
        if np.count_nonzero(here & ~ended) <= FEW:
            ended = here.copy()
        result.middle[:b, :a][ended] = run.vectors(found, ended)
        result.certified[:b, :a][ended] = proven[ended]
        values[:b, :a][ended] = found[ended]
        here &= ~ended
        if not here.any():
            break
    run.forget()
    _measure(G, H, values, result)
    return result


def _judged(
    run: _Lanczos,
    values: Float[Array, "b a"],
    frobenius: Float[Array, "b a"],
    size: Float[Array, "b a"],
    left: int,
) -> tuple[Bool[Array, "b a"], Bool[Array, "b a"]]:
    """Which values are proven to be the largest, and which will not be by the steps left."""
    noise = ROUNDING * EPSILON * size
    diagonal, beside = run.tridiagonal()
    rest = np.maximum(frobenius - diagonal.sum(axis=0), 0.0) + noise
    bordered = np.concatenate([diagonal, rest[None]])
    limit = values * (1.0 + 2.0 * PROVEN) - noise
    proven = all_below(bordered, beside, limit)
    unresolved = ~(noise < PROVEN * values)
    if run.steps < LEAST_STEPS:
        return proven, unresolved
    # A further step hardly takes more from the rest than the last one did.
    return proven, unresolved | ~(rest - left * diagonal[-1] < values)


def _measure(
    G: Float[Array, "a n n"],
    H: Float[Array, "b n n"],
    values: Float[Array, "b a"],
    result: PairedNorms,
) -> None:
    """Rayleigh quotients of the vectors found: no value counts that they do not confirm."""
    y = result.middle
    g = _against(G, y)
    length = np.vecdot(y, g)
    quotient = np.vecdot(g, _by(H, g)) / np.where(length > 0.0, length, np.inf)
    result.norms[:] = np.nan_to_num(np.sqrt(np.maximum(quotient, 0.0)))
    result.certified[:] &= np.abs(quotient - values) <= 2.0 * PROVEN * values


class _Lanczos:
    """Directions y_0, y_1, ... of all pairs, orthonormal by y·Gy, and the tridiagonal matrices."""

    def __init__(
        self, G: Float[Array, "a n n"], H: Float[Array, "b n n"], start: Float[Array, "b n"]
    ) -> None:
        self.G, self.H, self.steps = G, H, 0
        self.known: tuple[int, Array | None] = (0, None)  # rows, and their largest Ritz values
        y = np.repeat(start[:, None], len(G), axis=1)
        self.next, self.next_g = self._normalized(y, _against(G, y))[:2]
        self.y: list[Array] = []
        self.g: list[Array] = []
        self.alpha: list[Array] = []
        self.beta: list[Array] = []

    def restrict(self, b: int, a: int) -> None:
        """Go on with the first pairs only."""
        if (b, a) == self.next.shape[:2]:
            return
        self.G, self.H = self.G[:a], self.H[:b]
        self.next, self.next_g = self.next[:b, :a], self.next_g[:b, :a]
        rows, value = self.known
        self.known = rows, None if value is None else value[:b, :a]
        for kept in (self.y, self.g, self.alpha, self.beta):
            kept[:] = [each[:b, :a] for each in kept]

    def advance(self, steps: int) -> None:
        """Go on to a number of directions."""
        while self.steps < steps:
            self._step()

    def _step(self) -> None:
        y, g = self.next, self.next_g
        z = _by(self.H, g)
        self.y.append(y)
        self.g.append(g)
        self.alpha.append(np.vecdot(g, z))
        for direction, image in zip(reversed(self.y), reversed(self.g), strict=True):
            z -= np.vecdot(image, z)[..., None] * direction
        self.next, self.next_g, beta = self._normalized(z, _against(self.G, z))
        self.beta.append(beta)
        self.steps += 1

    def forget(self) -> None:
        """Let go of the directions."""
        self.y, self.g = [], []

    def tridiagonal(self) -> tuple[Float[Array, "steps b a"], Float[Array, "steps b a"]]:
        """Diagonal, and what couples each direction to the next."""
        return np.stack(self.alpha), np.stack(self.beta)

    def values(self) -> Float[Array, "b a"]:
        """Largest Ritz values."""
        diagonal, beside = self.tridiagonal()
        value = largest_eigenvalue(diagonal, beside[:-1], *self.known)
        self.known = self.steps, value
        return value

    def vectors(
        self, values: Float[Array, "b a"], where: Bool[Array, "b a"]
    ) -> Float[Array, "some n"]:
        """Ritz vectors of the largest values, of any length."""
        diagonal, beside = (part[:, where] for part in self.tridiagonal())
        weights = leading_vector(diagonal, beside[:-1], values[where])
        total = self.y[0][where]
        for weight, y in zip(weights[1:], self.y[1:], strict=True):
            total += weight[:, None] * y[where]
        return np.nan_to_num(total, posinf=0.0, neginf=0.0)

    def _normalized(
        self, y: Float[Array, "b a n"], g: Float[Array, "b a n"]
    ) -> tuple[Float[Array, "b a n"], Float[Array, "b a n"], Float[Array, "b a"]]:
        length = np.sqrt(np.maximum(np.vecdot(y, g), 0.0))
        if self.steps:
            length[length <= VANISHED * self.alpha[0]] = 0.0
        scale = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)[..., None]
        y *= scale
        g *= scale
        return y, g, length


def _against(G: Float[Array, "a n n"], y: Float[Array, "b a n"]) -> Float[Array, "b a n"]:
    """G y for each A, together for all B."""
    return np.asarray((y.transpose(1, 0, 2) @ G).transpose(1, 0, 2))


def _by(H: Float[Array, "b n n"], g: Float[Array, "b a n"]) -> Float[Array, "b a n"]:
    """H g for each B, together for all A."""
    return np.asarray(g @ H)
