"""From the settings of a sweep to its points, and to what measures them."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import typer

import gradlab as gl
from gradlab_cli.configuration import Setting
from gradlab_cli.grid import GridOptions, axis_values

AXES = tuple(entry.name for entry in fields(GridOptions))
FILES = ("inputs", "map")
SWITCHES = ("batch_first", "inclusive")
READING = ("nonlinearity", "recurrent_activation", "keras_version")  # a column if there are several
SETTINGS = ("models", *AXES, "seeds", "seed", *FILES, *SWITCHES, "jobs", "scheduler")
ALL_CORES = ("0", "auto")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A grid, the settings that its points share, and how ``sweep.toml`` is to spell the axes."""

    points: Any
    fixed: Mapping[str, Any] = field(default_factory=dict)
    spelled: Mapping[str, Any] = field(default_factory=dict)


def wanted_sweep(settings: Mapping[str, Setting]) -> Wanted:
    """Points that the settings describe; none of them is made yet.

    Raises
    ------
    typer.BadParameter
        If a text cannot be read.
    GradlabError
        If a model file cannot be read, or a setting is not what it should be.
    """
    seeds = settings["seeds"].whole(1) if "seeds" in settings else 1
    first = settings["seed"].whole(0) if "seed" in settings else 0
    fixed: dict[str, Any] = {name: settings[name].text for name in FILES if name in settings}
    fixed |= {name: settings[name].switch() for name in SWITCHES if name in settings}
    given = {
        name: axis_values(name, settings[name].text, settings[name].origin)
        for name in AXES
        if name in settings
    }
    axes: dict[str, Sequence[Any]] = {}
    spelled: dict[str, Any] = {}
    if "models" in settings:
        axes["model"] = model_files(settings["models"])
        spelled["models"] = list(axes["model"])
        axes |= _recurrences(axes["model"], given, fixed)
    for name, values in given.items():
        if len(values) == 1 and (settings[name].shared or name in READING):
            fixed[name] = values[0]
        else:
            axes[name] = values
            spelled[name] = _spelled(settings[name].text, values)
    spelled |= {"seeds": seeds, "seed": first}
    points = gl.grid(**axes, seed=range(first, first + seeds))
    return Wanted(points=points, fixed=fixed, spelled=spelled)


def model_files(patterns: Setting) -> list[str]:
    """Files of the patterns, numbers in their names counted and not spelled.

    Raises
    ------
    typer.BadParameter
        If a pattern has none.
    """
    found: dict[str, None] = {}
    for pattern in patterns.texts:
        files = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern), key=_natural)
        if not files:
            raise typer.BadParameter(
                f"{pattern!r} found, and no such file: expected model files",
                param_hint=patterns.origin,
            )
        found |= dict.fromkeys(files)
    return list(found)


def chosen_jobs(settings: Mapping[str, Setting]) -> int:
    """Processes that shall work: those of all cores if nothing, 0 or auto was said."""
    if "jobs" not in settings or settings["jobs"].text in ALL_CORES:
        return int(gl.available_cores())
    return settings["jobs"].whole(1)


@contextmanager
def workforce(settings: Mapping[str, Setting]) -> Iterator[dict[str, Any]]:
    """What does the work, as arguments of `gl.run_sweep`."""
    if "scheduler" not in settings:
        yield {"jobs": chosen_jobs(settings)}
        return
    with gl.dask_executor(settings["scheduler"].text) as (executor, threads):
        yield {"executor": executor, "jobs": threads}


def _natural(path: str) -> list[Any]:
    """Key that puts epoch-2 before epoch-10."""
    parts = re.split(r"(\d+)", path)
    return [int(part) if part.isdecimal() else part for part in parts]


def _recurrences(
    files: Sequence[str], given: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]
) -> dict[str, Sequence[Any]]:
    """Axis of the recurrences of the first file that can be read, where there are several.

    None where some were chosen, or no file can be read: each point then says why.
    """
    if "recurrence" in given:
        return {}
    told = {name: given[name][0] for name in READING if name in given}
    for file in files:
        with suppress(gl.ModelFileError):
            network = gl.load(file, **told, map=fixed.get("map"))
            return {"recurrence": list(network)} if len(network) > 1 else {}
    return {}


def _spelled(text: str, values: Sequence[Any]) -> Any:
    if ":" in text:
        return text
    return values[0] if len(values) == 1 else list(values)
