"""The slopes of one non-linearity over time: how they are spread, and unit by unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlopeMap:
    """φ' over slices of time, all valid steps of all sequences of a slice together.

    Slices are runs of successive steps that have a valid one, groups are runs of successive units;
    both hold one step or unit each where there are few of them. ``share`` adds up to 1 in every
    time slice.
    """

    sup: float  # supremum of φ'
    first: Int[Array, " times"]  # first and last step t of each slice of the unit map
    last: Int[Array, " times"]
    first_unit: Int[Array, " groups"]  # first and last unit of each group, counted from 0
    last_unit: Int[Array, " groups"]
    unit_slope: Float[Array, "times groups"]  # mean φ'
    unit_saturated: Float[Array, "times groups"]  # share of units and steps that are saturated
    spread_first: Int[Array, " slices"]  # first and last step t of each slice of the histogram
    spread_last: Int[Array, " slices"]
    edge: Float[Array, " edges"]  # of the histogram, in φ', evenly spaced
    share: Float[Array, "slices bins"]  # share of units and steps with φ' between two edges

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in self.__slots__:
            if name != "sup":
                object.__setattr__(self, name, read_only(getattr(self, name)))

    def units_frame(self) -> pd.DataFrame:
        """Columns of ``units.csv`` but the recurrence and the activation."""
        times, groups = self.unit_slope.shape
        return frame(
            unit_first=np.tile(self.first_unit, times),
            unit_last=np.tile(self.last_unit, times),
            t_first=np.repeat(self.first, groups),
            t_last=np.repeat(self.last, groups),
            derivative_mean=self.unit_slope.ravel(),
            derivative_sup=self.sup,
            saturated_share=self.unit_saturated.ravel(),
        )

    def spread_frame(self) -> pd.DataFrame:
        """Columns of ``slopes.csv`` but the recurrence and the activation."""
        slices, bins = self.share.shape
        return frame(
            t_first=np.repeat(self.spread_first, bins),
            t_last=np.repeat(self.spread_last, bins),
            derivative_low=np.tile(self.edge[:-1], slices),
            derivative_high=np.tile(self.edge[1:], slices),
            share=self.share.ravel(),
        )
