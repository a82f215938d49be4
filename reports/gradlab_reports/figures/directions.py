"""In how many directions the gradient survives: the product's whole spectrum against lag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from gradlab_reports.canvas import axes_or_new, stacked
from gradlab_reports.frames import column, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import factor, plain
from gradlab_reports.style import FAINT, MEASURED, MORE, VERMILLION, styled
from gradlab_reports.ticks import label_in_decades, to_decades

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (6.6, 5.0)
# Singular values drawn: of more, evenly spaced places.
MAX_CURVES = 40
# Decades shown below the largest value or 1: below there is nothing to train with.
DEPTH = 30.0
SURVIVING_INK = "#b34f00"


@styled
def plot_directions(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw all singular values of the long product against lag, and how many of them count.

    Parameters
    ----------
    frame
        Columns of ``product_spectrum.csv`` for one recurrence, with ``participation_ratio`` and
        ``surviving`` of ``directions.csv`` where the run has them.
    ax
        Axes to draw on, which become the upper panel; a new figure without pyplot when None.

    Returns
    -------
    ax
        The upper panel: lag (logarithmic) against log10 of the singular values, one curve each,
        the largest thick, cut 30 decades below. The lower panel counts directions.
    """
    ax = axes_or_new(ax, SIZE)
    upper, lower = stacked(ax, (3.0, 2.0))
    _draw_spectrum(upper, frame)
    _draw_counts(lower, frame)
    title_of(upper, "Directions in which the gradient survives", frame)
    return upper


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Each curve of the upper panel is one singular value of ∂h_t/∂h_k: how much of a gradient "
        "along one direction is left after so many steps; the thick one is the norm. Where they "
        "fan out, the gradients that arrive are ever more alike. Below: how many directions keep "
        "1 % or more, and the participation ratio (Σσ²)²/Σσ⁴, which is n where all are kept alike "
        "and 1 where all but one are lost."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    n = len(frame["index"].unique())
    resolved = frame[frame["log_singular_value"].notna()]
    if resolved.empty:
        return f"None of the {n} singular values of the product is resolved at any lag."
    lag = int(resolved["lag"].max())
    rows = frame[frame["lag"] == lag]
    values = column(rows, "log_singular_value")
    told = values[~np.isnan(values)]
    words = (
        f"At lag {lag} the {n} singular values of the product go from {factor(told.max())} down "
        f"to {factor(told.min())}"
    )
    if unresolved := len(values) - len(told):
        words += f" ({unresolved} below are not resolved)"
    surviving, ratio = (column(rows, name)[0] for name in ("surviving", "participation_ratio"))
    if np.isfinite(surviving):
        words += f"; {plain(float(surviving))} of them keep 1 % or more"
    if np.isfinite(ratio):
        words += f"; the participation ratio is {plain(float(ratio))}"
    last = int(frame["lag"].max())
    return words + ("." if last == lag else f". Beyond it, to lag {last}, none is resolved.")


def _draw_spectrum(ax: Axes, frame: pd.DataFrame) -> None:
    table = frame.pivot_table(
        index="lag", columns="index", values="log_singular_value", dropna=False, sort=True
    )
    lag, values = table.index.to_numpy(dtype=float), to_decades(table.to_numpy())
    n = values.shape[1]
    places = np.unique(np.linspace(0, n - 1, min(n, MAX_CURVES)).round().astype(int))
    for place in places[::-1]:
        finite = np.isfinite(values[:, place])
        look: dict[str, Any] = {"linewidth": 1.6 if place == 0 else 0.8, "zorder": 3}
        color = MORE(1.0 - 0.85 * place / max(n - 1, 1))
        marker = "_" if finite.sum() == 1 else ""
        ax.plot(lag[finite], values[finite, place], color=color, marker=marker, **look)
    _limit(ax, lag, values)
    ax.axhline(-2.0, color="#9aa0a6", linewidth=0.8, zorder=1)
    label_in_decades(ax.yaxis)
    ax.set_ylabel("singular value of\n" + r"$\partial h_t/\partial h_k$")
    write_end_labels(ax, _end_labels(ax, values))


def _limit(ax: Axes, lag: Any, values: Any) -> None:
    finite = values[np.isfinite(values)]
    high = max(float(finite.max(initial=0.0)), 0.0)
    low = min(max(float(finite.min(initial=-3.0)), high - DEPTH), -3.0)
    margin = 0.03 * (high - low)
    ax.set_ylim(low - margin, high + margin)
    ax.set_xscale("log")
    ax.set_xlim(max(1.0, float(lag.min())), max(float(lag.max()), 1.5))
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def _end_labels(ax: Axes, values: Any) -> list[EndLabel]:
    labels = [EndLabel(height=-2.0, text="1 % kept", color=FAINT)]
    last = values[-1]
    if np.isfinite(last[0]):
        labels.append(_end(ax, float(last[0]), "largest: the norm", MEASURED))
    finite = last[np.isfinite(last)]
    if len(finite) > 1:
        lost = int(np.isneginf(last).sum())
        more = f"\n({lost} are exactly 0)" if lost else ""
        labels.append(_end(ax, float(finite[-1]), "smallest", FAINT, more))
    return labels


def _end(ax: Axes, end: float, words: str, color: str, more: str = "") -> EndLabel:
    """Name a curve; one that left the axes is told where it goes."""
    if end >= ax.get_ylim()[0]:
        return EndLabel(height=end, text=f"{words}{more}", color=color)
    words = f"{words}\n↓ to {factor(end * float(np.log(10.0)), 2)}{more}"
    return EndLabel(height=end, text=words, color=color, leader=False)


def _draw_counts(ax: Axes, frame: pd.DataFrame) -> None:
    rows = frame.drop_duplicates("lag").sort_values("lag")
    lag = rows["lag"].to_numpy(dtype=float)
    n = len(frame["index"].unique())
    look: dict[str, Any] = {"markersize": 3.4, "clip_on": False, "zorder": 3}
    curves = (
        ("surviving", "keep 1 %\nor more", VERMILLION, "s", SURVIVING_INK),
        ("participation_ratio", "participation\nratio", MEASURED, "o", MEASURED),
    )
    labels = []
    for name, words, color, marker, ink in curves:
        count = column(rows, name)
        told = np.isfinite(count)
        if told.any():
            ax.plot(lag[told], count[told], color=color, marker=marker, label=name, **look)
            labels.append(EndLabel(height=float(count[told][-1]), text=words, color=ink))
    ax.set_ylim(0.0, 1.05 * n)
    ax.set_xlabel("lag  $l = t - k$  (time steps, logarithmic)")
    ax.set_ylabel(f"directions of {n}")
    write_end_labels(ax, labels)
