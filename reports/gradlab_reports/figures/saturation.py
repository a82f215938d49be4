"""Saturation over time: the activation's derivative, and the share of saturated units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlab_reports.canvas import axes_or_new, stacked
from gradlab_reports.frames import column, thinned, title_of
from gradlab_reports.labels import EndLabel, write_end_labels
from gradlab_reports.spelling import plain, share
from gradlab_reports.style import CURVES, FAINT, MEASURED, PURPLE, SKY, styled
from gradlab_reports.ticks import count_in_wholes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (5.4, 4.4)
MAX_INK, SHARE_INK = "#8a5f00", "#96457a"


@styled
def plot_saturation(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the derivative of the activation at every step, and the share of saturated units.

    Parameters
    ----------
    frame
        Columns of ``steps.csv`` for one recurrence, rows of several sequences together.
    ax
        Axes to draw on, split in two; a new figure without pyplot when None.

    Returns
    -------
    ax
        The upper axes: time in steps against phi' (mean over units and sequences, band of the
        median 5 and 95 % quantiles, maximum). Below it the mean share of saturated units.
    """
    upper, lower = stacked(axes_or_new(ax, SIZE), (3.0, 1.0))
    steps = _over_sequences(frame)
    kinds = list(dict.fromkeys(steps["activation"]))
    labels = _draw_one(upper, lower, steps) if len(kinds) == 1 else _draw_gates(upper, lower, steps)
    lower.set_ylim(0.0, 100.0)
    lower.set_yticks([0, 50, 100])
    upper.set_ylim(0.0, max(1.04 * upper.dataLim.y1, 1e-3))
    if not column(steps, "saturated_share").any():
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5, "color": FAINT}
        lower.text(0.5, 0.5, "none at any step", transform=lower.transAxes, **look)
    first, last = float(steps["t"].min()), float(steps["t"].max())
    lower.set_xlim(first, max(last, first + 1.0))
    count_in_wholes(lower.xaxis)
    lower.set_xlabel("time t (steps)")
    lower.set_ylabel("saturated\nunits (%)")
    upper.set_ylabel(r"derivative $\varphi'(z_t)$")
    title_of(upper, "Saturation over time", frame)
    write_end_labels(upper, labels)
    return upper


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Above: the derivative of the activation, by which every step back in time multiplies a "
        "unit's gradient: mean over units and sequences, band of 5 to 95 % of the units, and the "
        "largest seen (the observed γ_a of the bound); of several gates the mean of each. Below: "
        "the share of units that the rule of this run calls saturated."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    steps = _over_sequences(frame)
    said = []
    for kind, rows in steps.groupby("activation", sort=False):
        mean, largest = rows["derivative_mean"], float(rows["derivative_max"].max())
        said.append(
            f"{kind}: mean derivative from {plain(float(mean.min()))} to "
            f"{plain(float(mean.max()))}, largest {plain(largest)}, on average "
            f"{share(float(rows['saturated_share'].mean()))} of the units saturated"
        )
    return f"Over {steps['t'].nunique()} steps, {'; '.join(said)}."


def _over_sequences(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a step and non-linearity: the middle of the sequences, and their largest."""
    named = frame if "activation" in frame.columns else frame.assign(activation="φ")
    means = named.groupby(["activation", "t"], sort=False).agg(
        derivative_mean=("derivative_mean", "mean"),
        derivative_q05=("derivative_q05", "median"),
        derivative_q95=("derivative_q95", "median"),
        derivative_max=("derivative_max", "max"),
        saturated_share=("saturated_share", "mean"),
    )
    return means.reset_index().sort_values("t", kind="stable")


def _draw_one(ax: Axes, lower: Axes, steps: pd.DataFrame) -> list[EndLabel]:
    """Draw a single non-linearity with the spread over its units."""
    saturated = 100.0 * column(steps, "saturated_share")
    lower.plot(steps["t"], saturated, color=SHARE_INK, linewidth=1.2)
    lower.fill_between(steps["t"], 0.0, saturated, color=PURPLE, alpha=0.3, lw=0)
    shown = thinned(steps, "derivative_mean")
    t = shown["t"]
    low, high = column(shown, "derivative_q05"), column(shown, "derivative_q95")
    ax.fill_between(t, low, high, color=SKY, alpha=0.35, lw=0)
    mark: dict[str, Any] = {"markevery": max(1, len(shown) // 40), "markersize": 3.2}
    ax.plot(t, shown["derivative_mean"], color=MEASURED, linewidth=1.3, marker="o", **mark)
    ax.plot(t, shown["derivative_max"], color=MAX_INK, linewidth=0.9, marker="^", **mark)
    last = shown.iloc[-1]
    return [
        EndLabel(height=float(last["derivative_max"]), text=r"largest = $\gamma_a$", color=MAX_INK),
        EndLabel(
            height=float(last["derivative_mean"]),
            text="mean over units\n(band: 5–95 %)",
            color=MEASURED,
        ),
    ]


def _draw_gates(ax: Axes, lower: Axes, steps: pd.DataFrame) -> list[EndLabel]:
    """Draw one line a gate, named at its end; spreads would lie over each other."""
    labels = []
    for (gate, rows), look in zip(steps.groupby("activation", sort=False), CURVES, strict=False):
        color, marker = look.color, look.marker
        shown = thinned(rows, "derivative_mean")
        mark: dict[str, Any] = {"marker": marker, "markevery": max(1, len(shown) // 20)}
        ax.plot(shown["t"], shown["derivative_mean"], color=color, markersize=3.4, lw=1.2, **mark)
        lower.plot(rows["t"], 100.0 * column(rows, "saturated_share"), color=color, lw=1.2)
        end = float(shown["derivative_mean"].iloc[-1])
        labels.append(EndLabel(height=end, text=f"{look.glyph} {gate}: mean", color=look.ink))
    return labels
