"""Fill a page as far as it stays small: figures first, then numbers at the pointer, then tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradlab_reports.article import Article
from gradlab_reports.downloads import TABLES, Download, fitting_downloads
from gradlab_reports.drawing import Drawing
from gradlab_reports.html import in_script, render
from gradlab_reports.views import FigureView, Page

# A page stays a little under two megabytes, which mail and browsers take without a thought.
PAGE_LIMIT = 1_900_000
HOVER_MARGIN = 100  # bytes of the element around the numbers

Drawings = Mapping[str, Sequence[Drawing]]


@dataclass(frozen=True, kw_only=True)
class Filling:
    """What the words of a page are filled up with, each by the stem of its figure."""

    markup: Mapping[str, str] = field(default_factory=dict)
    hover: Mapping[str, str] = field(default_factory=dict)
    downloads: Sequence[Download] = ()


NOTHING = Filling()


def filled(
    compose: Callable[[Filling], Page | Article],
    drawings: Drawings,
    folder: Path,
    tables: Mapping[str, str] = TABLES,
) -> str:
    """Write a page as one file.

    Parameters
    ----------
    compose
        Gives the page with a filling in it.
    drawings
        Figures by the name of the recurrence, in the order of the page.
    folder
        Holds the tables.
    tables
        Those that may be saved from the page, and what they hold.

    Returns
    -------
    text
        One HTML document below `PAGE_LIMIT` bytes as long as its words are: figures that find no
        room give way to the name of their file; numbers at the pointer, and then the tables to
        save, take what room the figures leave.
    """
    bare = compose(Filling(downloads=fitting_downloads(folder, 0, tables)))
    room = PAGE_LIMIT - len(render(bare).encode())
    markup = fitted(drawings, room)
    room -= sum(len(form.encode()) for form in markup.values())
    hover = _fitting_hover(drawings, markup, room)
    room -= sum(len(in_script(text).encode()) + HOVER_MARGIN for text in hover.values())
    downloads = fitting_downloads(folder, room, tables)
    return render(compose(Filling(markup=markup, hover=hover, downloads=downloads)))


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


def figure_view(drawing: Drawing, filling: Filling) -> FigureView:
    """A figure as the page shows it: in place, or by the name of its file, or why there is none."""
    note = f"The page has no room for this figure: it is in figures/{drawing.stem}.png."
    if drawing.failure is not None:
        note = f"The figure {drawing.kind.name!r} could not be drawn: {drawing.failure}"
    return FigureView(
        markup=filling.markup.get(drawing.stem, ""),
        finding=drawing.finding,
        caption=drawing.caption,
        note=note,
        wide=drawing.kind.wide,
        file="" if drawing.failure is not None else f"figures/{drawing.stem}.png",
        hover=filling.hover.get(drawing.stem, ""),
    )
