"""``gradlab sweep``: many networks, one row each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

import gradlab as gl
from gradlab_cli.configuration import chosen_settings
from gradlab_cli.console import Console
from gradlab_cli.grid import GridOptions
from gradlab_cli.groups import MessageOptions
from gradlab_cli.options.output import ForceOption, SweepFolderOption
from gradlab_cli.options.sweeping import (
    ConfigOption,
    DryRunOption,
    FirstSeedOption,
    InclusiveOption,
    JobsOption,
    ModelOptions,
    ResumeOption,
    SchedulerOption,
    SeedsOption,
    TableFormatOption,
)
from gradlab_cli.outputs import keeping_numbers, tell_failures
from gradlab_cli.progress import spoken_time, sweep_progress
from gradlab_cli.quantities import counted, megabytes
from gradlab_cli.sweeping import SETTINGS, Wanted, chosen_jobs, wanted_sweep, workforce

TABLE = "sweep.csv"


def sweep(
    *,
    grid: GridOptions,
    models: ModelOptions,
    config: ConfigOption = None,
    seeds: SeedsOption = None,
    seed: FirstSeedOption = None,
    inclusive: InclusiveOption = None,
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    dry_run: DryRunOption = False,
    output: SweepFolderOption = None,
    table_format: TableFormatOption = "csv",
    resume: ResumeOption = True,
    force: ForceOption = False,
    messages: MessageOptions,
) -> None:
    """Measure networks over a grid: each option takes one value, a list, or a range."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    typed = {**asdict(grid), **asdict(models), "seeds": seeds, "seed": seed}
    rest = {"inclusive": inclusive, "jobs": jobs, "scheduler": scheduler}
    settings = chosen_settings({**typed, **rest}, config, SETTINGS)
    wanted = wanted_sweep(settings)
    if dry_run:
        _tell_estimate(wanted, chosen_jobs(settings), console)
        return
    if output is None:
        raise typer.BadParameter("expected a folder for the tables", param_hint="--output")
    if table_format == "parquet":
        gl.require_parquet()
    drawing = _Drawing(console, parquet=table_format == "parquet")
    with (
        workforce(settings) as workers,
        sweep_progress(console, len(wanted.points)) as on_done,
    ):
        drawing.prepare(workers)
        summary = gl.run_sweep(
            wanted.points,
            output,
            on_done=on_done,
            on_tables=drawing,
            force=force,
            resume=resume,
            argv=sys.argv,
            axes=wanted.spelled,
            **workers,
            **wanted.fixed,
        )
    _tell(summary, output, drawing.words, console)
    drawing.tell_failures(output)


class _Drawing:
    """Analysis, figures and words of a sweep whose tables are written; failures told at the end."""

    def __init__(self, console: Console, *, parquet: bool) -> None:
        self._console = console
        self._parquet = parquet
        self._lines: list[str] = []
        self._error: gl.GradlabError | None = None
        self.words = ""

    def prepare(self, workers: Mapping[str, Any]) -> None:
        """Load what drawing needs, where others measure and this process waits."""
        if workers.get("executor") is not None or workers["jobs"] > 1:
            from gradlab_reports import load_early

            load_early()

    def __call__(self, folder: Path) -> None:
        from gradlab_reports import write_sweep_figures, write_sweep_words

        if self._parquet:
            gl.save_sweep_parquet(folder)
        try:
            with keeping_numbers(folder) as self._lines, self._console.working("drawing"):
                gl.save_sweep_analysis(gl.analyze_sweep(folder), folder)
                write_sweep_figures(folder)
                self.words = write_sweep_words(folder)
        except gl.GradlabError as error:
            self._error = error

    def tell_failures(self, folder: Path) -> None:
        if self._error is not None:
            raise self._error
        tell_failures(self._lines, folder)


def _tell_estimate(wanted: Wanted, jobs: int, console: Console) -> None:
    with console.working("measuring some points"):
        estimate = gl.estimate_sweep(wanted.points, jobs=jobs, **wanted.fixed)
    console.document({"schema": 1, **estimate.to_summary()})
    console.text(
        f"{estimate.points} points, networks and runs of {counted(estimate.shapes, 'size')}"
    )
    console.text(
        f"about {spoken_time(estimate.seconds)} with {counted(estimate.jobs, 'process', 'es')} "
        f"({spoken_time(estimate.seconds_a_point)} a point, by {estimate.probed} measured)"
    )
    console.text(
        f"about {megabytes(estimate.bytes_a_process)} of memory a process, "
        f"{megabytes(estimate.disk_bytes)} of tables"
    )


def _tell(summary: Any, folder: Path, words: str, console: Console) -> None:
    console.document({"schema": 1, "sweep": str(folder), **summary.to_summary()})
    counts = ", ".join(f"{count} {regime}" for regime, count in summary.regimes.items())
    console.text(f"{counted(summary.points, 'point')}: {counts or 'none measured'}")
    if words:
        console.text(words)
    console.text(str(folder / TABLE))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    console.assumptions(manifest["assumptions"])
    if summary.failed:
        raise gl.GradlabError(
            f"{summary.failed} of {counted(summary.points, 'point')} failed, the first with "
            f"{summary.first_failure}; each is in {folder / TABLE}"
        )
