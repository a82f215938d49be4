"""``gradlab report``: the numbers of a run, its figures, and one page about them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.estimating import tell_estimate
from gradlab_cli.groups import (
    Group,
    LossOptions,
    MeasureOptions,
    MessageOptions,
    RandomOptions,
    SequenceOptions,
    given,
    option_name,
)
from gradlab_cli.options.measurement import EstimateOption
from gradlab_cli.options.network import ReportSourceArgument
from gradlab_cli.options.output import (
    ForceOption,
    FormatOption,
    ReportFolderOption,
    ReportPairsOption,
)
from gradlab_cli.outputs import (
    chosen_formats,
    claim_file,
    claim_folder,
    copy_run,
    keeping_numbers,
    tell_failures,
)
from gradlab_cli.rendering import article_kind, render_article
from gradlab_cli.sources import RANDOM, measure
from gradlab_cli.summary import verdict_lines


def report(
    source: ReportSourceArgument,
    *,
    sequence: SequenceOptions,
    random: RandomOptions,
    measurement: MeasureOptions,
    loss: LossOptions,
    estimate: EstimateOption = False,
    output: ReportFolderOption = None,
    force: ForceOption = False,
    pairs: ReportPairsOption = True,
    format: FormatOption = "html",
    messages: MessageOptions,
) -> None:
    """Measure a scenario or a model and render it; render a saved run without measuring."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    formats = chosen_formats(format)
    if estimate:
        _tell_estimate(source, random, sequence, measurement, console)
        return
    if is_saved_run(source):
        _refuse_settings(measurement, sequence, random, loss)
        kind = article_kind(Path(source))
        if kind is not None:
            render_article(Path(source), kind, output, formats, console, force=force)
            return
        folder = _saved_run(Path(source), output, formats, force=force)
    else:
        folder = _required(output, source)
        claim_folder(folder, force=force)
        with console.working("measuring"):
            dynamics = measure(source, random, sequence, measurement, loss)
        gl.save(dynamics, folder, pairs=pairs, force=force, argv=sys.argv)
    from gradlab_reports import write_report

    with keeping_numbers(folder) as failures, console.working("rendering"):
        write_report(folder, formats=formats)
    _tell(folder, [folder / f"report.{name}" for name in formats], console)
    tell_failures(failures, folder)


def _tell_estimate(
    source: str,
    random: RandomOptions,
    sequence: SequenceOptions,
    measurement: MeasureOptions,
    console: Console,
) -> None:
    if is_saved_run(source):
        raise typer.BadParameter(
            "is of a measurement, and a saved run has its own", param_hint="--estimate"
        )
    tell_estimate(source, random, sequence, measurement, console, figures=True)


def is_saved_run(source: str) -> bool:
    """Whether SOURCE is a folder; a scenario's name stays the scenario, ./NAME is the folder."""
    return source not in gl.scenario_names() and Path(source).is_dir()


def _required(output: Path | None, source: str) -> Path:
    if output is None:
        known = source in (RANDOM, *gl.scenario_names()) or Path(source).exists()
        meant = "" if known else f", unless SOURCE is a saved run: there is no folder {source}"
        raise typer.BadParameter(
            f"names the folder of the report, and is missing{meant}", param_hint="--output"
        )
    return output


def _refuse_settings(*groups: Group) -> None:
    for group in groups:
        for field in given(group):
            raise typer.BadParameter(
                "has no effect on a saved run, which is only rendered",
                param_hint=option_name(field),
            )


def _saved_run(run: Path, output: Path | None, formats: Sequence[str], *, force: bool) -> Path:
    """Folder to render into: the run itself, or a complete copy of its numbers."""
    if output is None or output.resolve() == run.resolve():
        for name in formats:
            claim_file(run / f"report.{name}", force=force)
        return run
    from gradlab_reports.run_folder import open_run

    claim_folder(output, force=force)
    open_run(run)
    copy_run(run, output)
    return output


def _tell(folder: Path, pages: Sequence[Path], console: Console) -> None:
    entries = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["recurrences"]
    regimes = {entry["name"]: entry["regime"]["name"] for entry in entries}
    files = [str(page) for page in pages]
    document = {"schema": 1, "run": str(folder), "page": files[0], "pages": files}
    console.document(document | {"regimes": regimes})
    console.text("\n".join([*verdict_lines(entries), *files]))
    console.assumptions(dict.fromkeys(line for entry in entries for line in entry["assumptions"]))
