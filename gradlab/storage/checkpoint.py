"""Checkpoints of unfinished work: one file that is whole at any moment."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.arrays import Array
from gradlab.errors import OutputError, RunFolderError

DOCUMENT = "document"


def write_checkpoint(path: Path, arrays: Mapping[str, Array], document: Mapping[str, Any]) -> None:
    """Write arrays and a JSON document as one ``.npz`` that replaces the old one at once.

    A kill at any moment leaves the old file or the new one.

    Raises
    ------
    OutputError
        If the disk refuses.
    """
    members: dict[str, Any] = {DOCUMENT: np.array(json.dumps(document, allow_nan=False)), **arrays}
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, **members)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror or error}): expected a writable place with "
            "room; the checkpoint before it is as it was"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and document of a checkpoint.

    Raises
    ------
    RunFolderError
        If the file is damaged or of another kind.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        document: dict[str, Any] = json.loads(str(arrays.pop(DOCUMENT)))
    except Exception as error:  # whatever a damaged zip, array or document raises
        raise RunFolderError(
            f"{path} cannot be read as a checkpoint ({type(error).__name__}: {error}): expected "
            "the file that gradlab wrote; remove it to start anew"
        ) from error
    return arrays, document
