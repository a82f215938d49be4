"""``--estimate``: what a measurement would take, told in place of doing it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl

Run = Callable[..., Any]

SMALL = ("random", "--hidden-size", 8, "--input-size", 2, "--length", 20, "--batch", 2)


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **settings: Any) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr(gl, "analyze", refused)


@pytest.mark.parametrize("command", ["analyze", "report"])
def test_time_and_memory_are_told_and_nothing_is_written(
    gradlab: Run, tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "run"
    outcome = gradlab(command, *SMALL, "-o", folder, "--estimate", "--anchors", 3)
    assert (outcome.code, outcome.err) == (0, "")
    first, parts, time, memory = outcome.out.splitlines()
    assert first == "rnn: 82 pairs (t, k), at 3 end times of 20"
    assert parts.strip().startswith("norms ")
    assert time.startswith("about ")
    assert time.endswith(" on one core")
    assert memory.startswith("about ")
    assert memory.endswith(" MB of memory")
    assert not folder.exists()


def test_report_adds_what_it_draws(gradlab: Run) -> None:
    plain, drawn = (
        json.loads(gradlab(command, *SMALL, "--estimate", "--json").out)
        for command in ("analyze", "report")
    )
    assert plain["schema"] == 1
    assert plain["recurrences"][0]["pairs"] == plain["pairs"] == 420
    assert drawn["pairs"] == 420
    assert drawn["bytes"] > plain["bytes"]


def test_scenarios_and_files_have_estimates_too(gradlab: Run) -> None:
    assert gradlab("report", "vanishing", "--estimate").code == 0


def test_a_saved_run_needs_no_estimate(gradlab: Run, tmp_path: Path) -> None:
    outcome = gradlab("report", tmp_path, "--estimate")
    assert outcome.code == 2
    assert "--estimate" in outcome.error


def test_limit_of_pairs_belongs_to_auto(gradlab: Run) -> None:
    outcome = gradlab("analyze", *SMALL, "--estimate", "--anchors", 3, "--max-pairs", 10)
    assert outcome.code == 2
    assert "--max-pairs" in outcome.error
    few = gradlab("analyze", *SMALL, "--estimate", "--max-pairs", 100)
    assert few.out.startswith("rnn: 120 pairs (t, k), at 5 end times")
