"""Dask as the engine of a sweep on many machines."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from gradlab.errors import MissingExtraError, WorkerError

CONNECT_SECONDS = 30


@contextmanager
def dask_executor(scheduler: str | Path) -> Iterator[tuple[Executor, int | None]]:
    """Executor of a Dask cluster that runs already.

    Parameters
    ----------
    scheduler
        Address such as ``tcp://host:8786``, or a scheduler file. Its workers need gradlab and the
        same versions of NumPy and SciPy; a file of a sweep must be there under the same path.

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
        If the scheduler does not answer.
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
        yield client.get_executor(pure=False), sum(client.nthreads().values()) or None


def _distributed() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            "a sweep on a Dask cluster needs distributed: pip install 'gradlab-rnn[cluster]'"
        ) from error
    module: ModuleType = distributed
    return module
