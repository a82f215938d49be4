"""``gradlab analyze``: measure, print the summary, save the run."""

from __future__ import annotations

import sys

import typer

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.estimating import tell_estimate
from gradlab_cli.groups import (
    LossOptions,
    MeasureOptions,
    MessageOptions,
    RandomOptions,
    SequenceOptions,
)
from gradlab_cli.options.measurement import EstimateOption
from gradlab_cli.options.network import SourceArgument
from gradlab_cli.options.output import ForceOption, PairsOption, RunFolderOption
from gradlab_cli.outputs import claim_folder
from gradlab_cli.sources import measure
from gradlab_cli.summary import summary_lines


def analyze(
    source: SourceArgument,
    *,
    sequence: SequenceOptions,
    random: RandomOptions,
    measurement: MeasureOptions,
    loss: LossOptions,
    estimate: EstimateOption = False,
    output: RunFolderOption = None,
    force: ForceOption = False,
    pairs: PairsOption = False,
    messages: MessageOptions,
) -> None:
    """Measure how far back the gradient of a network reaches; print it, and save it with -o."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    if estimate:
        tell_estimate(source, random, sequence, measurement, console, figures=False)
        return
    if output is not None:
        claim_folder(output, force=force)
    elif pairs:
        raise typer.BadParameter("is saved with --output, and there is none", param_hint="--pairs")
    with console.working("measuring"):
        dynamics = measure(source, random, sequence, measurement, loss)
    if output is not None:
        gl.save(dynamics, output, pairs=pairs, force=force, argv=sys.argv)
    summary = dynamics.summary()
    console.document(summary)
    console.text("\n".join(summary_lines(summary)))
    console.assumptions(dynamics.assumptions)
    if output is not None:
        console.note(f"wrote {output}")
