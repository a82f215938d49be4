"""The spectra of the recurrent weights: what can be said without running the network."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Complex, Float

from gradlab.analysis.nonnormal import kreiss_constant, power_transient
from gradlab.analysis.numerical_range import by_modulus, numerical_radius
from gradlab.arrays import Array, require_finite
from gradlab.cells.base import Cell
from gradlab.linalg import over_power, rescale, singular_values
from gradlab.records.spectrum import ITERATED, MatrixSpectrum, SpectralSummary

LARGEST = 128  # units of a matrix whose powers are looked at: about a fifth of a second
LARGEST_RANGE = 1024  # whose numerical radius is searched for: about four seconds


def spectral_summary(cell: Cell) -> SpectralSummary:
    """Singular values, eigenvalues and derived numbers of every recurrent matrix of a cell.

    Parameters
    ----------
    cell
        Any cell.

    Returns
    -------
    summary
        Gate by gate; σ_max and ρ are different numbers and carry different names. The ``stack`` of
        a gated cell has a norm like any matrix, which bounds no Jacobian.
    """
    gates = cell.recurrent_matrices()
    iterated = next((name for name in ITERATED if name in gates), None)
    return SpectralSummary(
        gates={
            name: matrix_spectrum(W, powers=name == iterated, numerical=name == iterated)
            for name, W in gates.items()
        }
    )


def matrix_spectrum(
    W: Float[Array, "rows columns"], *, powers: bool = False, numerical: bool = True
) -> MatrixSpectrum:
    """Spectrum of one matrix, by dense solves in float64; of any other than square the norms alone.

    Parameters
    ----------
    W
        Finite.
    powers
        Whether to search for its Kreiss constant and its largest power: up to `LARGEST` units.
    numerical
        Whether to search for its numerical radius, which takes a dozen eigenvalue solves and says
        something of a matrix that is iterated, as no gate's is: up to `LARGEST_RANGE` units.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite; no solver sees it.
    """
    require_finite("W_hh", W)
    # Clipped, so that its power is a number.
    exponent = np.asarray(np.clip(rescale(W.astype(np.float64))[1], -1000, 1000))
    unit, scale = over_power(W.astype(np.float64), exponent), float(np.ldexp(1.0, int(exponent)))
    sigma = singular_values(unit)
    square = W.shape[0] == W.shape[1]
    numerical = numerical and square and len(W) <= LARGEST_RANGE
    eigenvalues = by_modulus(np.linalg.eigvals(unit) if square else np.empty(0))
    with np.errstate(over="ignore"):  # a norm beyond float64 is inf
        return MatrixSpectrum(
            singular_values=scale * sigma,
            eigenvalues=scale * eigenvalues,
            sigma_max=float(scale * sigma[0]),
            spectral_radius=float(scale * np.abs(eigenvalues[0])) if square else None,
            numerical_radius=scale * numerical_radius(unit, eigenvalues) if numerical else None,
            henrici=scale * henrici_departure(sigma, eigenvalues) if square else None,
            condition_number=_condition(sigma),
            **(_powers(W) if powers else {}),
        )


def _powers(W: Float[Array, "n n"]) -> dict[str, Any]:
    if len(W) > LARGEST:
        return {"kreiss": np.nan, "power_height": np.nan}
    height, lag = power_transient(np.asarray(W, dtype=np.float64))
    return {"kreiss": kreiss_constant(W), "power_height": height, "power_lag": lag}


def _condition(sigma: Float[Array, " n"]) -> float:
    """σ_max/σ_min; inf where the smallest is no more than the rounding of the largest."""
    noise = len(sigma) * np.finfo(np.float64).eps * sigma[0]
    return float(sigma[0] / sigma[-1]) if sigma[-1] > noise else np.inf


def henrici_departure(sigma: Float[Array, " n"], eigenvalues: Complex[Array, " n"]) -> float:
    r"""Henrici's departure from normality, :math:`\sqrt{\lVert W\rVert_F^2 - \sum|\lambda_i|^2}`.

    0 for a normal matrix (to rounding); large values go with transient growth. Source: Henrici
    (1962), "Bounds for iterates, inverses, spectral variation and fields of values of non-normal
    matrices", Numerische Mathematik 4.
    """
    scale = float(sigma[0]) or 1.0
    gap = np.sum((sigma / scale) ** 2) - np.sum(np.abs(eigenvalues / scale) ** 2)
    return scale * float(np.sqrt(max(gap, 0.0)))
