"""Singular values and eigenvalues of a recurrent matrix, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Complex, Float

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame, stack_frames

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixSpectrum:
    """One recurrent matrix: W_hh of a vanilla cell, or one gate's block."""

    singular_values: Float[Array, " n"]  # largest first
    eigenvalues: Complex[Array, " n"]  # largest modulus first; conjugates by falling imaginary part
    sigma_max: float
    spectral_radius: float
    numerical_radius: float  # max |x* W x| over unit x
    henrici: float  # departure from normality, sqrt(‖W‖_F² - Σ|λ|²)
    condition_number: float  # σ_max/σ_min; inf if singular

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("singular_values", "eigenvalues"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpectralSummary:
    """Spectra of a cell's recurrent matrices, gate by gate.

    A vanilla cell has the one gate ``W_hh``. For gated cells `gamma_w` and `spectral_radius` are
    None: no single matrix plays that part.
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
    def gamma_w(self) -> float | None:
        """σ_max(W_hh)."""
        return None if self.only is None else self.only.sigma_max

    @property
    def spectral_radius(self) -> float | None:
        """ρ(W_hh)."""
        return None if self.only is None else self.only.spectral_radius

    def to_frame(self) -> pd.DataFrame:
        """Columns of ``spectrum.csv`` but the recurrence."""
        return stack_frames(
            [
                frame(
                    gate=np.repeat(name, len(gate.singular_values)),
                    index=np.arange(len(gate.singular_values)),
                    singular_value=gate.singular_values,
                    eigenvalue_re=gate.eigenvalues.real,
                    eigenvalue_im=gate.eigenvalues.imag,
                )
                for name, gate in self.gates.items()
            ]
        )
