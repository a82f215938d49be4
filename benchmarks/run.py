"""Run every benchmark, print the table and write it beside this file: ``make bench``."""

import argparse
import csv
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import engine, jacobian_profile, lyapunov, sweeps
from benchmarks.timing import Comparison

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.csv"
BENCHMARKS = (jacobian_profile, lyapunov, engine, sweeps)


def machine() -> str:
    """The versions that the numbers depend on, in one line."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    blas = ", ".join(f"{p['internal_api']} {p['version']} {p.get('architecture')}" for p in pools)
    return f"Python {platform.python_version()}, NumPy {np.__version__}, {blas}, one thread"


def write_csv(comparisons: Sequence[Comparison], path: Path) -> None:
    """A row a candidate."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "candidate", "seconds", "ratio_to_floor", "difference"])
        for comparison in comparisons:
            for candidate, seconds in comparison.seconds.items():
                ratio = comparison.ratio(candidate, "floor")
                row = [comparison.problem, candidate, seconds, ratio, comparison.difference]
                writer.writerow(row)


def main() -> None:
    """Measure with one BLAS thread, print and write."""
    parser = argparse.ArgumentParser(description="Measure speed, as ratios.")
    parser.add_argument("--quick", action="store_true", help="small networks only")
    quick = parser.parse_args().quick
    with threadpool_limits(limits=1):
        measured = {benchmark: benchmark.comparisons(quick=quick) for benchmark in BENCHMARKS}
    tables = [benchmark.table(comparisons) for benchmark, comparisons in measured.items()]
    text = "\n\n".join([machine(), *tables]) + "\n"
    print(text)
    (FOLDER / "results.md").write_text(text, encoding="utf-8")
    write_csv([each for comparisons in measured.values() for each in comparisons], RESULTS)


if __name__ == "__main__":
    main()
