"""Trainings as folders: one that is not finished says so, and holds what it can go on from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.cells.stack import Network
from gradlab.checkpoints.described import described
from gradlab.engine.training import Training
from gradlab.errors import OutputError
from gradlab.provenance import machine_facts, sha256
from gradlab.records.dynamics import SCHEMA
from gradlab.storage.folder import refuse_to_overwrite, remove_own, write_csv, write_json

INCOMPLETE = "INCOMPLETE"
CHECKPOINT = "checkpoint.npz"
NOTE = "This training is not finished. The same command goes on from its last checkpoint.\n"


def claim_training(folder: Path | str, *, force: bool = False) -> Path:
    """Folder of a training, made anew or found unfinished.

    Parameters
    ----------
    folder
        To be made, with its parents. One with a file ``INCOMPLETE`` is taken as it is.
    force
        Whether to begin anew where there is a training, finished or not.

    Returns
    -------
    checkpoint
        For `train`; it exists if there is something to go on from.

    Raises
    ------
    OutputError
        If the folder holds something else, or a finished training and ``force`` is off, or the
        disk refuses.
    """
    folder = Path(folder)
    unfinished = (folder / INCOMPLETE).exists()
    if not unfinished:
        refuse_to_overwrite(folder, force=force)
    try:
        if force and folder.exists():
            remove_own(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / INCOMPLETE).write_text(NOTE, encoding="utf-8")
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return folder / CHECKPOINT


def save_training(
    training: Training, folder: Path | str, *, argv: Sequence[str] | None = None
) -> Path:
    """Write what a training came to into its claimed folder.

    Parameters
    ----------
    training
        What `train` returned.
    folder
        As `claim_training` made it.
    argv
        Command line, for the manifest.

    Returns
    -------
    folder
        Holding training.csv, clipping.csv (one row a step), weights.npz (names as
        ``rnn.W_hh``, which `load` reads; the readout's as ``readout.W_hy``) and manifest.json.
        A claimed folder is still marked as unfinished, for pictures may follow.

    Raises
    ------
    OutputError
        If the disk refuses.
    """
    folder = Path(folder)
    try:
        write_csv(training.log.to_frame(), folder / "training.csv")
        write_csv(training.clipping.to_frame(), folder / "clipping.csv")
        weights = _weights(training)
        with (folder / "weights.npz").open("wb") as stream:
            np.savez(stream, **weights)
        write_json(_manifest(training, argv), folder / "manifest.json")
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return folder


def finish_training(folder: Path | str) -> None:
    """Take the checkpoint away, and then the file that says that the training is not finished.

    Raises
    ------
    OutputError
        If the disk refuses.
    """
    folder = Path(folder)
    try:
        (folder / CHECKPOINT).unlink(missing_ok=True)
        (folder / INCOMPLETE).unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _weights(training: Training) -> dict[str, Any]:
    network = Network.of(training.cell, training.cell.kind)
    readout = {f"readout.{name}": array for name, array in training.readout.parameters.items()}
    return described(network) | readout


def _manifest(training: Training, argv: Sequence[str] | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "training",
        "argv": None if argv is None else list(argv),
        "steps": training.steps,
        "settings": training.settings,
        "baseline": dict(training.baseline),
        "probe_length": training.probe_length,
        "activation": getattr(training.cell, "activation", None),
        "clipping": training.clipping.summary(),
        "sha256_weights": sha256(_weights(training)),
        **machine_facts(),
    }


def _cannot_write(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{folder} cannot be written ({error.strerror or error}): expected a writable place with "
        "room; what was finished before is still there"
    )
