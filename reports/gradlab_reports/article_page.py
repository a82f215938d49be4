"""Compose the pages of comparisons and of trainings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gradlab_reports import comparison, training, views
from gradlab_reports.article import Article
from gradlab_reports.document import article_document
from gradlab_reports.downloads import left_out
from gradlab_reports.drawing import Drawing
from gradlab_reports.filling import NOTHING, Filling, figure_view, filled
from gradlab_reports.markdown import article_markdown

if TYPE_CHECKING:
    import pandas as pd

Compose = Callable[[Filling], Article]

COMPARISON_TABLES = MappingProxyType(
    {
        "compare.json": "everything in numbers, for programs",
        "compare.csv": "norms and bounds by label and lag",
    }
)
TRAINING_TABLES = MappingProxyType(
    {
        "training.csv": "one row a look",
        "clipping.csv": "norms before and after clipping, one row an update",
    }
)


def article_text(
    compose: Compose,
    format: str,
    drawings: Sequence[Drawing],
    folder: Path,
    tables: Mapping[str, str],
) -> str:
    """Write a page in one of `PAGE_FORMATS`.

    Parameters
    ----------
    compose
        Gives the article with a filling in it.
    format
        ``html``, ``md`` or ``json``.
    drawings
        Its figures.
    folder, tables
        Where the files lie that may be saved from the page, and what they hold.
    """
    if format == "html":
        return filled(compose, {"": drawings}, folder, tables)
    write = article_markdown if format == "md" else article_document
    return write(compose(NOTHING))


def comparison_article(
    document: Mapping[str, Any], manifest: Mapping[str, Any], drawings: Sequence[Drawing]
) -> Compose:
    """The page of a comparison, still to be filled.

    Parameters
    ----------
    document, manifest
        ``compare.json`` and ``manifest.json``.
    drawings
        Its figures.
    """

    def compose(filling: Filling) -> Article:
        return Article(
            kind="comparison",
            title=comparison.title(document),
            question="Which of them carries the gradient how far back in time?",
            sentence=comparison.finding(document),
            remarks=comparison.remarks(document),
            figures=[figure_view(drawing, filling) for drawing in drawings],
            tables=comparison.all_tables(document),
            how_to_read=comparison.HOW_TO_READ,
            assumptions=comparison.assumptions(document),
            provenance=views.provenance_rows(manifest),
            downloads=filling.downloads,
            left_out=left_out(filling.downloads),
            footer="Norms are spectral norms and were kept as natural logarithms. Bounds are in "
            "compare.csv; none was used for a verdict.",
        )

    return compose


def training_article(
    manifest: Mapping[str, Any], log: pd.DataFrame, drawings: Sequence[Drawing]
) -> Compose:
    """The page of a training, still to be filled.

    Parameters
    ----------
    manifest, log
        ``manifest.json`` and ``training.csv``.
    drawings
        Its figures.
    """

    def compose(filling: Filling) -> Article:
        return Article(
            kind="training",
            title=training.title(manifest),
            question="How far back does the gradient reach while the network learns?",
            sentence=training.finding(manifest, log),
            regime=training.regime(log),
            tone=training.tone(log),
            remarks=(),
            numbers=training.key_numbers(manifest, log),
            meaning=training.meaning(manifest, log),
            figures=[figure_view(drawing, filling) for drawing in drawings],
            tables=training.all_tables(manifest, log),
            how_to_read=training.HOW_TO_READ,
            assumptions=(
                "A small task with sequences drawn anew for every update: a training of another "
                "size or on other data may go another way.",
            ),
            provenance=views.provenance_rows(manifest),
            downloads=filling.downloads,
            left_out=left_out(filling.downloads),
            footer="Norms of ∂h_t/∂h_k are spectral norms, those of the loss's gradient Euclidean "
            "ones over all weights. Nothing here was computed from a bound.",
        )

    return compose
