"""The dark look of a figure: every color of the light one has a counterpart on a dark page."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import ListedColormap, to_hex, to_rgba
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

THEMES = ("light", "dark")
PAPER = "#15181c"  # of the page in a dark scheme

# Lines and words keep a contrast of 4.5 on the paper, as they have it on white.
DARK = {
    "#ffffff": PAPER,
    "#000000": "#ffffff",
    "#222222": "#e6e9ec",
    "#5f6368": "#a3adb8",
    "#4a4f54": "#c3c9cf",
    "#71767b": "#9aa2aa",
    "#8a8f94": "#7d858d",
    "#9aa0a6": "#7f878f",
    "#e3e5e8": "#2c333a",
    "#c9ced3": "#59626b",
    "#0072b2": "#4fa8e0",
    "#d55e00": "#ee7a2c",
    "#009e73": "#2bb78d",
    "#cc79a7": "#d68bb4",
    "#e69f00": "#e69f00",
    "#56b4e9": "#7cc4ee",
    "#f0e442": "#f0e442",
    "#b34f00": "#f0894a",
    "#a34700": "#f0894a",
    "#8a5f00": "#e6b03a",
    "#7a5400": "#e6b75a",
    "#00724f": "#4cc79b",
    "#00624a": "#5ec9a6",
    "#96457a": "#dd9cc4",
    "#1d6fa5": "#7cc4ee",
    "#6b6300": "#e8df5a",
    "#86c9b3": "#1f5a49",
    "#f9e4b7": "#5c4a1f",
    "#efa47a": "#7a4526",
    "#cfe4f3": "#1f4460",
}
# Signs on images, which look the same on any page.
KEPT = frozenset({"#1a1a1a", "#f4f4f2"})
_HEX = re.compile(r"#[0-9a-f]{6}\b")


def dark(color: str) -> str:
    """Counterpart of a color, ``#rrggbb``.

    Parameters
    ----------
    color
        In lower-case hexadecimal.

    Returns
    -------
    counterpart
        That of the table, and a color of signs on images itself; of any other color the same hue,
        as light as the color is dark.
    """
    if color in DARK or color in KEPT:
        return DARK.get(color, color)
    red, green, blue = to_rgba(color)[:3]
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    return str(to_hex(colorsys.hls_to_rgb(hue, 0.92 - 0.72 * lightness, saturation)))


def darken(ax: Axes, *, whole: bool) -> None:
    """Give axes their dark look; images keep their colors.

    Parameters
    ----------
    ax
        The axes.
    whole
        Whether all else in their figure is changed too.
    """
    figure: Any = ax.get_figure(root=True)
    for artist in (figure if whole else ax).findobj():
        for kind, change in _CHANGES.items():
            if isinstance(artist, kind):
                change(artist)
    for panel in figure.axes if whole else [ax]:
        _darken_ticks(panel)
        _darken_bar(panel)


def dark_scheme(markup: str) -> str:
    """Make the colors of an SVG follow the scheme of the page it stands in.

    Parameters
    ----------
    markup
        An ``<svg>`` element.

    Returns
    -------
    markup
        The same with a variable for each color, whose value in a light scheme, in print and outside
        a page is the color itself.
    """
    found = sorted(set(_HEX.findall(markup)))
    if not found:
        return markup
    values = "".join(f"--c{color[1:]}:{dark(color)};" for color in found)
    rule = f"@media screen and (prefers-color-scheme:dark){{:root{{{values}}}}}"
    head, separator, body = markup.partition(">")
    body = _HEX.sub(lambda match: f"var(--c{match[0][1:]},{match[0]})", body)
    return f"{head}{separator}<style>{rule}</style>{body}"


def _darken_ticks(ax: Any) -> None:
    """Ticks are made when drawn, so that it is the axes that know their colors."""
    ax.tick_params(color=dark("#222222"), labelcolor=dark("#222222"), grid_color=dark("#e3e5e8"))


def _darken_bar(ax: Any) -> None:
    """A bar of the colors of lines, which change; those of an image do not."""
    bar = getattr(ax, "_colorbar", None)
    if bar is not None and not isinstance(bar.mappable, AxesImage):
        scale = bar.mappable.cmap(np.linspace(0.0, 1.0, 256))
        bar.mappable.set_cmap(ListedColormap([dark(to_hex(color)) for color in scale]))


def _changed(color: Any) -> Any:
    """One color or several; words such as ``none`` stay."""
    if isinstance(color, str) and color.lower() in ("none", "auto", "inherit"):
        return color
    if isinstance(color, np.ndarray) and color.ndim == 2:
        return [_changed(tuple(row)) for row in color]
    rgba = to_rgba(color)
    if rgba[3] == 0.0:  # would be seen where an artist has an opacity of its own
        return "none"
    return (*to_rgba(dark(to_hex(rgba)))[:3], rgba[3])


def _darken_line(line: Any) -> None:
    face, edge = line.get_markerfacecolor(), line.get_markeredgecolor()
    line.set_color(_changed(line.get_color()))
    line.set_markerfacecolor(_changed(face))
    line.set_markeredgecolor(_changed(edge))


def _darken_patch(patch: Any) -> None:
    face, edge = patch.get_facecolor(), patch.get_edgecolor()
    patch.set_facecolor(_changed(face))
    patch.set_edgecolor(_changed(edge))


def _darken_collection(collection: Any) -> None:
    if collection.get_array() is not None:  # colors of data
        return
    face, edge = collection.get_facecolor(), collection.get_edgecolor()
    collection.set_facecolor(_changed(face))
    collection.set_edgecolor(_changed(edge))


def _darken_text(text: Any) -> None:
    text.set_color(_changed(text.get_color()))
    for patch in (text.get_bbox_patch(), getattr(text, "arrow_patch", None)):
        if patch is not None:  # no child of its own
            _darken_patch(patch)
    for effect in text.get_path_effects():
        stroke = effect._gc
        stroke["foreground"] = dark(to_hex(stroke["foreground"]))


_CHANGES: dict[type, Callable[[Any], None]] = {
    Line2D: _darken_line,
    Patch: _darken_patch,
    Collection: _darken_collection,
    Text: _darken_text,
}
