"""Several recurrences side by side: decay curves, verdicts, and what sets them apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.records.dynamics import SCHEMA, RecurrenceDynamics
from gradlab.records.frames import stack_frames
from gradlab.records.notebook import rows_html
from gradlab.records.provenance import Provenance
from gradlab.records.strict import strict_json

if TYPE_CHECKING:
    import pandas as pd

CURVES = (
    "lag",
    "pairs",
    "log_norm_median",
    "log_norm_q05",
    "log_norm_q95",
    "log_bound_gamma",
    "log_bound_onestep",
    "log_bound_blocks",
)
# What of a recurrence's own summary a comparison tells.
TOLD = (
    "cell",
    "layer",
    "direction",
    "activation",
    "hidden_size",
    "input_size",
    "state_size",
    "gamma_w",
    "spectral_radius",
    "gates",
    "state_shares",
    "saturated_share",
    "regime",
    "horizon",
    "slack",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedRecurrence:
    """One recurrence under its label, with where its numbers come from."""

    label: str
    dynamics: RecurrenceDynamics
    sequences: Mapping[str, Any]
    assumptions: tuple[str, ...]
    provenance: Provenance

    @property
    def recurrence(self) -> str:
        """Name of the recurrence in its own network."""
        return self.dynamics.description.name

    @property
    def longest_lag(self) -> int:
        """Longest lag measured."""
        return int(self.dynamics.jacobians.lag.max())

    @property
    def settings(self) -> dict[str, Any]:
        """What may explain that two recurrences decay differently, beside the weights."""
        described, origin = self.dynamics.description, self.provenance
        chosen = {k: v for k, v in origin.settings.items() if k not in ("anchors", "max_pairs")}
        return {
            "cell": described.cell,
            "activation": described.activation,
            "direction": described.direction,
            "hidden_size": described.hidden_size,
            "input_size": described.input_size,
            "state_size": described.state_size,
            "seed": origin.seed,
            "dtype": origin.dtype,
            "end_times": len(np.unique(self.dynamics.jacobians.t)),
            "longest_lag": self.longest_lag,
            **chosen,
            **{f"sequences.{name}": value for name, value in self.sequences.items()},
            "gradlab": origin.versions.get("gradlab"),
        }

    def to_frame(self) -> pd.DataFrame:
        """Rows of ``compare.csv``."""
        table = self.dynamics.lag_profile()[list(CURVES)]
        table.insert(0, "label", self.label)
        table.insert(1, "recurrence", self.recurrence)
        return table

    def log_norm_at(self, lag: int) -> float:
        """Median log norm at a lag that was measured, nats."""
        groups = self.dynamics.jacobians.groups
        median = groups.quantile(self.dynamics.jacobians.log_norm, 0.5)
        return float(median[np.searchsorted(groups.lag, lag)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Recurrences measured one by one, in the order given; labels are unique."""

    recurrences: tuple[ComparedRecurrence, ...]

    @property
    def common_lag(self) -> int:
        """Longest lag that was measured of every recurrence."""
        return min(entry.longest_lag for entry in self.recurrences)

    @property
    def same_inputs(self) -> bool:
        """Whether all recurrences belong to runs over the same sequences, by their hash."""
        return len({entry.provenance.sha256_inputs for entry in self.recurrences}) == 1

    @property
    def differing(self) -> tuple[str, ...]:
        """Settings that do not have one value for all."""
        settings = [entry.settings for entry in self.recurrences]
        names = dict.fromkeys(name for own in settings for name in own)
        first = settings[0]
        return tuple(
            name for name in names if any(own.get(name) != first.get(name) for own in settings)
        )

    def _repr_html_(self) -> str:
        """Table for notebooks, a row a label."""
        header = ("label", "cell", "regime", "rate (nats per step)", "1 % left at lag")
        rows = [
            (
                entry.label,
                entry.dynamics.description.cell,
                entry.dynamics.regime.name,
                entry.dynamics.regime.rate,
                entry.dynamics.horizon.lag_1pct,
            )
            for entry in self.recurrences
        ]
        return rows_html(type(self).__name__, header, rows)

    def to_frame(self) -> pd.DataFrame:
        """Table ``compare.csv``: the decay curves below each other, nats."""
        return stack_frames([entry.to_frame() for entry in self.recurrences])

    def summary(self) -> dict[str, Any]:
        """The document ``compare.json``: strict JSON, natural logarithms per step."""
        document: dict[str, Any] = strict_json(
            {
                "schema": SCHEMA,
                "kind": "comparison",
                "labels": [entry.label for entry in self.recurrences],
                "common_lag": self.common_lag,
                "same_inputs": self.same_inputs,
                "differing": self.differing,
                "recurrences": [self._entry(entry) for entry in self.recurrences],
            }
        )
        return document

    def _entry(self, entry: ComparedRecurrence) -> dict[str, Any]:
        own, settings, origin = entry.dynamics.summary(), entry.settings, entry.provenance
        return {
            "label": entry.label,
            "recurrence": entry.recurrence,
            **{name: own[name] for name in TOLD if name in own},
            "log_norm_at_common_lag": entry.log_norm_at(self.common_lag),
            "longest_lag": entry.longest_lag,
            "sequences": entry.sequences,
            "differing": {name: settings.get(name) for name in self.differing},
            "source": origin.source,
            "seed": origin.seed,
            "dtype": origin.dtype,
            "sha256_weights": origin.sha256_weights,
            "sha256_inputs": origin.sha256_inputs,
            "assumptions": entry.assumptions,
        }
