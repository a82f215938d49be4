"""Map of a gradient's terms: what the use of the weights at step k adds for the loss at step t."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import Normalize

from gradlab_reports.canvas import axes_or_new, figure_of
from gradlab_reports.frames import title_of
from gradlab_reports.maps import TimeMap, draw_map, note, time_map
from gradlab_reports.spelling import factor
from gradlab_reports.style import MORE, NOTHING, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 4.2)
# Terms so many decades below the largest are all drawn as the palest.
DECADES = 8.0


@styled
def plot_gradient_pairs(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the norm of every term of a gradient.

    Parameters
    ----------
    frame
        Columns of ``gradient_pairs.csv`` for one recurrence; natural logarithms.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: k across in time steps; up the step t of the loss, of several sequences the
        median, or where each has just one such step the sequence. Color is log10 of the norm.
    """
    ax = axes_or_new(ax, SIZE)
    by_sequence = _one_step_each(frame)
    found = time_map(frame, "log_term_norm", "sequence" if by_sequence else "t")
    image = draw_map(ax, found, MORE, _norm(found), zero=NOTHING)
    bar = figure_of(ax).colorbar(image, ax=ax, pad=0.03, shrink=0.92, extend="neither")
    label_in_decades(bar.ax.yaxis)
    bar.outline.set_visible(False)
    several = not by_sequence and frame["sequence"].nunique() > 1
    bar.set_label("norm of a term" + ("  (median over sequences)" if several else ""))
    ax.grid(visible=False)
    ax.set_xlim(0.5, max(found.right, 2.5))
    count_in_wholes(ax.xaxis)
    ax.set_xlabel("k: step at which the weights are used")
    ax.set_ylabel("sequence" if by_sequence else "t: step of the loss")
    title_of(ax, "Terms of the gradient", frame)
    if np.isneginf(found.grid).any():
        _tell_zeros(ax, found, by_sequence=by_sequence)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each cell is one term of the gradient: what the use of the recurrent weights at step k "
        "(across) adds to it for the loss at step t (upward). The darker, the more; terms more "
        "than eight decades below the largest are all the palest blue. On the diagonal the loss "
        "teaches the step it stands at; far to the left it reaches far back. The weights multiply "
        "the state before the step, so that the column k = 1 is exactly 0 where that state is 0. "
        "Where every sequence has a loss at one step only, each has a row of its own: a dark row "
        "is a sequence with a large error."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    place = int(frame["log_term_norm"].to_numpy().argmax())
    largest, t, k = (frame[name].iloc[place] for name in ("log_term_norm", "t", "k"))
    if np.isneginf(largest):
        return "Every term of the gradient is exactly 0."
    return (
        f"The largest single term has the norm {factor(float(largest))}, for the loss at step "
        f"{int(t)} and the weights at step {int(k)}, lag {int(t - k)}."
    )


def _one_step_each(frame: pd.DataFrame) -> bool:
    """Whether there are several sequences, and each has a loss at one step only."""
    ends = frame.groupby("sequence")["t"].nunique()
    return len(ends) > 1 and bool((ends == 1).all())


def _norm(found: TimeMap) -> Normalize:
    finite = found.grid[np.isfinite(found.grid)]
    high = float(finite.max(initial=-np.inf)) if finite.size else 0.0
    low = max(float(finite.min()), high - DECADES) if finite.size else high
    return Normalize(min(low, high - 0.2), high)


def _tell_zeros(ax: Axes, found: TimeMap, *, by_sequence: bool) -> None:
    """In the corner below the diagonal; below the map's label where rows are sequences."""
    words = "yellow: exactly 0"
    if by_sequence or len(found.rows) < 4:
        ax.set_xlabel(f"{ax.get_xlabel()}  ({words})")
    else:
        note(ax, words)
