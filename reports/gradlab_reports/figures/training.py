"""A training over its updates: loss, rate of the gradient, its norm, and how far it reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gradlab_reports.canvas import axes_or_new, figure_of, stacked
from gradlab_reports.frames import column, thinned
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import LN10, plain
from gradlab_reports.style import FAINT, GREEN, MEASURED, ORANGE, VERMILLION, styled
from gradlab_reports.ticks import count_in_wholes, label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 7.6)
HEIGHTS = (1.2, 1.4, 1.2, 1.0)
MAX_MARKERS = 45
ORANGE_INK, VERMILLION_INK, GREEN_INK = "#8a5f00", "#b34f00", "#00724f"

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Look:
    """How a curve is drawn: dashes are theory, markers are measured."""

    words: str
    color: str
    ink: str
    marker: str = ""
    dashes: tuple[float, ...] = ()


TEST = _Look(words="test", color=MEASURED, ink=MEASURED, marker="o")
TRAIN = _Look(words="train, mean since\nthe row before", color=ORANGE, ink=ORANGE_INK, marker="s")
BEFORE = _Look(words="before clipping", color=MEASURED, ink=MEASURED, marker="o")
AFTER = _Look(words="after clipping", color=ORANGE, ink=ORANGE_INK, marker="s")
UNCLIPPED = _Look(words="nothing clipped", color=MEASURED, ink=MEASURED, marker="o")
REACH = _Look(words="less than 1 % left", color=MEASURED, ink=MEASURED, marker="o")
RATE = _Look(words="measured rate", color=MEASURED, ink=MEASURED, marker="o")
SIGMA = _Look(
    words=r"$\ln\,\sigma_{\max}(W_{hh})$", color=VERMILLION, ink=VERMILLION_INK, dashes=(6, 2)
)
RADIUS = _Look(words=r"$\ln\,\rho(W_{hh})$", color=GREEN, ink=GREEN_INK, dashes=(1.2, 1.8))


@styled
def plot_training(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw what was measured of a network while it learned, panels above each other.

    Parameters
    ----------
    frame
        Columns of ``training.csv``; where they are there, ``baseline`` (loss of the best guess
        without memory) and ``probe_length`` (steps of the shortest sequence measured along).
    ax
        Axes to draw on, split in four; a new figure without pyplot when None.

    Returns
    -------
    ax
        The top axes. From there: log10 of the loss; rate in nats per step with ln σ_max and ln ρ of
        the recurrent weights and the near-critical band; log10 of the gradient's norm before and
        after clipping; horizon in steps. A row without a number has no marker.
    """
    panels = stacked(axes_or_new(ax, SIZE), HEIGHTS)
    rows = _shown(frame.sort_values("step"))
    _fit_steps(panels, rows)
    _draw_loss(panels[0], rows)
    _draw_rate(panels[1], rows)
    _draw_norms(panels[2], rows)
    _draw_horizon(panels[3], rows)
    count_in_wholes(panels[-1].xaxis)
    panels[-1].set_xlabel("updates of the weights")
    figure_of(panels[0]).align_ylabels(panels)
    panels[0].set_title("The gradient while the network learns")
    return panels[0]


