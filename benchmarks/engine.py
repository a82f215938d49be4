"""Forward pass and full gradient against a floor and, where it is installed, against PyTorch."""

import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.timing import Comparison, fastest
from gradlab.arrays import Array

STEPS = 100
INPUT_SIZE = 32
CLASSES = 10
SIZES = (64, 128, 256, 512)
BATCHES = (1, 32, 64)
LAYERS = (("rnn", "float64"), ("gru", "float64"), ("lstm", "float64"), ("lstm", "float32"))
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
ROUNDS, ROUNDS_ALONE = 5, 25  # a single sequence is over in milliseconds

Cell = gl.VanillaCell | gl.GRUCell | gl.LSTMCell


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A layer with a readout of its last state, and sequences to learn from."""

    kind: str
    dtype: str
    size: int
    batch: int

    @property
    def name(self) -> str:
        """For people and the table."""
        return f"{self.kind} {self.dtype}, N = {self.size}, B = {self.batch}"

    @property
    def target(self) -> float:
        """Share of PyTorch's time that gradlab may take."""
        alone = self.batch == 1
        if self.kind == "rnn":
            return 0.25 if alone and self.size <= 256 else 0.85
        if self.kind == "gru":
            return 0.9
        if self.dtype == "float64":
            return 0.85
        return 1.5 if alone else 1.2  # PyTorch has a fused cell here


def comparisons(*, quick: bool = False) -> list[Comparison]:
    """One comparison a problem."""
    return [compare(problem) for problem in problems(quick=quick)]


def problems(*, quick: bool = False) -> list[Problem]:
    """All of the table, in its order; of a quick run the smallest network of each layer."""
    return [
        Problem(kind=kind, dtype=dtype, size=size, batch=batch)
        for kind, dtype in LAYERS
        for size in SIZES[: 1 if quick else None]
        for batch in BATCHES
    ]


def compare(problem: Problem) -> Comparison:
    """Time the candidates, after checking that the gradients agree."""
    rng = np.random.default_rng(problem.size)
    cell, readout = network(problem, rng)
    inputs = rng.standard_normal((STEPS, problem.batch, INPUT_SIZE)).astype(problem.dtype)
    classes = rng.integers(0, CLASSES, problem.batch)

    def own() -> dict[str, Array]:
        return dict(gl.bptt(cell, readout, inputs, classes, at="last")[1])

    candidates: dict[str, Callable[[], object]] = {"floor": products_alone(problem), "gradlab": own}
    difference = math.nan
    if importlib.util.find_spec("torch") is not None:
        peer = torch_gradients(problem, cell, readout, inputs, classes)
        difference = largest_difference(own(), peer())
        candidates["torch"] = peer
    rounds = ROUNDS_ALONE if problem.batch == 1 else ROUNDS
    return Comparison(
        problem=f"gradient of {problem.name}",
        seconds=fastest(candidates, rounds),
        difference=difference,
    )


def network(problem: Problem, rng: np.random.Generator) -> tuple[Cell, gl.Readout]:
    """Random weights; the loss is the mean cross entropy at the last step."""
    sizes: dict[str, Any] = {
        "input_size": INPUT_SIZE,
        "hidden_size": problem.size,
        "dtype": problem.dtype,
        "rng": rng,
    }
    kinds: dict[str, type[Any]] = {
        "rnn": gl.VanillaCell,
        "gru": gl.GRUCell,
        "lstm": gl.LSTMCell,
    }
    readout = gl.Readout.initialize(
        hidden_size=problem.size,
        output_size=CLASSES,
        average="batch",
        dtype=problem.dtype,
        rng=rng,
    )
    cell: Cell = kinds[problem.kind].initialize(**sizes)
    return cell, readout


