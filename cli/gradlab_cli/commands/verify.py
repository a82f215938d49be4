"""``gradlab verify``: closed forms and published values, computed on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.errors import CHECK_FAILED
from gradlab_cli.groups import MessageOptions

COLUMNS = ("check", "computed", "expected", "tolerance", "pass")

FullOption = Annotated[
    bool,
    typer.Option(
        "--full",
        help="Simulate finite networks and a published spectrum too: minutes in place of seconds.",
    ),
]


def verify(*, full: FullOption = False, messages: MessageOptions) -> None:
    """Compute closed forms and published values here, and compare; exit code 3 if one fails."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    with console.working("computing"):
        verification = gl.verify(full=full)
    console.document(verification.to_list())
    console.table(COLUMNS, [_row(check) for check in verification.checks])
    for check in verification.failures:
        if check.message:
            console.note(f"{check.name}: {check.message}")
    failed = len(verification.failures)
    console.note(f"{len(verification.checks) - failed} of {len(verification.checks)} checks pass")
    if failed:
        raise typer.Exit(CHECK_FAILED)


def _row(check: gl.Check) -> list[str]:
    return [
        check.name,
        f"{check.computed:.10g}",
        f"{check.expected:.10g}",
        f"{check.tolerance:.1e}",
        "yes" if check.passed else "NO",
    ]
