r"""Products and powers of small matrices without negative entries, entry by entry as logarithms.

Nothing cancels where no entry is negative, and a logarithm of its own for every entry keeps small
ones that rescaling a matrix would lose: a bound must not lose them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.linalg import log
from gradlab.norms import spectral_radius

# Entries this far below the largest are raised to it, where a zero would leave no Perron vectors.
FLOOR = 1e-12


def log_norms_of_products(
    matrices: Float[Array, "steps batch m m"], ends: Int[Array, " ends"]
) -> Float[Array, "ends steps batch"]:
    r"""ln of the spectral norm of :math:`M_t \cdots M_{t-l+1}` for several end times t; nats.

    Entry l - 1 of an end time belongs to lag l; those of lags beyond t are nan. The products of
    all end times are carried together.
    """
    logs = log(matrices)
    steps, batch, m, _ = matrices.shape
    product = np.broadcast_to(log(np.eye(m)), (len(ends), batch, m, m)).copy()
    table = np.full((len(ends), steps, batch), np.nan)
    for k in range(int(ends.max()) - 1, -1, -1):
        going = np.flatnonzero(ends > k)
        product[going] = _log_product(product[going], logs[k])
        table[going, ends[going] - k - 1] = _log_norms(product[going])
    return table


def log_norms_of_maxima(
    matrices: Float[Array, "steps batch m m"], ends: Int[Array, " ends"]
) -> Float[Array, "ends steps batch"]:
    """Same with one matrix for a whole stretch: entry by entry the largest of its steps."""
    steps, batch, m, _ = matrices.shape
    table = np.full((len(ends), steps, batch), np.nan)
    for place, t in enumerate(ends.tolist()):
        largest = np.maximum.accumulate(matrices[:t][::-1], axis=0).reshape(-1, m, m)
        powers = log_norms_of_powers(largest, np.repeat(np.arange(1, t + 1), batch))
        table[place, :t] = powers.reshape(t, batch)
    return table


def log_norms_of_powers(
    matrices: Float[Array, "count m m"], exponents: Int[Array, " count"]
) -> Float[Array, " count"]:
    """ln of the spectral norm of every matrix to its own power, at least 1; nats.

    By repeated squaring: the cost grows with the logarithm of the largest exponent.
    """
    base, rest = log(matrices), exponents
    power = np.broadcast_to(log(np.eye(matrices.shape[-1])), matrices.shape)
    while rest.any():
        odd = (rest & 1).astype(bool)
        power = np.where(odd[:, None, None], _log_product(power, base), power)
        base, rest = _log_product(base, base), rest >> 1
    return _log_norms(power)


def growth(matrix: Float[Array, "m m"]) -> tuple[float, float]:
    r"""Rate r and constant K with :math:`\lVert M^l \rVert_2 \le K r^l` for all l ≥ 0.

    Parameters
    ----------
    matrix
        Without negative entries.

    Returns
    -------
    rate, constant
        With Perron vectors v (right) and w (left) and :math:`d_i = \sqrt{w_i/v_i}`,
        :math:`\lVert D M D^{-1} \rVert_2 = \rho(M)`: r is the radius, K the condition of D. Zeros
        are first raised to 1e-12 of the largest entry, which only weakens the statement: r may then
        lie a little above the radius.

    Notes
    -----
    Source: the scaling is that of Stoer and Witzgall (1962), "Transformations by diagonal matrices
    in a normed space", Numerische Mathematik 4.
    """
    if not matrix.any():
        return 0.0, 1.0
    raised = np.maximum(matrix, FLOOR * matrix.max())
    right, left = _perron(raised), _perron(raised.T)
    d = np.sqrt(left / right)
    scaled = d[:, None] * raised / d
    # The norm of the very matrix is proven, whatever rounding did to the vectors.
    return max(float(_norms(scaled)), spectral_radius(raised)), float(d.max() / d.min())


def _perron(matrix: Float[Array, "m m"]) -> Float[Array, " m"]:
    values, vectors = np.linalg.eig(matrix)
    return np.asarray(np.abs(vectors[:, np.argmax(values.real)].real))


def _norms(stack: Float[Array, "*count m m"]) -> Float[Array, "*count"]:
    return np.asarray(np.linalg.svd(stack, compute_uv=False)[..., 0])


def _log_product(
    A: Float[Array, "*count m m"], B: Float[Array, "*some m m"]
) -> Float[Array, "*count m m"]:
    """ln of the entries of a product, from those of its factors; inf bounds nothing."""
    with np.errstate(invalid="ignore", over="ignore"):
        terms = A[..., :, :, None] + B[..., None, :, :]
        terms = np.where(np.isnan(terms), np.inf, terms)  # 0 times inf
        highest = terms.max(axis=-2)
        base = np.where(np.isfinite(highest), highest, 0.0)
        sums = np.exp(terms - base[..., None, :]).sum(axis=-2)
    return np.asarray(base + log(sums))


def _log_norms(logs: Float[Array, "*count m m"]) -> Float[Array, "*count"]:
    highest = logs.max(axis=(-2, -1))
    finite = np.isfinite(highest)
    base = np.where(finite, highest, 0.0)
    relative = np.exp(np.where(finite[..., None, None], logs - base[..., None, None], -np.inf))
    return np.where(finite, base + log(_norms(relative)), highest)
