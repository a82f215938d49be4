"""Slopes of a non-linearity over time: a histogram of each slice, and means unit by unit."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.records.slope_map import SlopeMap

TIMES, GROUPS = 128, 128  # at most, of the map of units
SLICES, BINS = 10, 60  # of the histogram over time


def slope_map(
    t: Int[Array, " steps"],
    slope: Float[Array, "steps n"],
    saturated: Bool[Array, "steps n"],
    sup: float,
) -> SlopeMap:
    """Arrange slopes over slices of time.

    Parameters
    ----------
    t
        Time of each valid step of any sequence, from 1.
    slope, saturated
        φ' of each unit at that step, and whether the unit counts as saturated there.
    sup
        Supremum of φ': the histogram reaches from 0 to there, farther where slopes lie beyond.

    Returns
    -------
    arranged
        At most `TIMES` slices by `GROUPS` groups of units, and `SLICES` histograms.
    """
    present = np.unique(t)
    times, slices = _parts(len(present), TIMES), _parts(len(present), SLICES)
    units = _parts(slope.shape[1], GROUPS)
    place = np.searchsorted(present, t)
    edge = _edges(slope, sup)
    time = np.searchsorted(times, place, side="right") - 1
    return SlopeMap(
        sup=sup,
        first=present[times[:-1]],
        last=present[times[1:] - 1],
        first_unit=units[:-1],
        last_unit=units[1:] - 1,
        unit_slope=_means(slope, time, units),
        unit_saturated=_means(saturated.astype(np.float64), time, units),
        spread_first=present[slices[:-1]],
        spread_last=present[slices[1:] - 1],
        edge=edge,
        share=_shares(slope, np.searchsorted(slices, place, side="right") - 1, edge),
    )


def _parts(count: int, most: int) -> Int[Array, " edges"]:
    """Edges of nearly equal runs of so many things."""
    return np.linspace(0, count, min(count, most) + 1).round().astype(np.int64)


def _edges(slope: Float[Array, "steps n"], sup: float) -> Float[Array, " edges"]:
    low, high = min(float(slope.min()), 0.0), float(slope.max())
    if np.isfinite(sup):
        high = max(high, sup)
    return np.linspace(low, high if high > low else low + 1.0, BINS + 1)


def _means(
    values: Float[Array, "steps n"], time: Int[Array, " steps"], units: Int[Array, " edges"]
) -> Float[Array, "times groups"]:
    grouped = np.add.reduceat(values, units[:-1], axis=1) / np.diff(units)
    order = np.argsort(time, kind="stable")
    starts = np.flatnonzero(np.diff(time[order], prepend=-1))
    counts = np.diff(np.append(starts, len(time)))
    return np.add.reduceat(grouped[order], starts, axis=0) / counts[:, None]


def _shares(
    slope: Float[Array, "steps n"], part: Int[Array, " steps"], edge: Float[Array, " edges"]
) -> Float[Array, "slices bins"]:
    bins, slices = len(edge) - 1, int(part.max()) + 1
    scale = bins / (edge[-1] - edge[0])
    found = np.clip(((slope - edge[0]) * scale).astype(np.int64), 0, bins - 1)
    flat = (part[:, None] * bins + found).ravel()
    counts = np.bincount(flat, minlength=slices * bins).reshape(slices, bins)
    shares: Array = counts / counts.sum(axis=1, keepdims=True)
    return shares
