"""What a measurement would take, told in place of doing it."""

from __future__ import annotations

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.groups import MeasureOptions, RandomOptions, SequenceOptions
from gradlab_cli.progress import spoken_time
from gradlab_cli.quantities import counted, megabytes
from gradlab_cli.sources import chosen_end_times, initial_state, resolve


def tell_estimate(
    source: str,
    random: RandomOptions,
    sequence: SequenceOptions,
    options: MeasureOptions,
    console: Console,
    *,
    figures: bool,
) -> None:
    """Write time and memory that the measurement of SOURCE would take.

    Parameters
    ----------
    source, random, sequence, options
        As in `gradlab_cli.sources.measure`.
    console
        Where to.
    figures
        Whether figures would be drawn of it.
    """
    subject = resolve(source, random, sequence, options)
    with console.working("estimating"):
        estimate = gl.estimate(
            subject.network,
            subject.sequences.inputs,
            lengths=subject.sequences.lengths,
            initial_state=initial_state(sequence.initial_state, subject.network),
            anchors=chosen_end_times(options),
            max_pairs=options.max_pairs,
            max_lag=options.max_lag,
            exponents=options.exponents,
            figures=figures,
        )
    console.document({"schema": 1, **estimate.to_summary()})
    for entry in estimate.recurrences:
        times = counted(entry.end_times, "end time")
        pairs = counted(entry.pairs, "pair")
        console.text(f"{entry.name}: {pairs} (t, k), at {times} of {entry.steps}")
        parts = (f"{part} {spoken_time(value)}" for part, value in entry.seconds.items())
        console.text(f"  {', '.join(parts)}")
    console.text(f"about {spoken_time(estimate.seconds)} on one core")
    console.text(f"about {megabytes(estimate.bytes)} of memory")
