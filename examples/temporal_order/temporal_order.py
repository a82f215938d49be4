"""Train small networks on the temporal order task: clipping, the penalty Ω, an LSTM; five seeds.

Writes the tables of docs/gallery/temporal_order.md between its two marks, and leaves the words
around them alone. Run from the root of the repository, in gradlab's own environment:

    python examples/temporal_order/temporal_order.py --jobs 2
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gradlab as gl

PAGE = Path(__file__).resolve().parents[2] / "docs/gallery/temporal_order.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

LENGTH = 50
HIDDEN_SIZE = 50
SEEDS = (1, 2, 3, 4, 5)  # the pilot that chose the learning rate had seed 100
LEARNING_RATE = 0.03
BATCH_SIZE = 20
THRESHOLD = 1.0
OMEGA = 0.1
GAIN = 1.2  # entries of W_hh are N(0, 1.44/N)
FORGET_BIAS = 1.0
STEPS = 8000
EVERY = 500
SOLVED = 0.99


@dataclass(frozen=True)
class Variant:
    """One row of the comparison: a cell, and what is done to its gradient."""

    name: str
    cell: str
    clip: float | None
    omega: float = 0.0


VARIANTS = (
    Variant("RNN, no clipping", "rnn", None),
    Variant("RNN, clipping", "rnn", THRESHOLD),
    Variant("RNN, clipping + Ω", "rnn", THRESHOLD, OMEGA),
    Variant("LSTM, clipping", "lstm", THRESHOLD),
)


@dataclass(frozen=True)
class Outcome:
    """What one training left behind, finished or not."""

    variant: Variant
    seed: int
    rows: Sequence[dict[str, Any]]
    norms: Sequence[float]  # of the gradient before clipping, a step each
    error: str  # name of the error that ended the training early; empty if none did
    seconds: float

    @property
    def steps_to_success(self) -> float:
        """First logged step with the wished accuracy; nan without one."""
        solved = [row["step"] for row in self.rows if row["accuracy"] >= SOLVED]
        return float(solved[0]) if solved else math.nan

    @property
    def best_accuracy(self) -> float:
        """Largest logged accuracy."""
        return float(max(row["accuracy"] for row in self.rows))

    @property
    def largest_norm(self) -> float:
        """Of all steps, before clipping; nan if the first step failed."""
        return max(self.norms, default=math.nan)

    @property
    def clipped_share(self) -> float:
        """Share of steps whose gradient was shortened; nan without clipping."""
        if self.variant.clip is None:
            return math.nan
        return float(np.mean(np.array(self.norms) > self.variant.clip))

    @property
    def status(self) -> str:
        """Finished, or the step and the error that ended it."""
        return f"{self.error} at step {len(self.norms) + 1}" if self.error else "finished"


def start(variant: Variant, seed: int) -> gl.VanillaCell | gl.LSTMCell:
    """Weights to start from: the same for all variants of one cell."""
    rng = np.random.default_rng([seed, 0])
    features = gl.task("temporal_order").input_size
    if variant.cell == "lstm":
        return gl.LSTMCell.initialize(
            input_size=features, hidden_size=HIDDEN_SIZE, forget_bias=FORGET_BIAS, rng=rng
        )
    return gl.VanillaCell.initialize(
        input_size=features, hidden_size=HIDDEN_SIZE, gain=GAIN, rng=rng
    )


def outcome(variant: Variant, seed: int, steps: int) -> Outcome:
    """Train once; an error of the numbers ends the training and is part of its outcome."""
    rows: list[dict[str, Any]] = []
    norms: list[float] = []
    error, began = "", time.perf_counter()
    try:
        gl.train(
            gl.task("temporal_order", length=LENGTH),
            start(variant, seed),
            steps=steps,
            seed=seed,
            optimizer=gl.optimizer("sgd", learning_rate=LEARNING_RATE),
            batch_size=BATCH_SIZE,
            clip=variant.clip,
            omega=variant.omega,
            every=EVERY,
            on_step=lambda step: norms.append(step.gradient_norm),
            on_row=rows.append,
        )
    except (gl.NonFiniteError, gl.DivergenceError) as stopped:
        error = type(stopped).__name__
    return Outcome(variant, seed, rows, norms, error, time.perf_counter() - began)


def outcomes(steps: int, jobs: int) -> list[Outcome]:
    """Every variant with every seed, in the order of the tables; the slowest start first."""
    work = [(variant, seed, steps) for variant in VARIANTS[::-1] for seed in SEEDS]
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(outcome, *each) for each in work]
        done = []
        for each in running:
            done.append(each.result())
            print(f"{done[-1].variant.name}, seed {done[-1].seed}: {done[-1].status}", flush=True)
    return sorted(done, key=lambda each: VARIANTS.index(each.variant))


def summary_table(results: Sequence[Outcome]) -> str:
    """A variant a row: counts and medians over the seeds."""
    header = (
        "variant",
        "solved",
        "steps to 99 %, median of the solved",
        "final accuracy, median",
        "steps clipped, median",
        "largest gradient norm",
        "rate before",
        "rate after",
        "horizon before",
        "horizon after",
    )
    rows = []
    for variant in VARIANTS:
        own = [each for each in results if each.variant == variant]
        solved = [s for each in own if not math.isnan(s := each.steps_to_success)]
        first, last = [each.rows[0] for each in own], [each.rows[-1] for each in own]
        rows.append(
            (
                variant.name,
                f"{len(solved)} of {len(own)}",
                number(median(solved), ".0f"),
                percent(median(row["accuracy"] for row in last)),
                percent(median(each.clipped_share for each in own)),
                number(max(each.largest_norm for each in own), ".3g"),
                number(median(row["rate"] for row in first), "+.3f"),
                number(median(row["rate"] for row in last), "+.3f"),
                horizons(first),
                horizons(last),
            )
        )
    return markdown(header, rows)


def seed_table(results: Sequence[Outcome]) -> str:
    """A training a row."""
    header = (
        "variant",
        "seed",
        "status",
        "steps to 99 %",
        "best accuracy",
        "final accuracy",
        "steps clipped",
        "largest gradient norm",
        "rate before",
        "rate after",
        "horizon before",
        "horizon after",
    )
    rows = [
        (
            each.variant.name,
            str(each.seed),
            each.status,
            number(each.steps_to_success, ".0f"),
            percent(each.best_accuracy),
            percent(each.rows[-1]["accuracy"]),
            percent(each.clipped_share),
            number(each.largest_norm, ".3g"),
            number(each.rows[0]["rate"], "+.3f"),
            number(each.rows[-1]["rate"], "+.3f"),
            horizons(each.rows[:1]),
            horizons(each.rows[-1:]),
        )
        for each in results
    ]
    return markdown(header, rows)


def median(values: Iterable[float]) -> float:
    """Median of the values that are numbers; nan without any."""
    counted = [value for value in values if not math.isnan(value)]
    return float(np.median(counted)) if counted else math.nan


def horizons(rows: Sequence[dict[str, Any]]) -> str:
    """Lags at which the norm is below 1 % for good, in order; "beyond" for those without one."""
    lags = sorted(row["horizon_1pct"] for row in rows if not math.isnan(row["horizon_1pct"]))
    beyond = len(rows) - len(lags)
    return ", ".join([f"{lag:.0f}" for lag in lags] + ["beyond"] * beyond)


def number(value: float, spelling: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if math.isnan(value) else format(value, spelling).replace("-", "−")


def percent(share: float) -> str:
    """A share in percent, or a dash."""
    return number(share, ".1%").replace("%", " %")


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write(page: Path, tables: str) -> None:
    """Put the tables between the marks of the page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Train, and write the page's tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS, help="updates of each training")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--page", type=Path, default=PAGE, help="page with the two marks")
    chosen = parser.parse_args()
    began = time.perf_counter()
    results = outcomes(chosen.steps, chosen.jobs)
    wall = time.perf_counter() - began
    spent = sum(each.seconds for each in results)
    note = (
        f"{chosen.steps} updates of {BATCH_SIZE} sequences each; {len(results)} trainings on "
        f"{chosen.jobs} processes in {wall / 60:.1f} minutes of wall time, {spent / 60:.1f} "
        "minutes summed over the trainings."
    )
    tables = f"{summary_table(results)}\n\n{note}\n\n{seed_table(results)}"
    write(chosen.page, tables)
    print(tables)


if __name__ == "__main__":
    main()
