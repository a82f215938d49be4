"""Norms and products that never leave the range of floating point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.lanczos import (
    FIRST_CHECK,
    gram_dominated,
    largest_eigenpair,
    leading_values,
    root_eigenvalues,
)

# Proofs by which a norm is accepted, cheapest first.
PATHS = ("power", "lanczos", "cholesky", "exact")
POWER, LANCZOS, CHOLESKY, EXACT = range(4)
# Relative error that power steps may leave in a squared norm.
POWER_TOLERANCE = 1e-13
POWER_STEPS = 6
# Squared residuals of a power step: below the first its vector hardly turns, below the second it is
# a singular vector.
SETTLED, STATIONARY = 1e-2, 1e-11
# Squared remainder of the Frobenius norm beyond which a vector is not worth a second power step.
FAR, MOST = 1.5, 1e9
# The same, up to which a norm may be proven, and a little more.
ISOLATED = 0.6
# Squared length of P w below which P counts as not seeing w: its inverse squared is a float still.
UNSEEN = 1e-120
# Below this size of a Gram matrix its largest eigenvalue is found as fast as by Lanczos steps.
SMALLEST_FOR_LANCZOS = 56
# From this size on Gram matrices are expensive, and not formed where the squared remainder of the
# Frobenius norm lets few Lanczos steps prove a norm without.
SMALLEST_AS_FACTOR, FEW_VALUES = 96, 2.5
# Below this one all eigenvalues of all matrices are, in one call.
SMALLEST_ALONE = 16
MIXED_IN = 0.05
# Matrices that take their Lanczos steps together: as many steps as the slowest of them needs.
TOGETHER, GRAM_BYTES = 16, 1 << 20


def log(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Natural logarithm with ln 0 = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def sign_fixed_qr(
    A: Float[Array, "n m"],
) -> tuple[Float[Array, "n m"], Float[Array, "m m"]]:
    """QR factorization with a non-negative diagonal of R: unique, Haar for Gaussian A."""
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diag(R) < 0.0, -1.0, 1.0)
    return Q * signs, R * signs[:, None]


def log_euclidean_norm(x: Float[Array, "..."]) -> float:
    """ln of the root of the sum of squares of all entries, scaled so that nothing overflows."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0:
        return -np.inf
    scaled = np.asarray(x, dtype=np.float64) / largest
    return float(np.log(largest) + 0.5 * np.log(np.sum(scaled**2)))


def rescale(
    stack: Float[Array, "*count n m"],
) -> tuple[Float[Array, "*count n m"], Int[Array, "*count"]]:
    """Matrices divided by exact powers of two, so that the largest entry is in [1/2, 1).

    Returns
    -------
    stack, exponent
        ``stack * 2**exponent`` is the argument, to the last bit; a zero matrix stays zero.
    """
    largest = np.abs(stack).max(axis=(-2, -1), initial=0.0)
    exponent = np.asarray(np.frexp(largest)[1], dtype=np.int64)
    return over_power(stack, exponent[..., None, None]), exponent


def over_power(x: Float[Array, "*shape"], exponent: Int[Array, "*any"]) -> Float[Array, "*shape"]:
    """x / 2**exponent, exact also where the power itself leaves the range of floats."""
    first = np.clip(exponent, -1000, 1000)
    scaled, rest = x * np.ldexp(1.0, -first), exponent - first
    return np.asarray(scaled * np.ldexp(1.0, -rest) if rest.any() else scaled)


def norms_of(stack: Float[Array, "count n m"]) -> Float[Array, " count"]:
    """Spectral norms of unrelated matrices of any scale; 0 for zero matrices."""
    if stack.shape[2] > stack.shape[1]:
        stack = stack.transpose(0, 2, 1)
    scaled, exponent = rescale(stack)
    width = stack.shape[-1]
    start = np.full((len(stack), width), 1.0 / np.sqrt(width))
    with np.errstate(over="ignore"):  # a norm beyond float64 is inf
        return np.asarray(np.ldexp(spectral_norms(scaled, start)[0], exponent))


