"""What an analysis would take: its work, in units whose cost is known, and this machine's speed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.all_pairs.rows import kept_bytes, pays
from gradlab.analysis.directions import LONGEST, affordable, affordable_sequences, spaced_lags
from gradlab.analysis.end_times import Anchors, chosen_anchors, end_times, pair_count
from gradlab.analysis.lower_bounds import RADIUS_WORK, SOLVE_WORK
from gradlab.analysis.products.scaled import RowScaled
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network
from gradlab.dynamics import states_by_name
from gradlab.engine.rollout import rollout_network
from gradlab.linalg import single_threaded_blas
from gradlab.measuring import exponent_count
from gradlab.records.estimate import AnalysisEstimate, RecurrenceEstimate
from gradlab.records.trajectory import Trajectory

# Milliseconds a unit on the machine whose sample takes REFERENCE, by state size and by whether a
# step is a fixed matrix with scaled rows; printed by ``python -m benchmarks.unit_costs``.
SIZES = (32, 64, 128, 256)
COSTS: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("scaled", "pair"): (0.05, 0.2, 0.65, 3.2),
    ("scaled", "single pair"): (0.13, 0.3, 0.66, 3.8),
    ("scaled", "far pair"): (0.06, 0.16, 0.2, 1.0),
    ("scaled", "halved step"): (0.21, 0.475, 1.36, 7.6),
    ("scaled", "step"): (0.075, 0.19, 0.42, 1.35),
    ("scaled", "block pair"): (0.08, 0.25, 0.7, 2.5),
    ("scaled", "graded step"): (0.291, 0.68, 2.58, 13.0),
    ("scaled", "spectrum"): (12.0, 30.0, 100.0, 545.0),
    ("scaled", "exponents"): (0.0287, 0.0526, 0.2, 1.2),
    ("scaled", "weights"): (30.0, 80.0, 100.0, 200.0),
    ("general", "pair"): (0.09, 0.33, 1.6, 7.2),
    ("general", "single pair"): (0.255, 0.5, 1.65, 7.4),
    ("general", "far pair"): (0.15, 0.33, 0.8, 4.0),
    ("general", "halved step"): (0.258, 0.68, 2.28, 12.8),
    ("general", "step"): (0.4, 0.95, 2.9, 12.0),
    ("general", "block pair"): (0.11, 0.4, 1.2, 5.5),
    ("general", "graded step"): (0.289, 0.68, 2.6, 13.0),
    ("general", "spectrum"): (12.0, 30.0, 100.0, 540.0),
    ("general", "exponents"): (0.05, 0.11, 0.5, 2.9),
    ("general", "weights"): (1.0, 3.0, 15.0, 100.0),
}
REFERENCE = 1.0e-3
# Lag from which on a pair counts as far; its product is mostly of low rank, and costs less.
NEAR = 60
# Steps of a block of the ladder, as they mostly come out; and pairs of the sample that decides.
BLOCKS = {"scaled": 4, "general": 6}
SAMPLED_PAIRS = 512
# Operations of eigenvalue solves and of products in a second.
SOLVED, MULTIPLIED = 1.5e10, 4e10
# Seconds of what does not grow: imports, verdicts, tables.
FIXED = 0.3
# Seconds of a report's figures and page, and of a row of its tables.
DRAWING, ROW = 5.5, 2e-5
# Bytes of an interpreter with NumPy and SciPy, and with what draws.
PROCESS_BYTES, DRAWING_BYTES = 120 * 2**20, 180 * 2**20
# Arrays as long as the states that a run keeps, numbers held for a pair, and matrices at once.
KEPT, NUMBERS, MATRICES = 5, 40, 30
# Samples of the machine's speed.
SAMPLES = 7


def estimate(
    network: Network | Cell,
    inputs: Float[Array, "time batch features"],
    *,
    initial_state: Mapping[str, Array] | Array | None = None,
    lengths: Int[Array, " batch"] | None = None,
    anchors: Anchors = "auto",
    max_pairs: int | None = None,
    max_lag: int | None = None,
    exponents: int | None = None,
    figures: bool = False,
) -> AnalysisEstimate:
    """Time and memory that `analyze` would take; the network is run, and nothing measured.

    Parameters
    ----------
    network, inputs, initial_state, lengths, anchors, max_pairs, max_lag, exponents
        As in `analyze`.
    figures
        Whether a report is drawn of it.

    Returns
    -------
    estimate
        On one core, within a factor of two for states of 32 to 256 numbers; the gradient of a loss
        and searched certificates come on top. The counts are exact, and the cost of a unit is that
        of a machine whose speed is compared with this one's in some hundredths of a second.

    Raises
    ------
    GradlabError
        As in `analyze`.
    """
    whole = network if isinstance(network, Network) else Network.of(network)
    states = states_by_name(whole, initial_state)
    with single_threaded_blas():
        runs = rollout_network(whole, inputs, initial_state=states, lengths=lengths)
        speed = machine_speed()
    wanted = _Wanted(anchors=anchors, max_pairs=max_pairs, max_lag=max_lag, exponents=exponents)
    entries = tuple(
        _of_recurrence(name, whole[name], run, wanted, speed) for name, run in runs.items()
    )
    pairs = sum(entry.pairs for entry in entries)
    held = sum(_bytes(entry, runs[entry.name], wanted) for entry in entries)
    drawn = (DRAWING + ROW * pairs) / speed if figures else 0.0
    return AnalysisEstimate(
        recurrences=entries,
        seconds=FIXED / speed + drawn + sum(sum(entry.seconds.values()) for entry in entries),
        bytes=PROCESS_BYTES + held + figures * DRAWING_BYTES,
        speed=speed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    anchors: Anchors
    max_pairs: int | None
    max_lag: int | None
    exponents: int | None


def machine_speed() -> float:
    """Speed of one core at products, norms and calls; 1 where the unit costs were measured."""
    rng = np.random.default_rng(0)
    A, v = rng.standard_normal((128, 128)), rng.standard_normal(64)
    gram, least = A @ A.T, np.inf
    for _ in range(SAMPLES):
        started = time.process_time()
        for _ in range(4):
            A @ A
        np.linalg.eigvalsh(gram)
        for _ in range(500):
            v @ v
        least = min(least, time.process_time() - started)
    return REFERENCE / float(least)


def _of_recurrence(
    name: str, cell: Cell, run: Trajectory, wanted: _Wanted, speed: float
) -> RecurrenceEstimate:
    n, lengths, max_lag = cell.state_size, run.lengths, wanted.max_lag
    chosen = chosen_anchors(run, n, wanted.anchors, max_lag, wanted.max_pairs)
    scaled = isinstance(cell.linearize(run)[0], RowScaled)
    units = _Units(family="scaled" if scaled else "general", n=n)
    count = exponent_count(n, wanted.exponents)
    seconds = {
        "norms": _norms(units, lengths, chosen, max_lag),
        "bounds": _bounds(units, lengths, chosen, max_lag),
        "directions": _directions(units, lengths, max_lag),
        "exponents": units.seconds("exponents", float(lengths.sum())) * count / n,
        "weights": units.seconds("weights", 1.0),
    }
    return RecurrenceEstimate(
        name=name,
        state_size=n,
        end_times=len(end_times(int(lengths.max()), chosen)),
        steps=run.steps,
        pairs=pair_count(lengths, chosen, max_lag),
        seconds={part: value / speed for part, value in seconds.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """Costs at one state size: by powers of it, and by its cube beyond those measured."""

    family: str
    n: int

    def seconds(self, unit: str, count: float) -> float:
        """Seconds of so many units on the machine of reference."""
        known = np.log(COSTS[self.family, unit])
        beyond = max(1.0, self.n / SIZES[-1]) ** 3
        milliseconds = np.exp(np.interp(np.log(self.n), np.log(SIZES), known)) * beyond
        return 1e-3 * count * float(milliseconds)


def _norms(
    units: _Units, lengths: Int[Array, " batch"], anchors: Anchors, max_lag: int | None
) -> float:
    """The pairs' norms and those of all single steps; few end times share less of a step's work.

    By halves, a step is multiplied and measured once for every cut that it is in the reach of.
    """
    seconds = units.seconds("step", float(lengths.sum()))
    for length, sequences in _by_length(lengths):
        ends = end_times(length, anchors)
        reach = np.minimum(ends, max_lag or length)
        if pays(units.n, int(reach.max()), ends):
            cuts = float(np.log2(min(length, 2 * int(reach.max()))))
            seconds += units.seconds("halved step", sequences * length * cuts)
            continue
        near = float(sequences * np.minimum(reach, NEAR).sum())
        far = float(sequences * reach.sum()) - near
        shared, alone = units.seconds("pair", 1.0), units.seconds("single pair", 1.0)
        share = shared + max(alone - shared, 0.0) / len(ends)
        seconds += near * share + units.seconds("far pair", far) * share / alone
    return seconds


def _bounds(
    units: _Units, lengths: Int[Array, " batch"], anchors: Anchors, max_lag: int | None
) -> float:
    """The ladder: norms of blocks, a sample of them to choose their length, and some radii."""
    block = BLOCKS[units.family]
    seconds = units.seconds("pair", SAMPLED_PAIRS * min(len(lengths), 4) / 4)
    cube = float(units.n) ** 3
    for length, sequences in _by_length(lengths):
        reach = min(length, max_lag or length)
        starts = np.concatenate(
            [np.arange(t, max(t - reach, 0), -block) for t in end_times(length, anchors)]
        )
        seconds += units.seconds("block pair", float(sequences * block * len(np.unique(starts))))
        seconds += min(SOLVE_WORK * cube * reach * sequences, RADIUS_WORK) / SOLVED
        seconds += 2.0 * cube * reach * sequences / MULTIPLIED
    return seconds


def _directions(units: _Units, lengths: Int[Array, " batch"], max_lag: int | None) -> float:
    """Spectra of products; small matrices of several sequences share their calls."""
    n, reach = units.n, int(lengths.max())
    if not affordable(n):
        return 0.0
    reach = min(reach, max_lag or LONGEST)
    sequences = min(affordable_sequences(n, reach), len(lengths))
    lags = len(spaced_lags(n, reach, sequences))
    together = 1.0 + (sequences - 1) * min(1.0, n / 128)
    spectra = units.seconds("spectrum", float(lags)) + units.seconds("graded step", float(reach))
    return spectra * together


def _by_length(lengths: Int[Array, " batch"]) -> list[tuple[int, int]]:
    """Lengths, and how many sequences have them."""
    values, counts = np.unique(lengths, return_counts=True)
    return [(int(value), int(count)) for value, count in zip(values, counts, strict=True)]


def _bytes(entry: RecurrenceEstimate, run: Trajectory, wanted: _Wanted) -> int:
    """Memory of one recurrence's run and records, and of the matrices that halves keep."""
    n, reach = entry.state_size, min(run.steps, wanted.max_lag or run.steps)
    ends = end_times(
        run.steps, chosen_anchors(run, n, wanted.anchors, wanted.max_lag, wanted.max_pairs)
    )
    halves = kept_bytes(n, reach, ends) if pays(n, reach, ends) else 0
    return halves + 8 * (KEPT * run.states.size + NUMBERS * entry.pairs + MATRICES * n**2)
