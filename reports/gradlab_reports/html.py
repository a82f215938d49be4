"""The page as one file: templates filled with words that are escaped, whoever wrote them."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gradlab_reports.article import Article
from gradlab_reports.views import Page

# The letters and indices of the derivation, nothing longer: names of people's files stay as is.
_INDEX = re.compile(r"(?:(?<!\w)([σγhcDJW])|(‖))_(max|min|hh|LSTM|GRU|[awtkjF0])(?!\w)")
_PER_CENT = re.compile(r"(?<=\d) %")  # never at the start of a line
_POWER = re.compile(r"(?<=[\w)>|])\^(l|\(1/n\)|\d+\.\d+|\d+)(?!\w)")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gradlab_reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["notation"] = notation
    environment.filters["in_script"] = in_script
    return environment


def notation(words: str) -> Markup:
    """Escape words, then set indices and powers of the derivation low and high.

    Parameters
    ----------
    words
        Plain words, from whomever.

    Returns
    -------
    markup
        Safe: tags are added to escaped text only.
    """
    escaped = _PER_CENT.sub("\u00a0%", str(escape(words)))
    return Markup(_POWER.sub(r"<sup>\1</sup>", _INDEX.sub(r"\1\2<sub>\3</sub>", escaped)))


def in_script(document: str) -> Markup:
    """Make JSON fit to stand inside a ``<script>`` element, whatever its words hold.

    Parameters
    ----------
    document
        JSON.

    Returns
    -------
    markup
        The same document: the signs that could end the element or start a comment stand only in
        strings, where JSON may spell them as escapes.
    """
    for sign in "<>&\u2028\u2029":
        document = document.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(document)


@cache
def script() -> str:
    """The one script of a page."""
    folder = resources.files("gradlab_reports") / "templates"
    return (folder / "report.js").read_text(encoding="utf-8").strip()


def script_digest(text: str) -> str:
    """Digest by which the page's policy knows its script, and no other."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(page: Page | Article) -> str:
    """Render a page.

    Parameters
    ----------
    page
        Everything the page says; only the figures' own markup is taken as it is.

    Returns
    -------
    text
        One HTML document that asks for nothing from outside.
    """
    name = "article" if isinstance(page, Article) else "report"
    policy = f"script-src 'sha256-{script_digest(script())}'"
    template = _environment().get_template(f"{name}.html.j2")
    return template.render(page=page, script=Markup(script()), policy=Markup(policy))
