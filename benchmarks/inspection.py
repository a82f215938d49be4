"""What `gradlab inspect` does with a checkpoint of 16 MB, against what it cannot do without."""

import tempfile
from pathlib import Path

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, share
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

NAMES = {"W_x": "weight_ih_l0", "W_h": "weight_hh_l0", "b_x": "bias_ih_l0", "b_h": "bias_hh_l0"}
SIZE, INPUTS = 704, 704  # an LSTM in float32: 16 MB
READ, DECOMPOSED = "read alone", "read and decomposed"


def problems() -> list[Problem]:
    """One problem."""
    return [
        Problem(
            name="inspect a checkpoint of 16 MB (LSTM, N = 704)",
            targets=[
                share("load", READ),
                share("load and inspect", DECOMPOSED),
            ],
            measure=measure,
        )
    ]


def measure() -> Costs:
    """Race loading and inspecting against reading and against the decompositions of the gates."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.npz"
        weights = lstm()
        np.savez(path, **{NAMES[name]: weights[name] for name in NAMES})  # type: ignore[arg-type]
        candidates: dict[str, Candidate | None] = {
            READ: Candidate(run=lambda: read(path)),
            "load": Candidate(run=lambda: gl.load(path)),
            DECOMPOSED: Candidate(run=lambda: decomposed(path)),
            "load and inspect": Candidate(run=lambda: gl.inspect(gl.load(path), budget=0.0)),
        }
        return raced(candidates, rounds=3)


def lstm() -> dict[str, Array]:
    """Weights of a random LSTM."""
    rng = np.random.default_rng(SIZE)
    cell = gl.LSTMCell.initialize(input_size=INPUTS, hidden_size=SIZE, rng=rng, dtype="float32")
    return {name: np.asarray(cell.parameters[name], dtype=np.float32) for name in NAMES}


def read(path: Path) -> dict[str, Array]:
    """The arrays alone."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def decomposed(path: Path) -> list[Array]:
    """Singular values and eigenvalues of every gate's recurrent weights, in float64."""
    gates = np.split(read(path)[NAMES["W_h"]].astype(np.float64), 4)
    found = [np.linalg.svd(gate, compute_uv=False) for gate in gates]
    return [*found, *(np.linalg.eigvals(gate) for gate in gates)]
