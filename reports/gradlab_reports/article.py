"""What a page says that is not about one run: on a comparison, or on a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradlab_reports.downloads import Download
from gradlab_reports.tables import Table
from gradlab_reports.views import FigureView, KeyNumber


@dataclass(frozen=True, kw_only=True)
class Article:
    """One finding, its evidence and its numbers."""

    kind: str  # comparison or training
    title: str
    question: str
    sentence: str
    regime: str = ""  # of one network; empty where there are several
    tone: str = "open"
    remarks: Sequence[str]
    numbers: Sequence[KeyNumber] = ()
    meaning: Sequence[str] = ()
    figures: Sequence[FigureView]
    tables: Sequence[Table]
    how_to_read: Sequence[str]
    assumptions: Sequence[str]
    provenance: Sequence[tuple[str, str]]
    downloads: Sequence[Download] = ()
    left_out: str = ""
    footer: str
