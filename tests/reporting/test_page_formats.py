"""The page as Markdown and as JSON: the same words, whatever the names hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl
from gradlab_reports import page_formats, write_report
from gradlab_reports.catalog import FigureKind
from gradlab_reports.drawing import Drawing
from gradlab_reports.markdown import plain_words

WriteRun = Callable[..., Path]
HOSTILE = "<script>alert(1)</script>|`*_[x](javascript:1)"


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the drawing: only the words matter here."""

    def drawn(kind: FigureKind, frame: object, stem: str, prefix: str) -> Drawing:
        failure = "no ink" if kind.name == "spectrum" else None
        return Drawing(
            kind=kind,
            stem=stem,
            forms=("<svg></svg>",),
            finding=f"{kind.name} 1",
            caption="How to read it.",
            failure=failure,
        )

    monkeypatch.setattr("gradlab_reports.bundle.draw", drawn)


def test_all_formats_tell_the_same_verdict(write_run: WriteRun, decay: Any) -> None:
    run = write_run("run", decay(rate=-0.49), steps=20)
    assert write_report(run, formats=page_formats()) == run / "report.html"
    verdict = "each step back in time multiplies it by 0.613"
    for name in page_formats():
        assert verdict in (run / f"report.{name}").read_text(encoding="utf-8")


def test_markdown_has_headings_pictures_tables_and_the_meaning(write_run: WriteRun) -> None:
    words = write_report(write_run("run", steps=20), formats=["md"]).read_text(encoding="utf-8")
    lines = words.splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings[1:] == [
        "## rnn",
        "### What this means for training",
        "### Evidence",
        "### Numbers",
        "## Assumptions",
        "## Provenance",
    ]
    assert "![decay 1](figures/decay.png)" in lines
    assert "The figure 'spectrum' could not be drawn: no ink" in lines
    for place, line in enumerate(lines):
        if line.startswith("| --- "):
            bars = [lines[at].replace("\\|", "").count("|") for at in (place - 1, place + 1)]
            assert bars == [line.count("|")] * 2


def test_names_stay_words_in_markdown(write_run: WriteRun, decay: Any) -> None:
    run = write_run("run", decay(name=HOSTILE), steps=10)
    words = write_report(run, formats=["md"]).read_text(encoding="utf-8")
    assert "<script" not in words
    assert "## &lt;script&gt;alert(1)&lt;/script&gt;\\|\\`\\*\\_\\[x\\](javascript:1)" in words


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("# no heading", "\\# no heading"),
        ("- no list", "\\- no list"),
        ("1. no list", "1\\. no list"),
        ("1.80 is a number", "1.80 is a number"),
        ("    no code", "no code"),
        ("===", "\\==="),
        ("two\nlines", "two lines"),
        ("σ_max stays", "σ_max stays"),
        ("−0.1 of 5", "−0.1 of 5"),
    ],
)
def test_words_are_escaped_only_where_markdown_would_take_them(words: str, shown: str) -> None:
    assert plain_words(words) == shown


def test_the_document_is_strict_json_with_names_as_they_are(
    write_run: WriteRun, decay: Any
) -> None:
    run = write_run("run", decay(name=HOSTILE), decay(name="b", zero_from=4), steps=10)
    path = write_report(run, formats=["json"])

    def refuse(token: str) -> None:
        raise AssertionError(token)

    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert list(document) == ["schema", "title", "sections", "assumptions", "provenance"]
    first, second = document["sections"]
    assert (first["name"], second["name"]) == (HOSTILE, "b")
    assert "markup" not in json.dumps(document)
    assert {"verdict", "meaning", "numbers", "figures", "tables"} <= set(first)
    assert first["figures"][0]["finding"] == "decay 1"


def test_an_unknown_format_is_refused_before_anything_is_drawn(write_run: WriteRun) -> None:
    run = write_run("run", steps=5)
    with pytest.raises(gl.UnknownNameError, match="docx"):
        write_report(run, formats=["html", "docx"])
    assert not (run / "figures").exists()