def products_alone(problem: Problem) -> Callable[[], None]:
    """The matrix products that no implementation can do without, and nothing else."""
    rows = GATES[problem.kind] * problem.size
    n, batch, steps = problem.size, problem.batch, STEPS
    dtype = problem.dtype
    recurrent, entering = np.ones((rows, n), dtype), np.ones((rows, INPUT_SIZE), dtype)
    state, gates = np.ones((batch, n), dtype), np.empty((batch, rows), dtype)
    states, inputs = np.ones((steps * batch, n), dtype), np.ones((steps * batch, INPUT_SIZE), dtype)
    driven = np.empty((steps * batch, rows), dtype)
    transposed = np.ascontiguousarray(recurrent.T)

    def run() -> None:
        np.matmul(inputs, entering.T, out=driven)
        for _ in range(steps):
            np.matmul(state, transposed, out=gates)
        for _ in range(steps):
            np.matmul(gates, recurrent, out=state)
        state.fill(1.0)
        np.matmul(driven.T, states)
        np.matmul(driven.T, inputs)
        np.matmul(driven, entering)

    return run


def torch_gradients(
    problem: Problem, cell: Cell, readout: gl.Readout, inputs: Array, classes: Array
) -> Callable[[], dict[str, Array]]:
    """The same gradient by PyTorch's own layer on one thread, inputs included."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    kinds = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
    layer = kinds[problem.kind](INPUT_SIZE, problem.size).to(getattr(torch, problem.dtype))
    linear = torch.nn.Linear(problem.size, CLASSES).to(getattr(torch, problem.dtype))
    weights = dict(zip(names(problem), parameters(layer), strict=True))
    weights |= {"W_hy": linear.weight, "b_y": linear.bias}
    given = {**cell.parameters, **readout.parameters}
    with torch.no_grad():
        layer.bias_hh_l0.zero_()
        for name, weight in weights.items():
            weight.copy_(torch.from_numpy(np.array(given[name])))
    x = torch.from_numpy(inputs).requires_grad_()
    labels = torch.from_numpy(classes)

    def run() -> dict[str, Array]:
        for leaf in (x, *layer.parameters(), *linear.parameters()):
            leaf.grad = None
        logits = linear(layer(x)[0][-1])
        torch.nn.functional.cross_entropy(logits, labels).backward()
        return {name: weight.grad.numpy() for name, weight in weights.items()}

    return run


def names(problem: Problem) -> tuple[str, ...]:
    """gradlab's names of PyTorch's weights; the vanilla cell has one bias, which is its first."""
    return ("W_xh", "W_hh", "b_h") if problem.kind == "rnn" else ("W_x", "W_h", "b_x", "b_h")


def parameters(layer: Any) -> list[Any]:
    """PyTorch's weights in the order of `names`."""
    both = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0]
    return both[:3] if layer.mode.startswith("RNN") else both


def largest_difference(ours: dict[str, Array], theirs: dict[str, Array]) -> float:
    """Of the weights' gradients, in units of each one's largest entry."""
    return max(
        float(np.abs(ours[name] - theirs[name]).max() / np.abs(theirs[name]).max())
        for name in theirs
    )


def table(measured: Sequence[Comparison]) -> str:
    """Markdown table, a problem a row, with the ratio that is aimed at."""
    rows = [
        "| problem | gradlab, ms | gradlab / floor | gradlab / torch | target | reached "
        "| difference |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    quick = len(measured) < len(problems())
    rows += [row(p, c) for p, c in zip(problems(quick=quick), measured, strict=True)]
    return "\n".join(rows)


def row(problem: Problem, comparison: Comparison) -> str:
    """One row; without the peer it says so."""
    ours = (
        f"| {comparison.problem} | {1e3 * comparison.seconds['gradlab']:.2f} "
        f"| {comparison.ratio('gradlab', 'floor'):.2f} "
    )
    if "torch" not in comparison.seconds:
        return f"{ours}| peer not installed | {problem.target:.2f} | – | – |"
    ratio = comparison.ratio("gradlab", "torch")
    reached = "yes" if ratio <= problem.target else "no"
    return f"{ours}| {ratio:.2f} | {problem.target:.2f} | {reached} | {comparison.difference:.1e} |"
