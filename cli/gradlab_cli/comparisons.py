"""From NAMES and the options to a comparison: random cells, or runs measured before."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

import gradlab as gl
from gradlab_cli.groups import CellOptions, ComparedOptions, Group, InputOptions, given, option_name
from gradlab_cli.sources import (
    HIDDEN_SIZE,
    INPUT_SIZE,
    anchors,
    generators,
    input_sequences,
    refuse,
)

MOST = 8  # curves that one figure can tell apart
DEFAULTS = {"recurrent": "gaussian", "forget_bias": 1.0, "leak": 0.25}
ARGUMENT = "NAMES"


def comparison(
    names: Sequence[str],
    cells: CellOptions,
    sequence: InputOptions,
    options: ComparedOptions,
    on_done: Callable[[int], None],
) -> gl.Comparison:
    """Compare what NAMES name.

    Parameters
    ----------
    names
        Kinds of cells, or folders of runs; a kind's name stays the kind, ./NAME is the folder.
    cells, sequence, options
        The command's options.
    on_done
        Told how many more are done.

    Returns
    -------
    comparison
        In the order of the names.

    Raises
    ------
    GradlabError
        If a run, a file or a setting is not what it should be.
    typer.BadParameter
        If the names do not go together, or an option does not go with them.
    """
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise typer.BadParameter(f"{twice[0]} is named twice", param_hint=ARGUMENT)
    kinds = [name for name in names if name in gl.CELLS]
    if not kinds:
        return _of_runs(names, (cells, sequence, options), on_done)
    others = [name for name in names if name not in gl.CELLS]
    if others:
        raise _not_a_kind(others[0], kinds[0])
    return _of_cells(kinds, cells, sequence, options, on_done)


def _of_cells(
    kinds: Sequence[str],
    cells: CellOptions,
    sequence: InputOptions,
    options: ComparedOptions,
    on_done: Callable[[int], None],
) -> gl.Comparison:
    if len(kinds) < 2:
        raise typer.BadParameter(f"{kinds[0]} alone, expected two or more", param_hint=ARGUMENT)
    end_times = anchors(options.anchors)
    sequences = input_sequences(
        sequence, cells.input_size or INPUT_SIZE, generators(options.seed)[1]
    )
    return gl.compare_cells(
        _random_cells(kinds, cells, options, sequences.inputs.shape[2]),
        sequences.inputs,
        lengths=sequences.lengths,
        anchors=end_times,
        max_lag=options.max_lag,
        threshold=options.threshold,
        strict=not options.inclusive,
        block=options.block or "auto",
        seed=options.seed,
        description=sequences.description,
        synthetic=sequences.synthetic,
        assumptions=sequences.assumptions,
        on_done=on_done,
    )


def _random_cells(
    kinds: Sequence[str], cells: CellOptions, options: ComparedOptions, features: int
) -> dict[str, Any]:
    """One cell a kind, each from the seed alone, so that no kind moves the weights of another."""
    known = {kind: inspect.signature(gl.CELLS[kind].initialize).parameters for kind in kinds}
    for name in given(cells):
        if not any(_matters(name, settings, cells) for settings in known.values()):
            refuse({name: None}, f"shapes none of {', '.join(kinds)} here")
    wanted = {
        "hidden_size": HIDDEN_SIZE,
        "input_size": features,
        "dtype": options.dtype,
        **DEFAULTS,
        **given(cells),
    }
    return {
        kind: gl.CELLS[kind].initialize(
            rng=generators(options.seed)[0],
            **{name: value for name, value in wanted.items() if name in settings},
        )
        for kind, settings in known.items()
    }


def _matters(name: str, settings: Container[str], cells: CellOptions) -> bool:
    """Whether a kind with these settings is shaped by an option."""
    replaced = name == "forget_bias" and cells.chrono is not None and "chrono" in settings
    return name in settings and not replaced


def _of_runs(
    names: Sequence[str], groups: Sequence[Group], on_done: Callable[[int], None]
) -> gl.Comparison:
    for group in groups:
        for field in given(group):
            raise typer.BadParameter(
                "has no effect on saved runs, which are compared as they are",
                param_hint=option_name(field),
            )
    places = [_place(name) for name in names]
    labels = folder_labels([folder for folder, _ in places])
    runs = {}
    for folder, recurrence in places:
        run = gl.load_run(folder)
        label = labels[folder]
        if recurrence is not None:
            run = replace(run, recurrences={recurrence: run[recurrence]})
            label = f"{label}/{recurrence}"
        runs[label] = run
        on_done(1)
    found = gl.compare(runs)
    if len(found.recurrences) > MOST:
        raise gl.SettingError(
            f"{len(found.recurrences)} recurrences in these runs: expected at most {MOST} in one "
            "figure; name some of them as RUN/RECURRENCE"
        )
    return found


def folder_labels(folders: Sequence[Path]) -> dict[Path, str]:
    """Names of folders, with as many of the folders above as tell them apart."""
    distinct = list(dict.fromkeys(folders))
    parts = {folder: folder.resolve().parts for folder in distinct}
    for depth in range(1, max(map(len, parts.values())) + 1):
        labels = {folder: "/".join(own[-depth:]) for folder, own in parts.items()}
        if len(set(labels.values())) == len(distinct):
            return labels
    raise typer.BadParameter("the same folder is named twice", param_hint=ARGUMENT)


def _place(name: str) -> tuple[Path, str | None]:
    """Run folder that a name means, and the recurrence in it if one is named."""
    path = Path(name)
    if path.is_dir():
        return path, None
    for above in path.parents:
        if (above / "manifest.json").is_file():
            return above, path.relative_to(above).as_posix()
    if len(path.parts) == 1 and not path.exists():
        known = ", ".join(gl.CELLS)
        raise gl.UnknownNameError(
            f"{name!r} is no kind of cell and no folder: expected kinds of cells ({known}) or "
            "folders of saved runs"
        )
    raise gl.RunFolderError(
        f"{name} is not a folder: expected a run folder as written by gradlab analyze -o"
    )


def _not_a_kind(name: str, kind: str) -> Exception:
    if Path(name).is_dir():
        return typer.BadParameter(
            f"{name} is a folder and {kind} a kind of cell: expected kinds alone, or runs alone "
            f"(./{kind} is the folder of that name)",
            param_hint=ARGUMENT,
        )
    return gl.unknown_name("kind of cell", name, gl.CELLS)
