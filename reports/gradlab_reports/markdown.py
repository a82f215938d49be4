"""The page as Markdown: for an issue, a wiki or a terminal, with the pictures beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gradlab_reports.article import Article
from gradlab_reports.tables import Table
from gradlab_reports.views import FigureView, Page, Section

# What Markdown would take for its own; an underscore inside a word is none of it.
_OWN = re.compile(r"[\\`*\[\]|~$#!]|(?<!\w)_|_(?!\w)")
_BULLET = re.compile(r"^(?=[-+=])")
_NUMBERED = re.compile(r"^(\d+)(?=[.)](\s|$))")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def markdown(page: Page) -> str:
    """Write what a page says as Markdown.

    Parameters
    ----------
    page
        The view of a run, without pictures.

    Returns
    -------
    text
        CommonMark with tables; words from files stay words, whatever they hold.
    """
    lines = [f"# {plain_words(page.title)}", ""]
    for section in page.sections:
        lines += _section(section)
    return _ended([*lines, *_origins(page)])


def article_markdown(article: Article) -> str:
    """Write the page of a comparison or a training as Markdown; as `markdown`."""
    lines = [f"# {plain_words(article.title)}", ""]
    regime = f"**{plain_words(article.regime)}** " if article.regime else ""
    lines += [regime + plain_words(article.sentence), ""]
    lines += _bullets([f"{each.value} {each.meaning}" for each in article.numbers])
    for remark in article.remarks:
        lines += [plain_words(remark), ""]
    if article.meaning:
        lines += ["## What this means for training", "", *_bullets(article.meaning)]
    lines += ["## Evidence", ""]
    for figure in article.figures:
        lines += _figure(figure)
    lines += ["## Numbers", ""]
    for table in article.tables:
        lines += _table(table)
    lines += ["## How to read it", "", *_bullets(article.how_to_read)]
    return _ended([*lines, *_origins(article)])


def _ended(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def _origins(page: Page | Article) -> Iterator[str]:
    yield from ("## Assumptions", "")
    yield from _bullets(page.assumptions or ["None: everything was given."])
    yield from ("## Provenance", "")
    yield from _bullets([f"{key}: {value}" for key, value in page.provenance])


def plain_words(words: str) -> str:
    """Escape words so that Markdown, and HTML inside it, shows them as they are."""
    line = re.sub(r"[ \t\r\n\f\v]+", " ", words).strip(" ")
    escaped = _OWN.sub(lambda found: "\\" + found[0], line)
    for sign, entity in ENTITIES.items():
        escaped = escaped.replace(sign, entity)
    return _NUMBERED.sub(r"\1\\", _BULLET.sub(r"\\", escaped))


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {plain_words(section.name)}", "", plain_words(section.facts), "")
    yield from (f"**{plain_words(section.regime)}** {plain_words(section.verdict)}", "")
    if section.false_friend:
        yield from (f"**False friend:** {plain_words(section.false_friend)}", "")
    if section.bound:
        yield from (f"**Bound and measurement:** {plain_words(section.bound)}", "")
    yield from _bullets([f"{each.value} {each.meaning}" for each in section.numbers])
    for remark in section.remarks:
        yield from (plain_words(remark), "")
    if section.meaning or section.changes:
        yield from ("### What this means for training", "")
        yield from _bullets(section.meaning)
    if section.changes:
        yield from _table(section.changes)
    yield from ("### Evidence", "")
    for figure in section.figures:
        yield from _figure(figure)
    yield from ("### Numbers", "")
    for table in section.tables:
        yield from _table(table)


def _bullets(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from (f"- {plain_words(line)}" for line in lines)
        yield ""


def _figure(figure: FigureView) -> Iterator[str]:
    if not figure.file:
        yield from (plain_words(figure.note), "")
        return
    yield from (f"![{plain_words(figure.finding)}]({figure.file})", "")
    yield from (f"**{plain_words(figure.finding)}** {plain_words(figure.caption)}", "")


def _table(table: Table) -> Iterator[str]:
    yield from (f"**{plain_words(table.title)}**", "")
    yield _row(table.header)
    yield _row(["---"] * len(table.header), escape=False)
    yield from (_row(row) for row in table.rows)
    yield ""
    if table.note:
        yield from (plain_words(table.note), "")


def _row(cells: Sequence[str], *, escape: bool = True) -> str:
    words = [plain_words(cell) for cell in cells] if escape else cells
    return f"| {' | '.join(words)} |"
