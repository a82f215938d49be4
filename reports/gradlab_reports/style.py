"""Colors, type and lines of every figure: markers and bands measure, dashed lines are theory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

import gradlab as gl
from gradlab_reports.records import figure_frame
from gradlab_reports.theme import THEMES, darken

# The eight colors of Okabe and Ito (2008), told apart with every common color blindness.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#000000"

MEASURED = BLUE
INK, FAINT, GRID = "#222222", "#5f6368", "#e3e5e8"

SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
SERIES_MARKERS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True, kw_only=True)
class CurveStyle:
    """How one of several measured curves is drawn: told apart by its marker as by its color.

    The lines are solid: dashes mean theory. ``glyph`` is the marker in words.
    """

    color: str
    marker: str
    glyph: str
    ink: str


# As many curves as one figure compares; the inks have a contrast of 4.5 on white.
CURVES = (
    CurveStyle(color=BLUE, marker="o", glyph="●", ink=BLUE),
    CurveStyle(color=ORANGE, marker="s", glyph="■", ink="#8a5f00"),
    CurveStyle(color=GREEN, marker="^", glyph="▲", ink="#00724f"),
    CurveStyle(color=PURPLE, marker="D", glyph="◆", ink="#96457a"),
    CurveStyle(color=SKY, marker="v", glyph="▼", ink="#1d6fa5"),
    CurveStyle(color=VERMILLION, marker="P", glyph="✚", ink="#b34f00"),
    CurveStyle(color=BLACK, marker="X", glyph="✖", ink=BLACK),
    CurveStyle(color=YELLOW, marker="*", glyph="★", ink="#6b6300"),
)

# Typed loosely: matplotlib's own type is a list of all its settings' names.
RC: Any = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 9.0,
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8a8f94",
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "lines.solid_capstyle": "round",
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "axes.unicode_minus": True,
    "figure.facecolor": "white",
    "figure.dpi": 100.0,
    "savefig.facecolor": "auto",
    "savefig.bbox": "standard",
    "svg.fonttype": "none",
    "svg.hashsalt": "gradlab",
    "pdf.fonttype": 42,
    "path.simplify": True,
}


@dataclass(frozen=True, kw_only=True)
class BoundStyle:
    """How a rung of the bound ladder is drawn: column, name, color, dashes, color of its words."""

    column: str
    label: str
    color: str
    dashes: tuple[float, ...]
    ink: str


# The inks are the line colors darkened until words in them have a contrast of 4.5 on white.
BOUNDS = (
    BoundStyle(
        column="log_bound_gamma",
        label=r"bound $(\gamma_a\gamma_w)^l$",
        color=VERMILLION,
        dashes=(6, 2),
        ink="#b34f00",
    ),
    BoundStyle(
        column="log_bound_saturation",
        label=r"bound $\prod\,\|D_j\|\,\gamma_w$",
        color=ORANGE,
        dashes=(6, 2, 1.2, 2),
        ink="#8a5f00",
    ),
    BoundStyle(
        column="log_bound_onestep",
        label=r"bound $\prod\,\|J_j\|$",
        color=GREEN,
        dashes=(1.2, 1.8),
        ink="#00724f",
    ),
    BoundStyle(
        column="log_bound_blocks",
        label="bound, blocks of steps",
        color=PURPLE,
        dashes=(3, 1.5),
        ink="#96457a",
    ),
)

# Blue shrinks, vermillion grows, white is a factor of one.
SHRINK_GROW = LinearSegmentedColormap.from_list(
    "shrink_grow", ["#002b45", BLUE, "#f4f4f2", VERMILLION, "#571f00"]
)
EXACT_ZERO, MISSING = "#1a1a1a", "#ffffff00"  # missing: the paper shows, whatever its color
ON_PALE, ON_DARK = "#1a1a1a", "#f4f4f2"  # signs on such a map

# Where no value is special: the darker, the more; an exact zero has a hue of its own.
MORE = LinearSegmentedColormap.from_list("more", ["#e4eef6", "#6fb1dd", BLUE, "#002b45"])
NOTHING = "#f3e7b0"


class Plot(Protocol):
    """A figure's function: a table, or a record that has it, in; axes out."""

    def __call__(
        self,
        frame: Any,
        *,
        ax: Axes | None = None,
        theme: str = "light",
        **columns: str | None,
    ) -> Axes:
        """Draw on axes, or on those of a new figure."""


def styled(plot: Callable[..., Axes]) -> Plot:
    """Draw under the package's style and leave the global settings as they were.

    Parameters
    ----------
    plot
        Takes a table, ``ax``, and columns where they can be chosen.

    Returns
    -------
    drawn
        The same with ``theme``, light or dark, and for a record in place of its table.
    """
    name = plot.__name__.removeprefix("plot_")

    @functools.wraps(plot)
    def drawn(
        frame: Any,
        *,
        ax: Axes | None = None,
        theme: str = "light",
        **columns: str | None,
    ) -> Axes:
        if theme not in THEMES:
            raise gl.unknown_name("theme", theme, THEMES)
        with mpl.rc_context(RC):
            axes = plot(figure_frame(name, frame), ax=ax, **columns)
            if theme == "dark":
                darken(axes, whole=ax is None)
            return axes

    return drawn
