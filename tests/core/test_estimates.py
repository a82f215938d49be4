"""What an analysis would take: counts are exact, and costs grow as the work does."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gradlab as gl
from gradlab import estimates
from gradlab.cells.base import Cell
from gradlab.records.estimate import AnalysisEstimate


@pytest.fixture(autouse=True)
def known_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of reference: nothing here depends on a clock."""
    monkeypatch.setattr(estimates, "machine_speed", lambda: 1.0)


def cell_of(kind: str, n: int) -> Cell:
    made: Any = {"rnn": gl.VanillaCell, "lstm": gl.LSTMCell, "gru": gl.GRUCell}[kind]
    cell: Cell = made.initialize(input_size=2, hidden_size=n, rng=np.random.default_rng(0))
    return cell


def estimated(
    kind: str = "rnn", n: int = 64, steps: int = 100, batch: int = 4, **settings: Any
) -> AnalysisEstimate:
    return gl.estimate(cell_of(kind, n), np.zeros((steps, batch, 2)), **settings)


def parts(estimate: AnalysisEstimate) -> dict[str, float]:
    (entry,) = estimate.recurrences
    return dict(entry.seconds)


@pytest.mark.parametrize("settings", [{}, {"anchors": 3}, {"max_pairs": 60}, {"max_lag": 4}])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_pairs_and_end_times_are_those_of_the_analysis(kind: str, settings: dict[str, Any]) -> None:
    cell, lengths = cell_of(kind, 5), np.array([9, 4])
    inputs = np.random.default_rng(0).standard_normal((9, 2, 2))
    measured = gl.analyze(cell, inputs, lengths=lengths, **settings).only().jacobians
    (entry,) = gl.estimate(cell, inputs, lengths=lengths, **settings).recurrences
    longest = measured.sequence == 0
    assert entry.pairs == len(measured.lag)
    assert entry.end_times == len(np.unique(measured.t[longest]))
    assert (entry.state_size, entry.steps) == (cell.state_size, 9)


@pytest.mark.parametrize(
    "grown",
    [
        [{"n": n} for n in (16, 32, 64, 100, 128, 256, 400)],
        [{"steps": steps} for steps in (10, 100, 300)],
        [{"batch": batch} for batch in (1, 4, 16)],
        [{"anchors": anchors} for anchors in (1, 10, "all")],
        [{"max_lag": lag} for lag in (1, 10, 99)],
    ],
    ids=lambda grown: next(iter(grown[0])),
)
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_more_work_takes_more_time(kind: str, grown: list[dict[str, Any]]) -> None:
    fixed = {"anchors": 5} | grown[0]
    seconds = [estimated(kind, **(fixed | settings)).seconds for settings in grown]
    assert all(less < more for less, more in pairwise(seconds))


def test_norms_and_bounds_are_proportional_to_the_sequences() -> None:
    few, many = (parts(estimated(batch=batch, anchors=5)) for batch in (4, 12))
    assert many["norms"] == pytest.approx(3.0 * few["norms"], rel=1e-12)
    assert many["exponents"] == pytest.approx(3.0 * few["exponents"], rel=1e-12)
    assert many["weights"] == few["weights"]
    assert few["bounds"] < many["bounds"] < 3.0 * few["bounds"]


def test_costs_grow_with_the_cube_beyond_the_sizes_that_were_measured() -> None:
    largest = estimates.SIZES[-1]
    once, twice = (parts(estimated(n=n, steps=5, anchors=1)) for n in (largest, 2 * largest))
    assert twice["norms"] == pytest.approx(8.0 * once["norms"], rel=1e-12)


def test_times_are_divided_by_the_speed_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = estimated()
    monkeypatch.setattr(estimates, "machine_speed", lambda: 4.0)
    assert estimated().seconds == pytest.approx(0.25 * slow.seconds, rel=1e-12)
    assert estimated().pairs == slow.pairs


def test_exponents_that_are_not_wanted_take_no_time() -> None:
    assert parts(estimated(exponents=0))["exponents"] == 0.0
    few, more = (parts(estimated(exponents=k))["exponents"] for k in (8, 16))
    assert more == pytest.approx(2.0 * few, rel=1e-12)


def test_figures_come_on_top_and_memory_holds_the_run() -> None:
    plain, drawn = estimated(), estimated(figures=True)
    assert drawn.seconds > plain.seconds
    assert drawn.bytes > plain.bytes > estimates.PROCESS_BYTES + 8 * 101 * 4 * 64


def test_every_end_time_by_halves_takes_less_time_than_some_one_by_one_and_memory_for_it() -> None:
    some, every = (estimated(steps=300, batch=1, anchors=anchors) for anchors in (149, "all"))
    assert parts(every)["norms"] < parts(some)["norms"]
    assert every.bytes - some.bytes > 8 * 300 * 64**2


def test_speed_is_measured_in_a_moment_and_positive() -> None:
    assert 0.0 < estimates.REFERENCE < 1.0
    for unit in {unit for _, unit in estimates.COSTS}:
        for family in ("scaled", "general"):
            assert len(estimates.COSTS[family, unit]) == len(estimates.SIZES)


def test_estimate_is_a_table_and_a_document() -> None:
    estimate = estimated()
    table = estimate.to_frame()
    assert list(table.columns) == ["recurrence", "measurement", "seconds"]
    document = estimate.to_summary()
    assert document["recurrences"][0]["seconds"] == parts(estimate)
    assert document["pairs"] == estimate.pairs
    assert table["seconds"].sum() < estimate.seconds
    assert "seconds" in estimate._repr_html_()


def test_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(gl.ShapeError):
        gl.estimate(cell_of("rnn", 4), np.zeros((5, 1, 3)))
