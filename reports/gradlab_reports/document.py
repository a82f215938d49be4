"""The page as a JSON document: the same words and tables, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import gradlab as gl
from gradlab_reports.article import Article
from gradlab_reports.views import FigureView, Page, Section

SCHEMA = 1
# Where a word on the page is a key of the document.
FIGURE = ("file", "finding", "caption")


def page_document(page: Page) -> str:
    """Write what a page says as strict JSON.

    Parameters
    ----------
    page
        The view of a run, without pictures.

    Returns
    -------
    text
        One object: schema, title, sections (a recurrence each), assumptions and provenance. The
        numbers themselves are in ``summary.json``.
    """
    document = {
        "schema": SCHEMA,
        "title": page.title,
        "sections": [_section(section) for section in page.sections],
        "assumptions": list(page.assumptions),
        "provenance": dict(page.provenance),
    }
    return _spelled(document)


def article_document(article: Article) -> str:
    """Write the page of a comparison or a training as strict JSON; as `page_document`."""
    words = asdict(article)
    for name in ("tone", "downloads", "left_out"):
        del words[name]
    document = {"schema": SCHEMA, **words, "figures": _figures(article.figures)}
    return _spelled(document | {"provenance": dict(article.provenance)})


def _spelled(document: Mapping[str, Any]) -> str:
    strict = gl.strict_json(document)
    return json.dumps(strict, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _section(section: Section) -> Mapping[str, Any]:
    words = asdict(section)
    for name in ("anchor", "tone"):
        del words[name]
    return words | {"figures": _figures(section.figures)}


def _figures(figures: Sequence[FigureView]) -> list[dict[str, str]]:
    """Figures that could be drawn, by the file beside the document."""
    return [{key: getattr(figure, key) for key in FIGURE} for figure in figures if figure.file]
