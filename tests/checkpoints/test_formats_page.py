"""The page on model files: its examples run, and give what it says they give."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formats.md"
EXTRAS = {
    "Keras": "h5py",
    "ONNX": "onnx",
    "Flax and Haiku": "msgpack",
}  # sections that need a package


def examples() -> dict[str, str]:
    """Python examples of each section, by its title."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = {
        section.splitlines()[0]: "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
        for section in sections[1:]
    }
    return {title: block for title, block in blocks.items() if block}


@pytest.mark.parametrize("title", examples())
def test_examples_of_the_page_give_what_it_says(
    title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if title in EXTRAS:
        pytest.importorskip(EXTRAS[title])
    monkeypatch.chdir(ROOT)
    test = doctest.DocTestParser().get_doctest(examples()[title], {}, title, str(PAGE), 0)
    said: list[str] = []
    assert test.examples
    failed, tried = doctest.DocTestRunner().run(test, out=said.append)
    assert tried == len(test.examples)
    assert failed == 0, "".join(said)
