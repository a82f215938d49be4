"""Measurements one after the other in this process, or beside each other in others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor
from typing import Any, TypeVar

from gradlab.errors import WorkerError
from gradlab.linalg import single_threaded_blas

Value = TypeVar("Value")


class Work:
    """Where measurements are made; the numbers are the same to the last bit.

    Parameters
    ----------
    executor
        Any of ``concurrent.futures``; None to measure at once, here.
    """

    def __init__(self, executor: Executor | None) -> None:
        self.executor = executor

    def begin(
        self, measure: Callable[..., Value], *subjects: Any, **settings: Any
    ) -> Callable[[], Value]:
        """What waits for a measurement and returns its result.

        Parameters
        ----------
        measure
            A function of a module, so that it can be sent.
        subjects, settings
            Its arguments.

        Raises
        ------
        WorkerError
            On waiting, if a process ended before its work was done.
        """
        if self.executor is None:
            value = measure(*subjects, **settings)
            return lambda: value
        future = self.executor.submit(_measured, measure, subjects, settings)

        def wait() -> Value:
            try:
                return future.result()
            except BrokenExecutor as error:
                raise WorkerError(
                    f"a process ended before its work was done ({error}), perhaps for want of "
                    "memory: use fewer jobs"
                ) from error

        return wait


def _measured(
    measure: Callable[..., Value], subjects: tuple[Any, ...], settings: dict[str, Any]
) -> Value:
    with single_threaded_blas():
        return measure(*subjects, **settings)
