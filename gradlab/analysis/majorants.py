r"""Products and powers of small matrices without negative entries, as logarithms.

Nothing cancels where no entry is negative: their products keep all digits at any length.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array
from gradlab.linalg import log, rescale, spectral_radius

LOG_2 = float(np.log(2.0))
# Entries this far below the largest are raised to it, where a zero would leave no Perron vectors.
FLOOR = 1e-12


def log_norms_of_products(
    matrices: Float[Array, "steps batch m m"], ends: Int[Array, " ends"]
) -> Float[Array, "ends steps batch"]:
    r"""ln of the spectral norm of :math:`M_t \cdots M_{t-l+1}` for several end times t; nats.

    Entry l - 1 of an end time belongs to lag l; those of lags beyond t are nan. The products of
    all end times are carried together.
    """
    finite = np.asarray(np.isfinite(matrices).all(axis=(2, 3)))
    scaled, shifts = rescale(np.where(finite[:, :, None, None], matrices, 0.0))
    steps, batch, m, _ = matrices.shape
    product = np.broadcast_to(np.eye(m), (len(ends), batch, m, m)).copy()
    log_scale, lost = np.zeros((len(ends), batch)), np.zeros((len(ends), batch), dtype=bool)
    table = np.full((len(ends), steps, batch), np.nan)
    for k in range(int(ends.max()) - 1, -1, -1):
        going = np.flatnonzero(ends > k)
        product[going], more = rescale(product[going] @ scaled[k])
        log_scale[going] += (more + shifts[k]) * LOG_2
        lost[going] |= ~finite[k]
        logs = log(_norms(product[going])) + log_scale[going]
        table[going, ends[going] - k - 1] = np.where(lost[going], np.inf, logs)
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
    """ln of the spectral norm of every matrix to its own power; nats.

    By repeated squaring: the cost grows with the logarithm of the largest exponent.
    """
    finite = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    base, scale = rescale(np.where(finite[:, None, None], matrices, 0.0))
    power = np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape)
    log_scale, log_base = np.zeros(len(base)), scale * LOG_2
    rest = exponents
    while rest.any():
        odd = (rest & 1).astype(bool)
        product, shift = rescale(power @ base)
        power = np.where(odd[:, None, None], product, power)
        log_scale = log_scale + np.where(odd, log_base + shift * LOG_2, 0.0)
        base, shift = rescale(base @ base)
        log_base = 2.0 * log_base + shift * LOG_2
        rest = rest >> 1
    return np.where(finite, log(_norms(power)) + log_scale, np.inf)


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
