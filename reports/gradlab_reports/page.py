"""Compose a page: the words of a run or a comparison, figures as far as they fit, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import gradlab as gl
from gradlab_reports import certificates, comparison, exponents, meaning, tables, theory, views
from gradlab_reports.comparison import ComparisonPage
from gradlab_reports.disagreement import bound_sentence
from gradlab_reports.document import page_document
from gradlab_reports.downloads import Download, fitting_downloads, left_out
from gradlab_reports.drawing import Drawing
from gradlab_reports.html import in_script, render
from gradlab_reports.loading import RunTables
from gradlab_reports.markdown import markdown
from gradlab_reports.run_folder import RunFolder
from gradlab_reports.views import FigureView, Page, Section

# A page stays a little under two megabytes, which mail and browsers take without a thought.
PAGE_LIMIT = 1_900_000
HOVER_MARGIN = 100  # bytes of the element around the numbers

Drawings = Mapping[str, Sequence[Drawing]]


def page_text(run: RunFolder, drawings: Drawings, data: RunTables) -> str:
    """Write the page of a run.

    Parameters
    ----------
    run
        The run's documents.
    drawings
        Figures by the name of the recurrence, in the order of the page.
    data
        The run's tables.

    Returns
    -------
    text
        One HTML document below `PAGE_LIMIT` bytes as long as its words are: figures that find no
        room give way to the name of their file; numbers at the pointer, and then the tables to
        save, take what room the figures leave.
    """
    bare = page_view(run, drawings, data, downloads=fitting_downloads(run.path, 0))
    room = PAGE_LIMIT - len(render(bare).encode())
    markup = fitted(drawings, room)
    room -= sum(len(form.encode()) for form in markup.values())
    hover = _fitting_hover(drawings, markup, room)
    room -= sum(len(in_script(text).encode()) + HOVER_MARGIN for text in hover.values())
    downloads = fitting_downloads(run.path, room)
    return render(page_view(run, drawings, data, markup, hover, downloads))


def markdown_text(run: RunFolder, drawings: Drawings, data: RunTables) -> str:
    """Write the page of a run as Markdown; parameters as of `page_text`."""
    return markdown(page_view(run, drawings, data))


def document_text(run: RunFolder, drawings: Drawings, data: RunTables) -> str:
    """Write the page of a run as JSON; parameters as of `page_text`."""
    return page_document(page_view(run, drawings, data))


PAGES: Mapping[str, Callable[[RunFolder, Drawings, RunTables], str]] = MappingProxyType(
    {"html": page_text, "md": markdown_text, "json": document_text}
)


def comparison_text(
    document: Mapping[str, Any], manifest: Mapping[str, Any], drawing: Drawing
) -> str:
    """Write the page of a comparison.

    Parameters
    ----------
    document, manifest
        ``compare.json`` and ``manifest.json``.
    drawing
        Its one figure.

    Returns
    -------
    text
        One HTML document below `PAGE_LIMIT` bytes as long as its words are.
    """
    bare = len(render(_compose_comparison(document, manifest, drawing, {})).encode())
    markup = fitted({"": [drawing]}, PAGE_LIMIT - bare)
    return render(_compose_comparison(document, manifest, drawing, markup))


def fitted(drawings: Drawings, room: int) -> dict[str, str]:
    """Choose a form of each figure so that all of them together fit.

    Parameters
    ----------
    drawings
        Figures by recurrence.
    room
        Bytes that the figures may take together.

    Returns
    -------
    markup
        By the stem of the figure; those that fit in no form are left out. The first kind of every
        recurrence comes before the second kind of any.
    """
    longest = max((len(row) for row in drawings.values()), default=0)
    rows = [list(row) for row in drawings.values()]
    queue = [row[i] for i in range(longest) for row in rows if i < len(row) and row[i].forms]
    markup: dict[str, str] = {}
    for place, drawing in enumerate(queue):
        share = room / (len(queue) - place)
        chosen = next((form for form in drawing.forms if len(form.encode()) <= share), None)
        if chosen is not None:
            markup[drawing.stem] = chosen
            room -= len(chosen.encode())
    return markup


def _fitting_hover(drawings: Drawings, markup: Mapping[str, str], room: int) -> dict[str, str]:
    """Numbers at the pointer by the stem of the figure, as far as they fit."""
    hover: dict[str, str] = {}
    for drawing in (drawing for row in drawings.values() for drawing in row):
        size = len(in_script(drawing.hover).encode()) + HOVER_MARGIN
        if drawing.hover and drawing.stem in markup and size <= room:
            hover[drawing.stem] = drawing.hover
            room -= size
    return hover


def page_view(
    run: RunFolder,
    drawings: Drawings,
    data: RunTables,
    markup: Mapping[str, str] = MappingProxyType({}),
    hover: Mapping[str, str] = MappingProxyType({}),
    downloads: Sequence[Download] = (),
) -> Page:
    """Everything that a page says of a run, in words.

    Parameters
    ----------
    run, drawings, data
        As of `page_text`.
    markup, hover
        Markup and numbers of the figures that have room, by their stems.
    downloads
        Files to save.
    """
    return Page(
        title=views.page_title(run.summary, run.manifest),
        sections=[
            _section(f"r{index}", entry, drawings.get(str(entry["name"]), ()), data, markup, hover)
            for index, entry in enumerate(run.recurrences)
        ],
        assumptions=views.all_assumptions(run.summary, run.manifest),
        provenance=views.provenance_rows(run.manifest),
        downloads=downloads,
        left_out=left_out(downloads),
    )


def _compose_comparison(
    document: Mapping[str, Any],
    manifest: Mapping[str, Any],
    drawing: Drawing,
    markup: Mapping[str, str],
) -> ComparisonPage:
    return ComparisonPage(
        title=comparison.title(document),
        sentence=comparison.finding(document),
        remarks=comparison.remarks(document),
        figure=_figure(drawing, markup),
        tables=comparison.all_tables(document),
        how_to_read=comparison.HOW_TO_READ,
        assumptions=comparison.assumptions(document),
        provenance=views.provenance_rows(manifest),
    )


def _section(
    anchor: str,
    entry: Mapping[str, Any],
    drawings: Sequence[Drawing],
    data: RunTables,
    markup: Mapping[str, str],
    hover: Mapping[str, str],
) -> Section:
    return Section(
        anchor=anchor,
        name=str(entry["name"]),
        facts=views.facts(entry),
        regime=str(entry["regime"]["name"]),
        tone=views.tone(entry),
        rate=views.rate_words(entry),
        verdict=views.verdict(entry),
        false_friend=views.false_friend(entry),
        bound=_bound(entry, data),
        remarks=[*views.remarks(entry), *certificates.remark(entry)],
        numbers=views.key_numbers(entry),
        meaning=meaning.sentences(entry),
        changes=meaning.changes_table(entry.get("outlook") or {}),
        figures=[_figure(drawing, markup, hover) for drawing in drawings],
        tables=_tables(entry, data),
    )


def _figure(
    drawing: Drawing,
    markup: Mapping[str, str],
    hover: Mapping[str, str] = MappingProxyType({}),
) -> FigureView:
    note = f"The page has no room for this figure: it is in figures/{drawing.stem}.png."
    if drawing.failure is not None:
        note = f"The figure {drawing.kind.name!r} could not be drawn: {drawing.failure}"
    return FigureView(
        markup=markup.get(drawing.stem, ""),
        finding=drawing.finding,
        caption=drawing.caption,
        note=note,
        wide=drawing.kind.wide,
        file="" if drawing.failure is not None else f"figures/{drawing.stem}.png",
        hover=hover.get(drawing.stem, ""),
    )


def _tables(entry: Mapping[str, Any], data: RunTables) -> list[tables.Table]:
    """Tables of one recurrence, those left out whose files or entries are not there."""
    found = [
        _ladder(entry, data),
        tables.slack_table(entry.get("slack") or {}),
        tables.horizon_table(entry.get("horizon") or {}),
        tables.gradient_table(entry.get("gradient") or {}),
        tables.gates_table(entry),
        tables.spectrum_table(entry),
        exponents.lyapunov_table(entry.get("lyapunov") or {}),
        theory.mean_field_table(entry.get("mean_field") or {}),
        certificates.certificates_table(entry),
        tables.saturation_table(entry.get("saturation") or {}),
    ]
    return [table for table in found if table is not None and table.rows]


def _bound(entry: Mapping[str, Any], data: RunTables) -> str:
    try:
        return bound_sentence(entry, data.frame("lag_profile.csv", str(entry["name"])))
    except gl.GradlabError:
        return ""  # the figure of the decay says what is wrong with the table


def _ladder(entry: Mapping[str, Any], data: RunTables) -> tables.Table | None:
    try:
        rungs = data.frame("ladder.csv", str(entry["name"]))
        return tables.ladder_table(rungs, entry.get("ladder") or {})
    except gl.GradlabError:
        return None  # runs need no ladder.csv, and the figure shows the same rungs
