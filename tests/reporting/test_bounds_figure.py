"""The figure of the bounds: the measured norm between dashed upper and dotted lower curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import gradlab as gl
from gradlab_reports.figures.bounds import finding, plot_bounds
from gradlab_reports.rung_styles import LOWER, UPPER
from gradlab_reports.rungs import RUNGS
from gradlab_reports.tables import ladder_table

LN10 = math.log(10.0)
KIND = {"exact": "exact"} | dict.fromkeys(LOWER, "lower")


def ladder(steps: int = 10, **rates: float) -> pd.DataFrame:
    """Curves of constant rates, in nats a step."""
    lags = np.arange(1, steps + 1)
    parts = [
        pd.DataFrame(
            {"rung": rung, "kind": KIND.get(rung, "upper"), "lag": lags, "log_bound": rate * lags}
        )
        for rung, rate in rates.items()
    ]
    return pd.concat(parts, ignore_index=True)


def lines(ax: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line for line in ax.get_lines()}


def words(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


def test_curves_stand_where_the_ladder_says() -> None:
    ax = plot_bounds(ladder(onestep=0.5, exact=-0.1, radius=-0.2))
    for rung, rate in {"onestep": 0.5, "exact": -0.1, "radius": -0.2}.items():
        np.testing.assert_allclose(lines(ax)[rung].get_ydata(), rate / LN10 * np.arange(1, 11))


def test_measured_is_solid_and_bounds_are_not() -> None:
    drawn = lines(plot_bounds(ladder(onestep=0.5, exact=-0.1, radius=-0.2)))
    assert drawn["exact"].get_linestyle() == "-"
    assert drawn["onestep"].get_linestyle() == "--"
    assert drawn["radius"].get_linestyle() == "--"  # matplotlib's word for any dashes
    shortest = {rung: style.dashes[0] for rung, style in LOWER.items()}
    assert max(shortest.values()) == 1  # dots
    assert min(style.dashes[0] for style in UPPER.values()) >= 3  # dashes


def test_every_curve_is_named_as_upper_or_lower_bound() -> None:
    for rung, style in UPPER.items():
        assert style.label.startswith("upper: "), rung
    for rung, style in LOWER.items():
        assert style.label.startswith("lower: "), rung
    assert set(UPPER) | set(LOWER) | {"exact", "saturation_max"} == set(RUNGS)


def test_curves_that_leave_the_axes_say_where_they_go() -> None:
    ax = plot_bounds(ladder(40, gamma=3.0, exact=-0.1, sigma_min=-9.0))
    low, high = ax.get_ylim()
    assert high < 3.0 * 40 / LN10
    assert low > -9.0 * 40 / LN10
    assert "↑ to 1.3\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁵²" in words(ax)
    assert "↓ to" in words(ax)


def test_exact_zeros_are_said_in_words() -> None:
    frame = ladder(exact=0.0, onestep=0.0, determinant=-1.0)
    frame.loc[frame["rung"] == "determinant", "log_bound"] = -math.inf
    frame.loc[(frame["rung"] == "exact") & (frame["lag"] >= 6), "log_bound"] = -math.inf
    ax = plot_bounds(frame)
    assert "measured norm exactly 0 from lag 6 on" in words(ax)
    assert "↓ to exactly 0" in words(ax)
    assert "determinant" not in lines(ax)


def test_sparsely_measured_lags_make_a_curve() -> None:
    frame = ladder(exact=-0.1, radius=-0.2)
    frame.loc[(frame["rung"] == "radius") & (frame["lag"] % 5 != 0), "log_bound"] = math.nan
    np.testing.assert_array_equal(lines(plot_bounds(frame))["radius"].get_xdata(), [5, 10])


def test_the_finding_names_the_tightest_bounds_of_both_kinds() -> None:
    said = finding(ladder(gamma=1.0, blocks=0.1, exact=-0.1, radius=-0.2, sigma_min=-1.0))
    assert said == (
        "At lag 10 the measured norm is 0.368, proven to be at most 2.72 (blocks of steps) and at "
        "least 0.135 (ρ(P): largest eigenvalue of the product)."
    )
    assert finding(ladder(exact=-0.1)) == "At lag 10 the measured norm is 0.368."


def test_gated_rungs_are_tabled_in_words_without_a_slack_that_is_not_proven() -> None:
    rng = np.random.default_rng(0)
    cell = gl.LSTMCell.initialize(input_size=1, hidden_size=3, rng=rng)
    frame = gl.bound_ladder(cell, gl.rollout(cell, rng.standard_normal((8, 1, 1)))).to_frame()
    table = ladder_table(frame)
    assert table is not None
    assert [row[0] for row in table.rows] == [
        RUNGS[rung].words for rung in (
            "lstm_weights", "lstm_gates", "lstm_data", "onestep", "blocks", "exact",
            "radius", "determinant", "sigma_min",
        )
    ]  # fmt: skip
    slack = {row[0]: row[4] for row in table.rows}
    assert slack[RUNGS["lstm_data"].words] == ""  # Π‖J‖ may lie above it
    assert slack[RUNGS["lstm_weights"].words] != ""
    kinds = [row[1] for row in table.rows]
    assert kinds == ["upper bound"] * 5 + ["measured"] + ["lower bound"] * 3
    assert "No bound is a measurement" in table.note


def test_the_table_says_what_a_block_is_and_why_a_rung_is_missing() -> None:
    facts = {"block": 4, "absent": {"gamma": "no matrix", "other": "no proof"}}
    table = ladder_table(ladder(exact=-0.1, blocks=0.1), facts)
    assert table is not None
    assert "Blocks are of 4 steps." in table.note
    assert "Not here: (γ_a γ_w)^l: weights alone; no matrix." in table.note
    assert "Not here: other; no proof." in table.note
