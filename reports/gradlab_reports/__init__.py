"""Figures and pages from the saved files of gradlab; nothing heavy loads before one is made."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlab_reports.bundle import write_comparison as write_comparison
    from gradlab_reports.bundle import write_figure as write_figure
    from gradlab_reports.bundle import write_report as write_report
    from gradlab_reports.bundle import write_sweep_figures as write_sweep_figures
    from gradlab_reports.bundle import write_training as write_training
    from gradlab_reports.catalog import figure_kinds as figure_kinds
    from gradlab_reports.catalog import page_formats as page_formats
    from gradlab_reports.early import load_early as load_early
    from gradlab_reports.sweep_words import write_sweep_words as write_sweep_words

_HOME = {
    "figure_kinds": "gradlab_reports.catalog",
    "load_early": "gradlab_reports.early",
    "page_formats": "gradlab_reports.catalog",
    "write_comparison": "gradlab_reports.bundle",
    "write_figure": "gradlab_reports.bundle",
    "write_report": "gradlab_reports.bundle",
    "write_sweep_figures": "gradlab_reports.bundle",
    "write_sweep_words": "gradlab_reports.sweep_words",
    "write_training": "gradlab_reports.bundle",
}

__all__ = [
    "figure_kinds",
    "load_early",
    "page_formats",
    "write_comparison",
    "write_figure",
    "write_report",
    "write_sweep_figures",
    "write_sweep_words",
    "write_training",
]


def __getattr__(name: str) -> Any:
    """Import the module of a public name on its first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'gradlab_reports' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names."""
    return sorted(__all__)
