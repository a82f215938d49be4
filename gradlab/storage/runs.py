"""Runs as folders: the tables and documents people read, and the records themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gradlab.errors import RunFolderError
from gradlab.records.dynamics import SCHEMA, GradientDynamics, RecurrenceDynamics
from gradlab.records.frames import stack_frames
from gradlab.storage.archive import read_archive, write_archive
from gradlab.storage.folder import new_folder, write_csv, write_json

if TYPE_CHECKING:
    import pandas as pd

ARCHIVE = "records.npz"
PAIRS_ROWS = 200_000  # of gradient_pairs.csv: about 20 megabytes

Table: TypeAlias = "Callable[[RecurrenceDynamics], pd.DataFrame | None]"


def save(
    dynamics: GradientDynamics,
    folder: Path | str,
    *,
    pairs: bool = False,
    force: bool = False,
    argv: Sequence[str] | None = None,
) -> Path:
    """Write a run folder; it is complete, or it is not there.

    Parameters
    ----------
    dynamics
        What `analyze` returned.
    folder
        To be made. Its parents are made too.
    pairs
        Whether to write ``pairs.csv``, one row a pair (t, k), and with a gradient
        ``gradient_pairs.csv``, one row a term: of whole sequences, from the first on, as far as
        `PAIRS_ROWS` reach, and of one at least.
    force
        Whether an older run in its place may be replaced.
    argv
        Command line, for the manifest.

    Returns
    -------
    folder
        Holding manifest.json, summary.json, lag_profile.csv, ladder.csv, steps.csv, slopes.csv,
        units.csv, spectrum.csv, lyapunov.csv, records.npz and, on request, pairs.csv; but for very
        large states directions.csv and product_spectrum.csv; with gated cells gates.csv, with cells
        that carry their state on paths.csv, with targets gradient.csv, with cells that could be a
        draw of a random ensemble mean_field.csv and mean_field_profile.csv. Equal results give
        equal bytes in all of them but the manifest and the records, which hold the time of the run.

    Raises
    ------
    OutputError
        If the folder exists and may not be replaced, or the disk refuses.
    """
    folder = Path(folder)
    with new_folder(folder, force=force) as temporary:
        write_csv(dynamics.to_frame(), temporary / "lag_profile.csv")
        for name, table in _tables(pairs).items():
            rows = _all(dynamics, table)
            if rows is not None:
                write_csv(rows, temporary / f"{name}.csv")
        write_json(dynamics.summary(), temporary / "summary.json")
        write_archive(dynamics, temporary / ARCHIVE)
        write_json(_manifest(dynamics, argv), temporary / "manifest.json")
    return folder


def load_run(folder: Path | str) -> GradientDynamics:
    """Read the records of a run folder back.

    Raises
    ------
    RunFolderError
        If the folder is not a complete run.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunFolderError(f"{folder} is not a folder: expected a run folder")
    return read_archive(folder / ARCHIVE)


def _tables(pairs: bool) -> dict[str, Table]:
    tables: dict[str, Table] = {
        "ladder": lambda entry: entry.last_ladder.to_frame(),
        "steps": RecurrenceDynamics.steps,
        "slopes": lambda entry: entry.saturation.spread_frame(),
        "units": lambda entry: entry.saturation.units_frame(),
        "spectrum": lambda entry: entry.spectrum.to_frame(),
        "directions": RecurrenceDynamics.surviving_directions,
        "product_spectrum": RecurrenceDynamics.product_spectrum,
        "gates": RecurrenceDynamics.gate_values,
        "paths": RecurrenceDynamics.paths,
        "gradient": _gradient,
        "lyapunov": RecurrenceDynamics.exponents,
        "mean_field": RecurrenceDynamics.mean_field_spectrum,
        "mean_field_profile": RecurrenceDynamics.mean_field_profile,
    }
    more: dict[str, Table] = {"pairs": RecurrenceDynamics.pairs, "gradient_pairs": _gradient_pairs}
    return tables | (more if pairs else {})


def _gradient(entry: RecurrenceDynamics) -> pd.DataFrame | None:
    return None if entry.gradient is None else entry.gradient.by_lag()


def _gradient_pairs(entry: RecurrenceDynamics) -> pd.DataFrame | None:
    if entry.gradient is None:
        return None
    table = entry.gradient.to_frame()
    up_to = table.groupby("sequence").size().cumsum()
    kept = up_to.index[(up_to <= PAIRS_ROWS) | (up_to.index == up_to.index.min())]
    return table[table["sequence"].isin(kept)]


def _all(dynamics: GradientDynamics, table: Table) -> pd.DataFrame | None:
    """Rows of all recurrences that have any; None if none has."""
    parts = []
    for name, entry in dynamics.recurrences.items():
        part = table(entry)
        if part is not None:
            part.insert(0, "recurrence", name)
            parts.append(part)
    return stack_frames(parts) if parts else None


def _manifest(dynamics: GradientDynamics, argv: Sequence[str] | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "run",
        "argv": None if argv is None else list(argv),
        "assumptions": list(dynamics.assumptions),
        "sequences": dynamics.sequences,
        **dynamics.provenance.to_summary(),
    }
