"""Growth curves as a table, as numbers and as a picture."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.growth import AXES, MARGIN, Curve
from benchmarks.tables import amount, markdown_table

LABELS = {"N": "units N", "T": "steps T", "B": "sequences B"}
HEADER = (
    "growth",
    "along",
    "time ∝",
    "at most",
    "memory ∝",
    "at most",
    "as expected",
    "largest time",
    "largest memory",
)


def markdown(curves: Sequence[Curve]) -> str:
    """A row a curve: exponents beside those of the algorithm."""
    return markdown_table(HEADER, [cells(curve) for curve in curves])


def cells(curve: Curve) -> list[str]:
    """One row."""
    analysis, axis = curve.analysis, curve.axis
    fixed = ", ".join(f"{name} = {value}" for name, value in analysis.at.items() if name != axis)
    time, memory = curve.exponents
    limits = analysis.time[axis], analysis.memory[axis]
    expected = time <= limits[0] + MARGIN and memory <= limits[1] + MARGIN
    return [
        f"{analysis.name}, {fixed}",
        f"{axis} = {', '.join(map(str, curve.values))}",
        f"{axis}^{time:.2f}",
        f"{axis}^{limits[0]:g}",
        f"{axis}^{memory:.2f}",
        f"{axis}^{limits[1]:g}",
        "yes" if expected else "no",
        amount(max(curve.seconds), "s"),
        amount(max(curve.bytes), "bytes"),
    ]


def write_csv(curves: Sequence[Curve], path: Path) -> None:
    """A row a point."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["analysis", "axis", "value", "seconds", "peak_bytes"])
        for curve in curves:
            for point in zip(curve.values, curve.seconds, curve.bytes, strict=True):
                writer.writerow([curve.analysis.name, curve.axis, *point])


def write_figure(curves: Sequence[Curve], path: Path) -> None:
    """Time above memory, a column an axis, both logarithmic; exponents at the curves' ends."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.5), layout="constrained")
    panels = figure.subplots(2, len(AXES), sharex="col", sharey="row")
    for column, axis in enumerate(AXES):
        along = [each for each in curves if each.axis == axis]
        for curve in along:
            time, memory = curve.exponents
            draw(panels[0, column], curve, curve.seconds, time)
            draw(panels[1, column], curve, [each / 2**20 for each in curve.bytes], memory)
        ticks = sorted({value for curve in along for value in curve.values})
        panels[1, column].set_xticks(ticks, labels=list(map(str, ticks)))
        panels[1, column].set_xlabel(LABELS[axis])
        panels[1, column].minorticks_off()
        room = (ticks[-1] / ticks[0]) ** 0.08
        panels[1, column].set_xlim(ticks[0] / room, ticks[-1] * room**2)
    panels[0, 0].set_ylabel("processor seconds")
    panels[1, 0].set_ylabel("peak memory, MiB")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    figure.savefig(path, dpi=120)


def draw(panel: Any, curve: Curve, costs: Sequence[float], exponent: float) -> None:
    """One curve with its exponent."""
    (drawn,) = panel.loglog(curve.values, costs, "o-", label=curve.analysis.name)
    panel.annotate(
        f"${curve.axis}^{{{exponent:.1f}}}$",
        (curve.values[-1], costs[-1]),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        color=drawn.get_color(),
    )
