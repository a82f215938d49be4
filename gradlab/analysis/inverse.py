r"""The smallest singular value of a long product, as the norm of the product of the inverses.

A product of many Jacobians loses its small singular values to rounding: in float64 they are noise
below 1e-16 of the largest. The product of the inverses holds the same number as its *largest* one.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from gradlab.arrays import Array
from gradlab.linalg import log, rescale, spectral_norms

LOG_2 = float(np.log(2.0))
EPSILON = float(np.finfo(np.float64).eps)
# Estimated relative error of the inverses' product above which a value is called unresolved.
RESOLUTION = 1e-6


class InverseProducts:
    """Inverses of several products that are extended by the same Jacobians.

    Values are -inf once a step has a row or column of zeros (an exact rank loss), and nan once the
    accumulated estimate n · eps · cond(J) of the relative error passes 1e-6, with the rows of each J
    brought to unit length first: that part of the condition, diag(phi'), inverts without error.
    """

    def __init__(self, batch: int, n: int) -> None:
        self.inverse = np.empty((batch, 0, n, n))
        self.log_scale = np.empty((batch, 0))
        self.error = np.empty((batch, 0))
        self.singular = np.empty((batch, 0), dtype=bool)
        self.right = np.empty((batch, 0, n))

    def begin(self) -> None:
        """Take up a product with the identity."""
        batch, _, n, _ = self.inverse.shape
        identity = np.broadcast_to(np.eye(n), (batch, 1, n, n))
        start = np.full((batch, 1, n), 1.0 / np.sqrt(n))
        self.inverse = np.concatenate([self.inverse, identity], axis=1)
        self.right = np.concatenate([self.right, start], axis=1)
        self.log_scale = np.append(self.log_scale, np.zeros((batch, 1)), axis=1)
        self.error = np.append(self.error, np.zeros((batch, 1)), axis=1)
        self.singular = np.append(self.singular, np.zeros((batch, 1), dtype=bool), axis=1)

    def keep(self, kept: Bool[Array, " products"]) -> None:
        """Leave the other products."""
        for name in ("inverse", "log_scale", "error", "singular", "right"):
            setattr(self, name, getattr(self, name)[:, kept])

    def extend(self, J: Float[Array, "batch n n"]) -> None:
        """Multiply every product by J from the right, its inverse by J⁻¹ from the left."""
        n = J.shape[-1]
        rows = np.sqrt(np.vecdot(scaled := rescale_rows(J)[0], scaled))
        lost = (rows == 0.0).any(axis=1) | (np.abs(J).max(axis=1) == 0.0).any(axis=1)
        length = np.where(rows == 0.0, 1.0, rows)
        B = scaled / length[:, :, None]
        log_rows = log(length) + rescale_rows(J)[1] * LOG_2
        singular = lost | (np.linalg.slogdet(B)[0] == 0.0)
        B_inverse = np.linalg.inv(np.where(singular[:, None, None], np.eye(n), B))
        condition = np.linalg.norm(B, axis=(1, 2)) * np.linalg.norm(B_inverse, axis=(1, 2))
        shortest = log_rows.min(axis=1)
        weights = np.exp(shortest[:, None] - log_rows)
        product = (B_inverse * weights[:, None, :])[:, None] @ self.inverse
        self.inverse, exponent = rescale(product)
        self.log_scale = self.log_scale + exponent * LOG_2 - shortest[:, None]
        unresolved = singular & ~lost
        step_error = np.where(unresolved, np.inf, n * EPSILON * condition)
        self.error = self.error + np.where(lost, 0.0, step_error)[:, None]
        self.singular = self.singular | lost[:, None]

    def log_sigma_min(self) -> Float[Array, "batch products"]:
        """ln σ_min of every product, nats; -inf if singular, nan if unresolved."""
        batch, count, n, _ = self.inverse.shape
        flat = self.inverse.reshape(batch * count, n, n)
        norms, right = spectral_norms(flat, self.right.reshape(batch * count, n))
        self.right = right.reshape(batch, count, n)
        value = -(self.log_scale + log(norms).reshape(batch, count))
        resolved = np.where(self.error <= RESOLUTION, value, np.nan)
        return np.where(self.singular, -np.inf, resolved)


def rescale_rows(J: Float[Array, "batch n n"]) -> tuple[Array, Array]:
    """Rows divided by exact powers of two, and the exponents: rows of 1e-300 keep their digits."""
    scaled, exponent = rescale(J[:, :, None, :])
    return scaled[:, :, 0, :], exponent
