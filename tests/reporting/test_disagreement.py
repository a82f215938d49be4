"""Why the bound disagrees, in words: from closed forms whose causes are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import gradlab as gl
from gradlab_reports import write_report
from gradlab_reports.disagreement import bound_sentence
from gradlab_reports.run_folder import read_document


def profile(lag: int, median: float, gamma: float, onestep: float = math.nan) -> Any:
    import pandas as pd

    rows = {"lag": [1, lag], "log_norm_median": [0.0, median]}
    bounds = {"log_bound_gamma": [0.0, gamma], "log_bound_onestep": [0.0, onestep]}
    return pd.DataFrame({**rows, **bounds})


def said(frame: Any, slack: Mapping[str, float | str | None] | None = None) -> str:
    return bound_sentence({"slack": slack or {}}, frame).replace("\u00a0", " ")


def test_the_gap_is_told_with_its_causes_the_largest_first() -> None:
    gap = {"saturation": 2.0, "onestep": 8.0, "alignment": 30.0}
    words = said(profile(20, math.log(10.0) * -3, math.log(10.0) * -3 + 40.0), gap)
    step = math.exp((math.log(10.0) * -3 + 40.0) / 20)
    assert f"largest stretch that the weights allow, {step:.2f}, to the power of the lag" in words
    assert "at lag 20, where 0.00100 was measured" in words
    order = [words.index(part) for part in ("75 % alignment", "20 % one-step", "5 % saturation")]
    assert order == sorted(order)


def test_a_single_cause_is_the_reason_and_small_ones_are_left_out() -> None:
    gap = {"saturation": 0.001, "onestep": 0.0, "alignment": 30.0}
    words = said(profile(20, -10.0, 20.001), gap)
    assert "The reason is alignment" in words
    assert "saturation" not in words
    assert "one-step" not in words


@pytest.mark.parametrize("gap", [-1e-9, 0.0, 0.5])
def test_a_bound_that_is_nearly_reached_needs_no_reason(gap: float) -> None:
    words = said(profile(20, -2.0, -2.0 + gap), {"alignment": gap})
    assert words.endswith("was measured: here the two agree.")


def test_an_exact_zero_and_a_missing_bound() -> None:
    words = said(profile(20, -math.inf, 3.0), {"alignment": "inf"})
    assert words.endswith("where the measured norm is exactly 0.")
    assert said(profile(20, -2.0, math.nan)) == ""
    assert said(profile(20, math.nan, 3.0)) == ""


def test_a_gated_cell_has_no_single_norm_but_the_product_of_its_steps() -> None:
    words = said(profile(20, -20.0, math.nan, -10.0), {"alignment": None})
    assert words.startswith("No single norm bounds a step of this cell.")
    assert "4.54 × 10⁻⁵ at lag 20, where 2.06 × 10⁻⁹ was measured. The reason is align" in words


def test_the_page_says_it_in_its_verdict_in_every_format(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    source = gl.scenario("vanishing")
    dynamics = gl.analyze(source.cell, source.sequences.inputs[:30, :2], anchors="last")
    gl.save(dynamics, folder)
    write_report(folder, formats=("html", "md", "json"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    verdict = page.partition('class="verdict')[2].partition("</div>")[0]
    words = read_document(folder / "report.json")["sections"][0]["bound"]
    assert words.partition(" the weights allow")[0] in verdict
    assert "Bound and measurement:" in verdict
    assert words.partition(".")[0] in (folder / "report.md").read_text(encoding="utf-8")
    assert "% alignment" in words.replace("\u00a0", " ")
