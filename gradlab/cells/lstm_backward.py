"""Backward pass of the LSTM."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.gates import blocks
from gradlab.cells.kernels import multiplicand
from gradlab.cells.lstm_factors import BLOCK_BYTES, LSTMFactors, LSTMFunctions
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory


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
    W_h, W_hr, z = weights["W_h"], weights.get("W_hr"), trajectory.z
    hidden, (steps, batch, rows) = W_h.shape[1], z.shape
    W = multiplicand(W_h, batch)
    c = trajectory.states[:, :, hidden:]
    adjoints = np.empty_like(trajectory.states)
    adjoints[0], adjoints[1:] = 0.0, upstream
    da = np.empty_like(z)
    by_gate = da.reshape(steps, batch, 4, rows // 4).transpose(0, 2, 1, 3)
    pulled, dc, kept = (np.empty((batch, size), z.dtype) for size in (hidden, rows // 4, rows // 4))
    block = min(steps, max(1, BLOCK_BYTES // max(1, z[0].nbytes)))
    room = LSTMFactors.empty((block, batch, rows // 4), z.dtype)
    scratch = np.empty((3, block, batch, rows // 4), z.dtype)
    for stop in range(steps, 0, -block):
        start = max(0, stop - block)
        own = room.at(slice(0, stop - start))
        functions.write_factors(z[start:stop], c[start:stop], c[start + 1 : stop + 1], own, scratch)
        for t in range(stop - 1, start - 1, -1):
            j, after, before = t - start, adjoints[t + 1], adjoints[t]
            dm = after[:, :hidden] if W_hr is None else after[:, :hidden] @ W_hr
            np.multiply(own.S[j], dm, out=dc)
            np.add(dc, after[:, hidden:], out=dc)
            np.multiply(own.alpha[:3, j], dc, out=by_gate[t, :3])
            np.multiply(own.alpha[3, j], dm, out=by_gate[t, 3])
            np.dot(da[t], W, out=pulled)
            np.add(before[:, :hidden], pulled, out=before[:, :hidden])
            np.multiply(own.F[j], dc, out=kept)
            np.add(before[:, hidden:], kept, out=before[:, hidden:])
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
