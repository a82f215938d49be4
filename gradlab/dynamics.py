"""The whole analysis: measurements of every recurrence, composed into one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.analysis.end_times import Anchors, left_out
from gradlab.analysis.jacobians import kernel_for
from gradlab.analysis.objective import Objective, ObjectiveGradient, objective_gradient
from gradlab.analysis.products.kernels import described_kernel
from gradlab.analysis.working import Work
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network
from gradlab.engine.losses import Readout
from gradlab.engine.rollout import rollout_network
from gradlab.errors import SettingError, unknown_name
from gradlab.linalg import single_threaded_blas
from gradlab.measuring import AnalysisSettings, Begun, anchors_of, finished
from gradlab.provenance import provenance
from gradlab.records.dynamics import (
    GradientDynamics,
    RecurrenceDynamics,
)
from gradlab.records.trajectory import Trajectory

CERTIFICATES = ("cheap", "all")


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
    max_pairs: int | None = None,
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
    executor: Executor | None = None,
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
        many evenly spaced ones as ``max_pairs`` allows.
    max_pairs
        Pairs (t, k) that ``"auto"`` may measure in a recurrence of up to 64 numbers; fewer by the
        cube of the size in larger ones. 20 000 if None.
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
    executor
        Any of ``concurrent.futures``, whose workers measure beside each other; the numbers are the
        same to the last bit.

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
        max_pairs=max_pairs,
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
    states = states_by_name(whole, initial_state)
    with single_threaded_blas():
        runs = rollout_network(whole, inputs, initial_state=states, lengths=lengths)
        gradient = _gradient(whole, runs, objective)
        measured = _measured(whole, runs, settings, gradient, Work(executor))
    first = next(iter(runs.values()))
    return GradientDynamics(
        recurrences=measured,
        sequences=_sequences(first, description, synthetic),
        assumptions=(*_told(whole, runs, settings, assumptions), *gradient.assumptions),
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
            anchors_of(settings, run, entry.cell.state_size),
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


def _gradient(
    network: Network, runs: Mapping[str, Trajectory], objective: Objective | None
) -> ObjectiveGradient:
    if objective is None:
        return ObjectiveGradient(profiles={})
    return objective_gradient(network, runs, objective)


def _measured(
    network: Network,
    runs: Mapping[str, Trajectory],
    settings: AnalysisSettings,
    gradient: ObjectiveGradient,
    work: Work,
) -> dict[str, RecurrenceDynamics]:
    """All recurrences by name; what needs nothing else is begun for every one of them first."""
    begun = [
        (entry, runs[entry.name], Begun(entry.cell, runs[entry.name], settings, work))
        for entry in network.recurrences
        if entry.name in runs
    ]
    return {
        entry.name: finished(entry, run, settings, gradient.profiles.get(entry.name), started)
        for entry, run, started in begun
    }


def _sequences(run: Trajectory, description: str, synthetic: bool) -> dict[str, Any]:
    return {
        "count": run.batch,
        "steps": int(run.lengths.sum()),
        "length_min": int(run.lengths.min()),
        "length_max": int(run.lengths.max()),
        "synthetic": synthetic,
        "description": description,
    }


def _told(
    network: Network,
    runs: Mapping[str, Trajectory],
    settings: AnalysisSettings,
    given: Sequence[str],
) -> tuple[str, ...]:
    """What was assumed of files, and what else a reader has to know of the measurement."""
    left = (*_left_out(network, runs), *_times_left_out(network, runs, settings))
    return (*network.assumptions, *given, *_directions(network), *left)


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


def _times_left_out(
    network: Network, runs: Mapping[str, Trajectory], settings: AnalysisSettings
) -> list[str]:
    """Sentences on the recurrences that are not measured at every end time, by our own choice."""
    if settings.anchors != "auto":
        return []
    return [
        sentence
        for name, run in runs.items()
        for sentence in left_out(
            name, run.lengths, anchors_of(settings, run, network[name].state_size)
        )
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


def states_by_name(
    network: Network, state: Mapping[str, Array] | Array | None
) -> dict[str, Array] | None:
    """Initial states as `rollout_network` takes them; one array is that of a single recurrence.

    Raises
    ------
    SettingError
        If it is one array for several recurrences.
    """
    if state is None or isinstance(state, Mapping):
        return None if state is None else dict(state)
    if len(network) != 1:
        raise SettingError(
            f"initial_state is one array, the network has {len(network)} recurrences: expected a "
            f"mapping with the names {', '.join(network)}"
        )
    return {next(iter(network)): state}
