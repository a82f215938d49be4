"""Figures without pyplot: made on an Agg canvas, saved as equal bytes for equal input."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, GridSpecFromSubplotSpec, SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

from gradlab_reports.style import RC
from gradlab_reports.theme import dark_scheme

PNG_DPI = 200
PLACES = 7  # decimals of places, as parts of the figure: far below a pixel
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None},
}


class RepeatableLayout(ConstrainedLayoutEngine):
    """Constrained layout whose places are rounded.

    The order in which its solver meets the constraints depends on addresses in memory, and so do
    the last bits of its results; without them equal figures have equal bytes.
    """

    def execute(self, fig: Figure) -> None:
        """Lay the figure out, and round the places of its axes."""
        super().execute(fig)
        for ax in fig.axes:
            taking_part = ax.get_in_layout()
            for which in ("original", "active"):
                place = ax.get_position(original=which == "original")
                ax.set_position(Bbox(np.round(place.get_points(), PLACES)), which=which)
            ax.set_in_layout(taking_part)


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes as given, or the only axes of a new figure of so many inches."""
    if ax is not None:
        return ax
    # Readers' fonts may be a little wider than the ones measured here.
    layout = RepeatableLayout(w_pad=0.08, h_pad=0.06)
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def stacked(ax: Axes, heights: Sequence[float]) -> list[Axes]:
    """Share the place of some axes among panels above each other, with one horizontal axis.

    Parameters
    ----------
    ax
        Axes of any figure; they become the top panel.
    heights
        Heights of the panels in relation to each other, from the top.

    Returns
    -------
    panels
        From the top; only the last has the labels of the horizontal axis's ticks.
    """
    figure, spec = figure_of(ax), _place(ax)
    parts = GridSpecFromSubplotSpec(len(heights), 1, subplot_spec=spec, height_ratios=heights)
    ax.set_subplotspec(parts[0])
    panels = [ax, *(figure.add_subplot(parts[i], sharex=ax) for i in range(1, len(heights)))]
    for panel in panels[:-1]:
        panel.tick_params(labelbottom=False)
    return panels


def beside(ax: Axes, count: int, *, share_x: bool = True) -> list[Axes]:
    """Share the place of some axes among panels side by side, with one vertical axis.

    Parameters
    ----------
    ax
        Axes of any figure; they become the first panel.
    count
        Number of panels.
    share_x
        Whether the horizontal axes are one too.

    Returns
    -------
    panels
        From the left; only the first has the labels of the vertical axis's ticks.
    """
    figure = figure_of(ax)
    parts = GridSpecFromSubplotSpec(1, count, subplot_spec=_place(ax))
    ax.set_subplotspec(parts[0])
    shared = {"sharey": ax} | ({"sharex": ax} if share_x else {})
    others = [figure.add_subplot(parts[i], **shared) for i in range(1, count)]
    for panel in others:
        panel.tick_params(labelleft=False)
    return [ax, *others]


def _place(ax: Axes) -> SubplotSpec:
    """Place of some axes in a grid, made for those that stand free."""
    spec = ax.get_subplotspec()
    if spec is not None:
        return spec
    box = ax.get_position()
    edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
    return GridSpec(1, 1, figure=figure_of(ax), **edges)[0]


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure that holds the axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes made here are never removed from their figure
    return figure


def rendered(figure: Figure, suffix: str, dpi: int = PNG_DPI) -> bytes:
    """Render a figure.

    Parameters
    ----------
    figure
        Any figure; it stays usable.
    suffix
        ``png``, ``svg`` or ``pdf``, without the dot.
    dpi
        Dots per inch of a PNG and of images inside an SVG or PDF.

    Returns
    -------
    content
        The bytes of the file, without a date, equal for equal figures.
    """
    stream = io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(stream, format=suffix, dpi=dpi, metadata=METADATA[suffix])
    return stream.getvalue()


def inline_svg(content: bytes, prefix: str) -> str:
    """Make an SVG file fit to stand inside a page beside others.

    Parameters
    ----------
    content
        An SVG as rendered.
    prefix
        Put before every id, so that no two pictures of a page share one; letters and digits.

    Returns
    -------
    markup
        The ``<svg>`` element: no declaration, no metadata, no fixed size, no addresses; in a dark
        scheme its colors are those of the dark theme.
    """
    markup = content.decode("utf-8")
    markup = markup[markup.index("<svg") :]
    markup = re.sub(r"<metadata>.*?</metadata>", "", markup, flags=re.DOTALL)
    markup = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", markup, count=1, flags=re.S)
    head, separator, body = markup.partition(">")
    head = re.sub(r'\s(?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", head)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{prefix}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    markup = f'{head} aria-hidden="true" focusable="false"{separator}{body.strip()}'
    return dark_scheme(markup)
