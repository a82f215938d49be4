"""Eigenvalues of the recurrent matrix, with the circles of radius 1 and sigma_max."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patheffects import withStroke

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, title_of
from gradlab_reports.spelling import plain
from gradlab_reports.style import FAINT, MEASURED, SERIES, SERIES_MARKERS, VERMILLION, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE = (4.9, 4.4)
SIGMA_INK = "#b34f00"


@styled
def plot_spectrum(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues in the complex plane.

    Parameters
    ----------
    frame
        Columns of ``spectrum.csv`` for one recurrence; gates, if any, in colors of their own.
    ax
        Axes to draw on; a new figure without pyplot when None.

    Returns
    -------
    ax
        The axes, of equal scale: real against imaginary part, unit circle solid, circle of the
        largest singular value dashed (no eigenvalue can lie outside it).
    """
    import seaborn as sns

    ax = axes_or_new(ax, SIZE)
    gates = gates_of(frame)
    look: dict[str, Any] = {"color": MEASURED, "legend": False}
    if len(gates) > 1:
        look = {
            "hue": "gate",
            "style": "gate",
            "palette": dict(zip(gates, SERIES, strict=False)),
            "markers": dict(zip(gates, SERIES_MARKERS, strict=False)),
        }
    points = frame[np.isfinite(column(frame, "eigenvalue_re"))]
    sns.scatterplot(
        points, x="eigenvalue_re", y="eigenvalue_im", s=20, linewidth=0.3, ax=ax, zorder=3, **look
    )
    _draw_circles(ax, frame, gates)
    ax.set_aspect("equal")
    ax.set_xlabel("real part of the eigenvalue")
    ax.set_ylabel("imaginary part of the eigenvalue")
    title_of(ax, "Eigenvalues of the recurrent matrix", frame)
    return ax


def caption() -> str:
    """Say how to read the figure."""
    return (
        "Eigenvalues of the recurrent matrix in the complex plane. The solid circle has radius 1, "
        "the dashed one radius σ_max, the largest stretch in one step; every eigenvalue lies "
        "inside it. A wide empty ring between eigenvalues and dashed circle means a non-normal "
        "matrix: it can stretch for some steps although it shrinks in the end."
    )


def finding(frame: pd.DataFrame) -> str:
    """State what the figure shows, for those who cannot see it."""
    points = frame[np.isfinite(column(frame, "eigenvalue_re"))]
    moduli = np.hypot(column(points, "eigenvalue_re"), column(points, "eigenvalue_im"))
    gates = gates_of(frame)
    if len(gates) > 1:
        radius = points.assign(modulus=moduli).groupby("gate", sort=False)["modulus"].max()
        said = ", ".join(f"{gate} {plain(float(radius[gate]))}" for gate in radius.index)
        return f"Largest modulus of an eigenvalue by gate: {said}."
    sigma = float(column(frame, "singular_value").max())
    return (
        f"{len(points)} eigenvalues, the largest of modulus {plain(moduli.max(initial=0.0))}, "
        f"inside the circle of radius σ_max = {plain(sigma)}; "
        f"{int((moduli > 1.0).sum())} lie outside the unit circle."
    )


def gates_of(frame: pd.DataFrame) -> list[str]:
    """Names of the gates in order without the stacked matrix; one empty name if there are none."""
    if "gate" not in frame.columns:
        return [""]
    return [str(gate) for gate in frame["gate"].unique() if gate != "stack"] or [""]


def _draw_circles(ax: Axes, frame: pd.DataFrame, gates: list[str]) -> None:
    _draw_circle(ax, 1.0, color="#5f6368", linestyle="solid")
    sigmas = []
    for gate, color in zip(gates, SERIES, strict=False):
        rows = frame[frame["gate"] == gate] if len(gates) > 1 else frame
        sigmas.append(float(column(rows, "singular_value").max()))
        _draw_circle(
            ax, sigmas[-1], color=color if len(gates) > 1 else VERMILLION, linestyle=(0, (6, 2))
        )
    # The words stand where the circles are: outside below left, and outside above right.
    _name_circle(ax, 1.0, angle=225.0, words="radius 1", color=FAINT)
    if len(gates) == 1:
        _name_circle(ax, sigmas[0], 45.0, rf"$\sigma_{{\max}}$ = {plain(sigmas[0])}", SIGMA_INK)
    reach = 1.15 * max(1.0, *sigmas)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)


def _draw_circle(ax: Axes, radius: float, *, color: str, linestyle: Any) -> None:
    angle = np.linspace(0.0, 2.0 * math.pi, 181)
    ax.plot(
        radius * np.cos(angle),
        radius * np.sin(angle),
        color=color,
        linewidth=1.1,
        linestyle=linestyle,
        zorder=2,
    )


def _name_circle(ax: Axes, radius: float, angle: float, words: str, color: str) -> None:
    turn = math.radians(angle)
    ax.annotate(
        words,
        xy=(radius * math.cos(turn), radius * math.sin(turn)),
        xytext=(3 * math.cos(turn), 3 * math.sin(turn)),
        textcoords="offset points",
        ha="left" if math.cos(turn) > 0 else "right",
        va="bottom" if math.sin(turn) > 0 else "top",
        fontsize=8.5,
        color=color,
        annotation_clip=False,
        zorder=4,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )
