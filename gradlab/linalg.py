"""Norms and products that never leave the range of floating point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.lanczos import CERTIFIED, leading_values

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
FAR = 1.5
# Below this size a full decomposition is as fast as Lanczos steps.
SMALLEST_FOR_LANCZOS = 24
MIXED_IN = 0.05
# Matrices that take their Lanczos steps together: as many steps as the slowest of them needs.
TOGETHER = 8


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

    @property
    def counts(self) -> dict[str, int]:
        """Matrices by path."""
        return {name: int((self.path == index).sum()) for index, name in enumerate(PATHS)}


def certified_norms(
    stack: Float[Array, "count n m"],
    start: Float[Array, "count m"],
    frobenius: Float[Array, " count"] | None = None,
) -> CertifiedNorms:
    r"""Largest singular values of many matrices, each with a bound from below and from above.

    Parameters
    ----------
    stack
        Entries of order one (see `rescale`).
    start
        Guesses of the right singular vectors, of unit length.
    frobenius
        Squared Frobenius norms, if they are known.

    Returns
    -------
    certified
        Norms with a relative error below 1e-10. Each but those of the path ``exact`` is the length
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
        The value of either, if :math:`(s (1 + 10^{-10}))^2 I - P P^T` has a Cholesky factor.
    ``exact``
        All eigenvalues of P P^T.

    Derivation: docs/theory.md, "Certified norms".
    """
    if frobenius is None:
        frobenius = np.vecdot(flat := stack.reshape(len(stack), -1), flat)
    norms, right, path = np.empty(len(stack)), start.copy(), np.full(len(stack), POWER)
    pending, settled = _by_power_steps(stack, norms, right, frobenius)
    if len(pending) == 0:
        return CertifiedNorms(norms=norms, right=right, path=path)
    path[pending] = EXACT
    if min(stack.shape[1:]) >= SMALLEST_FOR_LANCZOS:
        for index in pending[settled]:
            if dominates(stack[index], norms[index]):
                path[index] = CHOLESKY
        _by_lanczos(stack, pending[path[pending] == EXACT], norms, right, path, frobenius)
    if len(rest := pending[path[pending] == EXACT]):
        norms[rest] = norms_by_eigenvalues(stack[rest])
    return CertifiedNorms(norms=norms, right=right, path=path)


def _by_power_steps(
    stack: Float[Array, "count n m"],
    norms: Float[Array, " count"],
    right: Float[Array, "count m"],
    frobenius: Float[Array, " count"],
) -> tuple[Int[Array, " rest"], Bool[Array, " rest"]]:
    """Write norms and vectors; indices of what stays unproven, and whether the vector settled."""
    norms[:], right[:], error, excess = _power_step(stack, right, frobenius)
    open_ended = ~(error <= POWER_TOLERANCE)
    going_on = error > POWER_TOLERANCE  # nan: further steps would prove nothing
    for _ in range(POWER_STEPS - 1):
        some = _covering(np.flatnonzero(going_on))
        if len(some) == 0:
            break
        norms[some], right[some], error, excess[some] = _power_step(
            _taken(stack, some), right[some], frobenius[some]
        )
        open_ended[some] = ~(error <= POWER_TOLERANCE)
        going_on[some] = error > POWER_TOLERANCE
    pending = np.flatnonzero(open_ended)
    return pending, excess[pending] <= STATIONARY


def _power_step(
    P: Float[Array, "count n m"], w: Float[Array, "count m"], frobenius: Float[Array, " count"]
) -> tuple[
    Float[Array, " count"],
    Float[Array, "count m"],
    Float[Array, " count"],
    Float[Array, " count"],
]:
    """Norm, next right vector, proven relative error of the squared norm, squared residual.

    The error is inf where nothing is proven yet, and nan where further steps would hardly prove
    anything: other singular values are too close, or the vector is far from all of them.
    """
    v = np.matvec(P, w)
    v_squared = np.vecdot(v, v)
    x = np.vecmat(v, P) / _nonzero(v_squared)[:, None]
    x_squared = np.vecdot(x, x)
    s_squared = v_squared * x_squared
    rest = np.maximum(frobenius - s_squared, 0.0) / _nonzero(s_squared)
    room = np.maximum(1.0 - rest * x_squared, 0.1)
    isolated = (rest <= 0.5) & (room > 0.1) & (s_squared > 0.0)
    excess = np.maximum(x_squared - 1.0, 0.0)
    error = rest * (1.0 + rest) * excess * x_squared / room**2
    unproven = np.where((excess < SETTLED) | (rest > FAR), np.nan, np.inf)
    unproven = np.where(rest <= 0.5, np.inf, unproven)
    error = np.where(isolated, error, unproven)
    zero = frobenius == 0.0
    following = np.where(x_squared[:, None] > 0.0, x / np.sqrt(_nonzero(x_squared))[:, None], w)
    return np.sqrt(s_squared), following, np.where(zero, 0.0, error), excess


def _by_lanczos(
    stack: Float[Array, "count n m"],
    pending: Int[Array, " some"],
    norms: Float[Array, " count"],
    right: Float[Array, "count m"],
    path: Int[Array, " count"],
    frobenius: Float[Array, " count"],
) -> None:
    """Write norms, vectors and paths of what Lanczos steps or a Cholesky factor prove."""
    # A start without any weight in the leading direction would stay on another one.
    start = right[pending] + MIXED_IN * _scattered(right.shape[1])
    for first in range(0, len(pending), TOGETHER):
        group = pending[first : first + TOGETHER]
        found = leading_values(
            _taken(stack, group), start[first : first + TOGETHER], frobenius[group]
        )
        norms[group], right[group] = found.norms, found.right
        path[group[found.certified]] = LANCZOS
        for index in group[~found.certified]:
            if dominates(stack[index], norms[index]):
                path[index] = CHOLESKY


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


def norms_by_eigenvalues(stack: Float[Array, "count n m"]) -> Float[Array, " count"]:
    """The largest eigenvalue of P P^T is as accurate as that of a singular value decomposition."""
    flat = stack if stack.shape[1] <= stack.shape[2] else stack.transpose(0, 2, 1)
    gram = flat @ flat.transpose(0, 2, 1)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0))


def _scattered(n: int) -> Float[Array, " n"]:
    """A unit vector in no particular direction, always the same."""
    vector = np.sin(np.arange(1.0, n + 1.0) ** 2)
    return np.asarray(vector / np.sqrt(vector @ vector))


def dominates(P: Float[Array, "n m"], norm: float) -> bool:
    """Whether norm (1 + 1e-10) is proven to be above all singular values of P."""
    gram = P @ P.T if P.shape[0] <= P.shape[1] else P.T @ P
    np.negative(gram, gram)
    gram.flat[:: len(gram) + 1] += (norm * (1.0 + CERTIFIED)) ** 2
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True


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
