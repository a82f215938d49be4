"""Slack of the bounds by lag: how much each cause adds, stacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, first_zero_lag, thinned, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import plain
from gradlab_reports.style import FAINT, styled
from gradlab_reports.ticks import count_in_wholes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 3.7)
# Slack in nats below which rounding is all there is.
ATTAINED = 1e-6
BLOCKS_INK = "#00624a"

# Each cause: the rung above it, the rung below it, its fill, its hatch for gray print, its ink.
CAUSES = (
    ("alignment\nacross steps", "log_bound_onestep", "log_norm_median", "#86c9b3", "", "#00624a"),
    ("one-step\nstructure", "log_bound_saturation", "log_bound_onestep", "#f9e4b7", "", "#7a5400"),
    ("saturation", "log_bound_gamma", "log_bound_saturation", "#efa47a", "//", "#a34700"),
)


@styled
def plot_ladder(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw by how much the weights' bound exceeds the measured norm, and why.

    Parameters
    ----------
    frame
        Columns of ``lag_profile.csv`` for one recurrence; natural logarithms.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: lag in steps against slack in nats, one band a cause, from the measured median
        (zero) up. Where the measured norm is exactly zero the slack is infinite and not drawn.
    """
    ax = axes_or_new(ax, SIZE)
    rows = frame.sort_values("lag")
    rows = thinned(rows[np.isfinite(column(rows, "log_norm_median"))], "log_norm_median")
    labels = _stack(ax, rows) + _draw_blocks(ax, rows)
    zero = first_zero_lag(frame)
    ax.set_xlim(0.0, max(float(frame["lag"].max()) if zero is None else zero, 1.0))
    count_in_wholes(ax.xaxis)
    ax.set_xlabel("lag  $l = t - k$  (time steps)")
    ax.set_ylabel("slack over the measured median (nats)")
    title_of(ax, "Why the bound is loose", frame)
    total = sum((height for _, height in _heights(rows)), start=np.zeros(len(rows)))
    if np.nanmax(total, initial=0.0) < ATTAINED:
        labels = []
        ax.set_ylim(top=1.0)
    ax.set_ylim(bottom=0.0)
    _note_ends(ax, rows, zero, attained=not labels)
    write_end_labels(ax, labels)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "The height of a band is the part of the bound's slack that one cause explains, in natural "
        "logarithms: even the steepest unit lies below γ_a (saturation); the other units are "
        "flatter still, and the weights do not stretch just the steep ones (one-step structure); "
        "successive steps do not stretch the same direction (alignment across steps). 2.3 nats "
        "are a factor of 10. The dashed line is what is left when whole blocks of steps are "
        "multiplied before the norm is taken."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = frame.sort_values("lag")
    rows = rows[np.isfinite(column(rows, "log_norm_median"))]
    if rows.empty:
        return "The measured norm is exactly zero at every lag, so the slack is infinite."
    parts = [
        f"{words.replace(chr(10), ' ')} {plain(float(height[-1]))}"
        for words, height in _heights(rows)
    ]
    lag = int(rows["lag"].iloc[-1])
    return f"Slack of the bound at lag {lag} in nats by cause: {', '.join(parts)}."


def _heights(rows: pd.DataFrame) -> list[tuple[str, NDArray[np.float64]]]:
    """Heights of the bands from below, of those causes whose rungs the table holds."""
    pairs = [(words, column(rows, up) - column(rows, low)) for words, up, low, *_ in CAUSES]
    return [(words, np.maximum(height, 0.0)) for words, height in pairs if _known(height)]


def _known(height: NDArray[np.float64]) -> bool:
    return bool(height.size and np.isfinite(height).any())


def _stack(ax: Axes, rows: pd.DataFrame) -> list[EndLabel]:
    lag, base = rows["lag"].to_numpy(), np.zeros(len(rows))
    looks = {words: look for words, _, _, *look in CAUSES}
    labels = []
    for words, height in _heights(rows):
        fill, hatch, ink = looks[words]
        top = base + np.where(np.isfinite(height), height, 0.0)
        look: dict[str, Any] = {"facecolor": fill, "edgecolor": ink, "hatch": hatch or None}
        ax.fill_between(lag, base, top, linewidth=0.5, alpha=0.9, **look)
        text = f"{words}\n{plain(float(height[-1]))}"
        labels.append(EndLabel(height=float(base[-1] + top[-1]) / 2, text=text, color=ink))
        base = top
    return labels[::-1]


def _draw_blocks(ax: Axes, rows: pd.DataFrame) -> list[EndLabel]:
    height = column(rows, "log_bound_blocks") - column(rows, "log_norm_median")
    finite = np.isfinite(height)
    if not finite.any():
        return []
    lag = rows["lag"].to_numpy()
    ax.plot(lag[finite], height[finite], color=BLOCKS_INK, linewidth=1.1, linestyle=(0, (3, 1.5)))
    end = float(height[finite][-1])
    return [EndLabel(height=end, text=f"(blocks of\nsteps: {plain(end)})", color=BLOCKS_INK)]


def _note_ends(ax: Axes, rows: pd.DataFrame, zero: int | None, *, attained: bool) -> None:
    """Say in words where there is nothing to draw."""
    notes = []
    if attained and not rows.empty:
        notes.append("No slack: the measured norm attains every bound.")
    if zero is not None:
        ax.axvline(zero, color="#5f6368", linewidth=0.9, linestyle=(0, (1, 2)))
        notes.append(f"From lag {zero} on the norm is exactly 0:\nthe slack is infinite.")
    ax.text(
        0.03, 0.96, "\n".join(notes), transform=ax.transAxes, va="top", fontsize=8.5, color=FAINT
    )
