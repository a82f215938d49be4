"""Measure what the forget gate of an LSTM promises, and what the whole gradient does.

Prints four tables; with --write they also replace those of docs/gallery/lstm.md, whose other words
stay. Run in gradlab's own environment, it takes seconds:

    python examples/half_life/half_life.py
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import gradlab as gl

PAGE = Path(__file__).resolve().parents[2] / "docs/gallery/lstm.md"
BEGIN, END = "<!-- table {} -->", "<!-- end of table {} -->"

BIASES = (0.0, 1.0, 3.0, 5.0)
STEPS = 100
HIDDEN_SIZE, INPUT_SIZE, BATCH, INPUT_STD = 32, 8, 8, 0.5
END_TIMES = 6
SEED = 0


def forget_path(bias: float) -> gl.LSTMCell:
    """One unit without weights: nothing disturbs the path through the forget gate."""
    return gl.LSTMCell(W_x=np.zeros((4, 1)), W_h=np.zeros((4, 1)), forget_bias=bias)


def self_exciting() -> gl.LSTMCell:
    """One unit whose forget gate nearly shuts, and whose output feeds its own candidate threefold.

    At rest, h = c = 0, its Jacobian is (o, 1)ᵀ (3 i, f): the one eigenvalue is f + 3 i o.
    """
    W_h = np.array([[0.0], [0.0], [3.0], [0.0]])
    return gl.LSTMCell(W_x=np.zeros((4, 1)), W_h=W_h, b_x=np.array([4.0, -2.0, 0.0, 4.0]))


def random_lstm(*, gain: float, forget_bias: float) -> gl.LSTMCell:
    """Recurrent blocks with entries N(0, gain²/N), from the seed."""
    return gl.LSTMCell.initialize(
        input_size=INPUT_SIZE,
        hidden_size=HIDDEN_SIZE,
        recurrent="gaussian",
        gain=gain,
        forget_bias=forget_bias,
        rng=np.random.default_rng(SEED),
    )


def noise() -> gl.Sequences:
    """Gaussian sequences, from a seed of their own."""
    return gl.synthetic_sequences(
        "gaussian",
        length=STEPS,
        batch=BATCH,
        input_size=INPUT_SIZE,
        rng=np.random.default_rng(SEED + 1),
        std=INPUT_STD,
    )


def measured(
    cell: gl.LSTMCell, sequences: gl.Sequences
) -> tuple[gl.GradientDynamics, gl.Trajectory]:
    """Gradient dynamics of a cell along the sequences, and its run."""
    dynamics = gl.analyze(cell, sequences.inputs, anchors=END_TIMES, block=1)
    return dynamics, gl.rollout(cell, sequences.inputs)


def undisturbed_rows() -> list[list[str]]:
    """Half-life of the Jacobian without weights, beside ln 2 / -ln σ(b)."""
    silence = gl.synthetic_sequences(
        "zeros", length=STEPS, batch=1, input_size=1, rng=np.random.default_rng(SEED)
    )
    rows = []
    for bias in BIASES:
        cell = forget_path(bias)
        dynamics, run = measured(cell, silence)
        carry = gl.gate_dynamics(cell, run).carry["f"]
        half_life = math.log(2.0) / -dynamics.only().regime.rate
        predicted = gl.half_life_of_forget_bias(bias)
        left = math.exp(carry.log_norm[STEPS - 1])
        rows.append([f"{bias:g}", f"{predicted:.10g}", f"{half_life:.10g}", f"{left:.10g}"])
    return rows


def random_rows(settings: Sequence[tuple[float, float]]) -> list[list[str]]:
    """Forget gate and gradient of random networks, by gain and forget bias."""
    sequences = noise()
    rows = []
    for gain, bias in settings:
        cell = random_lstm(gain=gain, forget_bias=bias)
        dynamics, run = measured(cell, sequences)
        rows.append([f"{gain:g}", f"{bias:g}", *_gate_beside_gradient(cell, dynamics, run)])
    return rows


def resting_row() -> list[str]:
    """The self-exciting unit at rest, beside its eigenvalue."""
    cell = self_exciting()
    silence = gl.synthetic_sequences(
        "zeros", length=STEPS, batch=1, input_size=1, rng=np.random.default_rng(SEED)
    )
    dynamics, run = measured(cell, silence)
    gates = 1.0 / (1.0 + np.exp(-cell.b_x))
    eigenvalue = gates[1] + 3.0 * gates[0] * gates[3]
    return [f"{eigenvalue:.4f}", *_gate_beside_gradient(cell, dynamics, run)]


def _gate_beside_gradient(
    cell: gl.LSTMCell, dynamics: gl.GradientDynamics, run: gl.Trajectory
) -> list[str]:
    """Median and longest half-life of the gate; factor per step and verdict of the gradient."""
    half_life = gl.gate_dynamics(cell, run).carry["f"].half_life
    regime = dynamics.only().regime
    return [
        f"{np.median(half_life):.3g}",
        f"{half_life.max():.3g}",
        f"× {math.exp(regime.rate):.3f}",
        f"× {math.exp(regime.rate_low):.3f} to {math.exp(regime.rate_high):.3f}",
        regime.name,
    ]


GATE = ("forget gate: half-life", "longest of a unit", "gradient per step", "95 %", "verdict")


def tables() -> list[str]:
    """The four tables as Markdown, in the order of the page."""
    return [
        _markdown(
            ("forget bias", "half-life predicted", "half-life measured", f"left at lag {STEPS}"),
            undisturbed_rows(),
        ),
        _markdown(("gain", "forget bias", *GATE), random_rows([(1.0, bias) for bias in BIASES])),
        _markdown(("f + 3 i o", *GATE), [resting_row()]),
        _markdown(("gain", "forget bias", *GATE), random_rows([(8.0, -1.0)])),
    ]


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_tables(page: str, found: Sequence[str]) -> str:
    """The page with its tables replaced."""
    for number, table in enumerate(found, start=1):
        begin, end = BEGIN.format(number), END.format(number)
        before, rest = page.split(begin)
        page = f"{before}{begin}\n\n{table}\n\n{end}{rest.split(end)[1]}"
    return page


def main() -> None:
    """Print the tables, and write them into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"also write them into {PAGE.name}")
    found = tables()
    if parser.parse_args().write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_tables(page, found), encoding="utf-8")
    print("\n\n".join(found))


if __name__ == "__main__":
    main()
