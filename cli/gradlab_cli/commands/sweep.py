"""``gradlab sweep``: many random networks, one row each."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.grid import GridOptions, grid_axes
from gradlab_cli.groups import MessageOptions
from gradlab_cli.options.measurement import JobsOption, SeedOption, SeedsOption
from gradlab_cli.options.output import ForceOption, SweepFolderOption
from gradlab_cli.outputs import claim_folder, keeping_numbers, tell_failures

TABLE = "sweep.csv"


def sweep(
    *,
    grid: GridOptions,
    seeds: SeedsOption = 1,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    output: SweepFolderOption,
    force: ForceOption = False,
    messages: MessageOptions,
) -> None:
    """Measure random networks over a grid: each option takes one value, a list, or a range."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    points = gl.grid(**grid_axes(grid), seed=range(seed, seed + seeds))
    claim_folder(output, force=force)
    with console.progress("measuring", len(points)) as advance:
        result = gl.sweep(points, jobs=jobs or available_cores(), on_done=advance)
    gl.save_sweep(result, output, force=force, argv=sys.argv)
    from gradlab_reports import write_sweep_figures

    with keeping_numbers(output) as failures, console.working("drawing"):
        write_sweep_figures(output)
    _tell(result.points, output, console)
    tell_failures(failures, output)


def available_cores() -> int:
    """Cores this process may use; a container may grant fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _tell(points: Sequence[Any], folder: Path, console: Console) -> None:
    failed = [point for point in points if point.status != "ok"]
    regimes = Counter(point.regime for point in points if point.status == "ok")
    document = {
        "schema": 1,
        "sweep": str(folder),
        "points": len(points),
        "failed": len(failed),
        "regimes": dict(sorted(regimes.items())),
    }
    console.document(document)
    counts = ", ".join(f"{count} {regime}" for regime, count in regimes.most_common())
    console.text(f"{len(points)} points: {counts or 'none measured'}")
    console.text(str(folder / TABLE))
    if failed:
        raise gl.GradlabError(
            f"{len(failed)} of {len(points)} points failed, the first with {failed[0].status}: "
            f"{failed[0].message}; the others are in {folder / TABLE}"
        )
