"""Backward pass of the vanilla cell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.elementwise import Activation
from gradlab.cells.kernels import multiplicand
from gradlab.cells.stretches import ROWS, add_terms, entering, stretches
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory


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
    IEEE 78. The sums over t and the sequences are one matrix product a stretch.
    """
    adjoints, inputs = np.empty_like(trajectory.states), np.empty_like(trajectory.inputs)
    gradients: dict[str, Array] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for part, delta in _sweep(W_hh, phi, trajectory.z, upstream, adjoints):
            flat = delta.reshape(-1, len(W_hh))
            np.dot(flat, W_xh, out=inputs[part].reshape(len(flat), -1))
            terms = {
                "W_hh": flat.T @ trajectory.states[part].reshape(flat.shape),
                "W_xh": flat.T @ trajectory.inputs[part].reshape(len(flat), -1),
                "b_h": flat.sum(axis=0),
            }
            add_terms(gradients, terms)
    return BackwardPass(
        gradients={name: close(array) for name, array in gradients.items()},
        inputs=close(inputs),
        initial_state=close(adjoints)[0],
        adjoints=adjoints,
    )


def _sweep(
    W_hh: Float[Array, "n n"],
    phi: Activation,
    z: Float[Array, "time batch n"],
    upstream: Float[Array, "time batch n"],
    adjoints: Float[Array, "times batch n"],
) -> Iterator[tuple[slice, Float[Array, "steps batch n"]]]:
    """Write the adjoints; yield derivatives by the pre-activations, a stretch of steps at a time.

    Each stretch is written over the one before.
    """
    (steps, batch, _), W, given = z.shape, multiplicand(W_hh, z.shape[1]), entering(upstream)
    after = adjoints[steps]
    after[...] = upstream[steps - 1]
    parts = stretches(steps, ROWS // batch)
    room, scratch = np.empty((2, parts[0].stop - parts[0].start, *z.shape[1:]), dtype=z.dtype)
    for part in parts:
        delta = room[: part.stop - part.start]
        phi.write_slope(z[part], delta, scratch[: len(delta)])
        each = zip(delta[::-1], adjoints[part][::-1], given[part][::-1], strict=True)
        for own, before, own_given in each:
            np.multiply(own, after, own)
            own.dot(W, before)
            if own_given is not None:
                np.add(before, own_given, before)
            after = before
        yield part, delta
