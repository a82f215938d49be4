"""Backward pass of the vanilla cell."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.elementwise import Activation
from gradlab.cells.kernels import multiplicand
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Slopes computed at a time: enough steps to make the calls cheap, few enough to stay in the cache.
BLOCK_BYTES = 1 << 17


def backward_pass(
    W_hh: Float[Array, "n n"],
    W_xh: Float[Array, "n features"],
    phi: Activation,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> BackwardPass:
    r"""Gradients by one sweep from the last step to the first.

    With :math:`a_t` the total derivative of L with respect to :math:`h_t` and :math:`g_t` its part
    from outside the recurrence,

    .. math:: \delta_t = \varphi'(z_t) \odot a_t, \quad a_{t-1} = g_{t-1} + W_{hh}^T \delta_t,
        \quad \frac{dL}{dW_{hh}} = \sum_t \delta_t h_{t-1}^T.

    Source: Werbos (1990), "Backpropagation through time: what it does and how to do it", Proc.
    IEEE 78. The sums over t and the sequences are one matrix product each.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        delta, adjoints = _sweep(W_hh, phi, trajectory.z, upstream)
        flat = delta.reshape(-1, len(W_hh))
        gradients = {
            "W_hh": flat.T @ trajectory.states[:-1].reshape(flat.shape),
            "W_xh": flat.T @ trajectory.inputs.reshape(len(flat), -1),
            "b_h": flat.sum(axis=0),
        }
        inputs = (flat @ W_xh).reshape(trajectory.inputs.shape)
    return BackwardPass(
        gradients={name: close(array) for name, array in gradients.items()},
        inputs=close(inputs),
        initial_state=adjoints[0],
        adjoints=adjoints,
    )


def _sweep(
    W_hh: Float[Array, "n n"],
    phi: Activation,
    z: Float[Array, "time batch n"],
    upstream: Float[Array, "time batch n"],
) -> tuple[Float[Array, "time batch n"], Float[Array, "times batch n"]]:
    """Derivatives of L with respect to the pre-activations and to the states."""
    steps, batch, n = z.shape
    W = multiplicand(W_hh, batch)
    adjoints = np.empty((steps + 1, batch, n), dtype=z.dtype)
    adjoints[0], adjoints[1:] = 0.0, upstream
    delta, pulled, after = np.empty_like(z), np.empty_like(z[0]), adjoints[steps]
    block = max(1, BLOCK_BYTES // max(1, z[0].nbytes))
    for stop in range(steps, 0, -block):
        backward = slice(stop - 1, stop - block - 1 if stop > block else None, -1)
        slopes = phi.derivative(z[max(0, stop - block) : stop])[::-1]
        for slope, own, before in zip(slopes, delta[backward], adjoints[backward], strict=True):
            np.multiply(slope, after, out=own)
            np.dot(own, W, out=pulled)
            np.add(before, pulled, out=before)
            after = before
    return delta, close(adjoints)
