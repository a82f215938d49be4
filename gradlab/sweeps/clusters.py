"""Dask as the engine of a sweep on many machines."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from gradlab.errors import MissingExtraError, WorkerError
from gradlab.provenance import ABSENT, machine_facts

CONNECT_SECONDS = 30
COMPARED = ("gradlab", "numpy", "scipy", "numba")


@contextmanager
def dask_executor(scheduler: str | Path) -> Iterator[tuple[Executor, int | None]]:
    """Executor of a Dask cluster that runs already.

    Parameters
    ----------
    scheduler
        Address such as ``tcp://host:8786``, or a scheduler file. Its workers need gradlab and the
        same versions of NumPy and SciPy, and of Numba or none of it; a file of a sweep must be
        there under the same path.

    Yields
    ------
    executor, threads
        For `sweep` and `run_sweep`, which take the second as ``jobs``: threads of all workers now,
        None if there is no worker yet. A worker that is lost loses no work: the scheduler sends
        its points to another.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    WorkerError
        If the scheduler does not answer, or a worker has other versions than this process.
    """
    distributed = _distributed()
    file = Path(scheduler)
    place = {"scheduler_file": str(file)} if file.is_file() else {"address": str(scheduler)}
    try:
        client = distributed.Client(**place, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise WorkerError(
            f"no Dask scheduler at {scheduler} ({' '.join(str(error).split())}): expected an "
            "address such as tcp://host:8786, or a scheduler file"
        ) from error
    with client:
        _require_same_versions(client)
        yield client.get_executor(pure=False), sum(client.nthreads().values()) or None


def versions() -> dict[str, str]:
    """Versions that the bits of a sweep may depend on, in this process."""
    found = machine_facts()["versions"]
    return {name: found.get(name, ABSENT) for name in COMPARED}


def _require_same_versions(client: Any) -> None:
    try:
        there = client.run(versions)
    except Exception as error:  # whatever a worker without gradlab, or a lost one, raises
        raise WorkerError(
            f"the workers cannot run gradlab ({type(error).__name__}: {error}): expected it to be "
            "installed where they run"
        ) from error
    for address, found in there.items():
        for name, here in versions().items():
            if found[name] != here:
                raise WorkerError(
                    f"the worker at {address} has {name} {found[name]}, and this process {here}: "
                    "expected the same version, for the same bits"
                )


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            "a sweep on a Dask cluster needs distributed: pip install 'gradlab-rnn[cluster]'"
        ) from error
    module: ModuleType = distributed
    return module
