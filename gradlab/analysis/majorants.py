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
    matrices: Float[Array, "steps batch m m"],
) -> Float[Array, "steps batch"]:
    r"""ln of the spectral norm of :math:`M_T \cdots M_{T-l+1}` for l = 1..T; nats."""
    finite = np.asarray(np.isfinite(matrices).all(axis=(2, 3)))
    scaled, shifts = rescale(np.where(finite[:, :, None, None], matrices, 0.0))
    product, exponent = np.eye(matrices.shape[-1]), np.zeros(matrices.shape[1], dtype=np.int64)
    products, scales = np.empty_like(scaled), np.empty(scaled.shape[:2])
    for place, matrix in enumerate(scaled[::-1]):
        product, more = rescale(product @ matrix)
        exponent = exponent + shifts[len(shifts) - 1 - place] + more
        products[place], scales[place] = product, exponent
    logs = log(_norms(products)) + scales * LOG_2
    return np.where(np.logical_and.accumulate(finite[::-1]), logs, np.inf)


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
