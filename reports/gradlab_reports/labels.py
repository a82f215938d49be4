"""Words at the ends of lines in place of a legend box, moved apart where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from gradlab_reports.canvas import figure_of

FONT_SIZE = 8.5
LINE_HEIGHT = 1.32


@dataclass(frozen=True, kw_only=True)
class EndLabel:
    """Words for the end of one line, whose height is in data units.

    A line may end inside the axes: ``reach`` is the part of their width where it does. ``literal``
    words are taken as they are, without mathematics in dollar signs.
    """

    height: float
    text: str
    color: str
    leader: bool = True
    reach: float = 1.0
    literal: bool = False

    @property
    def lines(self) -> int:
        """Number of text lines."""
        return self.text.count("\n") + 1


def spread(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Move intervals apart as little as need be.

    Parameters
    ----------
    wanted
        Centers as they would best stand, as parts of the axes' height.
    sizes
        Heights of the intervals, in the same unit.

    Returns
    -------
    centers
        In the order given: no two intervals overlap, the order of heights is kept (of equals the
        first stands highest), and all lie between 0 and 1 if they fit there at all.
    """
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], -index))
    clusters: list[list[int]] = []
    starts: list[float] = []
    for index in order:
        cluster = [index]
        start = _best_start(cluster, wanted, sizes)
        # A cluster that touches the one below becomes one with it, centered on what both want.
        while clusters and starts[-1] + sum(sizes[i] for i in clusters[-1]) > start:
            cluster = clusters.pop() + cluster
            starts.pop()
            start = _best_start(cluster, wanted, sizes)
        clusters.append(cluster)
        starts.append(start)
    centers = [0.0] * len(wanted)
    for cluster, low in zip(clusters, starts, strict=True):
        for index in cluster:
            centers[index] = low + sizes[index] / 2
            low += sizes[index]
    return centers


def _best_start(cluster: Sequence[int], wanted: Sequence[float], sizes: Sequence[float]) -> float:
    """Lower edge of a stack of intervals that leaves the least squared displacement."""
    offset, total = 0.0, 0.0
    for index in cluster:
        total += wanted[index] - (offset + sizes[index] / 2)
        offset += sizes[index]
    return max(min(total / len(cluster), 1.0 - offset), 0.0)


def write_end_labels(ax: Axes, labels: Sequence[EndLabel]) -> None:
    """Write the labels to the right of the axes, tied to the ends of their lines by thin leaders.

    The limits of the axes must be final.
    """
    low, high = ax.get_ylim()
    # Before layout the axes are a little lower than after it: too much room rather than too little.
    height_in_points = figure_of(ax).get_size_inches()[1] * 72.0 * ax.get_position().height
    unit = FONT_SIZE * LINE_HEIGHT / height_in_points
    parts = [(label.height - low) / (high - low) for label in labels]
    # Rounded, so that lines which differ by rounding errors alone keep the order given.
    wanted = [round(min(max(part, 0.0), 1.0), 4) for part in parts]
    centers = spread(wanted, [unit * label.lines for label in labels])
    for label, start, center in zip(labels, wanted, centers, strict=True):
        ax.annotate(
            label.text,
            xy=(label.reach, start),
            xytext=(1.035, center),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=label.color,
            fontsize=FONT_SIZE,
            va="center",
            linespacing=1.15,
            annotation_clip=False,
            parse_math=not label.literal,
            arrowprops=_leader(label.color) if label.leader else None,
        )


def _leader(color: str) -> dict[str, Any]:
    shape = {"arrowstyle": "-", "relpos": (0.0, 0.5), "shrinkA": 1.0, "shrinkB": 1.0}
    return shape | {"color": color, "linewidth": 0.6}
