"""How the derivatives of the activation are spread, and how that changes: a ridge a time slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, beside
from gradlab_reports.frames import column, title_of, title_words
from gradlab_reports.spelling import plain, share, shortened
from gradlab_reports.style import INK, MEASURED, SKY, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 4.2)
# The gates of the layers of a joint state would be too narrow to read.
MAX_PANELS = 4
# Height of the highest ridge, in distances between two ridges.
HIGHEST = 1.6
TITLE = "How the slopes are spread over time"

Values = NDArray[np.float64]


@styled
def plot_slopes(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the distribution of phi' over units, a ridge for every slice of time.

    Parameters
    ----------
    frame
        Columns of ``slopes.csv`` for one recurrence.
    ax
        Axes to draw on, split into a panel a non-linearity; a new figure without pyplot when None.

    Returns
    -------
    ax
        The first panel: phi' across, time upward. Heights of ridges are square roots of shares of
        the units and steps, on one scale in all panels; a dot is the mean of a ridge.
    """
    kinds = list(dict.fromkeys(frame["activation"]))[:MAX_PANELS]
    panels = beside(axes_or_new(ax, SIZE), len(kinds), share_x=False)
    scale = HIGHEST / max(float(np.sqrt(column(frame, "share").max())), 1e-12)
    for panel, kind in zip(panels, kinds, strict=True):
        _draw_ridges(panel, frame[frame["activation"] == kind], scale, narrow=len(kinds) > 2)
    _name_slices(panels[0], frame[frame["activation"] == kinds[0]])
    panels[len(kinds) // 2].set_xlabel(
        r"derivative $\varphi'(z_t)$", x=0.0 if len(kinds) % 2 == 0 else 0.5
    )
    if len(kinds) == 1:
        title_of(panels[0], TITLE, frame)
    else:
        _name_panels(panels, kinds, title_words(TITLE, frame))
    return panels[0]


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each ridge shows how the derivatives φ' of all units are spread over one slice of time, "
        "the first at the bottom: where it is high, many units have that derivative (heights are "
        "square roots, so that few units still show); the dot is the mean. By φ' every step back "
        "in time multiplies a unit's gradient. A ridge heaped up at 0 is a layer of saturated "
        "units; one that moves left on its way up saturates as time goes on."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    said = []
    for kind, rows in frame.groupby("activation", sort=False):
        means = _means(rows)
        last = rows[rows["t_first"] == rows["t_first"].max()]
        low = last.loc[last["derivative_high"] <= 0.1 * last["derivative_high"].max(), "share"]
        said.append(
            f"{kind}: mean derivative {plain(float(means[0]))} in the first and "
            f"{plain(float(means[-1]))} in the last slice of time, where "
            f"{share(float(low.sum()))} of the units are in the lowest tenth"
        )
    return f"{'; '.join(said)}."


def _name_panels(panels: Sequence[Axes], names: Sequence[str], words: str) -> None:
    """Names above the panels, in a line of their own below the figure's title."""
    for panel, name in zip(panels, names, strict=True):
        panel.set_title(f"\n{shortened(name, 16)}", parse_math=False)
    # A title wider than its panel would push the next one away: this one takes no part in that.
    look: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    title = panels[0].annotate(words, (0.0, 1.0), (0.0, 21.0), parse_math=False, **look)
    title.set_fontsize(panels[0].title.get_fontsize())
    title.set_in_layout(False)


def _means(rows: pd.DataFrame) -> Values:
    """Mean derivative of each slice, from the middles of the bins."""
    middle = 0.5 * (column(rows, "derivative_low") + column(rows, "derivative_high"))
    weighted = rows.assign(product=middle * column(rows, "share"))
    sums: Values = weighted.groupby("t_first", sort=True)["product"].sum().to_numpy()
    return sums


def _draw_ridges(ax: Axes, rows: pd.DataFrame, scale: float, *, narrow: bool) -> None:
    means = _means(rows)
    slices = list(rows.groupby("t_first", sort=True))
    for index, (_, part) in enumerate(slices):
        edges = np.append(column(part, "derivative_low"), column(part, "derivative_high")[-1])
        heights = index + scale * np.sqrt(column(part, "share"))
        front: Any = {"zorder": 2.0 + 0.5 * (1.0 - index / len(slices))}  # lower ridges in front
        across, up = np.repeat(edges, 2), np.pad(np.repeat(heights, 2), 1, constant_values=index)
        ax.fill_between(across, index, up, color="#cfe4f3", lw=0, **front)
        ax.plot(across, up, color=MEASURED, linewidth=0.7, **front)
        ax.axhline(index, color=SKY, linewidth=0.5, zorder=1)
        mark: Any = {"marker": "o", "markersize": 4.0, "markeredgecolor": "#ffffff"}
        ax.plot([means[index]], [index], color=INK, markeredgewidth=0.7, zorder=4, **mark)
    ax.set_ylim(-0.25, len(slices) - 1 + HIGHEST + 0.15)
    low, high = float(rows["derivative_low"].min()), float(rows["derivative_high"].max())
    margin = 0.03 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=2 if narrow else 5, steps=[1, 2, 2.5, 5, 10]))
    ax.grid(visible=False, axis="y")


def _name_slices(ax: Axes, rows: pd.DataFrame) -> None:
    """Name the steps of each slice at the foot of its ridge."""
    spans = rows[["t_first", "t_last"]].drop_duplicates().sort_values("t_first")
    words = [
        f"{int(first)}" if first == last else f"{int(first)}–{int(last)}"
        for first, last in spans.itertuples(index=False)
    ]
    ax.set_yticks(range(len(words)), words)
    ax.set_ylabel("time t (steps)")
