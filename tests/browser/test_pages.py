"""Pages in a real browser: silent, self-contained, in their place at any width, usable by all."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

Page = Callable[[str], Path]
NAMES = ("vanishing", "exploding", "saturated", "digits", "gated", "comparison", "training")
WIDTHS = (360, 768, 1280)
PAPER = 700  # pixels across a printed page, between its margins

# Elements whose right edge the page cannot show, but for those inside a part that scrolls.
STICKING_OUT = """
[...document.body.querySelectorAll("*")].filter((element) => {
  if (element.closest("svg") && element.tagName !== "svg") return false;
  const box = element.getBoundingClientRect();
  if (!box.width || box.right <= document.documentElement.clientWidth + 1) return false;
  for (let above = element.parentElement; above; above = above.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(above).overflowX)) return false;
  return true;
}).map((element) => element.outerHTML.slice(0, 80))
"""
SERIOUS = """
axe.run({ resultTypes: ["violations"] }).then((found) => found.violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => each.id + ": " + each.nodes.map((node) => node.target.join(" ")).join(", ")))
"""
# Words in figures whose contrast with the paper below them is too low to read.
FAINT = """
(() => {
  const light = (color) => {
    const [red, green, blue] = color.match(/[\\d.]+/g).slice(0, 3).map(Number).map((value) =>
      value <= 10 ? value / 255 / 12.92 : Math.pow((value / 255 + 0.055) / 1.055, 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const paper = light(getComputedStyle(document.querySelector(".picture")).backgroundColor);
  return [...document.querySelectorAll(".picture svg text")].filter((text) => {
    const ink = light(getComputedStyle(text).fill);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5;
  }).map((text) => text.textContent.trim());
})()
"""
READOUT = 'document.querySelector("figure .readout output").textContent'


def complaints(tab: Any) -> list[str]:
    """What a console would show of errors and warnings."""
    thrown = tab.told("Runtime.exceptionThrown")
    logged = [entry for entry in tab.told("Log.entryAdded") if entry["entry"]["level"] != "info"]
    printed = tab.told("Runtime.consoleAPICalled")
    return [json.dumps(entry)[:300] for entry in (*thrown, *logged, *printed)]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_silent_asks_for_nothing_and_stays_in_its_place(
    tab: Any, page: Page, name: str, keep_picture: Callable[[str, bytes], None]
) -> None:
    path = page(name)
    for width in WIDTHS:
        tab.open(path, width)
        assert complaints(tab) == []
        asked = {request["request"]["url"] for request in tab.told("Network.requestWillBeSent")}
        assert {url for url in asked if not url.startswith("data:")} == {path.as_uri()}
        assert tab.ask("document.documentElement.scrollWidth") <= width
        assert tab.ask(STICKING_OUT) == []
        keep_picture(f"{name}-{width}.png", tab.picture())


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_on_paper(
    tab: Any, page: Page, name: str, keep_picture: Callable[[str, bytes], None]
) -> None:
    tab.open(page(name), PAPER)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.ask("document.documentElement.scrollWidth") <= PAPER
    assert tab.ask(STICKING_OUT) == []
    assert tab.ask('getComputedStyle(document.querySelector(".readout")).display') == "none"
    paper = tab.call("Page.printToPDF", preferCSSPageSize=True)["data"]
    content = base64.b64decode(paper)
    assert content.startswith(b"%PDF")
    keep_picture(f"{name}.pdf", content)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_no_serious_violation(
    tab: Any, page: Page, axe: str, name: str, scheme: str, width: int
) -> None:
    tab.open(page(name), width, scheme)
    tab.ask(axe + "; 0")
    assert tab.ask(SERIOUS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["vanishing", "gated", "comparison", "training"])
def test_words_in_figures_can_be_read_in_both_schemes(
    tab: Any, page: Page, name: str, scheme: str
) -> None:
    tab.open(page(name), 1280, scheme)
    assert tab.ask('document.querySelectorAll(".picture svg text").length') > 5
    assert tab.ask(FAINT) == []
    tab.ask('document.querySelector(".picture svg text").style.fill = "#777f88"; 0')
    assert len(tab.ask(FAINT)) == 1


def test_axe_would_find_one(tab: Any, page: Page, axe: str) -> None:
    tab.open(page("vanishing"))
    tab.ask('document.documentElement.removeAttribute("lang"); 0')
    tab.ask(axe + "; 0")
    assert [words.partition(":")[0] for words in tab.ask(SERIOUS)] == ["html-has-lang"]


def middle_of(tab: Any, kind: str) -> tuple[float, float]:
    """Where the middle of a figure's axes is on the screen."""
    script = (
        "(() => { const holder = [...document.querySelectorAll('script.numbers-below')]"
        f".find((each) => JSON.parse(each.textContent).kind === '{kind}');"
        "const drawing = holder.parentElement.querySelector('.drawing svg, .drawing img');"
        "drawing.scrollIntoView({ block: 'center' });"
        "const box = drawing.getBoundingClientRect();"
        "const [left, top, right, bottom] = JSON.parse(holder.textContent).box;"
        "return [box.left + box.width * (left + right) / 2, box.top + box.height * "
        "(top + bottom) / 2]; })()"
    )
    x, y = tab.ask(script)
    return x, y


def test_the_decay_curve_tells_its_numbers_at_the_pointer(tab: Any, page: Page) -> None:
    """Half way across the axes of a run of 100 steps is lag 50 or a neighbor of it."""
    path = page("vanishing")
    tab.open(path)
    x, y = middle_of(tab, "lines")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    words = tab.ask(READOUT)
    lag = int(words.removeprefix("Lag ").partition(":")[0])
    assert abs(lag - 50) <= 2
    rows = (path.parent / "lag_profile.csv").read_text().splitlines()
    column = rows[0].split(",").index("log_norm_median")
    log_norm = next(
        float(row.split(",")[column]) for row in rows[1:] if row.split(",")[1] == str(lag)
    )
    expected = 10.0 ** round(log_norm / 2.302585092994046, 3)
    assert f"measured median {expected:.3g}" in words
    assert tab.ask('document.querySelector(".marker").hidden') is False


def test_the_decay_curve_tells_its_numbers_to_the_keyboard(tab: Any, page: Page) -> None:
    tab.open(page("vanishing"))
    tab.ask('document.querySelector("figure .readout input").focus()')
    for _ in range(2):
        for kind in ("keyDown", "keyUp"):
            key = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}
            tab.call("Input.dispatchKeyEvent", type=kind, **key)
    assert tab.ask(READOUT).startswith("Lag 3: measured median ")
    spoken = 'document.querySelector("figure .readout input").getAttribute("aria-valuetext")'
    assert tab.ask(spoken) == "lag 3"


@pytest.mark.parametrize(("name", "opening"), [("comparison", "Lag "), ("training", "Update ")])
def test_other_curves_tell_their_numbers_too(tab: Any, page: Page, name: str, opening: str) -> None:
    tab.open(page(name))
    x, y = middle_of(tab, "lines")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    words = tab.ask(READOUT)
    assert words.startswith(opening)
    middle = int(words.removeprefix(opening).partition(":")[0])
    assert middle == 30
    assert ("gru" if name == "comparison" else "norm of the gradient") in words


def test_the_map_tells_the_pair_at_the_pointer(tab: Any, page: Page) -> None:
    tab.open(page("vanishing"))
    x, y = middle_of(tab, "map")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 40, y=y)
    holder = '[...document.querySelectorAll(".readout output")].at(-1).textContent'
    words = tab.ask(holder)
    assert words.startswith("From t = ")
    t, k = (int(part.split()[0].rstrip("(")) for part in words.split("= ")[1:3])
    assert f"(lag {t - k})" in words
    assert 0 <= k < t <= 100


def test_one_recurrence_can_be_shown_at_a_time(tab: Any, page: Page) -> None:
    tab.open(page("gated"))
    shown = '[...document.querySelectorAll("section.recurrence")].filter((s) => !s.hidden).length'
    assert tab.ask(shown) == 2
    choose = (
        "(() => { const choice = document.querySelector('nav select'); choice.value = 'r1';"
        "choice.dispatchEvent(new Event('change')); })()"
    )
    tab.ask(choose)
    assert tab.ask(shown) == 1
    assert tab.ask('document.querySelector("#r0").hidden') is True
    tab.ask('document.querySelector("nav a").click()')
    assert tab.ask('document.querySelector("#r0").hidden') is False


def test_a_table_is_saved_from_the_page_as_it_lies_beside_it(tab: Any, page: Page) -> None:
    path = page("saturated")
    tab.open(path)
    script = """
    (async () => { const link = document.querySelector('a[download="lag_profile.csv"]');
      return decodeURIComponent(link.href.slice(link.href.indexOf(",") + 1)); })()
    """
    assert tab.ask(script) == (path.parent / "lag_profile.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("sign", ["<script>", "</script>", "<!--", "\u2028"])
def test_a_page_reads_without_scripts_too(tab: Any, page: Page, sign: str) -> None:
    """Everything but the numbers at the pointer is in the markup itself."""
    text = page("vanishing").read_text(encoding="utf-8")
    held = text.partition('class="numbers-below">')[2].partition("</script>")[0]
    assert held
    assert sign not in held
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page("vanishing"))
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.ask('document.querySelectorAll(".readout").length') == 0
    assert "What this means for training" in tab.ask("document.body.innerText")
