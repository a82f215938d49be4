"""The networks that are measured, and the matrix products that nobody can do without."""

import numpy as np

import gradlab as gl
from benchmarks.timing import Candidate
from gradlab.arrays import Array

INPUTS = 16


def tanh_network(
    kind: str, size: int, *, gain: float, steps: int, batch: int = 1
) -> tuple[gl.VanillaCell, gl.Trajectory]:
    """A random tanh cell, run over random inputs."""
    rng = np.random.default_rng(size)
    cell = gl.VanillaCell.initialize(
        input_size=INPUTS, hidden_size=size, recurrent=kind, gain=gain, rng=rng
    )
    return cell, gl.rollout(cell, 0.5 * rng.standard_normal((steps, batch, INPUTS)))


def slopes(cell: gl.VanillaCell, trajectory: gl.Trajectory) -> Array:
    """φ' at every step: the Jacobian of a step is diag(slopes) W_hh. Time, batch, units."""
    return np.asarray(cell.phi.derivative(trajectory.z))


def chain(W: Array, count: int, columns: int | None = None, most: int = 1000) -> Candidate:
    """The floor: so many products of W with a frame as wide, or narrower, and nothing else.

    Of more than ``most`` products that many are run.
    """
    frame = np.linalg.qr(np.random.default_rng(3).standard_normal((len(W), columns or len(W))))[0]
    target = np.empty_like(frame)
    run = min(count, most)

    def products() -> None:
        for _ in range(run):
            np.matmul(W, frame, out=target)

    return Candidate(run=products, times=count / run)
