"""Figures on a dark page, and inside a page that may be dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from PIL import Image

import gradlab as gl
from gradlab_reports.canvas import figure_of, inline_svg, rendered
from gradlab_reports.catalog import KINDS, RUN_KINDS
from gradlab_reports.drawing import plot_function
from gradlab_reports.loading import load_frame
from gradlab_reports.theme import DARK, PAPER, dark, dark_scheme

WriteRun = Callable[..., Path]
HEX = re.compile(r'"(#[0-9a-fA-F]{6})"')
# Colors of data, which images keep in both themes.
DATA = {"#002b45", "#f4f4f2", "#571f00", "#1a1a1a", "#e4eef6", "#6fb1dd", "#f3e7b0"}


def luminance(color: str) -> float:
    """Relative luminance by WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_color_that_figures_name_has_a_dark_counterpart() -> None:
    folder = Path(str(files("gradlab_reports")))
    sources = [folder / "style.py", folder / "rung_styles.py", *(folder / "figures").glob("*.py")]
    named = {c.lower() for path in sources for c in HEX.findall(path.read_text(encoding="utf-8"))}
    assert named - DATA <= set(DARK)


@pytest.mark.parametrize("color", DARK)
def test_what_is_read_on_white_is_read_on_dark_paper(color: str) -> None:
    wanted = contrast(color, "#ffffff")
    assert contrast(dark(color), PAPER) >= (4.5 if wanted >= 4.5 else 1.1 if wanted > 1.0 else 1.0)


def test_other_colors_keep_their_order_turned_round() -> None:
    """A scale from pale to deep blue becomes one from dim to bright."""
    scale = [dark(c) for c in ("#e4eef6", "#6fb1dd", "#0d5c8f", "#002b45")]
    lights = [luminance(color) for color in scale]
    assert lights == sorted(lights)
    assert contrast(scale[-1], PAPER) > 7.0


@pytest.mark.parametrize("kind", [kind.name for kind in RUN_KINDS])
def test_dark_figures_leave_nothing_light_behind(write_run: WriteRun, kind: str) -> None:
    """A light area that is no image is a part that was forgotten."""
    run = write_run("run", steps=12, partial=True)
    ax = plot_function(KINDS[kind])(load_frame(run, KINDS[kind]), theme="dark")
    assert to_hex(figure_of(ax).get_facecolor()) == PAPER
    if any(panel.images for panel in figure_of(ax).axes):
        return
    png = Image.open(io.BytesIO(rendered(figure_of(ax), "png", 60))).convert("L")
    assert float((np.asarray(png) > 128).mean()) < 0.1


def test_a_theme_that_is_not_there_is_refused(write_run: WriteRun) -> None:
    frame = load_frame(write_run("run", steps=5), KINDS["decay"])
    with pytest.raises(gl.UnknownNameError, match="theme"):
        plot_function(KINDS["decay"])(frame, theme="sepia")


def test_colors_inside_a_page_follow_its_scheme_and_nothing_else_changes() -> None:
    markup = '<svg viewBox="0 0 1 1"><path id="a" style="fill: #222222"/></svg>'
    found = dark_scheme(markup)
    assert "fill: var(--c222222,#222222)" in found
    rule = "@media screen and (prefers-color-scheme:dark){:root{--c222222:#e6e9ec;}}"
    assert f"<style>{rule}</style>" in found
    stripped = re.sub(r"<style>.*?</style>", "", found)
    assert re.sub(r"var\(--c\w{6},(#\w{6})\)", r"\1", stripped) == markup


def test_addresses_inside_a_page_are_no_colors(write_run: WriteRun) -> None:
    """Ids that look like colors stay ids: every one that is used is there."""
    frame = load_frame(write_run("run", steps=12), KINDS["decay"])
    svg = rendered(figure_of(plot_function(KINDS["decay"])(frame)), "svg")
    markup = inline_svg(svg, "r0")
    ids = set(re.findall(r'\bid="([^"]+)"', markup))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', markup)) <= ids
