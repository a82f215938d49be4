"""What the loops over time need to be fast: layouts of matrices, and activations in place.

Temporaries larger than a few hundred kilobytes cost more than the arithmetic on them. The slopes
come from the pre-activation in a form that does not cancel, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array


def multiplicand(W: Float[Array, "n m"], batch: int) -> Float[Array, "n m"]:
    """Matrix in the layout in which (batch, n) @ (n, m) is fastest.

    OpenBLAS multiplies a few rows by a float64 matrix up to twice as fast if the matrix is stored
    column by column; with a single row, or in float32, there is little in it.
    """
    columns = W.dtype == np.float64 and batch > 1
    return np.asfortranarray(W) if columns else np.ascontiguousarray(W)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Both forms of one activation. Overflow to infinity on the way is meant, and harmless."""

    value: Callable[[Array, Array], None]  # z, out; out may be z
    both: Callable[[Array, Array, Array], None]  # z, value, slope; neither may be z


def _sigmoid(z: Float[Array, "*shape"], out: Float[Array, "*shape"]) -> None:
    """1/(1 + E) with E = exp(-z)."""
    np.negative(z, out=out)
    np.exp(out, out=out)
    np.add(out, 1.0, out=out)
    np.reciprocal(out, out=out)


def _sigmoid_both(
    z: Float[Array, "*shape"], value: Float[Array, "*shape"], slope: Float[Array, "*shape"]
) -> None:
    """E v² with v = 1/(1 + E), exact to rounding at both ends."""
    np.negative(z, out=slope)
    np.exp(slope, out=slope)
    np.minimum(slope, _largest(slope), out=slope)
    np.add(slope, 1.0, out=value)
    np.reciprocal(value, out=value)
    np.multiply(slope, value, out=slope)
    np.multiply(slope, value, out=slope)


def _tanh(z: Float[Array, "*shape"], out: Float[Array, "*shape"]) -> None:
    np.tanh(z, out=out)


def _tanh_both(
    z: Float[Array, "*shape"], value: Float[Array, "*shape"], slope: Float[Array, "*shape"]
) -> None:
    """4 E/(1 + E)² with E = exp(-2z)."""
    np.multiply(z, -2.0, out=slope)
    np.exp(slope, out=slope)
    np.minimum(slope, _largest(slope), out=slope)
    np.add(slope, 1.0, out=value)
    np.divide(2.0, value, out=value)
    np.multiply(slope, value, out=slope)
    np.multiply(slope, value, out=slope)
    np.tanh(z, out=value)


def _largest(x: Array) -> float:
    """A number whose reciprocal is still a normal one."""
    return float(np.finfo(x.dtype).max) / 4.0


SIGMOID = Kernel(value=_sigmoid, both=_sigmoid_both)
TANH = Kernel(value=_tanh, both=_tanh_both)
