"""Everything measured of a network along one set of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gradlab.arrays import Array, read_only
from gradlab.errors import SettingError, unknown_name
from gradlab.records.certificates import Certificates
from gradlab.records.directions import DirectionProfile
from gradlab.records.frames import frame, stack_frames
from gradlab.records.gates import GateDynamics
from gradlab.records.gradients import GradientProfile
from gradlab.records.horizon import PrecisionHorizon
from gradlab.records.jacobians import JacobianProfile
from gradlab.records.ladder import BoundLadder
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.records.meanfield import MeanField
from gradlab.records.notebook import rows_html, summary_html
from gradlab.records.outlook import Outlook
from gradlab.records.provenance import Provenance
from gradlab.records.regime import Regime
from gradlab.records.saturation import GateSaturation, SaturationProfile
from gradlab.records.spectrum import STACK, MatrixSpectrum, SpectralSummary
from gradlab.records.strict import strict_json

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
LADDER_COLUMNS = ("gamma", "saturation", "onestep", "blocks")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecurrenceDescription:
    """What a recurrence is, before anything is measured."""

    name: str
    cell: str
    layer: int
    direction: str
    activation: str | None
    hidden_size: int
    input_size: int
    state_size: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecurrenceDynamics:
    """All measurements of one recurrence."""

    description: RecurrenceDescription
    lengths: Int[Array, " batch"]  # valid steps of each sequence
    spectrum: SpectralSummary
    saturation: SaturationProfile
    jacobians: JacobianProfile
    ladder: BoundLadder  # for the pairs of `jacobians`
    step_log_norm: Float[Array, " steps"]  # ln‖J_t‖, by sequence and then time
    regime: Regime
    horizon: PrecisionHorizon
    gates: GateDynamics | None = None  # of cells that carry their state on
    gradient: GradientProfile | None = None  # with targets, where the loss reads this recurrence
    lyapunov: LyapunovSpectrum | None = None  # averaged over the counted steps of all sequences
    certificates: Certificates = field(default_factory=lambda: Certificates(entries={}))
    mean_field: MeanField | None = None  # of cells that could be a draw of a random ensemble
    directions: DirectionProfile | None = None  # None where its spectra would take too long
    outlook: Outlook | None = None  # None where it was not asked for

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("lengths", "step_log_norm"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def last_ladder(self) -> BoundLadder:
        """The ladder at each sequence's last measured end time."""
        latest = np.zeros(int(self.ladder.sequence.max()) + 1, dtype=np.int64)
        np.maximum.at(latest, self.ladder.sequence, self.ladder.t)
        return self.ladder.at(self.ladder.t == latest[self.ladder.sequence])

    def lag_profile(self) -> pd.DataFrame:
        """Columns of ``lag_profile.csv`` but the recurrence: measured and bounds, nats."""
        table = self.jacobians.by_lag()
        bounds = {f"log_bound_{rung}": self.ladder.medians(rung) for rung in LADDER_COLUMNS}
        return table.assign(**bounds)

    def pairs(self) -> pd.DataFrame:
        """Columns of ``pairs.csv`` but the recurrence."""
        profile = self.jacobians
        missing = np.full(len(profile.lag), np.nan)
        return frame(
            sequence=profile.sequence,
            t=profile.t,
            k=profile.k,
            lag=profile.lag,
            log_norm=profile.log_norm,
            log_frobenius=profile.log_frobenius,
            log_bound_gamma=self.ladder.rungs.get("gamma", missing),
        )

    def steps(self) -> pd.DataFrame:
        """Columns of ``steps.csv`` but the recurrence."""
        table = self.saturation.to_frame()
        gates = len(self.saturation.gates)
        return table.assign(log_jacobian_norm=np.tile(self.step_log_norm, gates))

    def paths(self) -> pd.DataFrame | None:
        """Columns of ``paths.csv`` but the recurrence; None for cells without a direct path."""
        if self.gates is None:
            return None
        groups = self.jacobians.groups
        median = groups.quantile(self.jacobians.log_norm, 0.5)
        measured = frame(quantity="log_norm", name="measured", lag=groups.lag, value=median)
        return stack_frames([self.gates.to_frame(), measured])

    def mean_field_spectrum(self) -> pd.DataFrame | None:
        """Columns of ``mean_field.csv`` but the recurrence; None where there is no theory."""
        if self.mean_field is None:
            return None
        return self.mean_field.spectrum_frame(self.description.hidden_size)

    def exponents(self) -> pd.DataFrame | None:
        """Columns of ``lyapunov.csv`` but the recurrence; None where they were not measured."""
        return None if self.lyapunov is None else self.lyapunov.to_frame()

    def surviving_directions(self) -> pd.DataFrame | None:
        """Columns of ``directions.csv`` but the recurrence; None where they were not measured."""
        return None if self.directions is None else self.directions.by_lag()

    def product_spectrum(self) -> pd.DataFrame | None:
        """Columns of ``product_spectrum.csv`` but the recurrence; None where not measured."""
        return None if self.directions is None else self.directions.to_frame()

    def mean_field_profile(self) -> pd.DataFrame | None:
        """Columns of ``mean_field_profile.csv`` but the recurrence, at the lags measured."""
        if self.mean_field is None:
            return None
        return self.mean_field.profile_frame(
            self.jacobians.groups.lag, self.description.hidden_size
        )

    def gate_values(self) -> pd.DataFrame | None:
        """Columns of ``gates.csv`` but the recurrence; None for cells without gates."""
        return None if self.gates is None else self.gates.values_frame()

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return summary_html(self, self.summary())

    def summary(self) -> dict[str, Any]:
        """Entry of ``summary.json``."""
        described = self.description
        return {
            "name": described.name,
            "cell": described.cell,
            "layer": described.layer,
            "direction": described.direction,
            "activation": described.activation,
            "hidden_size": described.hidden_size,
            "input_size": described.input_size,
            "state_size": described.state_size,
            **spectrum_summary(self.spectrum),
            **_gates_summary(self.spectrum, self.saturation, self.gates),
            **self.certificates.to_summary(),
            "saturated_share": self.saturation.saturated_share,
            "saturation": _saturation_summary(self.saturation),
            "regime": self.regime.to_summary(),
            "horizon": self.horizon.to_summary(),
            "slack": dict(self.last_ladder.slack()),
            "ladder": {"block": self.ladder.block, "absent": dict(self.ladder.absent)},
            "directions": None if self.directions is None else self.directions.to_summary(),
            "gradient": None if self.gradient is None else self.gradient.to_summary(),
            "lyapunov": None if self.lyapunov is None else self.lyapunov.to_summary(),
            "mean_field": None
            if self.mean_field is None
            else self.mean_field.to_summary(described.hidden_size, int(self.lengths.sum())),
            "outlook": None if self.outlook is None else self.outlook.to_summary(),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientDynamics:
    """All recurrences of a network, what was assumed, and where the numbers come from."""

    recurrences: Mapping[str, RecurrenceDynamics]
    sequences: Mapping[str, Any]  # count, steps, length_min, length_max, synthetic, description
    assumptions: tuple[str, ...]
    provenance: Provenance

    def __post_init__(self) -> None:
        """Freeze the mappings."""
        for name in ("recurrences", "sequences"):
            object.__setattr__(self, name, dict(getattr(self, name)))

    def __getitem__(self, name: str) -> RecurrenceDynamics:
        """Measurements of the recurrence of that name."""
        if name not in self.recurrences:
            raise unknown_name("recurrence", name, self.recurrences)
        return self.recurrences[name]

    def only(self) -> RecurrenceDynamics:
        """Measurements of the one recurrence of a network that has just one.

        Raises
        ------
        SettingError
            If there are several.
        """
        if len(self.recurrences) != 1:
            names = ", ".join(self.recurrences)
            raise SettingError(f"{len(self.recurrences)} recurrences ({names}): name one")
        return next(iter(self.recurrences.values()))

    def _repr_html_(self) -> str:
        """Table for notebooks, a row a recurrence."""
        header = ("recurrence", "cell", "regime", "rate (nats per step)", "1 % left at lag", "γ_w")
        rows = [
            (
                name,
                entry.description.cell,
                entry.regime.name,
                entry.regime.rate,
                entry.horizon.lag_1pct,
                entry.spectrum.gamma_w,
            )
            for name, entry in self.recurrences.items()
        ]
        return rows_html(type(self).__name__, header, rows)

    def summary(self) -> dict[str, Any]:
        """The document ``summary.json``: strict JSON, natural logarithms per step."""
        shared = {"sequences": self.sequences, "assumptions": list(self.assumptions)}
        entries = [entry.summary() | shared for entry in self.recurrences.values()]
        document: dict[str, Any] = strict_json({"schema": SCHEMA, "recurrences": entries})
        return document

    def to_frame(self) -> pd.DataFrame:
        """The lag profiles of all recurrences below each other."""
        parts = []
        for name, entry in self.recurrences.items():
            table = entry.lag_profile()
            table.insert(0, "recurrence", name)
            parts.append(table)
        return stack_frames(parts)


def spectrum_summary(spectrum: SpectralSummary) -> dict[str, Any]:
    """Keys of ``summary.json`` that need no trajectory."""
    only, iterated = spectrum.only, spectrum.iterated
    named = spectrum.gates if len(spectrum.gates) > 1 else {}
    return {
        "gamma_w": spectrum.gamma_w,
        "spectral_radius": spectrum.spectral_radius,
        "numerical_radius": None if iterated is None else iterated.numerical_radius,
        "henrici": None if only is None else only.henrici,
        "condition_number": None if only is None else only.condition_number,
        "kreiss": None if iterated is None else iterated.kreiss,
        "power_height": None if iterated is None else iterated.power_height,
        "power_lag": None if iterated is None else iterated.power_lag,
        "gates": {name: _gate_summary(name, gate) for name, gate in named.items()},
    }


def _gate_summary(name: str, gate: MatrixSpectrum) -> dict[str, Any]:
    entry: dict[str, Any] = {"sigma_max": gate.sigma_max, "spectral_radius": gate.spectral_radius}
    if name.rpartition(".")[2] == STACK:
        entry["note"] = "not a bound for gated cells"
    return entry


def _gates_summary(
    spectrum: SpectralSummary, saturation: SaturationProfile, dynamics: GateDynamics | None
) -> dict[str, Any]:
    """What was measured of every gate, beside its spectrum; empty for cells without gates."""
    if dynamics is None:
        return {}
    unknown = {"sigma_max": None, "spectral_radius": None}
    known = {name: _gate_summary(name, gate) for name, gate in spectrum.gates.items()}
    ends = {name: _ends(saturation.gates[name]) for name in dynamics.values}
    measured = dynamics.to_summary()
    gates = {
        name: known.get(name, unknown) | ends.get(name, {}) | measured["carry"].get(name, {})
        for name in dict.fromkeys((*known, *ends, *measured["carry"]))
    }
    return {"gates": gates, "state_shares": measured["shares"]}


def _saturation_summary(profile: SaturationProfile) -> dict[str, Any]:
    gates = profile.gates.values()
    return {
        "rule": "; ".join(f"{name}: {gate.rule}" for name, gate in profile.gates.items()),
        "saturated_share": profile.saturated_share,
        "mean_derivative": profile.mean_derivative,
        "dead_units": profile.dead_units,
        "kink_count": sum(gate.kink_count for gate in gates),
        "zero_share": float(np.mean([gate.zero_share for gate in gates])),
        "autodiff_zero_share": float(np.mean([gate.autodiff_zero_share for gate in gates])),
        "gates": {name: _ends(gate) for name, gate in profile.gates.items()},
    }


def _ends(gate: GateSaturation) -> dict[str, float]:
    return {
        "low_share": gate.low_share,
        "high_share": gate.high_share,
        "threshold": gate.threshold,
        "mean_derivative": gate.mean_derivative,
    }
