"""What people write without gradlab: the same numbers by NumPy, PyTorch and JAX.

PyTorch and JAX are not dependencies, and Numba is an extra: what is not installed is None.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import gradlab as gl
from benchmarks.networks import slopes
from benchmarks.timing import Candidate
from gradlab.arrays import Array


def installed(package: str) -> bool:
    """Whether a package is there; it is not imported."""
    return importlib.util.find_spec(package) is not None


def torch() -> Any:
    """PyTorch on one thread, or None."""
    if not installed("torch"):
        return None
    module = importlib.import_module("torch")
    module.set_num_threads(1)
    return module


def jax() -> Any:
    """JAX in float64 on one thread, or None."""
    if not installed("jax"):
        return None
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    module = importlib.import_module("jax")
    module.config.update("jax_enable_x64", True)
    return module


def log_norms_by_svd(cell: gl.VanillaCell, trajectory: gl.Trajectory, lags: int) -> Array:
    """ln of the spectral norm at lags 1 to ``lags``: a product and a full SVD at each."""
    log_norms = np.empty(lags)
    product, log_scale = np.eye(cell.state_size), 0.0
    for index, slope in enumerate(slopes(cell, trajectory)[::-1][:lags, 0]):
        product = (product * slope) @ cell.W_hh
        norm = float(np.linalg.norm(product, ord=2))
        log_scale += np.log(norm)
        product /= norm
        log_norms[index] = log_scale
    return log_norms


def jacobian_by_torch(
    differentiate: Callable[[Any], Callable[[Callable[[Any], Any], Any], Any]],
    cell: gl.VanillaCell,
    trajectory: gl.Trajectory,
    lag: int,
) -> Candidate | None:
    """The norm at one lag by automatic differentiation, which stands for every lag.

    The cost grows in proportion to the lag: at the mean lag it is the mean cost, constant part
    included.
    """
    if (module := torch()) is None:
        return None
    W, U, b = (module.from_numpy(np.array(each)) for each in (cell.W_hh, cell.W_xh, cell.b_h))
    steps = len(trajectory.inputs)
    inputs = module.from_numpy(np.array(trajectory.inputs[steps - lag :, 0]))
    start = module.from_numpy(np.array(trajectory.states[steps - lag, 0]))

    def last_state(h: Any) -> Any:
        for x in inputs:
            h = module.tanh(W @ h + U @ x + b)
        return h

    differentiate(module)(lambda h: module.tanh(W @ h), start)  # what happens once

    def run() -> float:
        jacobian = differentiate(module)(last_state, start)
        return float(module.log(module.linalg.matrix_norm(jacobian, 2)))

    return Candidate(run=run, times=steps, patience=1.0)


def autograd(module: Any) -> Callable[[Callable[[Any], Any], Any], Any]:
    """torch.autograd.functional.jacobian: a backward pass a row."""
    jacobian: Callable[[Callable[[Any], Any], Any], Any] = module.autograd.functional.jacobian
    return jacobian


def jacrev(module: Any) -> Callable[[Callable[[Any], Any], Any], Any]:
    """torch.func.jacrev: one vectorized backward pass for all rows."""
    return lambda function, at: module.func.jacrev(function)(at)


def log_norms_by_jax(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, lags: int
) -> Callable[[], Array] | None:
    """The products and a full SVD at every lag in one compiled scan; compiled before it returns."""
    if (module := jax()) is None:
        return None
    numpy = module.numpy

    def scan(W: Any, slopes: Any) -> Any:
        def step(product: Any, slope: Any) -> Any:
            product = (product * slope) @ W
            return product, numpy.linalg.svd(product, compute_uv=False)[0]

        return numpy.log(module.lax.scan(step, numpy.eye(len(W)), slopes)[1])

    compiled = module.jit(scan)
    given = numpy.asarray(cell.W_hh), numpy.asarray(slopes(cell, trajectory)[::-1][:lags, 0])
    compiled(*given).block_until_ready()
    return lambda: np.asarray(compiled(*given))


def all_norms_by_torch(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, ends: int, order: str | int
) -> Candidate | None:
    """Norms of all products that end in the first times, stacked, as `all_norms_by_numpy`."""
    if (module := torch()) is None:
        return None
    W, of_steps = module.from_numpy(np.array(cell.W_hh)), slopes(cell, trajectory)[:, 0]
    given = module.from_numpy(of_steps[:ends].copy())

    def run() -> list[Array]:
        norms, stack = [], module.empty((0, *W.shape), dtype=W.dtype)
        for slope in given:
            jacobian = slope[:, None] * W
            stack = module.cat([jacobian @ stack, jacobian[None]])
            norms.append(module.linalg.matrix_norm(stack, order).numpy())
        return norms

    return Candidate(run=run, times=pairs(len(of_steps)) / pairs(ends))


def all_norms_by_numpy(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, ends: int, order: Any
) -> Candidate:
    """Norms of all products that end in the first times, k ascending; scaled up to all pairs."""
    of_steps = slopes(cell, trajectory)[:, 0]

    def run() -> list[Array]:
        norms, stack = [], np.empty((0, *cell.W_hh.shape))
        for slope in of_steps[:ends]:
            jacobian = slope[:, None] * cell.W_hh
            stack = np.concatenate([jacobian @ stack, jacobian[None]])
            norms.append(np.linalg.norm(stack, order, axis=(1, 2)))
        return norms

    return Candidate(run=run, times=pairs(len(of_steps)) / pairs(ends))


def pairs(steps: int) -> int:
    """Pairs (t, k) with k < t of so many steps."""
    return steps * (steps + 1) // 2


def batched_norms_by_torch(
    cell: gl.VanillaCell, trajectory: gl.Trajectory, lags: int
) -> Candidate | None:
    """Norms at the first lags from the last time, of all sequences at once; scaled up to T."""
    if (module := torch()) is None:
        return None
    W, of_steps = module.from_numpy(np.array(cell.W_hh)), slopes(cell, trajectory)
    given = module.from_numpy(of_steps[::-1][:lags].copy())

    def run() -> Array:
        stack = module.eye(len(W), dtype=W.dtype).expand(given.shape[1], *W.shape)
        norms = []
        for slope in given:
            stack = (stack * slope[:, None, :]) @ W
            norms.append(module.linalg.matrix_norm(stack, 2).numpy())
        return np.asarray(np.log(np.stack(norms)))

    return Candidate(run=run, times=len(of_steps) / lags)
