"""What a sweep found, in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gradlab as gl
from gradlab_reports import write_sweep_words
from gradlab_reports.sweep_words import models_text, sweep_text

WriteRun = Callable[..., Path]


def curve(**other: Any) -> dict[str, Any]:
    return {
        "parameters": {"hidden_size": 64},
        "levels": 15,
        "points": 60,
        "left_out": 0,
        "gamma_w_first": 0.5,
        "gamma_w_last": 4.0,
        "zero_gamma": 3.04,
        "zero_gamma_low": 3.0,
        "zero_gamma_high": 3.08,
        "mean_field_gamma": 2.92,
        "bound_gamma": 1.0,
        "slope": 0.75,
        "slope_low": 0.74,
        "slope_high": 0.76,
        "mean_field_difference": -0.02,
        "mean_field_inside": 0.9,
        **other,
    }


def told(*curves: dict[str, Any]) -> str:
    return sweep_text({"scale": "gamma", "confidence": 0.95, "curves": list(curves)})


def test_crossing_is_told_with_interval_theory_and_bound() -> None:
    text = told(curve())
    assert "crosses zero at γ_w = 3.04 (95\u00a0% interval 3.00 to 3.08)" in text
    assert "vanishes below γ_w = 1.00" in text
    assert "expects the crossing at 2.92" in text
    assert "0.020 nats per step below it on average, 90\u00a0% of the means" in text
    assert "rises by 0.750 (95\u00a0% interval 0.740 to 0.760)" in text


def test_rates_that_stay_negative_above_the_bound_are_said_to() -> None:
    text = told(curve(zero_gamma="inf", zero_gamma_low="inf", zero_gamma_high="inf"))
    assert "below zero throughout" in text
    assert "although the bound allows growth from γ_w = 1.00 on" in text
    below = told(curve(zero_gamma="inf", gamma_w_last=0.9))
    assert "although" not in below


def test_rates_that_are_never_negative_are_said_to_be() -> None:
    assert "nowhere below zero" in told(curve(zero_gamma=0.0))


def test_what_is_not_known_is_not_told() -> None:
    unknown = dict.fromkeys(
        "zero_gamma_low zero_gamma_high mean_field_gamma slope_low slope_high "
        "mean_field_difference mean_field_inside".split()
    )
    text = told(curve(**unknown))
    assert "interval" not in text
    assert "undefined" not in text
    assert "Mean-field" not in text


def test_interval_that_ends_beyond_the_levels_says_so() -> None:
    assert "2.90 to beyond all levels" in told(curve(zero_gamma_low=2.9, zero_gamma_high="inf"))


def test_curves_are_told_apart_by_what_differs_and_not_all_at_length() -> None:
    text = told(*(curve(parameters={"hidden_size": n, "activation": "tanh"}) for n in range(11)))
    assert text.startswith("hidden_size 0: of 60 networks")
    assert "activation" not in text
    assert text.endswith("3 more curves are in sweep_analysis.json.")


@pytest.mark.parametrize(("scale", "words"), [("", "No spectral norm"), ("gain", "No network")])
def test_sweep_without_a_curve_says_why(scale: str, words: str) -> None:
    assert sweep_text({"scale": scale, "curves": []}).startswith(words)


def test_way_over_model_files_is_told_for_each_recurrence() -> None:
    rows = [
        {"model": f"run/{epoch}.pt", "recurrence": name, "rate": rate, "horizon_1pct": lag}
        for name, told in (("a", [(-0.5, 9.0), (-0.7, 6.0), (-0.1, math.nan)]), ("b", [(-0.25, 7)]))
        for epoch, (rate, lag) in enumerate(told)
    ]
    rows.append(
        {"model": "run/9.pt", "recurrence": "b", "rate": math.nan, "horizon_1pct": math.nan}
    )
    first, second = models_text(pd.DataFrame(rows)).split("\n\n")
    assert first.startswith("recurrence a: over 3 model files from 0.pt to 2.pt")
    assert "from −0.500 to −0.100 nats per step (lowest −0.700, highest −0.100)" in first
    assert first.endswith("stays below 1 % from 9 to beyond the run.")
    assert second.endswith("from 7 to 7. 1 file could not be measured.")


def test_page_holds_the_words_and_the_figures_that_are_there(write_sweep: WriteRun) -> None:
    folder = write_sweep("sweep", [0.5, 1.0, 2.0])
    gl.save_sweep_analysis(gl.analyze_sweep(folder), folder)
    (folder / "figures").mkdir()
    (folder / "figures" / "rate.png").write_bytes(b"")
    text = write_sweep_words(folder)
    page = (folder / "sweep.md").read_text(encoding="utf-8")
    assert text in page
    assert "figures/rate.png" in page
    assert "decay-by-gamma" not in page
    # The rates of this folder are ln gamma - 0.11 on average.
    zero = math.exp(math.log(1.0) + math.log(2.0) * 0.11 / math.log(2.0))
    assert f"γ_w = {zero:.2f} " in text


def test_folder_without_an_analysis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(gl.RunFolderError, match="sweep_analysis"):
        write_sweep_words(tmp_path)
