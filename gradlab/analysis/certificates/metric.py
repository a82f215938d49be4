r"""The two matrices of a linear matrix inequality, in coordinates that need no constraint.

T = S²/2 and P = S Y S with a positive diagonal S; :math:`Y^{-1} = I + E^{-1}` with E = exp Z keeps
P positive definite and below 2 T for every S and every symmetric Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.diagonal import NEGLIGIBLE
from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.margin import condition
from gradlab.arrays import Array
from gradlab.norms import spectral_norm

# Logarithms of E's eigenvalues at the start, where the slopes or their spread are nothing.
FARTHEST = 24.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """P = S Y S and T = S² with S = diag(exp log_scale), Y⁻¹ = I + exp(-Z)."""

    log_scale: Float[Array, " n"]
    Z: Float[Array, "n n"]

    @property
    def eigen(self) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
        """Eigenvalues and vectors of Z."""
        z, V = np.linalg.eigh(self.Z)
        return np.asarray(z), np.asarray(V)

    @property
    def root(self) -> Float[Array, "n n"]:
        """R with R Rᵀ = Y⁻¹."""
        z, V = self.eigen
        return np.asarray(V * np.sqrt(1.0 + np.exp(-z)))

    def weighted(self, C: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """F C with Fᵀ F = E."""
        z, V = self.eigen
        return np.asarray(np.exp(0.5 * z)[:, None] * (V.T @ C))

    @property
    def unscaled(self) -> Float[Array, "n n"]:
        """Y."""
        z, V = self.eigen
        return np.asarray((V / (1.0 + np.exp(-z))) @ V.T)

    @property
    def matrix(self) -> Float[Array, "n n"]:
        """P, the metric in which every Jacobian shrinks by the rate; of order one at most."""
        s = np.exp(self.log_scale - self.log_scale.max())
        return np.asarray(s[:, None] * self.unscaled * s)

    @property
    def stretch(self) -> float:
        """Factor by which the metric makes any block of C or H longer, at most."""
        z, _ = self.eigen
        return float(max(np.exp(0.5 * z[-1]), 1.0) * np.sqrt(1.0 + np.exp(-z[0])))

    @property
    def condition(self) -> float:
        """Condition number of Y."""
        z, _ = self.eigen
        return float((1.0 + np.exp(-z[0])) / (1.0 + np.exp(-z[-1])))

    @property
    def constant(self) -> float:
        """√cond P, rounded up: from P where it is resolved, else from the factors of P."""
        factors = condition(self.log_scale) * math.sqrt(self.condition)
        eigenvalues = np.linalg.eigvalsh(self.matrix)
        rounding = 10.0 * len(self.Z) * np.finfo(np.float64).eps * float(eigenvalues[-1])
        smallest = float(eigenvalues[0]) - rounding
        if smallest <= rounding:
            return factors * (1.0 + 1e-9)
        whole = math.sqrt((float(eigenvalues[-1]) + rounding) / smallest)
        return min(factors * (1.0 + 1e-9), whole)


def metric_of(point: Float[Array, " m"]) -> Metric:
    """Metric of a search's point: log_scale, and then Z row by row."""
    n = round(math.sqrt(len(point) + 0.25) - 0.5)
    Z = point[n:].reshape(n, n)
    return Metric(log_scale=point[:n], Z=0.5 * (Z + Z.T))


def first_metric(family: JacobianFamily, log_scale: Float[Array, " n"]) -> Float[Array, " m"]:
    """Point whose rate is that of the diagonal certificate: E = (‖H̃‖/‖C̃‖) I."""
    scaled = family.scaled(log_scale)
    spread, center = spectral_norm(scaled.spread), spectral_norm(scaled.center)
    far = math.exp(-FARTHEST)
    ratio = math.log(max(spread, far * center, NEGLIGIBLE) / max(center, far * spread, NEGLIGIBLE))
    return np.concatenate([log_scale, (ratio * np.eye(len(log_scale))).ravel()])
