r"""Where a measured rate crosses zero as a scale grows, with an interval from resampled networks.

Means of the rate at each level are made rising by isotonic regression, which is the least squares
fit among rising curves and crosses zero once, and the crossing is interpolated linearly. Networks
of a level are drawn independently of those of the others, so each level is resampled for itself.

Source: Barlow, Bartholomew, Bremner and Brunk (1972), "Statistical Inference under Order
Restrictions", chapter 1; Efron (1979), "Bootstrap methods: another look at the jackknife", Ann.
Statist. 7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array

DRAWN_AT_ONCE = 2_000_000  # indices of a level's resamples in memory


def rising_fit(
    rate: Float[Array, " levels"], weights: Float[Array, " levels"]
) -> Float[Array, " levels"]:
    """Nearest rising curve in weighted least squares.

    Parameters
    ----------
    rate
        Means at each level, in the order of the levels; nats per step.
    weights
        Positive; numbers of networks.
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(rate, weights=weights).x)


def zero_crossing(x: Float[Array, " levels"], rising: Float[Array, " levels"]) -> float:
    """Place at which a rising curve passes zero.

    Parameters
    ----------
    x
        Rising places of the levels.
    rising
        Values that do not fall.

    Returns
    -------
    place
        Interpolated linearly; inf if all values are negative, -inf if none is: beyond the levels.
    """
    above = int(np.searchsorted(rising, 0.0, side="left"))
    if above == len(rising):
        return np.inf
    if rising[above] == 0.0:
        return float(x[above])
    if above == 0:
        return -np.inf
    low, high = rising[above - 1], rising[above]
    return float(x[above - 1] + (x[above] - x[above - 1]) * -low / (high - low))


def slope(
    x: Float[Array, " levels"], y: Float[Array, " levels"], weights: Float[Array, " levels"]
) -> float:
    """Slope of the weighted least squares line; nan with a single place."""
    center = np.average(x, weights=weights)
    spread = float(np.sum(weights * (x - center) ** 2))
    if spread == 0.0:
        return np.nan
    return float(np.sum(weights * (x - center) * (y - np.average(y, weights=weights))) / spread)


def resampled_means(
    groups: Sequence[Float[Array, " _"]], resamples: int, rng: np.random.Generator
) -> Float[Array, "resamples levels"]:
    """Means of as many values drawn with replacement, each level for itself."""
    return np.stack([_means(values, resamples, rng) for values in groups], axis=1)


def interval(values: Float[Array, " resamples"], confidence: float) -> tuple[float, float]:
    """Percentile interval; ends may be infinite, and are values that occurred."""
    tail = 0.5 * (1.0 - confidence)
    low = np.quantile(values, tail, method="inverted_cdf")
    high = np.quantile(values, 1.0 - tail, method="inverted_cdf")
    return float(low), float(high)


def _means(
    values: Float[Array, " _"], resamples: int, rng: np.random.Generator
) -> Float[Array, " resamples"]:
    step = max(1, DRAWN_AT_ONCE // len(values))
    parts: list[Float[Array, " some"]] = []
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn: Int[Array, "some networks"] = rng.integers(len(values), size=(count, len(values)))
        parts.append(values[drawn].mean(axis=1))
    return np.concatenate(parts)
