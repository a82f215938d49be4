"""Numbers at the pointer: those of the table, thinned, and where the axes lie."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gradlab_reports.canvas import figure_of, rendered
from gradlab_reports.figures.decay import plot_decay
from gradlab_reports.figures.pairs import plot_pairs
from gradlab_reports.hover import MAX_CELLS, MAX_LAGS, hover_data
from gradlab_reports.html import in_script

LN10 = math.log(10.0)


def drawn(kind: str, frame: pd.DataFrame) -> tuple[Any, dict[str, Any]]:
    ax = plot_decay(frame) if kind == "decay" else plot_pairs(frame)
    rendered(figure_of(ax), "png", 30)
    return ax, json.loads(hover_data(kind, frame, ax))


def test_lines_are_log10_of_the_table_with_places_in_the_picture() -> None:
    lag = np.arange(1, 41)
    frame = pd.DataFrame(
        {"lag": lag, "log_norm_median": -LN10 * lag / 4, "log_bound_gamma": np.full(40, np.nan)}
    )
    frame.loc[39, "log_norm_median"] = -math.inf
    ax, told = drawn("decay", frame)
    assert told["lag"] == lag.tolist()
    assert [line["name"] for line in told["lines"]] == ["measured median"]  # no bound is known
    assert told["lines"][0]["log10"][:2] == [-0.25, -0.5]
    assert told["lines"][0]["log10"][-1] == "-inf"
    left, top, right, bottom = told["box"]
    width, height = figure_of(ax).canvas.get_width_height()
    x, y = ax.transAxes.transform((0.0, 1.0))
    assert (left, top) == pytest.approx((x / width, 1.0 - y / height), abs=1e-4)
    assert 0.0 < left < right < 1.0
    assert 0.0 < top < bottom < 1.0


def test_long_curves_and_large_maps_are_thinned() -> None:
    lag = np.arange(1, 5001)
    _, told = drawn("decay", pd.DataFrame({"lag": lag, "log_norm_median": -0.1 * lag}))
    assert len(told["lag"]) <= MAX_LAGS + 2
    assert (told["lag"][0], told["lag"][-1]) == (1, 5000)
    t, k = np.tril_indices(251, -1)
    frame = pd.DataFrame({"t": t, "k": k, "log_norm": -0.1 * LN10 * (t - k)})
    _, told = drawn("pairs", frame)
    assert len(told["log10"]) <= MAX_CELLS
    assert max(map(len, told["log10"])) <= MAX_CELLS
    for row, t in zip(told["log10"], told["t"], strict=True):
        expected = [round(-0.1 * (t - place * told["stride"]), 2) for place in range(len(row))]
        assert row == pytest.approx(expected, abs=0.011)


def test_figures_without_numbers_at_the_pointer_have_none() -> None:
    frame = pd.DataFrame({"lag": [1, 2], "log_norm_median": [-1.0, -2.0]})
    assert hover_data("ladder", frame, plot_decay(frame)) == ""


@pytest.mark.parametrize("words", ["</script>", "<!--", "<script>", "\u2028", "&lt;"])
def test_json_inside_a_script_stays_json_and_ends_no_element(words: str) -> None:
    held = str(in_script(json.dumps({"name": words}, ensure_ascii=False)))
    assert not set(held) & set("<>&\u2028\u2029")
    assert json.loads(held) == {"name": words}
