"""The comparison: every curve in its place, and words that claim no more than the numbers."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from numpy.typing import NDArray

import gradlab as gl
from gradlab_reports import comparison as words
from gradlab_reports import write_comparison, write_figure
from gradlab_reports.canvas import figure_of, rendered
from gradlab_reports.catalog import COMPARISON
from gradlab_reports.figures.compare import finding, plot_compare, value_range
from gradlab_reports.loading import load_frame
from gradlab_reports.style import CURVES

WriteRun = Callable[..., Path]
LN10 = math.log(10.0)


def curve(ax: Axes, label: str) -> Line2D:
    return next(line for line in ax.lines if line.get_label() == label)


def lags(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_xdata(), dtype=np.float64)


def heights(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_ydata(), dtype=np.float64)


def text(ax: Axes) -> str:
    return "\n".join(entry.get_text() for entry in ax.texts)


def frame_of(folder: Path) -> pd.DataFrame:
    return load_frame(folder, COMPARISON)


def document_of(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture
def eight(write_compared: WriteRun, decay: Any) -> Path:
    """As many curves as one figure shows, most of them at nearly one place."""
    decays = [decay(name=f"net {i}", rate=-0.1 - 1e-5 * i, spread=0.05) for i in range(8)]
    return write_compared("eight", *decays)


@pytest.mark.parametrize("decades", [-400.0, 308.5, 7000.0])
def test_curves_are_right_where_their_norms_are_no_floats(
    write_compared: WriteRun, decay: Any, decades: float
) -> None:
    rates = {"far": decades * LN10 / 60, "near": -0.1}
    folder = write_compared("c", *(decay(name=n, rate=r) for n, r in rates.items()))
    ax = plot_compare(frame_of(folder))
    for label, rate in rates.items():
        line = curve(ax, label)
        np.testing.assert_allclose(heights(line), rate / LN10 * np.arange(1, 61), rtol=1e-12)


def test_curves_differ_in_color_and_in_marker_and_are_solid(eight: Path) -> None:
    ax = plot_compare(frame_of(eight))
    lines = [curve(ax, f"net {i}") for i in range(8)]
    assert len({str(line.get_color()) for line in lines}) == 8
    assert len({str(line.get_marker()) for line in lines}) == 8
    assert {line.get_linestyle() for line in lines} == {"-"}


def test_markers_of_two_curves_stand_at_different_lags(
    write_compared: WriteRun, decay: Any
) -> None:
    """Curves that lie over each other still show both markers, but for their common end."""
    folder = write_compared("c", decay(name="a"), decay(name="b"))
    ax = plot_compare(frame_of(folder))
    marked = []
    for label in "ab":
        line = curve(ax, label)
        every = line.get_markevery()
        assert isinstance(every, list)
        marked.append({float(lags(line)[i]) for i in every})
    assert marked[0] & marked[1] == {60.0}
    assert min(map(len, marked)) > 8


def test_labels_stand_beside_the_ends_without_overlap_and_inside_the_figure(eight: Path) -> None:
    ax = plot_compare(frame_of(eight))
    figure = figure_of(ax)
    rendered(figure, "png", dpi=100)
    boxes = [Text.get_window_extent(entry) for entry in ax.texts]
    assert len(boxes) == 8
    for first, second in itertools.combinations(boxes, 2):
        assert not first.padded(-1.0).overlaps(second.padded(-1.0))
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    for index, style in enumerate(CURVES):
        assert f"{style.glyph} net {index}" in text(ax)


def test_a_label_is_taken_literally_and_cut_where_it_is_long(
    write_compared: WriteRun, decay: Any
) -> None:
    names = (r"$\frac{1$", "runs/" + "x" * 60)
    ax = plot_compare(frame_of(write_compared("c", *(decay(name=name) for name in names))))
    rendered(figure_of(ax), "png")
    assert names[0] in text(ax)
    assert "…" in text(ax)
    assert names[1] not in text(ax)


def test_a_short_run_ends_where_it_ends_and_its_label_points_there(
    write_compared: WriteRun, decay: Any
) -> None:
    folder = write_compared("c", decay(name="long"), decay(name="short"), lengths=[60, 15])
    ax = plot_compare(frame_of(folder))
    assert lags(curve(ax, "short")).max() == 15
    ends = [entry for entry in ax.texts if isinstance(entry, Annotation)]
    places = {entry.get_text()[2:]: entry.xy[0] for entry in ends}
    assert places == {"long": 1.0, "short": pytest.approx(15 / 60)}


def test_an_exact_zero_is_marked_where_it_begins(write_compared: WriteRun, decay: Any) -> None:
    folder = write_compared("c", decay(name="zero", zero_from=6), decay(name="other"))
    ax = plot_compare(frame_of(folder))
    assert "zero:\nexactly 0 from lag 6" in text(ax)
    assert lags(curve(ax, "zero")).max() == 5
    marks = [line for line in ax.lines if line.get_marker() == "v"]
    places = [(*lags(mark), *heights(mark)) for mark in marks]
    assert places == [(6.0, ax.get_ylim()[0])]


def test_a_curve_without_any_finite_norm_is_drawn(write_compared: WriteRun, decay: Any) -> None:
    folder = write_compared("c", decay(name="zero", zero_from=1), decay(name="other"))
    ax = plot_compare(frame_of(folder))
    assert "exactly 0 from lag 1" in text(ax)
    rendered(figure_of(ax), "svg")


def test_all_medians_lie_within_the_axes_and_the_level_of_an_unchanged_gradient_too(
    write_compared: WriteRun, decay: Any
) -> None:
    folder = write_compared("c", decay(name="a", rate=0.4, spread=9.0), decay(name="b", rate=-2.0))
    frame = frame_of(folder)
    low, high = value_range(frame)
    assert (frame["log_norm_median"] / LN10).between(low, high).all()
    assert low < 0.0 < high
    assert high < 3 * 0.4 * 60 / LN10 + 60  # a band of e^70 does not press the medians flat


def test_more_curves_than_can_be_told_apart_are_refused(
    write_compared: WriteRun, decay: Any
) -> None:
    folder = write_compared("c", *(decay(name=f"n{i}") for i in range(9)))
    with pytest.raises(ValueError, match="9 labels: expected at most 8"):
        plot_compare(frame_of(folder))


def test_figure_says_in_words_what_is_left_at_the_common_lag(
    write_compared: WriteRun, decay: Any
) -> None:
    folder = write_compared("c", decay(name="a", rate=-0.1), decay(name="b", rate=-0.2))
    assert finding(frame_of(folder)) == (
        "At lag 60 the measured median norm is 0.00248 (a), 6.14\u00a0×\u00a010⁻⁶ (b)."
    )


def test_one_figure_can_be_drawn_again_from_the_folder(
    write_compared: WriteRun, decay: Any, tmp_path: Path
) -> None:
    folder = write_compared("c", decay(name="001"), decay(name="002"))
    assert write_figure(folder, "compare", tmp_path / "again.svg").stat().st_size > 1000
    assert list(dict.fromkeys(frame_of(folder)["label"])) == ["001", "002"]


class TestWords:
    def test_sentence_ranks_the_rates_and_names_the_one_that_stands_out(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        decays = (decay(name="rnn", rate=-0.5), decay(name="lstm", rate=-0.1))
        sentence = words.finding(document_of(write_compared("c", *decays)))
        assert sentence == (
            "Each step back in time multiplies the gradient by 0.905 in lstm (vanishing) and 0.607 "
            "in rnn (vanishing): it reaches furthest in lstm."
        )

    def test_overlapping_intervals_name_no_winner(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        """Rates 0.003 apart with intervals of ± 0.004."""
        decays = (decay(name="a", rate=-0.100), decay(name="b", rate=-0.103))
        sentence = words.finding(document_of(write_compared("c", *decays)))
        assert sentence.endswith("; the intervals of a and b overlap.")
        assert "furthest" not in sentence

    def test_an_exploding_gradient_is_not_called_far_reaching(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        decays = (decay(name="a", rate=-0.1), decay(name="b", rate=0.3, regime="exploding"))
        sentence = words.finding(document_of(write_compared("c", *decays)))
        assert sentence.endswith("1.35 in b (exploding) and 0.905 in a (vanishing): it grows "
                                 "fastest in b.")  # fmt: skip

    def test_an_exact_zero_comes_last(self, write_compared: WriteRun, decay: Any) -> None:
        decays = (decay(name="zero", zero_from=3), decay(name="b", rate=-0.1))
        sentence = words.finding(document_of(write_compared("c", *decays)))
        assert "0.905 in b (vanishing) and 0 in zero (vanishing)" in sentence

    def test_other_sequences_are_a_reservation(self, write_compared: WriteRun, decay: Any) -> None:
        pair = (decay(name="a"), decay(name="b"))
        same = document_of(write_compared("same", *pair))
        other = document_of(write_compared("other", *pair, same_inputs=False))
        assert not any("different sequences" in remark for remark in words.remarks(same))
        assert any("different sequences" in remark for remark in words.remarks(other))
        assert "SHA-256 of the inputs" in [row[0] for row in words.differences_table(other).rows]
        assert "SHA-256 of the inputs" not in [row[0] for row in words.differences_table(same).rows]

    def test_table_tells_measured_lags_and_brackets_predicted_ones(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        """ln 2 / 0.05 = 13.9 is measured in 60 lags, ln 100 / 0.05 = 92.1 is not."""
        decays = (decay(name="a", rate=-0.05), decay(name="b", rate=0.01, regime="undecided"))
        first, second = words.verdicts_table(document_of(write_compared("c", *decays))).rows
        assert first[7:9] == ("14", "(93)")
        assert second[7:9] == ("never", "never")
        assert first[5:7] == ("× 0.951", "0.947 to 0.955")
        assert first[9] == "0.0498"

    def test_what_differs_is_listed_beside_where_the_weights_came_from(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        folder = write_compared("c", decay(name="a"), decay(name="bb"), lengths=[60, 40])
        table = words.differences_table(document_of(folder))
        assert table.header == ("setting", "a", "bb")
        assert table.rows[:3] == [
            ("seed", "1", "2"),
            ("sequences: length max", "60", "40"),
            ("weights from", "a.pt", "bb.pt"),
        ]

    def test_others_are_set_against_the_first(self, write_compared: WriteRun, decay: Any) -> None:
        """ln 100/0.1 and ln 100/0.2 are lags 47 and 24; intervals are ± 0.004 wide."""
        decays = (
            decay(name="a", rate=-0.1),
            decay(name="b", rate=-0.2),
            decay(name="c", rate=-0.105),
            decay(name="zero", zero_from=3),
        )
        table = words.relative_table(document_of(write_compared("c", *decays)))
        assert table.title == "Against a"
        b, c, zero = table.rows
        assert b == ("b", "× 0.905", "told apart", "× 0.00248", "23 steps less far")
        assert c[2] == "overlap"
        assert zero[1:4] == ("× 0", "told apart", "× 0")

    def test_equal_weights_are_named(self, write_compared: WriteRun, decay: Any) -> None:
        """The hash of these folders is made from the length of the label."""
        decays = (decay(name="aa"), decay(name="b"), decay(name="cc"))
        said = words.remarks(document_of(write_compared("c", *decays)))
        assert [each for each in said if "same weights" in each] == [
            "aa and cc have the same weights, by their hash."
        ]

    def test_two_layers_of_one_network_are_not_told_to_be_equal(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        """The hash is that of the whole network."""
        document = document_of(write_compared("c", decay(name="aa"), decay(name="cc")))
        document["recurrences"][1]["recurrence"] = "rnn.l1"
        assert not any("same weights" in each for each in words.remarks(document))

    def test_settings_are_spelled_for_people(self, write_compared: WriteRun, decay: Any) -> None:
        document = document_of(write_compared("c", decay(name="a"), decay(name="bb")))
        document["differing"] = ["sequences.synthetic", "objective"]
        chosen = {"loss": "cross_entropy", "at": None}
        for entry, value in zip(document["recurrences"], (True, False), strict=True):
            entry["differing"] = {
                "sequences.synthetic": value,
                "objective": chosen if value else None,
            }
        assert words.differences_table(document).rows[:2] == [
            ("sequences: synthetic", "yes", "no"),
            ("objective", "loss cross_entropy, at none", "none"),
        ]

    def test_gates_are_listed_without_their_stack(self, write_compared: WriteRun) -> None:
        gates = {
            "f": {"sigma_max": 1.5, "spectral_radius": 1.0, "half_life_median": 2.25,
                  "half_life_min": 2.0, "half_life_max": "inf"},
            "g": {"sigma_max": 1.25, "spectral_radius": 1.0},
            "stack": {"sigma_max": 9.0, "spectral_radius": None, "note": "not a bound"},
        }  # fmt: skip
        entry = {"label": "lstm", "gamma_w": None, "spectral_radius": None, "gates": gates}
        [row] = words.weights_table({"recurrences": [entry | {"saturated_share": 0.5}]}).rows
        assert row == ("lstm", "f 1.50, g 1.25", "–", "50\u00a0%", "f 2.25 (2.00 to ∞)")

    def test_assumptions_name_those_they_were_made_for(self) -> None:
        entries = [
            {"label": "a", "assumptions": ["all agree", "tanh assumed"]},
            {"label": "b", "assumptions": ["all agree"]},
        ]
        assert words.assumptions({"recurrences": entries}) == ["all agree", "a: tanh assumed"]


class TestPage:
    @pytest.fixture
    def page(self, write_compared: WriteRun, decay: Any) -> Path:
        names = ("<b>runs/a</b>", "runs/b & co")
        decays = [decay(name=name, rate=-0.1 * (i + 1)) for i, name in enumerate(names)]
        return write_comparison(write_compared("c", *decays))

    def test_page_is_one_file_with_the_sentence_the_figure_and_the_tables(self, page: Path) -> None:
        content = page.read_text(encoding="utf-8")
        assert page.name == "compare.html"
        assert "it reaches furthest in" in content
        assert content.count("<svg") == 1
        assert [title for title in re.findall(r"<caption>(.*?)</caption>", content)] == [
            "Side by side",
            "Against &lt;b&gt;runs/a&lt;/b&gt;",
            "Weights and gates",
            "What differs",
        ]
        assert "How to read it" in content
        assert not re.search(r"(?:src|href)=\"(?!data:|#)", content)
        assert len(content.encode()) < 2_000_000

    def test_numbers_of_every_curve_are_told_at_the_pointer(self, page: Path) -> None:
        content = page.read_text(encoding="utf-8")
        held = content.partition('class="numbers-below">')[2].partition("</script>")[0]
        told = json.loads(held)
        assert told["lag"] == list(range(1, 61))
        assert [line["name"] for line in told["lines"]] == ["<b>runs/a</b>", "runs/b & co"]
        assert told["lines"][1]["log10"][9] == round(-0.2 * 10 / LN10, 3)

    def test_the_tables_can_be_saved_from_the_page(self, page: Path) -> None:
        content = page.read_text(encoding="utf-8")
        assert re.findall(r'download="([^"]+)"', content) == ["compare.json", "compare.csv"]

    def test_other_formats_say_the_same(self, write_compared: WriteRun, decay: Any) -> None:
        folder = write_compared("c", decay(name="a"), decay(name="<b>", rate=-0.2))
        before = (folder / "compare.json").read_bytes()
        assert write_comparison(folder, formats=("md", "json")) == folder / "compare.md"
        text = (folder / "compare.md").read_text(encoding="utf-8")
        told = json.loads((folder / "compare.page.json").read_text(encoding="utf-8"))
        assert told["sentence"].partition(" in a")[0] in text
        assert "![At lag 60" in text
        assert "&lt;b&gt;" in text
        assert told["title"] == "a and <b>"
        assert [table["title"] for table in told["tables"]][1] == "Against a"
        assert (folder / "compare.json").read_bytes() == before
        with pytest.raises(gl.UnknownNameError, match="format of a page"):
            write_comparison(folder, formats=("pdf",))

    def test_names_of_other_people_stay_words(self, page: Path) -> None:
        content = page.read_text(encoding="utf-8")
        assert "<b>" not in content
        assert "&lt;b&gt;runs/a&lt;/b&gt;" in content

    def test_both_pictures_lie_beside_the_page(self, page: Path) -> None:
        names = {path.name for path in (page.parent / "figures").iterdir()}
        assert names == {"compare.png", "compare.svg"}

    def test_equal_folders_give_equal_pages(self, page: Path) -> None:
        before = page.read_bytes()
        assert write_comparison(page.parent).read_bytes() == before

    def test_a_figure_that_fails_leaves_the_words(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        folder = write_compared("c", decay(name="a"), decay(name="b", rate=-0.2))
        (folder / "compare.csv").write_text("label,lag\n", encoding="utf-8")
        content = write_comparison(folder).read_text(encoding="utf-8")
        assert "could not be drawn" in content
        assert "it reaches furthest in a" in content
        assert list((folder / "figures").iterdir()) == []

    def test_a_folder_of_another_kind_is_refused(self, write_run: WriteRun) -> None:
        with pytest.raises(gl.RunFolderError, match=r"compare\.json cannot be read"):
            write_comparison(write_run("run"))

    def test_a_document_of_another_kind_is_refused(
        self, write_compared: WriteRun, decay: Any
    ) -> None:
        folder = write_compared("c", decay(name="a"), decay(name="b"))
        (folder / "compare.json").write_text('{"schema": 1}', encoding="utf-8")
        with pytest.raises(gl.RunFolderError, match="is no comparison"):
            write_comparison(folder)
