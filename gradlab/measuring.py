"""One recurrence: its measurements, composed into one record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.certificates.collection import certificates as certify
from gradlab.analysis.directions import affordable, directions
from gradlab.analysis.end_times import Anchors, chosen_anchors
from gradlab.analysis.ensembles import mean_field_of
from gradlab.analysis.gates import gate_dynamics
from gradlab.analysis.inspection import describe
from gradlab.analysis.jacobians import jacobian_profile
from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.one_step import one_step_profile
from gradlab.analysis.outlook import outlook
from gradlab.analysis.precision import precision_horizon
from gradlab.analysis.regime import regime
from gradlab.analysis.saturation import saturation
from gradlab.analysis.spectrum import spectral_summary
from gradlab.analysis.working import Work
from gradlab.cells.base import Cell
from gradlab.cells.stack import Recurrence
from gradlab.errors import SettingError
from gradlab.records.directions import DirectionProfile
from gradlab.records.dynamics import RecurrenceDynamics
from gradlab.records.gradients import GradientProfile
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.records.trajectory import Trajectory

# Largest state whose exponents are all measured unless told otherwise, and how many of a larger
# one: a frame of all its columns would cost as much as the rest of the analysis.
ALL_EXPONENTS, FIRST_EXPONENTS = 256, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisSettings:
    """What may be chosen of an analysis, see `analyze`."""

    anchors: Anchors
    max_pairs: int | None
    max_lag: int | None
    threshold: float
    strict: bool
    block: int | str
    exponents: int | None
    transient: int | None
    certificates: str
    kernel: str


class Begun:
    """The measurements of one recurrence that take long, under way."""

    def __init__(self, cell: Cell, run: Trajectory, settings: AnalysisSettings, work: Work) -> None:
        anchors = anchors_of(settings, run, cell.state_size)
        self.profile = work.begin(
            jacobian_profile,
            cell,
            run,
            max_lag=settings.max_lag,
            anchors=anchors,
            kernel=settings.kernel,
        )
        self.directions = work.begin(_directions_kept, cell, run, settings)
        self.one_step = work.begin(one_step_profile, cell, run)
        self.lyapunov = work.begin(_lyapunov, cell, run, settings)
        self.work = work


def finished(
    entry: Recurrence,
    run: Trajectory,
    settings: AnalysisSettings,
    gradient: GradientProfile | None,
    begun: Begun,
) -> RecurrenceDynamics:
    """Everything about one recurrence, once what was begun has ended."""
    cell, profile, one_step = entry.cell, begun.profile(), begun.one_step()
    ladder = begun.work.begin(
        bound_ladder, cell, run, profile=profile, block=settings.block, one_step=one_step
    )()
    spectrum = spectral_summary(cell)
    verdict = regime(profile, ladder, spectral_radius=spectrum.spectral_radius)
    groups = profile.groups
    median = groups.quantile(profile.log_norm, 0.5)
    theory = mean_field_of(cell, run)
    return RecurrenceDynamics(
        description=describe(entry),
        lengths=run.lengths,
        spectrum=spectrum,
        saturation=saturation(cell, run, threshold=settings.threshold, strict=settings.strict),
        jacobians=profile,
        ladder=ladder,
        step_log_norm=one_step.log_norm,
        regime=verdict,
        horizon=precision_horizon(groups.lag, median, *verdict.trend),
        gates=gate_dynamics(cell, run) if cell.carry(run) else None,
        gradient=gradient,
        mean_field=theory,
        outlook=outlook(cell, run, theory=theory),
        lyapunov=begun.lyapunov(),
        directions=begun.directions(),
        certificates=certify(
            cell,
            search=settings.certificates == "all",
            input_bound=float(np.abs(run.inputs[run.valid]).max(initial=0.0)),
        ),
    )


def _directions_kept(
    cell: Cell, run: Trajectory, settings: AnalysisSettings
) -> DirectionProfile | None:
    """Spectra of the products, where one of them takes no more than seconds."""
    if not affordable(cell.state_size):
        return None
    return directions(cell, run, max_lag=settings.max_lag)


def _lyapunov(cell: Cell, run: Trajectory, settings: AnalysisSettings) -> LyapunovSpectrum | None:
    k = exponent_count(cell.state_size, settings.exponents)
    if k == 0:
        return None
    shortest = int(run.lengths.min())
    transient = shortest // 10 if settings.transient is None else settings.transient
    return lyapunov_spectrum(cell, run, k=k, transient=transient)


def exponent_count(n: int, wanted: int | None) -> int:
    """Lyapunov exponents to measure of a state of n numbers.

    Raises
    ------
    SettingError
        If fewer than none are wanted.
    """
    if wanted is not None and wanted < 0:
        raise SettingError(f"exponents {wanted}: expected 0 (none) or more")
    if wanted is None:
        return n if n <= ALL_EXPONENTS else FIRST_EXPONENTS
    return min(wanted, n)


def anchors_of(settings: AnalysisSettings, run: Trajectory, n: int) -> Anchors:
    """End times that the settings name for a run of states of n numbers."""
    return chosen_anchors(run, n, settings.anchors, settings.max_lag, settings.max_pairs)
