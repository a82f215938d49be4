"""Where powers leave the floating-point formats: exact integers; and slopes far out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gradlab.analysis.precision import (
    FLOAT_FORMATS,
    FloatFormat,
    last_finite_lag,
    last_nonzero_lag,
    last_normal_lag,
    last_subnormal_lag,
    running_product,
)
from gradlab.cells.activations import activation
from gradlab.verification.expectations import Expectation, Group

# gamma: last lag that is normal, subnormal, not rounded to 0; step at which a product flushed is 0.
# A format a column; the longest products are left out, a step of them being a step of Python.
UNDERFLOW = {
    0.5: ((14, 24, 24, 15), (126, 133, 133, 127), (126, 149, 149, 127), (1022, 1074, 1074, 1023)),
    0.9: ((92, 157, 164, 93), (828, 874, 881, 819), (828, 980, 986, 829),
          (6723, 7065, 7072, 6724)),
    0.99: ((965, 1655, 1724), (8689, 9172, 9241), (8689, 10276, 10345), (70484, 74071, 74140)),
}  # fmt: skip
# gamma: step at which a product with gradual underflow stops, and where, in smallest subnormals
GRADUAL = {
    0.5: ((25, 0), (134, 0), (150, 0), (1075, 0)),
    0.9: ((142, 4), (849, 4), (964, 4), (7050, 5)),
}
# gamma: last lag that is finite; step at which a rounded product is infinite
OVERFLOW = {
    1.01: ((1114,), (8916,), (8916,), (71332,)),
    1.1: ((116, 117), (930, 918), (930, 931), (7447, 7448)),
    2.0: ((15, 16), (127, 128), (127, 128), (1023, 1024)),
}
SUPREMA = {
    "tanh": 1.0,
    "sigmoid": 0.25,
    "erf": 1.1283791671,
    "gelu": 1.1289041452,
    "silu": 1.0998393201,
    "selu": 1.7580993408,
}
Lag = Callable[[float, FloatFormat], int | None]


def expectations() -> Sequence[Expectation]:
    """Float ranges, then slopes."""
    return (*_ranges(), *_slopes())


def _ranges() -> list[Expectation]:
    under: dict[str, Lag] = {
        "last normal power": last_normal_lag,
        "last subnormal power": last_subnormal_lag,
        "last power not rounded to 0": last_nonzero_lag,
        "step at which the flushed product is 0": partial(_step, flush=True),
    }
    gradual: dict[str, Lag] = {
        "step at which the rounded product stops": partial(_step, flush=False),
        "smallest subnormals at which it stops": _subnormals,
    }
    over: dict[str, Lag] = {
        "last finite power": last_finite_lag,
        "step at which the rounded product is infinite": partial(_step, flush=False),
    }
    return [
        Expectation(
            name=f"{fmt.name}, {gamma}: {name}",
            compute=partial(_lag, compute, gamma, fmt),
            expected=float(value),
        )
        for table, kinds in ((UNDERFLOW, under), (GRADUAL, gradual), (OVERFLOW, over))
        for gamma, rows in table.items()
        for fmt, row in zip(FLOAT_FORMATS.values(), rows, strict=True)
        for (name, compute), value in zip(kinds.items(), row, strict=False)
    ]


def _slopes() -> list[Expectation]:
    suprema = [
        Expectation(
            name=f"{name}: largest slope",
            compute=partial(_largest_slope, name),
            expected=value,
            relative=1e-9,
        )
        for name, value in SUPREMA.items()
    ]
    far_out = Expectation(
        name="tanh, z = 19.1: slope, where 1 - h^2 is 0",
        compute=lambda: float(activation("tanh").derivative(np.array([19.1]))[0]),
        expected=1.0280418219381e-16,
        relative=1e-12,
    )
    return [*suprema, far_out]


def _largest_slope(name: str) -> float:
    return activation(name).sup_derivative


def _step(gamma: float, fmt: FloatFormat, *, flush: bool) -> int | None:
    return running_product(gamma, fmt, flush).step


def _subnormals(gamma: float, fmt: FloatFormat) -> int | None:
    return running_product(gamma, fmt).subnormals


def _lag(compute: Lag, gamma: float, fmt: FloatFormat) -> float:
    lag = compute(gamma, fmt)
    return math.nan if lag is None else float(lag)


PRECISION = Group(title="floating-point ranges", expectations=expectations)
