"""The one table of all benchmarks: a row a target, as Markdown and as CSV."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchmarks.comparing import Comparison, Target

HEADER = (
    "measurement",
    "candidate",
    "cost",
    "against",
    "its cost",
    "ratio",
    "target",
    "reached",
    "difference",
)
UNITS = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")), "bytes": ((2.0**20, "MiB"),)}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One target of one problem; numbers are nan where there is none."""

    measurement: str
    candidate: str
    cost: float
    reference: str
    reference_cost: float
    unit: str
    ratio: float
    faster: bool  # whether the ratio is the reference's cost in units of the candidate's
    target: str
    reached: str
    difference: float


def rows(comparisons: Sequence[Comparison]) -> list[Row]:
    """A row a target, in order."""
    return [row(each, target) for each in comparisons for target in each.problem.targets]


def row(comparison: Comparison, target: Target) -> Row:
    """What one target came to."""
    costs = comparison.costs
    return Row(
        measurement=comparison.problem.name,
        candidate=target.candidate,
        cost=costs.values.get(target.candidate, math.nan),
        reference=target.reference,
        reference_cost=costs.values.get(target.reference, math.nan),
        unit=costs.unit,
        ratio=target.ratio(costs.values),
        faster=target.faster,
        target=wanted(target),
        reached=verdict(comparison, target),
        difference=costs.difference,
    )


def wanted(target: Target) -> str:
    """The limit, for people."""
    if target.limit is None:
        return "–"
    return f"≥ {target.limit:g}" if target.faster else f"≤ {target.limit:g}"


def verdict(comparison: Comparison, target: Target) -> str:
    """Whether the target was reached, and by what it was missed."""
    values = comparison.costs.values
    missing = [name for name in (target.candidate, target.reference) if name not in values]
    if missing:
        return "not installed"
    if not comparison.exact:
        return f"no: results differ by more than {comparison.problem.tolerance:g}"
    met = target.met(values)
    if met is None:
        return "–"
    return "yes" if met else f"missed, best {target.ratio(values):.3g}"


def markdown(all_rows: Sequence[Row]) -> str:
    """The table, and below it how many targets were reached."""
    return f"{markdown_table(HEADER, [cells(row) for row in all_rows])}\n\n{summary(all_rows)}"


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    every = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def cells(row: Row) -> list[str]:
    """One row for people."""
    ratio = "–" if math.isnan(row.ratio) else f"{row.ratio:.3g} ×{' faster' * row.faster}"
    difference = "–" if math.isnan(row.difference) else f"{row.difference:.0e}"
    return [
        row.measurement,
        row.candidate,
        amount(row.cost, row.unit),
        row.reference,
        amount(row.reference_cost, row.unit),
        ratio,
        row.target,
        row.reached,
        difference,
    ]


def amount(cost: float, unit: str) -> str:
    """A cost in the largest unit of which it is at least one."""
    if math.isnan(cost):
        return "–"
    size, name = next((u for u in UNITS[unit] if cost >= u[0]), UNITS[unit][-1])
    return f"{cost / size:.3g} {name}"


def summary(all_rows: Sequence[Row]) -> str:
    """How many targets there are, and what became of them."""
    judged = [row for row in all_rows if row.target != "–"]
    absent = sum(row.reached == "not installed" for row in judged)
    reached = sum(row.reached == "yes" for row in judged)
    text = f"{reached} of {len(judged) - absent} targets reached"
    return f"{text}; {absent} not measured: a peer is not installed." if absent else f"{text}."


def write_csv(all_rows: Sequence[Row], path: Path) -> None:
    """All numbers in full, a row a target."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(records(all_rows))


def records(all_rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """Values of each row; a number that is not there is an empty cell."""
    for each in all_rows:
        yield tuple("" if value != value else value for value in astuple(each))
