"""Singular values and eigenvalues of a recurrent matrix, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Complex, Float

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame, stack_frames
from gradlab.records.notebook import rows_html, summary_html

if TYPE_CHECKING:
    import pandas as pd

STACK = "stack"  # a gated cell's blocks on top of each other
EFFECTIVE = "effective"  # a leaky cell's Jacobian at unit slope
NUMBERS = ("sigma_max", "spectral_radius", "numerical_radius", "henrici", "condition_number")
ITERATED = (EFFECTIVE, "W_hh")  # the first there is has powers that are long-term Jacobians


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixSpectrum:
    """One recurrent matrix: W_hh of a vanilla cell, one gate's block, or the stack of the blocks.

    A matrix that is not square has no eigenvalues, and None for what is made of them.
    """

    singular_values: Float[Array, " n"]  # largest first
    eigenvalues: Complex[Array, " m"]  # largest modulus first; conjugates by falling imaginary part
    sigma_max: float
    spectral_radius: float | None
    numerical_radius: float | None  # max |x* W x| over unit x; None: not searched for
    henrici: float | None  # departure from normality, sqrt(‖W‖_F² - Σ|λ|²)
    condition_number: float  # σ_max/σ_min; inf if singular
    kreiss: float | None = None  # lower value of the Kreiss constant; nan: skipped for its size
    power_height: float | None = None  # ln of the largest norm of a power; nan: skipped, or none
    power_lag: int | None = None  # where

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("singular_values", "eigenvalues"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, {name: getattr(self, name) for name in NUMBERS})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpectralSummary:
    """Spectra of a cell's recurrent matrices, gate by gate.

    A vanilla cell has the one gate ``W_hh``, a leaky one also its ``effective`` matrix
    (1 - a) I + a W_hh. For gated cells `gamma_w` and `spectral_radius` are None: no single matrix
    plays that part, the ``stack`` of all gates' blocks least of all.
    """

    gates: Mapping[str, MatrixSpectrum]

    def __post_init__(self) -> None:
        """Freeze the mapping."""
        object.__setattr__(self, "gates", dict(self.gates))

    @property
    def only(self) -> MatrixSpectrum | None:
        """The spectrum of W_hh; None for gated cells."""
        return self.gates.get("W_hh")

    @property
    def iterated(self) -> MatrixSpectrum | None:
        """The matrix whose powers are the long-term Jacobians at unit slopes; None if gated."""
        return next((self.gates[name] for name in ITERATED if name in self.gates), None)

    @property
    def gamma_w(self) -> float | None:
        """σ_max(W_hh)."""
        return None if self.only is None else self.only.sigma_max

    @property
    def spectral_radius(self) -> float | None:
        """ρ(W_hh), or of the effective matrix of a leaky cell: that one decides."""
        return None if self.iterated is None else self.iterated.spectral_radius

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        rows = [
            (name, *(getattr(gate, number) for number in NUMBERS))
            for name, gate in self.gates.items()
        ]
        return rows_html(type(self).__name__, ("matrix", *NUMBERS), rows)

    def to_frame(self) -> pd.DataFrame:
        """Columns of ``spectrum.csv`` but the recurrence."""
        return stack_frames(
            [
                frame(
                    gate=np.repeat(name, len(gate.singular_values)),
                    index=np.arange(len(gate.singular_values)),
                    singular_value=gate.singular_values,
                    eigenvalue_re=_padded(gate.eigenvalues.real, len(gate.singular_values)),
                    eigenvalue_im=_padded(gate.eigenvalues.imag, len(gate.singular_values)),
                )
                for name, gate in self.gates.items()
            ]
        )


def _padded(values: Float[Array, " m"], length: int) -> Float[Array, " n"]:
    """Values, then nan up to the length."""
    return np.concatenate([values, np.full(length - len(values), np.nan)])
