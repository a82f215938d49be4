"""Several networks beside each other: one set of sequences, or runs that were measured before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from gradlab.analysis.end_times import Anchors, automatic_anchors, left_out
from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network
from gradlab.dynamics import analyze
from gradlab.errors import SettingError
from gradlab.records.comparison import ComparedRecurrence, Comparison
from gradlab.records.dynamics import GradientDynamics


def compare(dynamics: Mapping[str, GradientDynamics]) -> Comparison:
    """Put measured networks beside each other.

    Parameters
    ----------
    dynamics
        By label. A network of several recurrences gives one entry each, ``label/recurrence``.

    Returns
    -------
    comparison
        Nothing is measured again. Where the runs read different sequences, or chose different end
        times, the comparison says so and leaves the judgment to the reader.

    Raises
    ------
    SettingError
        If there are fewer than two recurrences, or two of them would share a label.
    """
    entries = tuple(entry for label, run in dynamics.items() for entry in _entries(label, run))
    labels = [entry.label for entry in entries]
    if len(labels) < 2:
        found = f"only {labels[0]}" if labels else "nothing"
        raise SettingError(f"{found} to compare: expected at least 2 recurrences")
    shared = [label for label in labels if labels.count(label) > 1]
    if shared:
        raise SettingError(f"two recurrences are labeled {shared[0]!r}: expected unique labels")
    return Comparison(recurrences=entries)


def compare_cells(
    cells: Mapping[str, Cell],
    inputs: Float[Array, "time batch features"],
    *,
    lengths: Int[Array, " batch"] | None = None,
    anchors: Anchors = "auto",
    max_lag: int | None = None,
    threshold: float = 0.97,
    strict: bool = True,
    block: int | str = "auto",
    seed: int | None = None,
    description: str = "inputs given as an array",
    synthetic: bool = False,
    assumptions: Sequence[str] = (),
    on_done: Callable[[int], None] | None = None,
) -> Comparison:
    """Run cells over the same sequences, from zero states, and compare their gradients.

    Parameters
    ----------
    cells
        By label; all read inputs of the same size.
    inputs
        Time-major sequences, the same for all.
    lengths
        Valid steps of each sequence.
    anchors
        End times, the same for all: ``"auto"`` takes as many as the largest state allows.
    max_lag, threshold, strict, block, seed, description, synthetic, assumptions
        As in `analyze`.
    on_done
        Called with 1 after each cell.

    Returns
    -------
    comparison
        In the order of the cells.

    Raises
    ------
    GradlabError
        If the inputs do not fit a cell, a setting is out of range, or there are fewer than two
        cells.
    """
    if anchors == "auto":
        valid = np.full(inputs.shape[1], len(inputs)) if lengths is None else lengths
        largest = max((cell.state_size for cell in cells.values()), default=1)
        anchors = automatic_anchors(valid, largest, max_lag)
        assumptions = (*assumptions, *left_out("every cell", valid, anchors))
    measured = {}
    for label, cell in cells.items():
        measured[label] = analyze(
            Network.of(cell, name=label),
            inputs,
            lengths=lengths,
            anchors=anchors,
            max_lag=max_lag,
            threshold=threshold,
            strict=strict,
            block=block,
            seed=seed,
            description=description,
            synthetic=synthetic,
            assumptions=assumptions,
        )
        if on_done is not None:
            on_done(1)
    return compare(measured)


def _entries(label: str, run: GradientDynamics) -> list[ComparedRecurrence]:
    alone = len(run.recurrences) == 1
    return [
        ComparedRecurrence(
            label=label if alone else f"{label}/{name}",
            dynamics=entry,
            sequences=run.sequences,
            assumptions=run.assumptions,
            provenance=run.provenance,
        )
        for name, entry in run.recurrences.items()
    ]
