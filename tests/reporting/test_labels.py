"""Words at line ends never lie over each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from gradlab_reports.canvas import axes_or_new, figure_of, rendered
from gradlab_reports.labels import EndLabel, spread, write_end_labels

heights = st.lists(st.floats(min_value=-0.5, max_value=1.5), min_size=1, max_size=8)


@given(wanted=heights, size=st.floats(min_value=0.01, max_value=0.12))
def test_spread_intervals_keep_their_order_without_overlap_inside_the_axes(
    wanted: list[float], size: float
) -> None:
    centers = np.array(spread(wanted, [size] * len(wanted)))
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], -index))
    assert (np.diff(centers[order]) >= size - 1e-9).all()
    assert centers.min() >= size / 2 - 1e-9
    assert centers.max() <= 1.0 - size / 2 + 1e-9


def test_intervals_that_do_not_touch_stay_where_they_are() -> None:
    assert spread([0.8, 0.2], [0.1, 0.1]) == pytest.approx([0.8, 0.2])


def test_equal_heights_are_spread_around_their_place_the_first_on_top() -> None:
    assert spread([0.5, 0.5, 0.5], [0.1] * 3) == pytest.approx([0.6, 0.5, 0.4])


def test_drawn_labels_of_equal_lines_do_not_overlap() -> None:
    ax = axes_or_new(None, (6.0, 4.0))
    ax.set_ylim(0.0, 1.0)
    labels = [EndLabel(height=0.5, text=f"line {i}\nsecond", color="black") for i in range(5)]
    write_end_labels(ax, labels)
    figure = figure_of(ax)
    rendered(figure, "png", dpi=100)  # the figure's own, in which extents are told
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without their leaders
    assert len(boxes) == 5
    for upper, lower in itertools.pairwise(boxes):
        assert upper.y0 >= lower.y1 - 1.0  # a pixel of rounding
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
