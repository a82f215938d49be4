"""The norms of an LSTM's Jacobian products, whose state is twice as wide as its weights."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.comparing import Costs, Problem, share
from benchmarks.jacobian_profile import STEPS, TOLERANCE, log_norms
from benchmarks.networks import INPUTS, tanh_network
from benchmarks.timing import Candidate, raced
from gradlab.arrays import Array

SIZE = 128
MOST = 1.3


def problems() -> list[Problem]:
    """One problem: a state of 256 numbers in either cell."""
    return [
        Problem(
            name=f"profile, LSTM N = {SIZE} (state {2 * SIZE}), T = {STEPS}",
            targets=[share("LSTM", f"vanilla, N = {2 * SIZE}", MOST)],
            measure=measure,
            tolerance=TOLERANCE,
        )
    ]


def measure() -> Costs:
    """Race an LSTM against a vanilla cell with as many numbers in its state."""
    cell, trajectory = lstm()

    def difference(results: Mapping[str, Any]) -> float:
        return float(np.abs(results["LSTM"] - log_norms_by_svd(cell, trajectory)).max())

    vanilla = tanh_network("gaussian", 2 * SIZE, gain=1.2, steps=STEPS)
    candidates: dict[str, Candidate | None] = {
        f"vanilla, N = {2 * SIZE}": Candidate(run=partial(log_norms, *vanilla)),
        "LSTM": Candidate(run=partial(log_norms, cell, trajectory)),
    }
    return raced(candidates, rounds=3, difference=difference)


def lstm() -> tuple[gl.LSTMCell, gl.Trajectory]:
    """A random LSTM with Gaussian weights, run over random inputs."""
    rng = np.random.default_rng(SIZE)
    cell = gl.LSTMCell.initialize(
        input_size=INPUTS, hidden_size=SIZE, recurrent="gaussian", gain=1.2, rng=rng
    )
    return cell, gl.rollout(cell, 0.5 * rng.standard_normal((STEPS, 1, INPUTS)))


def log_norms_by_svd(cell: gl.LSTMCell, trajectory: gl.Trajectory) -> Array:
    """ln of the spectral norm at every lag: dense Jacobians, a product and a full SVD at each."""
    log_norms, log_scale = [], 0.0
    product = np.eye(cell.state_size)
    for step in cell.linearize(trajectory)[::-1]:
        product = product @ step.matrix()[0]
        norm = float(np.linalg.norm(product, ord=2))
        log_scale += np.log(norm)
        product /= norm
        log_norms.append(log_scale)
    return np.array(log_norms)
