"""Colors that everyone can tell apart and read."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from matplotlib.colors import to_rgb

from gradlab_reports import style
from gradlab_reports.figures import ladder, saturation, singular_values, spectrum


def luminance(color: str) -> float:
    """Relative luminance by WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])


def contrast(first: str, second: str) -> float:
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


INKS = [
    style.INK,
    style.FAINT,
    style.MEASURED,
    spectrum.SIGMA_INK,
    singular_values.SIGMA_INK,
    saturation.MAX_INK,
    saturation.SHARE_INK,
    ladder.BLOCKS_INK,
    *(bound.ink for bound in style.BOUNDS),
    *(curve.ink for curve in style.CURVES),
    *(cause[-1] for cause in ladder.CAUSES),
]


@pytest.mark.parametrize("ink", INKS)
def test_words_in_figures_have_enough_contrast_on_white(ink: str) -> None:
    assert contrast(ink, "#ffffff") >= 4.5


def css_colors() -> list[dict[str, str]]:
    sheet = (files("gradlab_reports") / "templates" / "report.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", sheet, flags=re.DOTALL)
    return [
        {name: value if len(value) == 7 else "#" + "".join(2 * c for c in value[1:])
         for name, value in re.findall(r"--(\w+): (#[0-9a-f]+);", block)}
        for block in blocks
    ]  # fmt: skip


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["light", "dark", "print"])
@pytest.mark.parametrize("name", ["ink", "muted", "shrink", "grow", "steady", "open"])
def test_words_on_the_page_have_enough_contrast_in_every_mode(mode: int, name: str) -> None:
    colors = css_colors()[mode]
    for ground in ("paper", "soft"):
        assert contrast(colors[name], colors[ground]) >= 4.5


def test_measured_and_bounds_share_neither_color_nor_dashes() -> None:
    colors = {style.MEASURED, *(bound.color for bound in style.BOUNDS)}
    assert len(colors) == 1 + len(style.BOUNDS)
    assert len({bound.dashes for bound in style.BOUNDS}) == len(style.BOUNDS)


def test_lightness_rises_to_the_middle_of_the_map_and_falls_beyond() -> None:
    shades = [style.SHRINK_GROW(x / 16) for x in range(17)]
    light = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b, _ in shades]
    assert light[:9] == sorted(light[:9])
    assert light[8:] == sorted(light[8:], reverse=True)
