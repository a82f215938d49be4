"""Records in notebooks: a small table of escaped words."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab import records
from gradlab.records.notebook import rows_html, summary_html
from gradlab.records.training import COLUMNS, TrainingLog

PATH = records.__path__
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
        f"{entry.spectrum.gamma_w:.6g}": entry.spectrum,
        f"{entry.saturation.gates['tanh'].low_share:.6g}": entry.saturation,
        dynamics.provenance.sha256_weights: dynamics.provenance,
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
    assert Cells(summary_html(found, {"a": float("nan")})).words[-2:] == ["a", "undefined"]


def test_every_public_record_that_makes_a_table_of_numbers_has_one_for_notebooks() -> None:
    """Whoever adds a record is told; parts of other records, seldom shown alone, are named."""
    parts = {"CarryGate", "ComparedRecurrence", "SlopeLaw"}
    rooms = [import_module(f"gradlab.records.{each.name}") for each in iter_modules(PATH)]
    records = {
        kind
        for room in rooms
        for kind in vars(room).values()
        if isinstance(kind, type) and kind.__module__ == room.__name__
        if hasattr(kind, "to_frame") or hasattr(kind, "to_summary")
    }
    assert len(records) > 20
    assert {kind.__name__ for kind in records if not hasattr(kind, "_repr_html_")} == parts


def test_a_network_and_a_comparison_show_hostile_names_as_words() -> None:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=4, rng=rng)
    network = gl.Network([gl.Recurrence(name=NAME, cell=cell)])
    compared = gl.compare_cells(
        {NAME: cell, "b": cell}, rng.normal(size=(20, 2, 2)), description="none", seed=0
    )
    for record in (network, compared):
        found = Cells(record._repr_html_())
        assert found.others == []
        assert NAME in found.words
    assert {"2", "4", "forward"} <= set(Cells(network._repr_html_()).words)
    rate = compared.recurrences[0].dynamics.regime.rate
    assert Cells(compared._repr_html_()).words.count(f"{rate:.6g}") == 2


def test_runs_gradients_and_sequences_tell_their_sizes() -> None:
    rng = np.random.default_rng(0)
    cell = gl.VanillaCell.initialize(input_size=2, hidden_size=4, rng=rng)
    inputs = rng.normal(size=(5, 3, 2))
    trajectory = gl.rollout(cell, inputs, lengths=np.array([5, 4, 2]))
    assert "11" in Cells(trajectory._repr_html_()).words
    readout = gl.Readout(W_hy=rng.normal(size=(2, 4)), b_y=np.zeros(2), loss="squared_error")
    _, gradients = gl.bptt(cell, readout, inputs, np.zeros((5, 3, 2)))
    words = Cells(gradients._repr_html_()).words
    norm = np.sqrt((gradients["W_hh"] ** 2).sum())
    assert {"W_hh", "4 × 4", f"{norm:.6g}"} <= set(words)
    sequences = gl.Sequences(inputs=inputs, lengths=np.array([5, 4, 2]), description=NAME)
    assert NAME in Cells(sequences._repr_html_()).words


def test_a_verification_a_sweep_and_a_training_log_show_their_rows() -> None:
    check = gl.Check(
        name=NAME, group="g", computed=1.5, expected=2.5, tolerance=0.25, passed=False, source="s"
    )
    told = Cells(gl.Verification(checks=(check,))._repr_html_()).words
    assert {NAME, "1.5", "2.5", "0.25", "False", "s"} <= set(told)
    swept = gl.sweep(gl.grid(gamma=[0.5, 0.6], seed=[0]), hidden_size=4, length=12)
    words = Cells(swept._repr_html_()).words
    assert words[words.index("points") + 1] == "2"
    assert words[words.index("regimes.vanishing") + 1] == "2"
    rows = [
        {name: "vanishing" if name == "regime" else float(step) for name in COLUMNS}
        for step in range(30)
    ]
    told = Cells(TrainingLog.of(rows)._repr_html_()).words
    assert told.count("vanishing") == 10
    assert {"0", "29", "21"} <= set(told)
    assert "20" not in told
