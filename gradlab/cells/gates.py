"""What gated cells share: weights in blocks of rows, checked, and drawn at random."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, read_only, require_finite
from gradlab.cells.initializers import input_weights, recurrent_weights
from gradlab.errors import SettingError, ShapeError, unknown_name

DTYPES = ("float64", "float32")
# Why the textbook's rung is absent.
NO_GAMMA = "a step of gated cells is no slope times one matrix, so that no single norm bounds it"


def require_choice(kind: str, value: str | None, choices: Sequence[str | None]) -> None:
    """Refuse a setting that is not one of the choices.

    Raises
    ------
    UnknownNameError
        Naming the choices.
    """
    if value not in choices:
        raise unknown_name(kind, str(value), [str(choice) for choice in choices])


def require_finite_number(name: str, value: float | int) -> None:
    """Refuse a setting that is NaN or infinite.

    Raises
    ------
    SettingError
        Naming it.
    """
    if not math.isfinite(value):
        raise SettingError(f"{name} {value}: expected a finite number")


def freeze(cell: object, dtype: str, weights: Mapping[str, Array | None]) -> None:
    """Give a frozen cell read-only arrays of its type; those that are None stay so.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite, also after the conversion.
    UnknownNameError
        If there is no such type.
    """
    require_choice("dtype", dtype, DTYPES)
    for name, value in weights.items():
        if value is None:
            continue
        with np.errstate(over="ignore"):
            array = read_only(value, dtype)
        require_finite(name, array)
        object.__setattr__(cell, name, array)


def require_shapes(cell: object, shapes: Mapping[str, tuple[int, ...]], sizes: str) -> None:
    """Refuse weights of other shapes.

    Parameters
    ----------
    cell
        Owner of the arrays.
    shapes
        Expected shape by attribute; -1 is any length.
    sizes
        How the expected lengths were found, for the message.

    Raises
    ------
    ShapeError
        Naming the array, its shape and the expected one.
    """
    for name, expected in shapes.items():
        found = np.shape(getattr(cell, name))
        fits = len(found) == len(expected) and all(
            wanted in (-1, length) for wanted, length in zip(expected, found, strict=True)
        )
        if not fits or 0 in found:
            raise ShapeError(
                f"{name} has shape {found}: expected {_spelled(expected)}, with {sizes}"
            )


def hidden_size_of(W_h: Array, gates: int, columns: int | None = None) -> int:
    """N, from the rows of the recurrent weights of all gates.

    Raises
    ------
    ShapeError
        If the rows are not a multiple of the gates, or the columns not as many as expected (N if
        None).
    """
    shape = np.shape(W_h)
    n = shape[0] // gates if len(shape) == 2 else 0
    wanted = n if columns is None else columns
    if n == 0 or shape != (gates * n, wanted):
        width = "N" if columns is None else str(columns)
        raise ShapeError(f"W_h has shape {shape}: expected ({gates} N, {width}), N >= 1")
    return n


def blocks(stacked: Float[Array, "*lead rows"], gates: int) -> list[Float[Array, "*lead n"]]:
    """Views of the gates' blocks along the last axis."""
    n = stacked.shape[-1] // gates
    return [stacked[..., g * n : (g + 1) * n] for g in range(gates)]


def row_blocks(W: Float[Array, "rows columns"], names: Sequence[str]) -> dict[str, Array]:
    """Views of the gates' blocks of rows, by gate."""
    n = len(W) // len(names)
    return {name: W[g * n : (g + 1) * n] for g, name in enumerate(names)}


def driven(
    inputs: Float[Array, "*steps features"],
    W_x: Float[Array, "rows features"],
    bias: Float[Array, " rows"],
    out: Float[Array, "flat rows"] | None = None,
) -> Float[Array, "*steps rows"]:
    """W_x x + bias for all steps, in one product: the bias is the weight of an input of 1."""
    flat = inputs.reshape(-1, inputs.shape[-1])
    with_one = np.concatenate([flat, np.ones((len(flat), 1), dtype=flat.dtype)], axis=1)
    weights = np.concatenate([W_x, bias[:, None]], axis=1)
    product = np.matmul(with_one, weights.T, out=out)
    return np.asarray(product.reshape(*inputs.shape[:-1], len(W_x)))


def random_weights(
    gates: int,
    *,
    input_size: int,
    hidden_size: int,
    rng: np.random.Generator,
    recurrent: str = "orthogonal",
    gain: float | int = 1.0,
) -> tuple[Float[Array, "rows features"], Float[Array, "rows n"]]:
    """W_x and W_h of a gated cell, every gate's block drawn on its own.

    Returns
    -------
    W_x
        With entries N(0, 1/D), so that inputs of unit variance drive every gate with unit variance.
    W_h
        With blocks of the given kind and gain, see `recurrent_weights`.
    """
    W_h = [
        recurrent_weights(recurrent, hidden_size, gain=float(gain), rng=rng) for _ in range(gates)
    ]
    W_x = [input_weights(hidden_size, input_size, rng=rng) for _ in range(gates)]
    return np.concatenate(W_x), np.concatenate(W_h)


def chrono_bias(n: int, longest: int, rng: np.random.Generator) -> Float[Array, " n"]:
    """Biases that spread the half-lives of a gate's units over the lags of a task.

    Parameters
    ----------
    n
        Units.
    longest
        Longest lag that matters, at least 3 steps.
    rng
        Source of randomness.

    Returns
    -------
    bias
        ln u with u uniform in (1, longest - 1): for the gate that keeps the old state; the gate
        that writes takes the opposite sign.

    Raises
    ------
    SettingError
        If the lag is too short.

    Notes
    -----
    Source: Tallec and Ollivier (2018), "Can recurrent neural networks warp time?", ICLR.
    """
    if longest < 3:
        raise SettingError(f"chrono {longest}: expected a lag of at least 3 steps")
    return np.log(rng.uniform(1.0, longest - 1.0, size=n))


def _spelled(shape: tuple[int, ...]) -> str:
    inner = ", ".join("any" if length == -1 else str(length) for length in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"
