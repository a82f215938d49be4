"""The analysis of a sweep beside its tables."""

from __future__ import annotations

from pathlib import Path

from gradlab.errors import OutputError
from gradlab.records.sweep_analysis import SweepAnalysis
from gradlab.storage.folder import write_csv, write_json


def save_sweep_analysis(analysis: SweepAnalysis, folder: Path | str) -> Path:
    """Write ``sweep_analysis.json`` and ``sweep_analysis.csv`` into a sweep's folder.

    Raises
    ------
    OutputError
        If the folder cannot be written to.
    """
    folder = Path(folder)
    try:
        write_csv(analysis.to_frame(), folder / "sweep_analysis.csv")
        write_json(analysis.to_summary(), folder / "sweep_analysis.json")
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written to ({error.strerror or error}): expected the folder of a "
            "sweep, with room on the disk"
        ) from error
    return folder
