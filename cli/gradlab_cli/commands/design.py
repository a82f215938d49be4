"""``gradlab design``: the setting that gives a random network a wished horizon."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import gradlab as gl
from gradlab_cli.console import Console
from gradlab_cli.groups import MessageOptions
from gradlab_cli.options.design import (
    CellOption,
    CheckOptions,
    GivenOptions,
    HorizonOption,
    SolveOption,
)

WIDTH = 11  # of the names before the lines


def design(
    *,
    horizon: HorizonOption,
    cell: CellOption = "rnn",
    solve: SolveOption = None,
    given: GivenOptions,
    check: CheckOptions,
    messages: MessageOptions,
) -> None:
    """Find the gain, input scale or forget bias for a horizon, and check it by simulation."""
    console = Console(as_json=messages.json, quiet=messages.quiet)
    with console.progress("simulating", check.networks) as advance:
        found = gl.design(
            horizon,
            cell=cell,
            solve=solve,
            networks=check.networks,
            seed=check.seed,
            on_done=advance,
            **asdict(given),
        )
    console.document({"schema": 1, **found.to_summary()})
    for name, text in _lines(found):
        console.text(f"{name.ljust(WIDTH)}{text}")


def _lines(found: gl.Design) -> Iterator[tuple[str, str]]:
    yield "design", f"{found.solved} {found.value:.7g}"
    settings = (f"{name} {_spelled(value)}" for name, value in found.settings.items())
    yield "network", f"{found.cell}, {', '.join(settings)}"
    growth = math.exp(found.rate)
    yield "predicted", f"below 1 % from lag {found.horizon} on, × {growth:.4g} per step"
    lags = ", ".join(_lag(lag, found) for lag in found.measured)
    middle = _lag(found.measured_horizon, found)
    yield "measured", f"below 1 % from lag {middle} on, the median of {lags}"
    percent = f"{100.0 * (found.tolerance - 1.0):.0f} %"
    agreement = f"agree within {percent}" if found.agrees else f"differ by more than {percent}"
    yield "verdict", f"theory and simulation {agreement}"


def _lag(lag: int | None, found: gl.Design) -> str:
    return f"> {found.max_lag}" if lag is None else str(lag)


def _spelled(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
