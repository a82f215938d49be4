"""Eigenvalues of the recurrent matrix, with the circles of radius 1 and sigma_max."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from gradlab_reports.canvas import axes_or_new
from gradlab_reports.frames import column, title_of
from gradlab_reports.scatter import scatter
from gradlab_reports.spelling import plain, shortened
from gradlab_reports.style import CURVES, FAINT, INK, VERMILLION, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SIZE, GATED_SIZE = (4.9, 4.4), (6.4, 4.4)
SIGMA_INK = "#b34f00"
# Where words may stand, in degrees: those of two circles on two sides.
LEFT, RIGHT = (225.0, 135.0, 210.0, 150.0, 240.0, 120.0), (315.0, 300.0, 330.0, 285.0)
GATE_DASHES = (
    (6, 2),
    (3, 1.5),
    (6, 2, 1.2, 2),
    (1.5, 1.2),
    (9, 2),
    (4, 1.5, 1.2, 1.5),
    (2, 2),
    (8, 2, 1.2, 2, 1.2, 2),
)


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
        largest singular value dashed (no eigenvalue can lie outside it); without gates the radius
        of the circular law dotted.
    """
    gates = gates_of(frame)
    ax = axes_or_new(ax, SIZE if len(gates) == 1 else GATED_SIZE)
    points = frame[np.isfinite(column(frame, "eigenvalue_re"))]
    own: dict[str, Any] = {"": slice(None)}
    if len(gates) > 1:
        own = {gate: points["gate"].to_numpy() == gate for gate in gates}
    place = ("eigenvalue_re", "eigenvalue_im")
    scatter(ax, points, *place, own, s=20, linewidth=0.3, zorder=3)
    _draw_circles(ax, frame, gates)
    if points.empty:
        words = "no eigenvalues:\nthe matrices are not square"
        ax.text(0.0, 0.0, words, ha="center", va="center", fontsize=8.5, color=FAINT)
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
        "inside it. The dotted circle is the circular law: eigenvalues of a large random matrix "
        "with independent entries of this size would fill it. A wide empty ring between "
        "eigenvalues and dashed circle means a non-normal matrix: it can stretch for some steps "
        "although it shrinks in the end."
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
    gates = [str(gate) for gate in frame["gate"].unique()]
    return [gate for gate in gates if gate != "stack" and not gate.endswith(".stack")] or [""]


def gates_title(gates: list[str]) -> str:
    """Title of a legend of gates, which tells how many have no color left."""
    more = len(gates) - len(CURVES)
    return "gate" if more <= 0 else f"gate ({more} more not shown)"


def _draw_circles(ax: Axes, frame: pd.DataFrame, gates: list[str]) -> None:
    _draw_circle(ax, 1.0, color="#5f6368", linestyle="solid")
    sigmas = [
        float(column(frame[frame["gate"] == gate] if gate else frame, "singular_value").max())
        for gate in gates
    ]
    reach = 1.15 * max(1.0, *sigmas)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    if len(gates) > 1:
        _draw_gates(ax, gates, sigmas)
        return
    _draw_circle(ax, sigmas[0], color=VERMILLION, linestyle=(0, (6, 2)))
    _draw_circular_law(ax, frame, sigmas[0], reach)
    # The words stand outside the circles, where few points are.
    _name_circle(ax, 1.0, _free_angle(frame, 1.0, reach, LEFT), words="radius 1", color=FAINT)
    _name_circle(ax, sigmas[0], 45.0, rf"$\sigma_{{\max}}$ = {plain(sigmas[0])}", SIGMA_INK)


def _free_angle(
    frame: pd.DataFrame, radius: float, reach: float, angles: tuple[float, ...]
) -> float:
    """Angle of some at which the fewest points lie under words beside a circle, first of equals."""
    x, y = column(frame, "eigenvalue_re"), column(frame, "eigenvalue_im")

    def covered(angle: float) -> int:
        across, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        middle = (radius * across + 0.17 * reach * np.sign(across), radius * up + 0.04 * reach * up)
        near = (np.abs(x - middle[0]) < 0.2 * reach) & (np.abs(y - middle[1]) < 0.06 * reach)
        return int(near.sum())

    return min(angles, key=covered)


def _draw_gates(ax: Axes, gates: list[str], sigmas: list[float]) -> None:
    """A circle a gate, in its color and dashes; a legend beside the axes names them."""
    handles = [Line2D([], [], color="#5f6368", linewidth=1.1, label="radius 1")]
    for gate, sigma, curve, dashes in zip(gates, sigmas, CURVES, GATE_DASHES, strict=False):
        _draw_circle(ax, sigma, color=curve.color, linestyle=(0, dashes))
        words = rf"{shortened(gate, 24)}: $\sigma_{{\max}}$ = {plain(sigma)}"
        look: dict[str, Any] = {"color": curve.color, "linestyle": (0, dashes), "linewidth": 1.1}
        handles.append(Line2D([], [], marker=curve.marker, markersize=4.5, label=words, **look))
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    ax.legend(handles=handles, title=gates_title(gates), handlelength=3.2, **place)


def circular_law(frame: pd.DataFrame) -> float:
    """Radius of the disk that the eigenvalues of a random matrix of these entries would fill.

    The circular law: N times the mean square of the entries, under the root, is the Frobenius norm
    over √N (Tao, Vu and Krishnapur 2010, "Random matrices: universality of ESDs and the circular
    law").
    """
    values = column(frame, "singular_value")
    largest = float(values.max(initial=0.0))
    # Relative to the largest: squares leave the range of floats where the values do not.
    return largest * float(np.sqrt(np.nanmean((values / largest) ** 2))) if largest > 0.0 else 0.0


def _draw_circular_law(ax: Axes, frame: pd.DataFrame, sigma: float, reach: float) -> None:
    """Dotted circle, with its name where neither another circle nor another name is."""
    radius = circular_law(frame)
    _draw_circle(ax, radius, color=INK, linestyle=(0, (1.2, 1.8)))
    if 0.93 * sigma < radius:  # of an orthogonal matrix all circles are one
        return
    outside = 1.0 if radius < 1.0 < 1.3 * radius else radius
    angle = _free_angle(frame, outside, reach, RIGHT)
    _name_circle(ax, outside, angle, "circular law\n(dotted)", INK)


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
