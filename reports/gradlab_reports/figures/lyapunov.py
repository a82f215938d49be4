"""Lyapunov exponents with their standard errors, and what mean-field theory predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import plain
from gradlab_reports.style import FAINT, INK, MEASURED, styled
from gradlab_reports.ticks import count_in_wholes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 3.9)
# Standard errors that a bar reaches to either side.
BAR = 2.0
# Nats per step that the axis spans at least: less is rounding.
LEAST_SPAN = 0.1


@styled
def plot_lyapunov(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the exponents in the order measured, largest first.

    Parameters
    ----------
    frame
        Columns of ``lyapunov.csv`` for one recurrence, and where there is theory its ``predicted``
        exponents.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes: number of the exponent against nats per step; markers with bars of two standard
        errors, mean-field theory dotted, and the line of a length that is kept. The legend counts
        exponents of -inf.
    """
    ax = axes_or_new(ax, SIZE)
    ax.axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    _draw_measured(ax, frame)
    _draw_theory(ax, frame)
    _widen(ax)
    ax.set_xlim(0.0, len(frame) + 1.0)
    count_in_wholes(ax.xaxis)
    ax.set_xlabel("number of the exponent, from the largest")
    ax.set_ylabel("Lyapunov exponent (nats per step)")
    title_of(ax, "Lyapunov exponents", frame)
    ax.legend(loc="lower left")  # a spectrum falls from the upper left to the lower right
    write_end_labels(ax, [EndLabel(height=0.0, text="0: length\nkept", color=FAINT)])
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each exponent is the rate at which one more direction is stretched (above 0) or shrunk "
        "(below 0) in the long run, along these very inputs; the first one is what the norm of the "
        "gradient tends to. Bars are two standard errors. The dotted curve, where there is one, is "
        "predicted for a large random network of the same gain and inputs: a theory, not a "
        "measurement. Exponents of −∞ belong to directions that are lost altogether."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    exponents = column(frame, "exponent")
    finite = exponents[np.isfinite(exponents)]
    if not finite.size:
        return f"All {len(exponents)} exponents are −∞: every direction is lost."
    said = (
        f"{len(exponents)} exponents, the largest {plain(float(finite.max()))} and the smallest "
        f"finite one {plain(float(finite.min()))} nats per step; number of positive ones: "
        f"{int((finite > 0.0).sum())}"
    )
    if lost := len(exponents) - len(finite):
        said += f"; {lost} are −∞"
    predicted = column(frame, "predicted")
    both = np.isfinite(exponents) & np.isfinite(predicted)
    distance = np.abs(exponents[both] - predicted[both])
    if distance.size:
        said += f"; half of them lie within {plain(float(np.median(distance)))} of the theory"
    return said + "."


def _draw_measured(ax: Axes, frame: pd.DataFrame) -> None:
    exponents = column(frame, "exponent")
    finite = np.isfinite(exponents)
    error = BAR * np.nan_to_num(column(frame, "standard_error")[finite])
    look: dict[str, Any] = {"fmt": "o", "markersize": 3.0, "elinewidth": 0.9, "color": MEASURED}
    number = column(frame, "index")[finite] + 1.0
    lost = len(finite) - int(finite.sum())
    words = f"measured ({lost} of {len(finite)} are −∞)" if lost else "measured"
    ax.errorbar(number, exponents[finite], yerr=error, label=words, zorder=3, **look)


def _draw_theory(ax: Axes, frame: pd.DataFrame) -> None:
    predicted = column(frame, "predicted")
    finite = np.isfinite(predicted)
    if not finite.any():
        return
    number = column(frame, "index")[finite] + 1.0
    dots: Any = (0, (1.2, 1.8))
    look: dict[str, Any] = {"color": INK, "linewidth": 1.3, "linestyle": dots, "zorder": 4}
    ax.plot(number, predicted[finite], label="mean-field theory", **look)


def _widen(ax: Axes) -> None:
    """Keep the axis from magnifying rounding where all exponents are equal."""
    low, high = ax.get_ylim()
    missing = max(0.0, LEAST_SPAN - (high - low))
    ax.set_ylim(low - 0.5 * missing, high + 0.5 * missing)
