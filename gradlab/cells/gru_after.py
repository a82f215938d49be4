r"""The GRU with the reset gate after the product: its factors, and its backward pass.

With q = U_n h + b_h,n, :math:`\beta = (1 - k) \odot \varphi'` and
:math:`\zeta = dh'/da_z`,

.. math:: dh' = k\,dh + \zeta\,da_z + \beta\,(r\,dq + q\,\sigma'_r\,da_r + W_n dx).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Pre-activations whose factors are computed at a time: few enough to stay in the cache.
BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AfterFactors:
    """Elementwise factors of the steps of a run."""

    carry: Float[Array, "*lead n"]  # k
    alpha: Float[Array, "*lead 4 n"]  # dh' by a_r, a_z, q and by the candidate's pre-activation


Factoring = Callable[[Float[Array, "*lead rows"], Float[Array, "*lead n"]], AfterFactors]


def after_backward(
    W_x: Float[Array, "rows features"],
    W_h: Float[Array, "rows n"],
    factoring: Factoring,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> BackwardPass:
    """Gradients by one sweep from the last step to the first.

    Parameters
    ----------
    W_x, W_h
        Rows r, z, n.
    factoring
        Factors from pre-activations and old states.
    trajectory
        A run of the cell.
    upstream
        Partial derivatives of L by h_t from outside the recurrence, t = 1..T.

    Notes
    -----
    Source of the recursion: Werbos (1990), Proc. IEEE 78. The recurrent side of the candidate has
    the reset gate on it and the input side has not: their gradients are kept side by side.
    """
    n = W_h.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        da, adjoints = _sweep(W_h, factoring, trajectory, upstream)
        flat = da.reshape(-1, 4 * n)
        x = trajectory.inputs.reshape(len(flat), -1)
        gates, recurrent, candidate = flat[:, : 2 * n], flat[:, : 3 * n], flat[:, 3 * n :]
        sums = flat.sum(axis=0)
        gradients = {
            "W_x": np.concatenate([gates.T @ x, candidate.T @ x]),
            "W_h": recurrent.T @ trajectory.states[:-1].reshape(len(flat), n),
            "b_x": np.concatenate([sums[: 2 * n], sums[3 * n :]]),
            "b_h": sums[: 3 * n],
        }
        inputs = gates @ W_x[: 2 * n] + candidate @ W_x[2 * n :]
    return BackwardPass(
        gradients={name: close(array) for name, array in gradients.items()},
        inputs=close(inputs).reshape(trajectory.inputs.shape),
        initial_state=adjoints[0],
        adjoints=adjoints,
    )


def _sweep(
    W_h: Float[Array, "rows n"],
    factoring: Factoring,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> tuple[Float[Array, "time batch fourfold"], Float[Array, "times batch n"]]:
    """Derivatives of L by a_r, a_z, q and the candidate's pre-activation, and by the states."""
    h, z, n = trajectory.states[:-1], trajectory.z, W_h.shape[1]
    adjoints = np.zeros_like(trajectory.states)
    adjoints[1:] = upstream
    da = np.empty_like(z)
    by_part = da.reshape(*z.shape[:2], 4, n)
    block = max(1, BLOCK_BYTES // max(1, z[0].nbytes))
    for stop in range(trajectory.steps, 0, -block):
        start = max(0, stop - block)
        own = factoring(z[start:stop], h[start:stop])
        for t in range(stop - 1, start - 1, -1):
            delta = adjoints[t + 1]
            np.multiply(own.alpha[t - start], delta[:, None], out=by_part[t])
            adjoints[t] += own.carry[t - start] * delta
            adjoints[t] += da[t, :, : 3 * n] @ W_h
    return da, close(adjoints)
