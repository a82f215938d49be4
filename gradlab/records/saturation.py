"""How far a network's units are from their linear range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame, stack_frames
from gradlab.records.notebook import rows_html, summary_html
from gradlab.records.slope_map import SlopeMap

if TYPE_CHECKING:
    import pandas as pd

STEP_COLUMNS = (
    "derivative_mean",
    "derivative_q05",
    "derivative_q50",
    "derivative_q95",
    "derivative_max",
    "saturated_share",
)
NUMBERS = ("rule", "low_share", "high_share", "mean_derivative", "observed_gamma_a")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GateSaturation:
    """One non-linearity over all valid steps of all sequences.

    ``steps`` holds one value a valid step, by sequence and then time, of the distribution of φ'
    over the units.
    """

    rule: str  # what counts as saturated, in symbols
    threshold: float
    strict: bool
    low_share: float  # share of units and steps saturated at the lower and at the upper end
    high_share: float
    mean_derivative: float  # needs no threshold
    observed_gamma_a: float  # largest |φ'| that occurred
    zero_share: float  # share with φ' exactly 0
    autodiff_zero_share: float  # share where a derivative computed from the output is exactly 0
    kink_count: int  # pre-activations exactly at a kink, where φ' is a convention
    sequence: Int[Array, " steps"]
    t: Int[Array, " steps"]
    steps: Mapping[str, Float[Array, " steps"]]
    unit_mean_derivative: Float[Array, " n"]
    unit_saturated_share: Float[Array, " n"]
    dead_units: Int[Array, " dead"]  # φ' exactly 0 at every valid step
    over_time: SlopeMap | None = None  # None in runs of older versions

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        names = ("sequence", "t", "unit_mean_derivative", "unit_saturated_share", "dead_units")
        for name in names:
            object.__setattr__(self, name, read_only(getattr(self, name)))
        steps = {name: read_only(values) for name, values in self.steps.items()}
        object.__setattr__(self, "steps", steps)

    @property
    def saturated_share(self) -> float:
        """Share of units and valid steps that count as saturated."""
        return self.low_share + self.high_share

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, {name: getattr(self, name) for name in NUMBERS})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SaturationProfile:
    """Saturation by non-linearity: the activation of a vanilla cell, the gates of others."""

    gates: Mapping[str, GateSaturation]

    def __post_init__(self) -> None:
        """Freeze the mapping."""
        object.__setattr__(self, "gates", dict(self.gates))

    @property
    def saturated_share(self) -> float:
        """Mean over the non-linearities."""
        return float(np.mean([gate.saturated_share for gate in self.gates.values()]))

    @property
    def mean_derivative(self) -> float:
        """Mean over the non-linearities."""
        return float(np.mean([gate.mean_derivative for gate in self.gates.values()]))

    @property
    def dead_units(self) -> Int[Array, " dead"]:
        """Units that are dead in every non-linearity."""
        dead = [set(gate.dead_units.tolist()) for gate in self.gates.values()]
        return np.array(sorted(set.intersection(*dead)), dtype=np.int64)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        rows = [
            (name, *(getattr(gate, number) for number in NUMBERS), len(gate.dead_units))
            for name, gate in self.gates.items()
        ]
        return rows_html(type(self).__name__, ("activation", *NUMBERS, "dead_units"), rows)

    def to_frame(self) -> pd.DataFrame:
        """Columns of ``steps.csv`` but the recurrence and the Jacobian's norm."""
        return stack_frames(
            [
                frame(
                    sequence=gate.sequence,
                    t=gate.t,
                    activation=name,
                    **{column: gate.steps[column] for column in STEP_COLUMNS},
                )
                for name, gate in self.gates.items()
            ]
        )

    def units_frame(self) -> pd.DataFrame | None:
        """Columns of ``units.csv`` but the recurrence; None in runs of older versions."""
        parts = [
            (name, gate.over_time.units_frame())
            for name, gate in self.gates.items()
            if gate.over_time is not None
        ]
        return _named(parts)

    def spread_frame(self) -> pd.DataFrame | None:
        """Columns of ``slopes.csv`` but the recurrence; None in runs of older versions."""
        parts = [
            (name, gate.over_time.spread_frame())
            for name, gate in self.gates.items()
            if gate.over_time is not None
        ]
        return _named(parts)


def _named(parts: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame | None:
    """Tables of several non-linearities in one, each row with its name; None without any."""
    for name, table in parts:
        table.insert(0, "activation", name)
    return stack_frames([table for _, table in parts]) if parts else None
