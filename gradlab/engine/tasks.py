"""Small tasks that ask for memory, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gradlab.engine.batches import Task
from gradlab.engine.digits import DIGIT_FILES, SequentialDigits
from gradlab.engine.synthetic_tasks import (
    Adding,
    Adding1997,
    CopyMemory,
    DelayedEcho,
    TemporalOrder,
)
from gradlab.errors import SettingError, unknown_name


def _three_symbols(*, length: int = 100) -> TemporalOrder:
    return TemporalOrder(length=length, symbols=3)


TASKS: Mapping[str, Callable[..., Task]] = {
    "adding": Adding,
    "adding_1997": Adding1997,
    "copy": CopyMemory,
    "temporal_order": TemporalOrder,
    "temporal_order_3": _three_symbols,
    "echo": DelayedEcho,
    "digits": SequentialDigits.read,
}


def task(name: str, **settings: Any) -> Task:
    """Task of that name.

    Parameters
    ----------
    name
        A key of `TASKS`.
    settings
        ``length`` for all but the digits, and what else the task has: ``count`` and ``symbols``
        (copy), ``delay`` (echo), ``folder`` and ``permutation`` (digits).

    Returns
    -------
    task
        Its definition, source and baselines are told by its class.

    Raises
    ------
    UnknownNameError
        If there is no such task, or it has no such setting.
    SettingError
        If a setting is out of range or missing.
    """
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    known = inspect.signature(TASKS[name]).parameters
    for setting in settings:
        if setting not in known:
            raise unknown_name(f"setting of the task {name}", setting, known)
    if "folder" in known and "folder" not in settings:
        raise SettingError(f"task {name} has no folder: expected the one with {DIGIT_FILES[0]}")
    return TASKS[name](**settings)
