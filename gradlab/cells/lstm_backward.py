"""Backward pass of the LSTM."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.gates import blocks
from gradlab.cells.lstm_factors import LSTMFunctions
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Pre-activations whose factors are computed at a time: few enough to stay in the cache.
BLOCK_BYTES = 1 << 18


def lstm_backward(
    weights: Mapping[str, Array],
    functions: LSTMFunctions,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch state"],
) -> BackwardPass:
    """Gradients by one sweep from the last step to the first.

    Parameters
    ----------
    weights
        ``W_x``, ``W_h``, ``b_x``, ``b_h`` and, where the cell has them, ``W_hr``, ``peepholes``.
    functions
        The cell's elementwise part.
    trajectory
        A run of the cell.
    upstream
        Partial derivatives of L by (h, c)_t from outside the recurrence, t = 1..T.

    Notes
    -----
    Source of the recursion: Werbos (1990), Proc. IEEE 78, applied to the equations of
    `gradlab.cells.lstm`. Weights' gradients are one matrix product over all steps and sequences.
    """
    hidden = weights["W_h"].shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        da, adjoints = _sweep(weights, functions, trajectory, upstream)
        flat = da.reshape(-1, da.shape[2])
        bias = flat.sum(axis=0)
        gradients = {
            "W_x": flat.T @ trajectory.inputs.reshape(len(flat), -1),
            "W_h": flat.T @ trajectory.states[:-1, :, :hidden].reshape(len(flat), -1),
            "b_x": bias,
            "b_h": bias.copy(),
        }
        inputs = (flat @ weights["W_x"]).reshape(trajectory.inputs.shape)
        c = trajectory.states[:, :, hidden:]
        if "W_hr" in weights:
            m = _released(functions, trajectory.z, c[1:])
            dh = adjoints[1:, :, :hidden].reshape(len(flat), -1)
            gradients["W_hr"] = dh.T @ m.reshape(len(flat), -1)
        if "peepholes" in weights:
            gradients["peepholes"] = _peepholes(da, c)
    return BackwardPass(
        gradients={name: close(array) for name, array in gradients.items()},
        inputs=close(inputs),
        initial_state=adjoints[0],
        adjoints=adjoints,
    )


def _sweep(
    weights: Mapping[str, Array],
    functions: LSTMFunctions,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch state"],
) -> tuple[Float[Array, "time batch rows"], Float[Array, "times batch state"]]:
    """Derivatives of L by the pre-activations and by the states."""
    W_h, W_hr = weights["W_h"], weights.get("W_hr")
    hidden, z = W_h.shape[1], trajectory.z
    steps, batch, rows = z.shape
    adjoints = np.zeros_like(trajectory.states)
    adjoints[1:] = upstream
    da = np.empty_like(z)
    by_gate = da.reshape(steps, batch, 4, rows // 4)
    c = trajectory.states[:, :, hidden:]
    pulled = np.empty((batch, hidden), dtype=z.dtype)
    block = max(1, BLOCK_BYTES // max(1, z[0].nbytes))
    for stop in range(steps, 0, -block):
        start = max(0, stop - block)
        own = functions.factors(z[start:stop], c[start:stop], c[start + 1 : stop + 1])
        for t in range(stop - 1, start - 1, -1):
            alpha, F, S = own.alpha[t - start], own.F[t - start], own.S[t - start]
            dh, dc = adjoints[t + 1, :, :hidden], adjoints[t + 1, :, hidden:]
            dm = dh if W_hr is None else dh @ W_hr
            dc = dc + S * dm
            np.multiply(alpha[:, :3], dc[:, None], out=by_gate[t, :, :3])
            np.multiply(alpha[:, 3], dm, out=by_gate[t, :, 3])
            np.dot(da[t], W_h, out=pulled)
            adjoints[t, :, :hidden] += pulled
            adjoints[t, :, hidden:] += F * dc
    return da, close(adjoints)


def _released(functions: LSTMFunctions, z: Array, c: Array) -> Array:
    """Output before the projection, o ψ(c)."""
    o = functions.gate.function(z[..., 3 * (z.shape[-1] // 4) :])
    return np.asarray(o * functions.squash.function(c))


def _peepholes(da: Float[Array, "time batch rows"], c: Float[Array, "times batch n"]) -> Array:
    """Gradient of the peephole weights i, f, o; o sees the new cell state."""
    da_i, da_f, _, da_o = blocks(da, 4)
    pairs = ((da_i, c[:-1]), (da_f, c[:-1]), (da_o, c[1:]))
    return np.stack([(left * right).sum(axis=(0, 1)) for left, right in pairs])
