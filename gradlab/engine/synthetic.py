"""Seeded inputs for networks without data, named as synthetic wherever they appear."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, pi, sqrt
from typing import TypeAlias

import numpy as np

from gradlab.arrays import Array
from gradlab.engine.sequences import Sequences
from gradlab.errors import SettingError, unknown_name

Shape: TypeAlias = tuple[int, int, int]

SINE_PERIOD = 25.0  # steps


def _gaussian(shape: Shape, std: float, rng: np.random.Generator) -> Array:
    return std * rng.standard_normal(shape)


def _zeros(shape: Shape, std: float, rng: np.random.Generator) -> Array:
    return np.zeros(shape)


def _sine(shape: Shape, std: float, rng: np.random.Generator) -> Array:
    phase = rng.uniform(0.0, 2.0 * pi, shape[1:])
    time = np.arange(shape[0])[:, None, None]
    return np.asarray(sqrt(2.0) * std * np.sin(2.0 * pi * time / SINE_PERIOD + phase))


def _white_noise(shape: Shape, std: float, rng: np.random.Generator) -> Array:
    return rng.uniform(-sqrt(3.0) * std, sqrt(3.0) * std, shape)


KINDS: dict[str, Callable[[Shape, float, np.random.Generator], Array]] = {
    "gaussian": _gaussian,
    "zeros": _zeros,
    "sine": _sine,
    "white_noise": _white_noise,
}


def synthetic_sequences(
    kind: str,
    *,
    length: int,
    batch: int,
    input_size: int,
    rng: np.random.Generator,
    std: float = 1.0,
) -> Sequences:
    """Random or constant inputs.

    Parameters
    ----------
    kind
        ``gaussian``: independent normal entries. ``white_noise``: independent uniform entries, as
        white as the Gaussian ones, and bounded by √3 std. ``sine``: a sine of period 25 steps and
        amplitude √2 std, with a random phase for each sequence and feature. ``zeros``: no input.
    length, batch, input_size
        T steps of each sequence, number of sequences, D features.
    rng
        Source of all randomness.
    std
        Standard deviation of an entry; not used by ``zeros``.

    Returns
    -------
    sequences
        Of equal length, marked as synthetic.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    SettingError
        If a size is below 1, or ``std`` is negative or not finite.
    """
    if kind not in KINDS:
        raise unknown_name("kind of synthetic input", kind, KINDS)
    for name, size in (("length", length), ("batch", batch), ("input_size", input_size)):
        if size < 1:
            raise SettingError(f"{name} {size}: expected at least 1")
    if not isfinite(std) or std < 0.0:
        raise SettingError(f"std {std}: expected a finite number, 0 or more")
    return Sequences(
        inputs=KINDS[kind]((length, batch, input_size), std, rng),
        lengths=np.full(batch, length),
        description=_description(kind, std),
        synthetic=True,
    )


def _description(kind: str, std: float) -> str:
    if kind == "zeros":
        return "synthetic inputs: zeros"
    detail = f" of period {SINE_PERIOD:g} steps" if kind == "sine" else ""
    return f"synthetic inputs: {kind.replace('_', ' ')}{detail}, standard deviation {std:g}"
