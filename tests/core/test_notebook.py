"""Records in notebooks: a small table of escaped words."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab.records.notebook import rows_html, summary_html

NAME = "<script>alert(1)</script>&"


class Cells(HTMLParser):
    """Tags that are not a table's, and the words of the cells."""

    TABLE = ("table", "caption", "thead", "tbody", "tr", "th", "td")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.others: list[str] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.TABLE:
            self.others.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def dynamics() -> gl.GradientDynamics:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=8, gain=0.9, rng=rng)
    recurrence = gl.Recurrence(name=NAME, cell=cell)
    return gl.analyze(gl.Network([recurrence]), rng.normal(size=(30, 2, 2)))


def test_a_run_is_a_row_a_recurrence_whatever_its_name(dynamics: gl.GradientDynamics) -> None:
    found = Cells(dynamics._repr_html_())
    entry = dynamics.only()
    assert found.others == []
    assert NAME in found.words
    assert {entry.regime.name, f"{entry.regime.rate:.6g}"} <= set(found.words)


def test_main_records_tell_their_numbers(dynamics: gl.GradientDynamics) -> None:
    entry = dynamics.only()
    assert entry.lyapunov is not None
    assert entry.outlook is not None
    told: dict[str, Any] = {
        f"{entry.regime.rate:.6g}": entry.regime,
        str(entry.horizon.lag_1pct or "undefined"): entry.horizon,
        f"{entry.lyapunov.leading:.6g}": entry.lyapunov,
        f"{entry.outlook.rate:.6g}": entry.outlook,
        str(len(entry.jacobians.lag)): entry.jacobians,
        f"{entry.ladder.slack()['alignment']:.6g}": entry.ladder,
        "sigma_max.rate": entry.certificates,
        f"{entry.saturation.mean_derivative:.6g}": entry,
    }
    for words, record in told.items():
        found = Cells(record._repr_html_())
        assert found.others == []
        assert words in found.words
        assert type(record).__name__ in found.words


def test_every_word_is_escaped_and_long_lists_are_cut() -> None:
    html = rows_html(NAME, (NAME,), [(NAME, [NAME] * 20, None)])
    found = Cells(html)
    assert found.others == []
    assert html.count("&lt;script&gt;") == 3 + 12
    assert "undefined" in found.words
    assert "…" in html
    nested = summary_html(found, {"a": {"b": float("-inf")}})
    assert Cells(nested).words[-2:] == ["a.b", "-inf"]
