"""One figure as a page needs it: its pictures, its words, or why it could not be drawn."""

from __future__ import annotations

import base64
import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gradlab_reports.catalog import FigureKind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

logger = logging.getLogger("gradlab_reports")

# An SVG beyond this is worth a smaller PNG beside it, in case the page has no room.
LARGE_SVG = 120_000
SMALL_DPI = 90


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure in the forms that a page may take, or the reason why there is none.

    ``forms`` are HTML, the best first; ``finding`` and ``caption`` are plain words.
    """

    kind: FigureKind
    stem: str
    svg: bytes = b""
    png: bytes = b""
    forms: tuple[str, ...] = ()
    finding: str = ""
    caption: str = ""
    hover: str = ""  # numbers to tell at the pointer, JSON
    failure: str | None = None

    def save(self, folder: Path) -> list[Path]:
        """Write the PNG and the SVG into a folder; nothing for a figure that failed."""
        paths = self.files(folder)
        for path, content in zip(paths, (self.png, self.svg), strict=False):
            path.write_bytes(content)
        return paths

    def files(self, folder: Path) -> list[Path]:
        """Where a folder has the PNG and the SVG; nothing for a figure that failed."""
        if self.failure is not None:
            return []
        return [folder / f"{self.stem}.png", folder / f"{self.stem}.svg"]


def plot_function(kind: FigureKind) -> Callable[..., Axes]:
    """Return ``plot_<module>`` of the kind's module; matplotlib loads here."""
    module = importlib.import_module(f"gradlab_reports.figures.{kind.module}")
    return cast("Callable[..., Axes]", getattr(module, f"plot_{kind.module}"))


def draw(kind: FigureKind, frame: pd.DataFrame, stem: str, prefix: str) -> Drawing:
    """Draw a figure in all forms.

    Parameters
    ----------
    kind
        The kind of figure.
    frame
        The table's rows of one recurrence.
    stem
        Name of its files, without a suffix.
    prefix
        Prefix of its ids in a page; letters and digits.

    Returns
    -------
    drawing
        The figure. Whatever goes wrong is logged and becomes its ``failure``: a picture that
        cannot be drawn must not lose the numbers.
    """
    try:
        return _drawn(kind, frame, stem, prefix)
    except Exception as error:
        logger.warning("figure %s could not be drawn: %s", stem, error, exc_info=True)
        return failed(kind, stem, error)


def failed(kind: FigureKind, stem: str, error: Exception) -> Drawing:
    """Stand for a figure that could not be drawn."""
    words = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return Drawing(kind=kind, stem=stem, failure=words)


def _drawn(kind: FigureKind, frame: pd.DataFrame, stem: str, prefix: str) -> Drawing:
    from gradlab_reports.canvas import figure_of, inline_svg, rendered
    from gradlab_reports.hover import hover_data

    module = importlib.import_module(f"gradlab_reports.figures.{kind.module}")
    ax = plot_function(kind)(frame)
    figure = figure_of(ax)
    png = rendered(figure, "png")
    figure.set_layout_engine("none")  # laid out once, with the finest text: the others take it over
    svg = rendered(figure, "svg")
    forms = [inline_svg(svg, prefix), _image(png)]
    if len(svg) > LARGE_SVG:
        forms.append(_image(rendered(figure, "png", SMALL_DPI)))
    return Drawing(
        kind=kind,
        stem=stem,
        svg=svg,
        png=png,
        forms=tuple(forms),
        finding=module.finding(frame),
        caption=module.caption(),
        hover=hover_data(kind.name, frame, ax),
    )


def _image(png: bytes) -> str:
    """Element that holds a PNG; its words stand on the element around it."""
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(png).decode("ascii")}">'
