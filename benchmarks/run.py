"""Run the benchmarks, print the tables and write them beside this file: ``make bench``."""

import argparse
import platform
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks import (
    all_pairs,
    batches,
    engine,
    gated_profile,
    growth_table,
    inspection,
    jacobian_profile,
    long_profiles,
    lyapunov,
    report,
    startup,
    sweeps,
    tables,
    weights,
)
from benchmarks.comparing import Comparison, Problem
from benchmarks.growth import curves
from gradlab.linalg import single_threaded_blas

FOLDER = Path(__file__).parent
GROWTH = "growth"
BENCHMARKS: tuple[ModuleType, ...] = (
    jacobian_profile,
    long_profiles,
    gated_profile,
    batches,
    all_pairs,
    lyapunov,
    weights,
    engine,
    sweeps,
    startup,
    inspection,
    report,
)


def machine() -> str:
    """The versions that the numbers depend on, in one line."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    blas = ", ".join(f"{p['internal_api']} {p['version']} {p.get('architecture')}" for p in pools)
    return f"Python {platform.python_version()}, NumPy {np.__version__}, {blas}, one thread"


def name_of(benchmark: ModuleType) -> str:
    """As it is chosen on the command line."""
    return benchmark.__name__.rpartition(".")[2]


def measured(problem: Problem) -> Comparison:
    """One problem; how long that took goes to the terminal."""
    started = time.perf_counter()
    comparison = Comparison(problem=problem, costs=problem.measure())
    print(f"{time.perf_counter() - started:6.1f} s  {problem.name}", file=sys.stderr, flush=True)
    return comparison


def write_comparisons(chosen: list[ModuleType], *, quick: bool) -> str:
    """Measure all problems, write their rows as they come; the table for people."""
    problems = [p for each in chosen for p in each.problems() if p.quick or not quick]
    rows: list[tables.Row] = []
    for problem in problems:
        rows += tables.rows([measured(problem)])
        tables.write_csv(rows, FOLDER / "results.csv")
    return tables.markdown(rows)


def write_growth(*, quick: bool) -> str:
    """Measure the curves, write their points and a picture; the table for people."""
    found = curves(quick=quick)
    growth_table.write_csv(found, FOLDER / "growth.csv")
    growth_table.write_figure(found, FOLDER / "growth.png")
    return growth_table.markdown(found)


def main() -> None:
    """Measure with one BLAS thread, print and write."""
    parser = argparse.ArgumentParser(description="Measure speed, as ratios.")
    parser.add_argument("--quick", action="store_true", help="small networks only")
    names = [*map(name_of, BENCHMARKS), GROWTH]
    parser.add_argument("only", nargs="*", help=f"of {', '.join(names)}; all if none")
    given = parser.parse_args()
    chosen = given.only or names
    started = time.perf_counter()
    with single_threaded_blas():
        parts = [machine()]
        if modules := [each for each in BENCHMARKS if name_of(each) in chosen]:
            parts.append(write_comparisons(modules, quick=given.quick))
        if GROWTH in chosen:
            parts.append(write_growth(quick=given.quick))
    parts.append(f"Measured in {(time.perf_counter() - started) / 60:.1f} minutes.")
    text = "\n\n".join(parts) + "\n"
    print(text)
    (FOLDER / "results.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
