"""For the built pages: indices and powers of the derivation stand low and high, as on paper."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

# A letter (with its d in a derivative), a word of analysis, or what closes a norm or a bracket, and
# then what stands low or high behind it.
LETTER = r"(?<![\w.])d?[A-Za-z\u0370-\u03ff]|(?<=[ΣΠ])[A-Za-z]|[‖)′'⁺]"
WORD = r"(?<![\w.])(?:inf|sup|max|min)(?=_(?:\{|\w(?!\w)))"
INDEX = r"(?:(?![²³¹⁰⁴-⁹])\w)+"  # a power behind an index is none of it
LOW = rf"({LETTER}|{WORD})_(\{{(?:[^{{}}]|\{{[^{{}}]*\}})+\}}|{INDEX})"
HIGH = r"(?<=[\w)}‖|])\^(\([^()\s]+\)|\{[^{}]+\}|-?[\w−+]+)"


class Low(InlineProcessor):
    """``γ_w`` and ``P_{t,k}``."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: D102, N802
        held = Element("span")
        held.text = m[1]
        index = Element("sub")
        index.text = m[2].strip("{}")
        held.append(index)
        return held, m.start(0), m.end(0)


class High(InlineProcessor):
    """``γ^l`` and ``2^(−1/n)``."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: D102, N802
        power = Element("sup")
        power.text = m[1].strip("{}()")
        return power, m.start(0), m.end(0)


class Notation(Extension):
    """Reads an underscore as an index, never as emphasis: that is written with asterisks."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: D102, N802
        md.delimiters.remove("_")
        # A formula of a docstring stands in its sentence, also where a line begins with it.
        md.block_level_elements.remove("math")
        md.inlinePatterns.register(High(HIGH, md), "high", 66)
        md.inlinePatterns.register(Low(LOW, md), "low", 65)


def on_config(config: Any) -> Any:
    """Add the notation to the extensions of every page."""
    config.markdown_extensions.append(Notation())
    return config
