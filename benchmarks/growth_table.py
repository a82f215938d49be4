"""Growth curves as a table, as numbers and as a picture."""

import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.growth import AXES, MARGIN, Curve
from benchmarks.tables import amount, markdown_table

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
    """Time above memory, a column an axis, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, len(AXES), sharex="col", sharey="row")
    labels = {"N": "units N", "T": "steps T", "B": "sequences B"}
    for column, axis in enumerate(AXES):
        for curve in (each for each in curves if each.axis == axis):
            time, memory = curve.exponents
            name = curve.analysis.name
            panels[0, column].loglog(
                curve.values, curve.seconds, "o-", label=f"{name}, {axis}^{time:.1f}"
            )
            megabytes = [each / 2**20 for each in curve.bytes]
            panels[1, column].loglog(
                curve.values, megabytes, "o-", label=f"{name}, {axis}^{memory:.1f}"
            )
        panels[1, column].set_xlabel(labels[axis])
    panels[0, 0].set_ylabel("processor seconds")
    panels[1, 0].set_ylabel("peak memory, MiB")
    for panel in panels.flat:
        panel.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=120)
