"""The page as one file: templates filled with words that are escaped, whoever wrote them."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gradlab_reports.comparison import ComparisonPage
from gradlab_reports.views import Page

# The letters and indices of the derivation, nothing longer: names of people's files stay as is.
_INDEX = re.compile(r"(?<!\w)([σγhDJW])_(max|hh|[awtkj])(?!\w)")
_POWER = re.compile(r"(?<=[\w)>])\^(l|\d+\.\d+|\d+)(?!\w)")


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
    escaped = str(escape(words))
    return Markup(_POWER.sub(r"<sup>\1</sup>", _INDEX.sub(r"\1<sub>\2</sub>", escaped)))


def render(page: Page | ComparisonPage) -> str:
    """Render a page.

    Parameters
    ----------
    page
        Everything the page says, on a run or on a comparison; only the figures' own markup is taken
        as it is.

    Returns
    -------
    text
        One HTML document that asks for nothing from outside.
    """
    template = "compare.html.j2" if isinstance(page, ComparisonPage) else "report.html.j2"
    return _environment().get_template(template).render(page=page)
