"""``gradlab check``: thresholds on a saved run, as an exit code for continuous integration."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.errors import CHECK_FAILED
from gradlab_cli.groups import MessageOptions
from gradlab_cli.junit import write_junit

COLUMNS = ("recurrence", "required", "found", "pass")
REGIMES = "vanishing, near-critical, exploding or undecided"

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a saved run.")]
HorizonOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Least lag at which the median norm falls below 1 %: horizon.lag_1pct."
    ),
]
MaxRateOption = Annotated[
    float | None, typer.Option(help="Largest rate in nats per step: regime.rate.")
]
MinRateOption = Annotated[
    float | None, typer.Option(help="Smallest rate in nats per step: regime.rate.")
]
RegimeOption = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help=f"Verdicts that pass, commas between: {REGIMES}."),
]
SaturatedOption = Annotated[
    float | None, typer.Option(help="Largest share of saturated units: saturated_share.")
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Any key of summary.json, such as 'horizon.lag_half >= 20'; may be given again.",
    ),
]
ThresholdsOption = Annotated[
    Path | None,
    typer.Option(metavar="TOML", help="File of tables [[require]] with key, min, max, one_of."),
]
RecurrenceOption = Annotated[
    str | None, typer.Option(help="The one recurrence to check.", show_default="every one")
]
JunitOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the outcome as JUnit XML too.")
]


def check(
    run: RunArgument,
    *,
    min_horizon: HorizonOption = None,
    max_rate: MaxRateOption = None,
    min_rate: MinRateOption = None,
    regime: RegimeOption = None,
    max_saturated: SaturatedOption = None,
    require: RequireOption = None,
    thresholds: ThresholdsOption = None,
    recurrence: RecurrenceOption = None,
    junit: JunitOption = None,
    messages: MessageOptions,
) -> None:
    """Compare a saved run with thresholds; exit code 3 if one is not met."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    named = _named(min_horizon, max_rate, min_rate, regime, max_saturated, recurrence)
    written = [] if thresholds is None else gl.read_requirements(thresholds)
    conditions = [gl.parsed_requirement(text, recurrence) for text in require or []]
    outcomes = gl.check_run(run, [*named, *conditions, *written])
    console.document([asdict(outcome) for outcome in outcomes])
    console.table(COLUMNS, [_row(outcome) for outcome in outcomes])
    if junit is not None:
        write_junit(run, outcomes, junit)
    failures = [outcome for outcome in outcomes if not outcome.passed]
    for outcome in failures:
        console.note(f"{outcome.recurrence}: {outcome.requirement} required, {outcome.found}")
    if failures:
        raise typer.Exit(CHECK_FAILED)


def _named(
    min_horizon: int | None,
    max_rate: float | None,
    min_rate: float | None,
    regime: str | None,
    max_saturated: float | None,
    recurrence: str | None,
) -> list[gl.Requirement]:
    """Requirements that have an option of their own."""
    wanted: list[dict[str, object]] = [
        {"key": "horizon.lag_1pct", "min": min_horizon},
        {"key": "regime.rate", "min": min_rate, "max": max_rate},
        {"key": "regime.name", "one_of": tuple(regime.split(",")) if regime else None},
        {"key": "saturated_share", "max": max_saturated},
    ]
    given = [{k: v for k, v in entry.items() if v is not None} for entry in wanted]
    return [
        gl.Requirement(**entry, recurrence=recurrence)  # type: ignore[arg-type]
        for entry in given
        if len(entry) > 1
    ]


def _row(outcome: gl.Outcome) -> list[str]:
    passed = "yes" if outcome.passed else "NO"
    return [outcome.recurrence, outcome.requirement, outcome.found, passed]
