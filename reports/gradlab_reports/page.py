"""Compose the page of a run: its words, figures as far as they fit, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import gradlab as gl
from gradlab_reports import certificates, exponents, meaning, tables, theory, views
from gradlab_reports.disagreement import bound_sentence
from gradlab_reports.document import page_document
from gradlab_reports.downloads import left_out
from gradlab_reports.drawing import Drawing
from gradlab_reports.filling import NOTHING, Drawings, Filling, figure_view, filled
from gradlab_reports.loading import RunTables
from gradlab_reports.markdown import markdown
from gradlab_reports.run_folder import RunFolder
from gradlab_reports.views import Page, Section


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
        One HTML document below two megabytes as long as its words are: figures that find no
        room give way to the name of their file; numbers at the pointer, and then the tables to
        save, take what room the figures leave.
    """
    return filled(lambda filling: page_view(run, drawings, data, filling), drawings, run.path)


def markdown_text(run: RunFolder, drawings: Drawings, data: RunTables) -> str:
    """Write the page of a run as Markdown; parameters as of `page_text`."""
    return markdown(page_view(run, drawings, data))


def document_text(run: RunFolder, drawings: Drawings, data: RunTables) -> str:
    """Write the page of a run as JSON; parameters as of `page_text`."""
    return page_document(page_view(run, drawings, data))


PAGES: Mapping[str, Callable[[RunFolder, Drawings, RunTables], str]] = MappingProxyType(
    {"html": page_text, "md": markdown_text, "json": document_text}
)


def page_view(
    run: RunFolder,
    drawings: Drawings,
    data: RunTables,
    filling: Filling = NOTHING,
) -> Page:
    """Everything that a page says of a run, in words.

    Parameters
    ----------
    run, drawings, data
        As of `page_text`.
    filling
        Figures, their numbers and the files to save, as far as they have room.
    """
    return Page(
        title=views.page_title(run.summary, run.manifest),
        sections=[
            _section(f"r{index}", entry, drawings.get(str(entry["name"]), ()), data, filling)
            for index, entry in enumerate(run.recurrences)
        ],
        assumptions=views.all_assumptions(run.summary, run.manifest),
        provenance=views.provenance_rows(run.manifest),
        downloads=filling.downloads,
        left_out=left_out(filling.downloads),
    )


def _section(
    anchor: str,
    entry: Mapping[str, Any],
    drawings: Sequence[Drawing],
    data: RunTables,
    filling: Filling,
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
        figures=[figure_view(drawing, filling) for drawing in drawings],
        tables=_tables(entry, data),
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
