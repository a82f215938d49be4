"""The whole analysis: measurements of every recurrence, composed into one result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.analysis.bounds import bound_ladder
from gradlab.analysis.certificates.collection import certificates as certify
from gradlab.analysis.directions import affordable, directions
from gradlab.analysis.ensembles import mean_field_of
from gradlab.analysis.gates import gate_dynamics
from gradlab.analysis.inspection import describe
from gradlab.analysis.jacobians import Anchors, end_times, jacobian_profile, kernel_for
from gradlab.analysis.kernels import described_kernel
from gradlab.analysis.lyapunov import lyapunov_spectrum
from gradlab.analysis.objective import Objective, ObjectiveGradient, objective_gradient
from gradlab.analysis.one_step import one_step_profile
from gradlab.analysis.outlook import outlook
from gradlab.analysis.precision import precision_horizon
from gradlab.analysis.regime import regime
from gradlab.analysis.saturation import saturation
from gradlab.analysis.spectrum import spectral_summary
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network, Recurrence
from gradlab.engine.losses import Readout
from gradlab.engine.rollout import rollout_network
from gradlab.errors import SettingError, unknown_name
from gradlab.linalg import single_threaded_blas
from gradlab.provenance import provenance
from gradlab.records.directions import DirectionProfile
from gradlab.records.dynamics import (
    GradientDynamics,
    RecurrenceDynamics,
)
from gradlab.records.gradients import GradientProfile
from gradlab.records.lyapunov import LyapunovSpectrum
from gradlab.records.trajectory import Trajectory

CERTIFICATES = ("cheap", "all")
# Products that an automatic choice of end times may measure: about ten seconds at N = 64.
AUTOMATIC_PAIRS = 20_000
# Largest state whose exponents are all measured unless told otherwise, and how many of a larger
# one: a frame of all its columns would cost as much as the rest of the analysis.
ALL_EXPONENTS, FIRST_EXPONENTS = 256, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisSettings:
    """What may be chosen of an analysis, see `analyze`."""

    anchors: Anchors
    max_lag: int | None
    threshold: float
    strict: bool
    block: int | str
    exponents: int | None
    transient: int | None
    certificates: str
    kernel: str


def analyze(
    network: Network | Cell,
    inputs: Float[Array, "time batch features"],
    *,
    targets: Array | None = None,
    readout: Readout | None = None,
    mask: Bool[Array, "time batch"] | None = None,
    at: str | None = None,
    initial_state: Mapping[str, Array] | Array | None = None,
    lengths: Int[Array, " batch"] | None = None,
    anchors: Anchors = "auto",
    max_lag: int | None = None,
    threshold: float = 0.97,
    strict: bool = True,
    block: int | str = "auto",
    exponents: int | None = None,
    transient: int | None = None,
    certificates: str = "cheap",
    kernel: str = "auto",
    seed: int | None = None,
    source: str | None = None,
    description: str = "inputs given as an array",
    synthetic: bool = False,
    assumptions: Sequence[str] = (),
) -> GradientDynamics:
    """Run a network over sequences and measure its gradient dynamics.

    Parameters
    ----------
    network
        A network, or a single cell.
    inputs
        Time-major sequences.
    targets, readout
        With both, the gradient of the loss is taken apart at every recurrence that it reaches, see
        `gradient_profile`; ``RecurrenceDynamics.gradient`` is None without.
    mask, at
        Steps with a loss: True in ``mask`` (time, batch), or ``at="last"``; all if None.
    initial_state
        By the recurrence's name, or one array for a single cell; zeros if None.
    lengths
        Valid steps of each sequence.
    anchors
        End times of the long-term Jacobians, as `jacobian_profile` takes them, or ``"auto"``: as
        many evenly spaced ones as keep the work small.
    max_lag
        Longest lag.
    threshold, strict
        Rule of the saturated share, see `saturation`.
    block
        Steps of a block of the bound ladder, or ``"auto"``, see `bound_ladder`.
    exponents
        Lyapunov exponents to measure, from the largest on; 0: none. If None, all of states of up to
        256 numbers, and the first 16 of larger ones.
    transient
        Steps at the start of each sequence that do not count for these; a tenth of the shortest
        sequence if None.
    certificates
        ``"cheap"``, or ``"all"`` to search for the diagonal scaling and the matrix inequality too,
        which takes seconds from about a hundred units on. Those of gated cells hold for inputs up
        to the largest of each recurrence's own.
    kernel
        ``"auto"``, ``"numpy"`` or ``"numba"``, see `jacobian_profile`; recorded as what it came to.
    seed
        Recorded only.
    source, description, synthetic, assumptions
        Recorded: where the weights came from, what the sequences are, whether they are synthetic,
        and what was assumed in reading either.

    Returns
    -------
    dynamics
        One entry a recurrence, each on its own real input.

    Raises
    ------
    GradlabError
        If inputs, targets or readout do not fit the network, or a setting is out of range.
    """
    started = datetime.now(UTC)
    whole = network if isinstance(network, Network) else Network.of(network)
    settings = AnalysisSettings(
        anchors=anchors,
        max_lag=max_lag,
        threshold=threshold,
        strict=strict,
        block=block,
        exponents=exponents,
        transient=transient,
        certificates=_known(certificates),
        kernel=kernel,
    )
    objective = Objective.of(readout, targets, mask=mask, at=at)
    states = _states_by_name(whole, initial_state)
    with single_threaded_blas():
        runs = rollout_network(whole, inputs, initial_state=states, lengths=lengths)
        gradient = _gradient(whole, runs, objective)
        measured = {
            entry.name: _measure(entry, run, settings, gradient.profiles.get(entry.name))
            for entry in whole.recurrences
            if (run := runs.get(entry.name)) is not None
        }
    first = next(iter(runs.values()))
    given = (*whole.assumptions, *assumptions)
    return GradientDynamics(
        recurrences=measured,
        sequences=_sequences(first, description, synthetic),
        assumptions=(*given, *_directions(whole), *_left_out(whole, runs), *gradient.assumptions),
        provenance=provenance(
            weights=_weights(whole, objective),
            inputs=_data(first, objective),
            settings=_recorded(settings, _kernels(whole, runs, settings), objective),
            seed=seed,
            dtype=str(first.states.dtype),
            source=source or whole.source or None,
            started=started,
        ),
    )


def _recorded(
    settings: AnalysisSettings, kernel: str, objective: Objective | None
) -> dict[str, Any]:
    resolved = asdict(settings) | {"kernel": kernel}
    return resolved | ({"objective": objective.settings} if objective else {})


def _kernels(network: Network, runs: Mapping[str, Trajectory], settings: AnalysisSettings) -> str:
    """What measured the long-term Jacobians, with the version of what is not always there."""
    used = {
        kernel_for(
            entry.cell,
            run,
            settings.max_lag,
            _anchors(settings, run, entry.cell.state_size),
            kernel=settings.kernel,
        )
        for entry in network.recurrences
        if (run := runs.get(entry.name)) is not None
    }
    return ", ".join(described_kernel(name) for name in sorted(used))


def _known(certificates: str) -> str:
    if certificates not in CERTIFICATES:
        raise unknown_name("set of certificates", certificates, CERTIFICATES)
    return certificates


def automatic_anchors(lengths: Int[Array, " batch"], n: int, max_lag: int | None) -> Anchors:
    """As many evenly spaced end times as keep the number of products near `AUTOMATIC_PAIRS`.

    The number falls with the cube of the state size beyond 64, as the cost of a product grows.
    """
    longest = int(lengths.max())
    allowed = AUTOMATIC_PAIRS * min(1.0, (64 / n) ** 3)
    reach = min(longest, max_lag or longest)
    pairs_an_anchor = len(lengths) * reach * (1.0 - 0.5 * reach / longest)
    count = max(1, math.floor(allowed / pairs_an_anchor))
    return "all" if count >= longest else count


def _gradient(
    network: Network, runs: Mapping[str, Trajectory], objective: Objective | None
) -> ObjectiveGradient:
    if objective is None:
        return ObjectiveGradient(profiles={})
    return objective_gradient(network, runs, objective)


def _measure(
    entry: Recurrence,
    run: Trajectory,
    settings: AnalysisSettings,
    gradient: GradientProfile | None,
) -> RecurrenceDynamics:
    cell = entry.cell
    anchors = _anchors(settings, run, cell.state_size)
    profile = jacobian_profile(
        cell, run, max_lag=settings.max_lag, anchors=anchors, kernel=settings.kernel
    )
    one_step = one_step_profile(cell, run)
    ladder = bound_ladder(cell, run, profile=profile, block=settings.block, one_step=one_step)
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
        lyapunov=_lyapunov(cell, run, settings),
        directions=_directions_kept(cell, run, settings),
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
    wanted, n = settings.exponents, cell.state_size
    if wanted is not None and wanted < 0:
        raise SettingError(f"exponents {wanted}: expected 0 (none) or more")
    if wanted == 0:
        return None
    k = wanted or (n if n <= ALL_EXPONENTS else FIRST_EXPONENTS)
    shortest = int(run.lengths.min())
    transient = shortest // 10 if settings.transient is None else settings.transient
    return lyapunov_spectrum(cell, run, k=min(k, n), transient=transient)


def _anchors(settings: AnalysisSettings, run: Trajectory, n: int) -> Anchors:
    if settings.anchors == "auto":
        return automatic_anchors(run.lengths, n, settings.max_lag)
    if len(end_times(run.steps, settings.anchors)) == 0:
        raise SettingError(
            f"anchors {settings.anchors!r}: expected end times in 1..{run.steps}, the steps of the "
            "longest sequence"
        )
    return settings.anchors


def _sequences(run: Trajectory, description: str, synthetic: bool) -> dict[str, Any]:
    return {
        "count": run.batch,
        "steps": int(run.lengths.sum()),
        "length_min": int(run.lengths.min()),
        "length_max": int(run.lengths.max()),
        "synthetic": synthetic,
        "description": description,
    }


def _directions(network: Network) -> list[str]:
    """Sentences on the recurrences whose time runs against that of the inputs."""
    return [
        f"{entry.name} reads every sequence from its end: its times t and k count the steps as "
        "processed, so that step 1 reads the last input"
        for entry in network.recurrences
        if entry.direction == "backward"
    ]


def _left_out(network: Network, runs: Mapping[str, Trajectory]) -> list[str]:
    """Sentences on the recurrences that read another number of features."""
    features = next(iter(runs.values())).inputs.shape[2]
    return [
        f"{entry.name} is not analyzed: its stack does not read inputs of {features} features"
        for entry in network.recurrences
        if entry.name not in runs
    ]


def _weights(network: Network, objective: Objective | None) -> dict[str, Array]:
    recurrent = {
        f"{entry.name}.{name}": array
        for entry in network.recurrences
        for name, array in entry.cell.parameters.items()
    }
    read = {} if objective is None else objective.readout.parameters
    return recurrent | {f"readout.{name}": array for name, array in read.items()}


def _data(run: Trajectory, objective: Objective | None) -> dict[str, Array]:
    """Arrays that a run was made of, beside the weights."""
    data = {"inputs": run.inputs, "lengths": run.lengths}
    if objective is None:
        return data
    mask = {} if objective.mask is None else {"mask": np.asarray(objective.mask)}
    return data | {"targets": objective.targets} | mask


def _states_by_name(
    network: Network, state: Mapping[str, Array] | Array | None
) -> dict[str, Array] | None:
    if state is None or isinstance(state, Mapping):
        return None if state is None else dict(state)
    if len(network) != 1:
        raise SettingError(
            f"initial_state is one array, the network has {len(network)} recurrences: expected a "
            f"mapping with the names {', '.join(network)}"
        )
    return {next(iter(network)): state}
