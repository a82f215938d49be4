"""Forward pass and full gradient, of every layer kind, against a floor and PyTorch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks import peers
from benchmarks.comparing import Costs, Problem, Target, share
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

STEPS = 100
INPUT_SIZE = 32
CLASSES = 10
SIZES = (64, 128, 256, 512)
BATCHES = (1, 32, 64)
LAYERS = (("rnn", "float64"), ("gru", "float64"), ("lstm", "float64"), ("lstm", "float32"))
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
ROUNDS, ROUNDS_ALONE = 5, 25  # a single sequence is over in milliseconds

Cell = gl.VanillaCell | gl.GRUCell | gl.LSTMCell


@dataclass(frozen=True, kw_only=True)
class Work:
    """A layer with a readout of its last state, and sequences to learn from."""

    kind: str
    dtype: str
    size: int
    batch: int

    @property
    def share_of_torch(self) -> float:
        """Most of PyTorch's time that gradlab may take."""
        alone = self.batch == 1
        if self.dtype == "float32":  # PyTorch has a fused cell here
            return 1.5 if alone else 1.0 if self.batch >= 64 and self.size >= 128 else 1.2
        if self.kind == "rnn":
            if alone and self.size <= 256:
                return 0.25
            return 0.5 if self.batch == 32 and self.size <= 128 else 0.85
        if alone:
            return 0.35
        return 0.9 if self.kind == "gru" else 0.85

    @property
    def share_of_floor(self) -> float | None:
        """Most of the matrix products' time that gradlab may take."""
        if self.size < 256 or self.batch < 32:
            return None
        return 1.3 if self.kind == "rnn" else 1.4


def problems() -> list[Problem]:
    """A problem a layer, size and batch."""
    every = [
        Work(kind=kind, dtype=dtype, size=size, batch=batch)
        for kind, dtype in LAYERS
        for size in SIZES
        for batch in BATCHES
    ]
    return [
        Problem(
            name=f"gradient, {work.kind} {work.dtype}, N = {work.size}, B = {work.batch}",
            targets=targets(work),
            measure=partial(measure, work),
            tolerance=TOLERANCE[work.dtype],
            quick=work.size == SIZES[0],
        )
        for work in every
    ]


def targets(work: Work) -> list[Target]:
    """Against PyTorch and against the floor."""
    return [
        share("bptt", "torch", work.share_of_torch),
        share("bptt", "floor", work.share_of_floor),
    ]


def measure(work: Work) -> Costs:
    """Race the candidates on one random layer."""
    rng = np.random.default_rng(work.size)
    cell, readout = network(work, rng)
    inputs = rng.standard_normal((STEPS, work.batch, INPUT_SIZE)).astype(work.dtype)
    classes = rng.integers(0, CLASSES, work.batch)

    def own() -> dict[str, Array]:
        return dict(gl.bptt(cell, readout, inputs, classes, at="last")[1])

    candidates: dict[str, Candidate | None] = {
        "floor": Candidate(run=products_alone(work)),
        "bptt": Candidate(run=own),
        "torch": torch_gradients(work, cell, readout, inputs, classes),
    }
    return raced(candidates, ROUNDS_ALONE if work.batch == 1 else ROUNDS, largest_difference)


def network(work: Work, rng: np.random.Generator) -> tuple[Cell, gl.Readout]:
    """Random weights; the loss is the mean cross entropy at the last step."""
    sizes: dict[str, Any] = {
        "input_size": INPUT_SIZE,
        "hidden_size": work.size,
        "dtype": work.dtype,
        "rng": rng,
    }
    kinds: dict[str, type[Any]] = {
        "rnn": gl.VanillaCell,
        "gru": gl.GRUCell,
        "lstm": gl.LSTMCell,
    }
    readout = gl.Readout.initialize(
        hidden_size=work.size,
        output_size=CLASSES,
        average="batch",
        dtype=work.dtype,
        rng=rng,
    )
    cell: Cell = kinds[work.kind].initialize(**sizes)
    return cell, readout


def products_alone(work: Work) -> Callable[[], None]:
    """The matrix products that no implementation can do without, and nothing else."""
    rows = GATES[work.kind] * work.size
    n, batch, steps = work.size, work.batch, STEPS
    dtype = work.dtype
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
    work: Work, cell: Cell, readout: gl.Readout, inputs: Array, classes: Array
) -> Candidate | None:
    """The same gradient by PyTorch's own layer on one thread, inputs included."""
    if (torch := peers.torch()) is None:
        return None
    kinds = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
    layer = kinds[work.kind](INPUT_SIZE, work.size).to(getattr(torch, work.dtype))
    linear = torch.nn.Linear(work.size, CLASSES).to(getattr(torch, work.dtype))
    weights = dict(zip(names(work), parameters(layer), strict=True))
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

    return Candidate(run=run)


def names(work: Work) -> tuple[str, ...]:
    """gradlab's names of PyTorch's weights; the vanilla cell has one bias, which is its first."""
    return ("W_xh", "W_hh", "b_h") if work.kind == "rnn" else ("W_x", "W_h", "b_x", "b_h")


def parameters(layer: Any) -> list[Any]:
    """PyTorch's weights in the order of `names`."""
    both = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0]
    return both[:3] if layer.mode.startswith("RNN") else both


def largest_difference(results: Mapping[str, Any]) -> float:
    """Of the weights' gradients, in units of each one's largest entry."""
    if "torch" not in results:
        return np.nan
    ours, theirs = results["bptt"], results["torch"]
    return max(
        float(np.abs(ours[name] - theirs[name]).max() / np.abs(theirs[name]).max())
        for name in theirs
    )
