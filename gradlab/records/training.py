"""What was measured of a network while it learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.arrays import Array, read_only
from gradlab.records.frames import frame
from gradlab.records.notebook import rows_html

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 9  # in a notebook, behind the first
# Means since the row before, then what holds at the row's step.
COLUMNS = (
    "step",
    "loss",
    "gradient_norm",
    "clipped_norm",
    "clipped_share",
    "test_loss",
    "accuracy",
    "gamma_w",
    "spectral_radius",
    "saturated_share",
    "rate",
    "horizon_1pct",
    "regime",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingLog:
    """Rows of ``training.csv``, by column; one row before the first step, then every M steps.

    ``loss``, ``gradient_norm``, ``clipped_norm`` and ``clipped_share`` are means over the steps
    since the row before, nan in the first. The others hold at the row's step: loss and share of
    right answers on fixed sequences that are never trained on, and the gradient's dynamics along
    some of them. ``rate`` is in nats per step, ``horizon_1pct`` the lag at which the median norm
    falls below 1 %, nan where it does not; γ_w and the spectral radius are nan for gated cells.
    """

    columns: Mapping[str, Array]

    def __post_init__(self) -> None:
        """Freeze the columns."""
        frozen = {name: read_only(self.columns[name]) for name in COLUMNS}
        object.__setattr__(self, "columns", frozen)

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> TrainingLog:
        """Log of the given rows, in order."""
        return cls(columns={name: np.array([row[name] for row in rows]) for name in COLUMNS})

    def rows(self) -> list[dict[str, Any]]:
        """Rows as mappings, in order."""
        lists = {name: column.tolist() for name, column in self.columns.items()}
        return [
            dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)
        ]

    def __getitem__(self, name: str) -> Array:
        """Column of that name."""
        return self.columns[name]

    def _repr_html_(self) -> str:
        """Table for notebooks: the first row and the last ones."""
        names = ("step", "loss", "test_loss", "accuracy", "gradient_norm", "rate", "regime")
        rows = [[row[name] for name in names] for row in self.rows()]
        return rows_html(type(self).__name__, names, rows[:1] + rows[1:][-MOST_ROWS:])

    def to_frame(self) -> pd.DataFrame:
        """Table ``training.csv``."""
        return frame(**self.columns)
