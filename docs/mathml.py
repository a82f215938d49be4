"""For the API's pages: formulas of docstrings become MathML, which browsers draw by themselves."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object
from latex2mathml.converter import convert

INLINE = re.compile(r":math:`([^`]+)`")
DIRECTIVE = re.compile(r"^( *)\.\. math::(.*(?:\n\1 +\S.*)*)", re.MULTILINE)


def with_mathml(docstring: str) -> str:
    """The docstring with its roles and directives replaced.

    Parameters
    ----------
    docstring
        reStructuredText formulas in text that is Markdown otherwise.

    Returns
    -------
    text
        The same text; indentation is kept, since sections depend on it.
    """
    whole = DIRECTIVE.sub(_display, docstring)
    return INLINE.sub(lambda found: _mathml(found[1], "inline"), whole)


def _display(found: re.Match[str]) -> str:
    return f"{found[1]}<div class='formula'>{_mathml(found[2], 'block')}</div>"


def _mathml(latex: str, display: str) -> str:
    return convert(" ".join(latex.split()), display=display)


class MathML(Extension):
    """Rewrites the docstring of each object that is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Replace the formulas of one object."""
        if obj.docstring:
            obj.docstring.value = with_mathml(obj.docstring.value)