def spectral_norms(
    stack: Float[Array, "count n m"],
    start: Float[Array, "count m"],
    frobenius: Float[Array, " count"] | None = None,
) -> tuple[Float[Array, " count"], Float[Array, "count m"]]:
    """Largest singular values of many matrices, each certified: see `certified_norms`."""
    certified = certified_norms(stack, start, frobenius)
    return certified.norms, certified.right


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CertifiedNorms:
    """Largest singular values, and by which proof each was accepted."""

    norms: Float[Array, " count"]
    right: Float[Array, "count m"]  # unit vectors to start the next matrices of a chain from
    path: Int[Array, " count"]  # index into PATHS
    steps: int  # Lanczos steps of the last matrices, or those that were expected

    @property
    def counts(self) -> dict[str, int]:
        """Matrices by path."""
        return {name: int((self.path == index).sum()) for index, name in enumerate(PATHS)}


def certified_norms(
    stack: Float[Array, "count n m"],
    start: Float[Array, "count m"],
    frobenius: Float[Array, " count"] | None = None,
    *,
    expected: int = FIRST_CHECK,
    rest: float | None = None,
) -> CertifiedNorms:
    r"""Largest singular values of many matrices, each with a bound from below and from above.

    Parameters
    ----------
    stack
        Entries of order one (see `rescale`); cheapest with fewer columns than rows.
    start
        Guesses of the right singular vectors, of unit length.
    frobenius
        Squared Frobenius norms, if they are known.
    expected
        Lanczos steps that matrices like these took.
    rest
        About :math:`\rho` of all, see below, if that is known: power steps are tried only where it
        is small enough for them.

    Returns
    -------
    certified
        Norms with a relative error below 2e-11. Each but those of the path ``exact`` is the length
        of P w for a unit vector w, and so no upper bound in disguise.

    Notes
    -----
    The paths, cheapest first, each for what the ones before left:

    ``power``
        A few power steps, accepted where they prove an error below 1e-13. With
        :math:`v = P w`, :math:`x = P^T v/|v|^2` and :math:`s^2 = |v|^2 |x|^2` (a lower bound of
        :math:`\sigma_1^2`), put :math:`\rho = (\lVert P \rVert_F^2 - s^2)/s^2`. If
        :math:`\rho \le 1/2`, every other :math:`\sigma_i^2 \le \rho s^2`, and the part of
        :math:`\sigma_1^2/s^2` that is missing is at most
        :math:`\rho (1 + \rho) (|x|^2 - 1) |x|^2 / (1 - \rho |x|^2)^2`, since the residual bounds
        the weight of ``w`` outside the leading direction.
    ``lanczos``
        See `gradlab.lanczos.leading_values`.
    ``cholesky``
        The value of either, if :math:`(s (1 + 2 \cdot 10^{-11}))^2 I - P^T P` has a Cholesky
        factor.
    ``exact``
        The largest eigenvalue of P^T P, by a dense solve: also of all small matrices.

    Derivation: docs/theory.md, "Certified norms".
    """
    if frobenius is None:
        frobenius = np.vecdot(flat := stack.reshape(len(stack), -1), flat)
    search = _Search(stack, start, frobenius, expected)
    if rest is None or rest <= ISOLATED:
        pending, settled = search.by_power_steps()
    else:
        pending, settled = np.arange(len(stack)), np.zeros(len(stack), dtype=bool)
        search.rest[:] = rest
    size = max(1, min(TOGETHER, GRAM_BYTES // (8 * stack.shape[2] ** 2)))
    for first in range(0, len(pending), size):
        some, known = pending[first : first + size], settled[first : first + size]
        search.by_factors(some, known)
        if (left := search.path[some] == POWER).any():
            search.by_gram_matrices(some[left], known[left])
    return CertifiedNorms(
        norms=search.norms, right=search.right, path=search.path, steps=search.steps
    )


def gram_norms(
    grams: Float[Array, "count n n"], start: Float[Array, "count n"], *, expected: int = FIRST_CHECK
) -> CertifiedNorms:
    """Norms of matrices P of which P^T P is known, as `certified_norms` gives them.

    Parameters
    ----------
    grams
        Of order one; may be overwritten.
    start, expected
        As there.
    """
    search = _Search(grams, start, np.trace(grams, axis1=1, axis2=2), expected)
    search.by_grams(grams, np.arange(len(grams)), np.zeros(len(grams), dtype=bool))
    return CertifiedNorms(
        norms=search.norms, right=search.right, path=search.path, steps=search.steps
    )


class _Search:
    """Norms, vectors and paths of a stack, as far as they are proven."""

    def __init__(
        self,
        stack: Float[Array, "count n m"],
        start: Float[Array, "count m"],
        frobenius: Float[Array, " count"],
        expected: int,
    ) -> None:
        self.stack, self.frobenius = stack, frobenius
        self.norms, self.right = np.empty(len(stack)), start.copy()
        self.path, self.steps = np.full(len(stack), POWER), expected
        self.rest = np.empty(len(stack))  # of the squared Frobenius norm, over the squared norm

    def by_power_steps(self) -> tuple[Int[Array, " rest"], Bool[Array, " rest"]]:
        """Indices of what stays unproven, and whether the vector settled there."""
        error, excess = np.empty(len(self.stack)), np.empty(len(self.stack))
        some = np.arange(len(self.stack))
        for left in range(POWER_STEPS - 1, -1, -1):
            self.norms[some], self.right[some], error[some], excess[some], rest = _power_step(
                _taken(self.stack, some), self.right[some], self.frobenius[some]
            )
            self.rest[some] = rest
            # A step shrinks the error to rest**2 of it, or less. Where it is nan there is no hope.
            hopeful = np.where(np.isinf(error[some]), 0.0, error[some]) * rest ** (2 * left)
            within_reach = hopeful <= POWER_TOLERANCE
            some = _covering(some[within_reach & (error[some] > POWER_TOLERANCE)])
            if len(some) == 0:
                break
        pending = np.flatnonzero(~(error <= POWER_TOLERANCE))
        return pending, excess[pending] <= STATIONARY

    def by_factors(self, some: Int[Array, " some"], settled: Bool[Array, " some"]) -> None:
        """What Lanczos steps on large matrices tell, where few values make up nearly all."""
        if self.stack.shape[2] < SMALLEST_AS_FACTOR:
            return
        fresh = np.flatnonzero(~settled & (self.rest[some] <= FEW_VALUES))
        if len(fresh):
            stack, squares = _taken(self.stack, some[fresh]), self.frobenius[some[fresh]]
            self.by_lanczos(stack, some[fresh], squares)
            settled[fresh] = True

    def by_gram_matrices(self, some: Int[Array, " some"], settled: Bool[Array, " some"]) -> None:
        """What Lanczos steps, a Cholesky factor or an eigenvalue solve tell."""
        stack = _taken(self.stack, some)
        self.by_grams(np.matmul(stack.transpose(0, 2, 1), stack), some, settled)

    def by_grams(
        self,
        grams: Float[Array, "some m m"],
        some: Int[Array, " some"],
        settled: Bool[Array, " some"],
    ) -> None:
        """The same from P^T P, which may be overwritten."""
        self.path[some] = EXACT
        if grams.shape[1] >= SMALLEST_FOR_LANCZOS:
            if len(fresh := np.flatnonzero(~settled)):
                settled[fresh] = ~self.by_lanczos(_taken(grams, fresh), some[fresh])
            for place in np.flatnonzero(settled):
                if gram_dominated(grams[place], self.norms[some[place]]):
                    self.path[some[place]] = CHOLESKY
        self.by_eigenvalues(grams, some)

    def by_eigenvalues(self, grams: Float[Array, "some m m"], some: Int[Array, " some"]) -> None:
        """Norms of what nothing cheaper has proven."""
        rest = np.flatnonzero(self.path[some] == EXACT)
        if grams.shape[1] < SMALLEST_ALONE and len(rest):
            self.norms[some[rest]] = root_eigenvalues(grams[rest])
            return
        for place in rest:
            self.norms[some[place]], self.right[some[place]] = largest_eigenpair(grams[place])

    def by_lanczos(
        self,
        matrices: Float[Array, "some n m"],
        some: Int[Array, " some"],
        squares: Float[Array, " some"] | None = None,
    ) -> Bool[Array, " some"]:
        """Which of some are proven by Lanczos steps."""
        # A start without any weight in the leading direction would stay on another one.
        start = self.right[some] + MIXED_IN * _scattered(matrices.shape[2])
        leading = leading_values(matrices, start, expected=self.steps, squares=squares)
        self.norms[some], self.right[some] = np.sqrt(leading.values), leading.vectors
        self.path[some[leading.certified]] = LANCZOS
        self.steps = leading.steps
        return leading.certified


def _power_step(
    P: Float[Array, "count n m"], w: Float[Array, "count m"], frobenius: Float[Array, " count"]
) -> tuple[
    Float[Array, " count"],
    Float[Array, "count m"],
    Float[Array, " count"],
    Float[Array, " count"],
    Float[Array, " count"],
]:
    """Norm, next right vector, proven relative error of its square, squared residual, and ρ.

    The error is inf where nothing is proven yet, and nan where further steps would hardly prove
    anything: other singular values are too close, or the vector is far from all of them.
    """
    v = np.matvec(P, w)
    v_squared = np.vecdot(v, v)
    v_squared = np.where(v_squared > UNSEEN, v_squared, 0.0)
    x = np.vecmat(v, P) / _nonzero(v_squared)[:, None]
    x_squared = np.vecdot(x, x)
    s_squared = v_squared * x_squared
    # Cut off far above what matters: w may be nearly orthogonal to all that P sees.
    rest = np.minimum(np.maximum(frobenius - s_squared, 0.0) / _nonzero(s_squared), MOST)
    excess = np.minimum(np.maximum(x_squared - 1.0, 0.0), MOST)
    room = np.maximum(1.0 - rest * (1.0 + excess), 0.1)
    isolated = (rest <= 0.5) & (room > 0.1) & (s_squared > 0.0)
    error = rest * (1.0 + rest) * excess * (1.0 + excess) / room**2
    unproven = np.where((excess < SETTLED) | (rest > FAR), np.nan, np.inf)
    unproven = np.where(rest <= 0.5, np.inf, unproven)
    error = np.where(isolated, error, unproven)
    zero = frobenius == 0.0
    following = np.where(v_squared[:, None] > 0.0, x / np.sqrt(_nonzero(x_squared))[:, None], w)
    return np.sqrt(s_squared), following, np.where(zero, 0.0, error), excess, rest


def _covering(some: Int[Array, " some"]) -> Int[Array, " range"]:
    """Indices with those in between, where a copy of the matrices would cost more."""
    if len(some) and some[-1] - some[0] < 2 * len(some):
        return np.arange(some[0], some[-1] + 1)
    return some


def _taken(stack: Float[Array, "count n m"], some: Int[Array, " some"]) -> Float[Array, "some n m"]:
    """Matrices of ascending indices, without a copy where these are neighbors."""
    if some[-1] - some[0] == len(some) - 1:
        return stack[some[0] : some[-1] + 1]
    if stack.strides[1] < stack.strides[2]:  # a copy by columns where they are what is contiguous
        return stack.transpose(0, 2, 1)[some].transpose(0, 2, 1)
    return stack[some]


def _scattered(n: int) -> Float[Array, " n"]:
    """A unit vector in no particular direction, always the same."""
    vector = np.sin(np.arange(1.0, n + 1.0) ** 2)
    return np.asarray(vector / np.sqrt(vector @ vector))


def norms_by_eigenvalues(stack: Float[Array, "count n m"]) -> Float[Array, " count"]:
    """The largest eigenvalue of P P^T is as accurate as that of a singular value decomposition."""
    flat = stack if stack.shape[1] <= stack.shape[2] else stack.transpose(0, 2, 1)
    return root_eigenvalues(flat @ flat.transpose(0, 2, 1))


def dominates(P: Float[Array, "n m"], norm: float) -> bool:
    """Whether norm (1 + 2e-11) is proven to be above all singular values of P."""
    return gram_dominated(P @ P.T if P.shape[0] <= P.shape[1] else P.T @ P, norm)


def _nonzero(x: Float[Array, " count"]) -> Float[Array, " count"]:
    return np.where(x > 0.0, x, 1.0)


def singular_values(W: Float[Array, "n m"]) -> Float[Array, " k"]:
    """All singular values, largest first, scaled against overflow; float64, inf beyond it."""
    scaled, exponent = rescale(np.asarray(W, dtype=np.float64))
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.linalg.svd(scaled, compute_uv=False), exponent))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Context with one BLAS thread: the same bits on any number of cores.

    Small products gain nothing from threads, and lose much when several processes run.
    """
    import scipy.linalg  # noqa: F401  SciPy brings a BLAS of its own, which must be there to be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
