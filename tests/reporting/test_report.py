"""The page: verdict first, everything inside one file, whatever the names hold."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl
from gradlab_reports import write_report
from gradlab_reports.bundle import file_endings
from gradlab_reports.canvas import inline_svg
from gradlab_reports.catalog import RUN_KINDS, FigureKind
from gradlab_reports.drawing import Drawing
from gradlab_reports.filling import fitted
from gradlab_reports.html import notation

WriteRun = Callable[..., Path]
EVERY_RUN = [kind for kind in RUN_KINDS if not kind.partial]
VOID = {"meta", "img", "br", "link", "path", "use", "image", "rect"}


class Reader(HTMLParser):
    """Collects tags with their attributes, ids, and the words of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words).replace("\u00a0", " "))


def page_of(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def saturated(write_once: WriteRun, decay: Any) -> Path:
    """A rendered run with gamma_w = 3 that vanishes all the same."""
    entry = decay(
        rate=-0.49,
        gamma_w=3.0,
        saturation=0.1,
        onestep=0.4,
        alignment=1.0,
        spread=0.1,
        contradicts="σ_max = 3 would suggest explosion; measured −0.49 per step",
    )
    return write_report(write_once("saturated", entry))


@pytest.fixture(scope="module")
def two(write_once: WriteRun, decay: Any) -> Path:
    """A rendered run of two recurrences."""
    grown = decay(name="rnn.l1", rate=0.2, regime="exploding", gamma_w=2.0)
    return write_report(write_once("two", decay(name="rnn.l0"), grown))


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the drawing where only the words of a page matter."""

    def drawn(kind: FigureKind, frame: object, stem: str, prefix: str) -> Drawing:
        return Drawing(kind=kind, stem=stem, forms=("<svg></svg>",), finding=f"{kind.name} 1")

    monkeypatch.setattr("gradlab_reports.bundle.draw", drawn)


def test_the_page_tells_verdict_evidence_numbers_assumptions_provenance_in_this_order(
    saturated: Path,
) -> None:
    text = Reader(saturated.read_text(encoding="utf-8")).text
    order = (
        "The gradient vanishes: each step back in time multiplies it by 0.613",
        "False friend: σmax = 3 would suggest explosion",
        "Evidence",
        "Gradient norm by lag",
        "Numbers",
        "Ladder of bounds at lag 60",
        "Horizons",
        "Recurrent weights",
        "mean derivative φ′",
        "Assumptions and notes",
        "tanh was assumed",
        "Provenance",
        "gradlab report vanishing -o out",
    )
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_numbers_are_those_of_the_files(saturated: Path) -> None:
    page = saturated.read_text(encoding="utf-8")
    text = Reader(page).text
    assert "(nominal 95 % interval 0.610 to 0.615)" in text  # exp(-0.494), exp(-0.486)
    assert "less than 1 % of it is left from lag 10 on" in text  # ln 100 / 0.49 = 9.4
    assert "× 3.00" in text  # the bound per step
    assert "4.24 × 10²⁸" in text  # 3^60
    assert re.search(
        r"below float16 [^<]+</th>\s*<td>20</td>\s*<td>20</td>", page
    )  # 14 ln 2 / 0.49
    assert "|h| > 0.97, strictly" in text


def test_a_bound_is_named_a_bound_and_never_the_cause_of_a_verdict(saturated: Path) -> None:
    text = Reader(saturated.read_text(encoding="utf-8")).text
    assert "explodes" not in text
    assert text.count("upper bound") == 5
    assert text.count("explosion") == 1  # in what the rule of thumb would suggest


def test_everything_is_inside_the_one_file(saturated: Path) -> None:
    page = saturated.read_text(encoding="utf-8")
    assert "http:" not in page
    assert "https:" not in page
    reader = Reader(page)
    for tag, attributes in reader.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        image, file = "data:image/png;base64,", ("data:text/csv;", "data:application/json;")
        own = ("#", *file) if tag == "a" else ("#", image)
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            target = attributes.get(name)
            assert target is None or target.startswith(own)
    for target in re.findall(r"url\(([^)]*)\)", page):
        assert target.startswith("#")
    assert "@import" not in page
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv"))
    assert policy is not None
    fixed, _, allowed = policy.partition("; script-src ")
    assert fixed == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert allowed == f"'sha256-{digest}'"


def test_the_page_is_well_formed_with_every_id_used_once(two: Path) -> None:
    page = two.read_text(encoding="utf-8")
    reader = Reader(page)
    assert reader.open == []
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for pair in re.findall(r'(?:xlink:)?href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert "".join(pair) in ids


def test_pictures_state_their_finding_to_those_who_cannot_see_them(saturated: Path) -> None:
    reader = Reader(saturated.read_text(encoding="utf-8"))
    pictures = [a["aria-label"] or "" for _, a in reader.tags if a.get("role") == "img"]
    assert len(pictures) == len(EVERY_RUN)
    assert any(words.startswith("The measured median norm goes from") for words in pictures)
    assert all(re.search(r"\d", words) for words in pictures)


def test_images_on_the_page_are_whole_pngs(saturated: Path) -> None:
    images = re.findall(r'data:image/png;base64,([^"]+)"', saturated.read_text(encoding="utf-8"))
    assert images  # the map of pairs is an image inside its SVG
    for image in images:
        content = base64.b64decode("".join(image.split()), validate=True)
        assert content.startswith(b"\x89PNG")


def test_a_single_recurrence_has_files_named_by_kind_alone(saturated: Path) -> None:
    expected = {f"{kind.name}.{suffix}" for kind in EVERY_RUN for suffix in ("png", "svg")}
    assert {path.name for path in (saturated.parent / "figures").iterdir()} == expected


def test_several_recurrences_have_sections_and_a_table_of_contents(two: Path) -> None:
    reader = Reader(two.read_text(encoding="utf-8"))
    assert "rnn.l0 vanishing × 0.900 per step" in reader.text
    assert "rnn.l1 exploding × 1.22 per step" in reader.text
    links = {a["href"] for tag, a in reader.tags if tag == "a" and "download" not in a}
    sections = {f"#{a['id']}" for tag, a in reader.tags if tag == "section" and "id" in a}
    assert links == sections
    names = {path.name for path in (two.parent / "figures").iterdir()}
    assert {"decay-rnn.l0.png", "decay-rnn.l1.svg", "spectrum-rnn.l1.png"} <= names


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "a&b"]
)
def test_names_from_files_stay_words(write_run: WriteRun, decay: Any, name: str) -> None:
    reader = Reader(page_of(write_run("run", decay(name=name), decay(name="rnn"), steps=10)))
    assert name in reader.text
    scripts = [attributes for tag, attributes in reader.tags if tag == "script"]
    assert scripts == [{}]  # the page's own
    for tag, attributes in reader.tags:
        assert tag != "img"
        assert not any(key.startswith("on") for key in attributes)


@pytest.mark.usefixtures("no_pictures")
def test_other_words_from_files_are_escaped_too(write_run: WriteRun) -> None:
    bad = "<b onload=x>"
    run = write_run("run", steps=10)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest |= {"source": bad, "assumptions": [bad], "argv": [bad], bad: {bad: bad}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    summary = json.loads((run / "summary.json").read_text())
    entry = summary["recurrences"][0]
    entry["saturation"]["rule"] = entry["regime"]["rule"] = entry["regime"]["name"] = bad
    entry["sequences"]["description"] = entry["cell"] = entry["activation"] = bad
    entry["gates"], entry["regime"]["contradicts"] = {bad: {"sigma_max": 1.0}}, bad
    (run / "summary.json").write_text(json.dumps(summary))
    ladder = (run / "ladder.csv").read_text().replace("onestep", bad)
    (run / "ladder.csv").write_text(ladder)
    reader = Reader(page_of(run))
    assert "b" not in [tag for tag, _ in reader.tags]
    assert reader.text.count(bad) >= 10


def test_notation_sets_indices_of_the_derivation_and_leaves_names_alone() -> None:
    assert notation("γ_w^l ∂h_t/∂h_k") == (
        "γ<sub>w</sub><sup>l</sup> ∂h<sub>t</sub>/∂h<sub>k</sub>"
    )
    assert notation("my_W_hh h_tanh <σ_max>") == "my_W_hh h_tanh &lt;σ<sub>max</sub>&gt;"


def test_file_names_are_safe_and_apart_whatever_the_names_hold() -> None:
    names = ["../../etc/passwd", "a/b", "A-b", "", "…", "x" * 300, ".hidden"]
    endings = file_endings(names)
    assert len({ending.lower() for ending in endings.values()}) == len(names)
    for ending in endings.values():
        assert re.fullmatch(r"-[A-Za-z0-9.-]{1,70}", ending)
        assert not ending.startswith("-.")
    assert file_endings(["a/b"]) == {"a/b": ""}


def test_a_figure_that_fails_keeps_the_rest_of_the_page(
    write_run: WriteRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(frame: object) -> None:
        raise MemoryError("no room for the picture")

    run = write_run("run", steps=10)
    monkeypatch.setattr("gradlab_reports.figures.spectrum.plot_spectrum", broken)
    text = Reader(page_of(run)).text
    assert "The figure 'spectrum' could not be drawn: no room for the picture" in text
    assert "Singular values of the recurrent matrix" in text
    assert "Horizons" in text
    assert "no room for the picture" in caplog.text
    assert not (run / "figures" / "spectrum.png").exists()


@pytest.mark.usefixtures("no_pictures")
def test_a_table_that_is_damaged_becomes_a_note(write_run: WriteRun) -> None:
    run = write_run("run", steps=10)
    (run / "steps.csv").write_text("recurrence,t\nrnn,1\n")
    (run / "ladder.csv").unlink()
    text = Reader(page_of(run)).text
    assert "The figure 'saturation' could not be drawn" in text
    assert "has no column 'derivative_mean'" in text
    assert "Ladder of bounds" not in text
    assert "Slack of the bound by cause" in text


@pytest.mark.usefixtures("no_pictures")
def test_runs_without_pairs_have_no_map_and_no_complaint(write_run: WriteRun) -> None:
    text = Reader(page_of(write_run("run", steps=10, pairs=False))).text
    assert "could not be drawn" not in text
    assert "pairs" not in text


def test_a_page_is_rendered_anew_to_equal_bytes(write_run: WriteRun) -> None:
    run = write_run("run", steps=10, pairs=False)
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first
    assert not list(run.glob(".*"))


@pytest.mark.parametrize("count", [1, 30])
def test_a_page_stays_below_two_megabytes_for_any_number_of_recurrences(
    write_run: WriteRun, decay: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each figure of this test weighs 150 kB in every form but the smallest."""
    forms = ("s" * 150_000, "p" * 120_000, "l" * 20_000)

    def drawn(kind: FigureKind, frame: object, stem: str, prefix: str) -> Drawing:
        return Drawing(kind=kind, stem=stem, forms=forms, finding="1")

    monkeypatch.setattr("gradlab_reports.bundle.draw", drawn)
    run = write_run("run", *(decay(name=f"r{i}") for i in range(count)), steps=4)
    page = write_report(run)
    assert page.stat().st_size < 2_000_000
    text = page.read_text()
    assert text.count("s" * 150_000) == (len(EVERY_RUN) if count == 1 else 0)
    assert ("The page has no room for this figure: it is in figures/" in text) == (count == 30)


def test_figures_fall_back_to_smaller_forms_when_room_is_short() -> None:
    def sized(stem: str, *sizes: int) -> Drawing:
        return Drawing(kind=RUN_KINDS[0], stem=stem, forms=tuple("x" * size for size in sizes))

    rows = {"a": [sized("a1", 100, 50), sized("a2", 100, 50)], "b": [sized("b1", 100, 50)]}
    sizes = {stem: len(form) for stem, form in fitted(rows, 300).items()}
    assert sizes == {"a1": 100, "b1": 100, "a2": 100}
    sizes = {stem: len(form) for stem, form in fitted(rows, 200).items()}
    assert sizes == {"a1": 50, "b1": 50, "a2": 100}
    assert fitted(rows, 30) == {}
    assert fitted({}, 30) == {}


def test_an_inline_svg_has_ids_of_its_own_and_no_addresses() -> None:
    svg = (
        b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD" "http://www.w3.org/x.dtd">\n'
        b'<svg height="10pt" width="20pt" viewBox="0 0 20 10" version="1.1" '
        b'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg">'
        b"<metadata><a href='http://purl.org'/></metadata>"
        b'<g id="g1"><use xlink:href="#m1"/><path clip-path="url(#p1)"/></g></svg>'
    )
    assert inline_svg(svg, "r0x") == (
        '<svg viewBox="0 0 20 10" aria-hidden="true" focusable="false">'
        '<g id="r0x-g1"><use xlink:href="#r0x-m1"/><path clip-path="url(#r0x-p1)"/></g></svg>'
    )


@pytest.mark.usefixtures("no_pictures")
def test_a_folder_that_cannot_be_written_to_is_one_clear_error(write_run: WriteRun) -> None:
    run = write_run("run", steps=5)
    (run / "figures").write_text("a file in the way")
    with pytest.raises(gl.OutputError, match="cannot be written to") as error:
        write_report(run)
    assert "\n" not in str(error.value)
    assert (run / "summary.json").is_file()
    assert not (run / "report.html").exists()


def test_an_incomplete_run_is_refused(write_run: WriteRun) -> None:
    run = write_run("run", steps=5)
    (run / "lag_profile.csv").unlink()
    with pytest.raises(gl.RunFolderError, match=r"lacks lag_profile.csv"):
        write_report(run)
