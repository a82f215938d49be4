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


# Numbers as arrays of the operand's own type: NumPy takes longer to convert a Python number than to
# compute with a few hundred others.
ONE, TWO, MINUS_TWO = (
    {char: np.array(number, dtype=char) for char in "fd"} for number in (1.0, 2.0, -2.0)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Forms of one activation in place. Overflow to infinity on the way is meant, and harmless."""

    value: Callable[[Array, Array], object]  # z, out; out may be z
    slope: Callable[[Array, Array, Array], None]  # z, out, scratch; neither may be z
    both: Callable[[Array, Array, Array], None]  # z, value, slope; neither may be z


def _sigmoid(z: Float[Array, "*shape"], out: Float[Array, "*shape"]) -> None:
    """1/(1 + E) with E = exp(-z)."""
    one = ONE[out.dtype.char]
    np.negative(z, out)
    np.exp(out, out)
    np.add(out, one, out)
    np.divide(one, out, out)


def _sigmoid_both(
    z: Float[Array, "*shape"], value: Float[Array, "*shape"], slope: Float[Array, "*shape"]
) -> None:
    """E v² with v = 1/(1 + E), exact to rounding at both ends."""
    one = ONE[value.dtype.char]
    np.negative(z, slope)
    np.exp(slope, slope)
    value.fill(_largest(slope))  # the minimum with an array is four times as fast as with a number
    np.minimum(slope, value, out=slope)
    np.add(slope, one, value)
    np.divide(one, value, value)
    np.multiply(slope, value, slope)
    np.multiply(slope, value, slope)


def _sigmoid_slope(
    z: Float[Array, "*shape"], slope: Float[Array, "*shape"], scratch: Float[Array, "*shape"]
) -> None:
    _sigmoid_both(z, scratch, slope)


def _tanh_slope(
    z: Float[Array, "*shape"], slope: Float[Array, "*shape"], scratch: Float[Array, "*shape"]
) -> None:
    """4 D/(1 + D)² with D = exp(-2|z|)."""
    char = slope.dtype.char
    np.abs(z, slope)
    np.multiply(slope, MINUS_TWO[char], slope)
    np.exp(slope, slope)
    np.add(slope, ONE[char], scratch)
    np.divide(TWO[char], scratch, scratch)
    np.multiply(slope, scratch, slope)
    np.multiply(slope, scratch, slope)


def _tanh_both(
    z: Float[Array, "*shape"], value: Float[Array, "*shape"], slope: Float[Array, "*shape"]
) -> None:
    _tanh_slope(z, slope, value)
    np.tanh(z, value)


def _largest(x: Array) -> float:
    """A number whose reciprocal is still a normal one."""
    return float(np.finfo(x.dtype).max) / 4.0


SIGMOID = Kernel(value=_sigmoid, slope=_sigmoid_slope, both=_sigmoid_both)
TANH = Kernel(value=np.tanh, slope=_tanh_slope, both=_tanh_both)