def caption() -> str:
    """Say how to read the figure."""
    return (
        "From the top: the loss, with that of the best guess without memory; the rate at which the "
        "gradient shrinks (below 0) or grows (above 0) per step back in time, beside what the "
        "recurrent weights alone would give; the norm of the loss's gradient before and after "
        "clipping, means over the updates between two rows; and the lag at which less than 1 % of "
        "the gradient is left. In the gray band the norm changes by less than a factor of ten over "
        "the sequence. A marker at an edge stands for what lies beyond it."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    rows = frame.sort_values("step")
    first, last = rows.iloc[0], rows.iloc[-1]
    words = (
        f"Over {int(last['step'])} updates the test loss goes from {plain(first['test_loss'])} to "
        f"{plain(last['test_loss'])}"
    )
    baseline = _constant(rows, "baseline")
    if not math.isnan(baseline):
        words += f" ({plain(baseline)} without memory)"
    return (
        f"{words}, the rate of the gradient from {plain(first['rate'])} to {plain(last['rate'])} "
        f"nats per step. {_reach(rows)}"
    )


def _reach(rows: pd.DataFrame) -> str:
    horizon = column(rows, "horizon_1pct")[-1]
    if not math.isnan(horizon):
        return f"At the end less than 1 % of it is left {plain(horizon)} steps back."
    if math.isnan(column(rows, "rate")[-1]):
        return "At the end it could not be measured: the states are not finite."
    return "At the end more than 1 % of it is left over the whole sequence."


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows enough to look the same: extremes of the norm and of the loss are kept."""
    kept = {*thinned(rows, "gradient_norm").index, *thinned(rows, "test_loss").index}
    return rows[rows.index.isin(kept)]


def _constant(frame: pd.DataFrame, name: str) -> float:
    """The one value of a column that every row repeats; nan where the table has no such column."""
    return float(column(frame, name)[0]) if len(frame) else math.nan


def _fit_steps(panels: list[Axes], rows: pd.DataFrame) -> None:
    first, last = float(rows["step"].min()), float(rows["step"].max())
    panels[0].set_xlim(first, max(last, first + 1.0))


def _log10(rows: pd.DataFrame, name: str) -> Values:
    """Decades of a column; nan where it has no logarithm."""
    values = column(rows, name)
    logs = np.full(len(values), np.nan)
    positive = values > 0.0
    logs[positive] = np.log(values[positive])
    return to_decades(logs)


def _draw(ax: Axes, rows: pd.DataFrame, values: Values, look: _Look) -> list[EndLabel]:
    """Draw the finite values; the label of their end, if there are any."""
    finite = np.isfinite(values)
    if not finite.any():
        return []
    style: dict[str, Any] = {"linewidth": 1.4, "linestyle": (0, look.dashes)}
    if look.marker:
        style = {"linewidth": 1.3, "marker": look.marker, "markersize": 3.4}
        style["markevery"] = _marked(finite)
        style |= {"clip_on": False, "zorder": 3}
    steps = rows["step"].to_numpy(dtype=np.float64)
    ax.plot(steps, np.where(finite, values, np.nan), color=look.color, label=look.words, **style)
    return [
        EndLabel(
            height=float(values[finite][-1]),
            text=look.words,
            color=look.ink,
            reach=_part(ax, float(steps[finite][-1])),
        )
    ]


def _marked(finite: NDArray[np.bool_]) -> list[int]:
    """Rows with a marker: not too many, but every one that no line reaches."""
    every = max(1, math.ceil(len(finite) / MAX_MARKERS))
    padded = np.concatenate([[False], finite, [False]])
    alone = finite & ~padded[:-2] & ~padded[2:]
    regular = np.arange(len(finite)) % every == 0
    return [int(row) for row in np.flatnonzero(finite & (alone | regular))]


def _part(ax: Axes, step: float) -> float:
    first, last = ax.get_xlim()
    return (step - first) / (last - first)


def _line(ax: Axes, height: float, words: str) -> list[EndLabel]:
    """A level that curves are compared with, dotted across; nothing if it is not known."""
    if not math.isfinite(height):
        return []
    ax.axhline(height, color=FAINT, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    return [EndLabel(height=height, text=words, color=FAINT)]


def _finish(ax: Axes, labels: list[EndLabel], words: str, least: float = 0.0) -> None:
    """Set limits around all that is labeled and drawn, of a least width, then write the labels."""
    low, high = ax.get_ylim()
    missing = max(least - (high - low), 0.0) / 2.0
    ax.set_ylim(low - missing, high + missing)
    ax.set_ylabel(words)
    write_end_labels(ax, labels)


def _draw_loss(ax: Axes, rows: pd.DataFrame) -> None:
    labels = _draw(ax, rows, _log10(rows, "loss"), TRAIN)
    labels += _draw(ax, rows, _log10(rows, "test_loss"), TEST)
    baseline = _constant(rows, "baseline")
    labels += _line(ax, math.log(baseline) / LN10 if baseline > 0.0 else math.nan, "without memory")
    label_in_decades(ax.yaxis)
    _finish(ax, labels, "loss", least=0.1)


def _draw_rate(ax: Axes, rows: pd.DataFrame) -> None:
    rate, length = column(rows, "rate"), _constant(rows, "probe_length")
    labels = _draw(ax, rows, rate, RATE)
    labels += _draw(ax, rows, _log10(rows, "gamma_w") * LN10, SIGMA)
    labels += _draw(ax, rows, _log10(rows, "spectral_radius") * LN10, RADIUS)
    ax.axhline(0.0, color="#5f6368", linewidth=0.9, zorder=1)
    if length > 0.0:
        band = LN10 / length
        ax.axhspan(-band, band, color="#9aa0a6", alpha=0.25, linewidth=0, zorder=0)
        labels.append(EndLabel(height=0.0, text="near-critical", color=FAINT))
    _mark_beyond(ax, rows, np.isneginf(rate), "v", 0.0)
    _finish(ax, labels, "rate\n(nats per step)", least=0.05)


def _draw_norms(ax: Axes, rows: pd.DataFrame) -> None:
    before, after = _log10(rows, "gradient_norm"), _log10(rows, "clipped_norm")
    if np.array_equal(before, after, equal_nan=True):
        labels = _draw(ax, rows, before, UNCLIPPED)
    else:
        labels = _draw(ax, rows, before, BEFORE) + _draw(ax, rows, after, AFTER)
    label_in_decades(ax.yaxis)
    _mark_beyond(ax, rows, np.isposinf(column(rows, "gradient_norm")), "^", 1.0)
    _finish(ax, labels, "norm of the\ngradient", least=0.6)


def _draw_horizon(ax: Axes, rows: pd.DataFrame) -> None:
    horizon, length = column(rows, "horizon_1pct"), _constant(rows, "probe_length")
    labels = _draw(ax, rows, horizon, REACH)
    beyond = np.isnan(horizon) & ~np.isnan(column(rows, "rate"))
    most = np.nanmax(np.append(horizon, [length, 1.0]))
    ax.set_ylim(0.0, 1.08 * float(most))
    labels += _line(ax, length, "shortest sequence")
    if beyond.any():
        _mark_beyond(ax, rows, beyond, "^", 1.0)
        labels.append(
            EndLabel(height=ax.get_ylim()[1], text="▲ beyond", color=MEASURED, leader=False)
        )
    count_in_wholes(ax.yaxis)
    _finish(ax, labels, "horizon\n(steps)")


def _mark_beyond(
    ax: Axes, rows: pd.DataFrame, which: NDArray[np.bool_], marker: str, edge: float
) -> None:
    """Mark rows at the lower or upper edge whose value lies beyond it."""
    steps = rows["step"].to_numpy(dtype=np.float64)[which]
    mark: dict[str, Any] = {"linestyle": "", "marker": marker, "markersize": 4.0, "clip_on": False}
    if len(steps):
        where = ax.get_xaxis_transform()
        ax.plot(steps, np.full(len(steps), edge), color=MEASURED, transform=where, **mark)
