"""The norms of one trajectory's Jacobian products at every lag, against a floor and a peer."""

from collections.abc import Callable, Sequence

import numpy as np

import gradlab as gl
from benchmarks.timing import Comparison, fastest
from gradlab.arrays import Array

STEPS = 200
# Most that the norms may cost in units of the floor, by recurrent weights and size.
TARGETS = {
    "gaussian": {32: None, 64: 5.0, 128: 1.4, 256: 0.75, 512: 0.5},
    "orthogonal": {64: None, 128: 2.5, 256: 1.4, 512: 1.1},
}
QUICK = 128  # largest size of a quick run
ROUNDS, ROUNDS_OF_LARGE = 7, 2  # the latter for more than 128 units


def comparisons(*, quick: bool = False) -> list[Comparison]:
    """One comparison a kind and size of network."""
    return [compare(kind, size) for kind, size in problems() if not quick or size <= QUICK]


def problems() -> list[tuple[str, int]]:
    """Recurrent weights and sizes, in the table's order."""
    return [(kind, size) for kind, targets in TARGETS.items() for size in targets]


def compare(kind: str, size: int) -> Comparison:
    """Time the candidates on one random network, after checking that they agree."""
    cell, trajectory = network(kind, size)
    jacobians = np.stack([step.matrix()[0] for step in cell.linearize(trajectory)])
    candidates: dict[str, Callable[[], object]] = {
        "floor": lambda: products_alone(jacobians),
        "peer": lambda: log_norms_by_svd(jacobians),
        "norms": lambda: gl.jacobian_profile(cell, trajectory, anchors="last", smallest=False),
        "whole": lambda: gl.jacobian_profile(cell, trajectory, anchors="last"),
    }
    measured = gl.jacobian_profile(cell, trajectory, anchors="last").to_frame()
    by_lag = measured.sort_values("lag")["log_norm"].to_numpy()
    return Comparison(
        problem=f"Jacobian profile, {kind}, N = {size}, T = {STEPS}",
        seconds=fastest(candidates, ROUNDS if size <= QUICK else ROUNDS_OF_LARGE),
        difference=float(np.abs(by_lag - log_norms_by_svd(jacobians)).max()),
    )


def network(kind: str, size: int) -> tuple[gl.VanillaCell, gl.Trajectory]:
    """A random tanh cell of gain 1.2, run over random inputs."""
    rng = np.random.default_rng(size)
    cell = gl.VanillaCell.initialize(
        input_size=16, hidden_size=size, recurrent=kind, gain=1.2, rng=rng
    )
    return cell, gl.rollout(cell, 0.5 * rng.standard_normal((STEPS, 1, 16)))


def products_alone(jacobians: Array) -> Array:
    """The chain's matrix products and nothing else."""
    product, target = np.eye(jacobians.shape[-1]), np.empty(jacobians.shape[1:])
    for jacobian in jacobians[::-1]:
        np.matmul(product, jacobian, out=target)
        product, target = target, product
    return product


def log_norms_by_svd(jacobians: Array) -> Array:
    """Natural log of the product's spectral norm at lags 1 to T, a full SVD at each."""
    log_norms = np.empty(len(jacobians))
    product, log_scale = np.eye(jacobians.shape[-1]), 0.0
    for index, jacobian in enumerate(jacobians[::-1]):
        product = product @ jacobian
        norm = float(np.linalg.norm(product, ord=2))
        log_scale += np.log(norm)
        product /= norm
        log_norms[index] = log_scale
    return log_norms


def table(comparisons: Sequence[Comparison]) -> str:
    """Markdown table, a comparison a row."""
    quick = len(comparisons) < len(problems())
    shown = [(kind, size) for kind, size in problems() if not quick or size <= QUICK]
    rows = [
        "| problem | floor, ms | peer / floor | norms / floor | target | whole / floor "
        "| norms / peer | whole / peer | difference |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows += [
        f"| {c.problem} | {1e3 * c.seconds['floor']:.2f} | {c.ratio('peer', 'floor'):.2f} "
        f"| {c.ratio('norms', 'floor'):.2f} | {TARGETS[kind][size] or 'none'} "
        f"| {c.ratio('whole', 'floor'):.2f} | {c.ratio('norms', 'peer'):.2f} "
        f"| {c.ratio('whole', 'peer'):.2f} | {c.difference:.1e} |"
        for (kind, size), c in zip(shown, comparisons, strict=True)
    ]
    return "\n".join(rows)
