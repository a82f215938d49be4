"""The pages: their links lead somewhere, their names exist, their examples give what they say."""

from __future__ import annotations

import doctest
import re
import runpy
import unicodedata
from pathlib import Path

import pytest

import gradlab as gl

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")))
LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE_LIMIT = 150_000
TESTED_ELSEWHERE = {"formats.md"}  # section by section, since some need an extra


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def slug(heading: str) -> str:
    """The anchor of a heading, as the documentation's builder makes it."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(page: Path) -> set[str]:
    written = re.findall(r"^#+ (.+)$", text_of(page), flags=re.MULTILINE)
    objects = re.findall(r"^::: (\S+)$", text_of(page), flags=re.MULTILINE)
    return {slug(heading) for heading in written} | set(objects)


def broken(page: Path) -> list[str]:
    """Links of a page into the repository that lead nowhere."""
    found = []
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_resolve(page: Path) -> None:
    assert broken(page) == []


def test_pages_of_the_documentation_link_to_nothing_outside_of_it() -> None:
    """The built site holds the folder docs and nothing else."""
    links = [(page, link) for page in DOCS.rglob("*.md") for link in LINK.findall(text_of(page))]
    inside = [(p, link) for p, link in links if not re.match(r"[a-z]+:|#", link)]
    outside = [
        f"{name_of(page)}: {link}"
        for page, link in inside
        if not (page.parent / link.partition("#")[0]).resolve().is_relative_to(DOCS)
    ]
    assert inside
    assert outside == []


def test_pictures_are_small_and_each_is_shown() -> None:
    pictures = {picture.name for picture in (DOCS / "pictures").iterdir()}
    shown = {Path(link).name for page in PAGES for link in LINK.findall(text_of(page))}
    sizes = {path.name: path.stat().st_size for path in (DOCS / "pictures").iterdir()}
    assert {name: size for name, size in sizes.items() if size > PICTURE_LIMIT} == {}
    assert pictures - shown == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_public_names_that_a_page_mentions_exist(page: Path) -> None:
    mentioned = set(re.findall(r"\bgl\.([A-Za-z_]\w*)", text_of(page)))
    assert mentioned - set(gl.__all__) == set()


def test_scripts_that_the_pages_run_exist() -> None:
    named = {path for page in PAGES for path in re.findall(r"python (\S+\.py)", text_of(page))}
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []


def examples(page: Path) -> str:
    """Interactive examples of a page."""
    blocks = re.findall(r"^```python\n(.*?)^```", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(block for block in blocks if ">>>" in block)


INTERACTIVE = [p for p in PAGES if examples(p) and p.name not in TESTED_ELSEWHERE]


@pytest.mark.parametrize("page", INTERACTIVE, ids=name_of)
def test_examples_of_a_page_give_what_it_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    test = doctest.DocTestParser().get_doctest(examples(page), {}, page.name, str(page), 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner().run(test, out=said.append)
    assert tried == len(test.examples) > 0
    assert failed == 0, "".join(said)


def test_commands_and_names_of_the_reference_are_those_of_today() -> None:
    written = runpy.run_path(str(DOCS / "reference.py"))["pages"]()
    stale = [name for name, text in written.items() if text_of(DOCS / name) != text]
    assert stale == [], "run: python docs/reference.py"
