r"""The rate that a metric proves, smoothed, with its gradient: what the search for an LMI descends.

:math:`r^2 = \lambda_{\max}(K N)` with :math:`K = I + E^{-1}` and
:math:`N = \tilde H^T \tilde H + \tilde C^T E \tilde C`, E = exp Z.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from gradlab.analysis.certificates.diagonal import NEGLIGIBLE
from gradlab.analysis.certificates.family import JacobianFamily
from gradlab.analysis.certificates.metric import metric_of
from gradlab.arrays import Array

# Weights of eigenvalues below this are left out of a gradient.
LIGHTEST = 1e-18


def smooth_rate(
    family: JacobianFamily, point: Float[Array, " m"], order: float
) -> tuple[float, Float[Array, " m"]]:
    r"""ln of the Schatten smoothing of the rate, and its gradient in log S and Z.

    With :math:`N y = \lambda K^{-1} y`, :math:`g = K^{-1} y` and :math:`y^T g = 1`,

    .. math:: d\lambda = y^T dN\, y - \lambda (E^{-1} g)^T dE\, (E^{-1} g),

    and dE = d exp Z by the divided differences of the exponential function.
    """
    metric = metric_of(point)
    scaled = family.scaled(metric.log_scale)
    z, V = metric.eigen
    eigenvalues, y, g = _pencil(scaled, z, V)
    top = float(eigenvalues[-1])
    if not NEGLIGIBLE < top < np.inf:  # nothing that float64 can square
        return np.inf, np.zeros_like(point)
    # σ = √λ: the order of the rates is twice that of the eigenvalues' powers.
    power = np.maximum(eigenvalues / top, 0.0) ** (0.5 * order)
    total = float(power.sum())
    kept = power > LIGHTEST * total
    weight = power[kept] / total
    gradient = _gradient(scaled, z, V, y[:, kept], g[:, kept], weight, eigenvalues[kept])
    return 0.5 * math.log(top) + math.log(total) / order, 0.5 * gradient


def _pencil(
    scaled: JacobianFamily, z: Float[Array, " n"], V: Float[Array, "n n"]
) -> tuple[Float[Array, " n"], Float[Array, "n n"], Float[Array, "n n"]]:
    """Eigenvalues λ of N y = λ K⁻¹ y, the vectors y, and g = K⁻¹ y."""
    root = np.sqrt(1.0 + np.exp(-z))
    R = V * root
    C = np.exp(0.5 * z)[:, None] * (V.T @ scaled.center @ R)
    H = scaled.spread @ R
    eigenvalues, U = np.linalg.eigh(H.T @ H + C.T @ C)
    return eigenvalues, R @ U, (V / root) @ U


def _gradient(
    scaled: JacobianFamily,
    z: Float[Array, " n"],
    V: Float[Array, "n n"],
    y: Float[Array, "n k"],
    g: Float[Array, "n k"],
    weight: Float[Array, " k"],
    eigenvalues: Float[Array, " k"],
) -> Float[Array, " m"]:
    """Σ weight · d ln λ in log S and Z."""
    share = weight / eigenvalues
    Hy, Cy = scaled.spread @ y, V.T @ (scaled.center @ y)
    Eg = np.exp(-z)[:, None] * (V.T @ g)
    by_E = (Cy * share) @ Cy.T - (Eg * weight) @ Eg.T
    by_Z = V @ (by_E * _exponential_differences(z)) @ V.T
    ECy = (V * np.exp(z)) @ Cy
    by_scale = 2.0 * ((Hy**2 + (V @ Cy) * ECy) @ share - (y * g) @ weight)
    return np.concatenate([by_scale, by_Z.ravel()])


def _exponential_differences(z: Float[Array, " n"]) -> Float[Array, "n n"]:
    """(e^a - e^b)/(a - b) for all pairs, e^a on the diagonal, without cancellation."""
    half = 0.5 * (z[:, None] - z[None, :])
    safe = np.where(np.abs(half) < 1e-6, 1.0, half)
    ratio = np.where(np.abs(half) < 1e-6, 1.0 + half**2 / 6.0, np.sinh(safe) / safe)
    return np.asarray(np.exp(0.5 * (z[:, None] + z[None, :])) * ratio)
