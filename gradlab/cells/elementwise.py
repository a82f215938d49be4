"""What an activation is: a function, its derivative, and what the theory needs of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.kernels import Kernel

Elementwise = Callable[[Array], Array]

SMOOTH = "none: differentiable everywhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """An elementwise non-linearity and what the theory needs of it."""

    name: str
    function: Elementwise
    derivative: Elementwise
    sup_derivative: float  # gamma_a: the supremum of |phi'|
    inf_derivative: float = 0.0  # the infimum of phi' itself, below 0 where phi also falls
    kink: str  # the derivative used where phi is not differentiable
    kinks: tuple[float, ...] = ()  # pre-activations at which the convention applies
    low: float = -math.inf  # infimum and supremum of phi
    high: float = math.inf
    slope_from_output: Elementwise | None = None  # as reverse-mode frameworks compute it, if so
    kernel: Kernel | None = None  # in-place forms
    log_slope: Elementwise | None = None  # ln φ', where φ' > 0 leaves the range of floating point

    @property
    def bounded(self) -> bool:
        """Whether outputs lie between two finite values, so that they can saturate."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def sup_value(self) -> float:
        """Supremum of |phi|, which may be inf."""
        return max(abs(self.low), abs(self.high))

    @property
    def rises(self) -> bool:
        """Whether phi never falls, so that its values at the ends of an interval bound it."""
        return self.inf_derivative >= 0.0 and not self.name.startswith("thresholded_relu")

    def value_and_slope(
        self, z: Float[Array, "*shape"]
    ) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
        """Function and derivative at the same pre-activations."""
        value, slope = np.empty_like(z), np.empty_like(z)
        with np.errstate(over="ignore"):
            self.write_both(z, value, slope)
        return value, slope

    @property
    def writer(self) -> Callable[[Array, Array], object]:
        """Writes the function's values of the first array into the second.

        Where numbers overflow on the way the caller silences it.
        """
        return self._copy if self.kernel is None else self.kernel.value

    def _copy(self, z: Float[Array, "*shape"], out: Float[Array, "*shape"]) -> None:
        out[...] = self.function(z)

    def write_slope(
        self,
        z: Float[Array, "*shape"],
        slope: Float[Array, "*shape"],
        scratch: Float[Array, "*shape"],
    ) -> None:
        """Write the derivative; where numbers overflow the caller silences it."""
        if self.kernel is None:
            slope[...] = self.derivative(z)
        else:
            self.kernel.slope(z, slope, scratch)

    def write_both(
        self,
        z: Float[Array, "*shape"],
        value: Float[Array, "*shape"],
        slope: Float[Array, "*shape"],
    ) -> None:
        """Write function and derivative; where numbers overflow the caller silences it."""
        if self.kernel is None:
            value[...], slope[...] = self.function(z), self.derivative(z)
        else:
            self.kernel.both(z, value, slope)
