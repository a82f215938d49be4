"""What figures need, loaded while something else is waited for."""

from __future__ import annotations

import importlib
import threading

MODULES = ("pandas", "gradlab_reports.figures.sweep_rate", "gradlab_reports.figures.sweep_map")


def load_early() -> threading.Thread:
    """Begin to import what the figures of a sweep need, and go on at once.

    Returns
    -------
    thread
        Of the imports; nobody has to wait for it: who needs a module that is being loaded does.
    """
    thread = threading.Thread(target=_load, name="imports of figures", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    for module in MODULES:
        importlib.import_module(module)
