"""Backward pass of the LSTM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.gates import blocks
from gradlab.cells.kernels import multiplicand
from gradlab.cells.lstm_factors import BLOCK_BYTES, LSTMFactors, LSTMFunctions
from gradlab.cells.stretches import ROWS, add_terms, entering, stretches
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
    `gradlab.cells.lstm`. Weights' gradients are one matrix product a stretch of steps.
    """
    sweep = _Sweep(weights, functions, trajectory, upstream)
    gradients: dict[str, Array] = {}
    inputs = np.empty_like(trajectory.inputs)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in sweep.stretches:
            da = sweep.run(part)
            flat = da.reshape(-1, da.shape[2])
            np.dot(flat, weights["W_x"], out=inputs[part].reshape(len(flat), -1))
            add_terms(gradients, sweep.terms(part, da))
    gradients["b_h"] = gradients["b_x"].copy()
    adjoints = close(sweep.adjoints)
    return BackwardPass(
        gradients={name: close(gradients[name]) for name in weights},
        inputs=close(inputs),
        initial_state=adjoints[0],
        adjoints=adjoints,
    )


class _Sweep:
    """Derivatives of L by the states, and by the pre-activations of one stretch at a time."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        functions: LSTMFunctions,
        trajectory: Trajectory,
        upstream: Float[Array, "time batch state"],
    ) -> None:
        self.weights, self.functions, self.trajectory = weights, functions, trajectory
        z, W_h = trajectory.z, weights["W_h"]
        (steps, batch, rows), self.hidden = z.shape, W_h.shape[1]
        self.W = multiplicand(W_h, batch)
        self.c = trajectory.states[:, :, self.hidden :]
        self.stretches = stretches(steps, ROWS // batch)
        self.da = np.empty((self.stretches[0].stop - self.stretches[0].start, batch, rows), z.dtype)
        self.entering = entering(upstream)
        self.adjoints = np.empty_like(trajectory.states)
        self.adjoints[steps] = upstream[steps - 1]
        self.block = BLOCK_BYTES // max(1, z[0].nbytes)
        n, block = rows // 4, stretches(steps, self.block)[0]
        shape = (block.stop - block.start, batch, n)
        self.room, self.scratch = LSTMFactors.empty(shape, z.dtype), np.empty((3, *shape), z.dtype)
        # Totals of h and c, side by side in the adjoints: on their own they are faster to read.
        last = upstream[steps - 1].astype(z.dtype)
        dh, dc = last[:, : self.hidden].copy(), last[:, self.hidden :].copy()
        self.totals = dh, dc, np.empty_like(dc)

    def run(self, part: slice) -> Float[Array, "steps batch rows"]:
        """Derivatives by the pre-activations of the next stretch."""
        da = self.da[: part.stop - part.start]
        for block in stretches(len(da), self.block):
            steps = slice(part.start + block.start, part.start + block.stop)
            own = self.room.at(slice(0, steps.stop - steps.start))
            z, c, c_next = self.trajectory.z, self.c[:-1], self.c[1:]
            self.functions.write_factors(z[steps], c[steps], c_next[steps], own, self.scratch)
            self._pull(steps, own, da[block])
        return da

    def _pull(self, steps: slice, own: LSTMFactors, da: Float[Array, "steps batch rows"]) -> None:
        """From each step's new state to its pre-activations and its old state."""
        W, W_hr, (dh, dc, dc_next) = self.W, self.weights.get("W_hr"), self.totals
        dm = dh if W_hr is None else np.empty_like(dc)
        each = self._steps(steps, own, da)
        for alpha, alpha_o, F, S, da_t, da_c, da_o, given, before_h, before_c in each:
            if W_hr is not None:
                dh.dot(W_hr, dm)
            np.multiply(S, dm, dc_next)
            np.add(dc_next, dc, dc_next)
            np.multiply(alpha, dc_next, da_c)
            np.multiply(alpha_o, dm, da_o)
            da_t.dot(W, dh)
            np.multiply(F, dc_next, dc)
            if given is not None:
                np.add(dh, given[:, : self.hidden], dh)
                np.add(dc, given[:, self.hidden :], dc)
            before_h[...] = dh
            before_c[...] = dc

    def _steps(self, steps: slice, own: LSTMFactors, da: Array) -> Iterator[tuple[Any, ...]]:
        """Views of a block's steps, last step first: arrays yield them faster than indices do."""
        by_gate = da.reshape(*da.shape[:2], 4, -1).transpose(0, 2, 1, 3)[::-1]
        alpha, before = own.alpha.swapaxes(0, 1)[::-1], self.adjoints[steps][::-1]
        return zip(
            alpha[:, :3], alpha[:, 3], own.F[::-1], own.S[::-1],
            da[::-1], by_gate[:, :3], by_gate[:, 3], self.entering[steps][::-1],
            before[:, :, : self.hidden], before[:, :, self.hidden :],
            strict=True,
        )  # fmt: skip

    def terms(self, part: slice, da: Float[Array, "steps batch rows"]) -> dict[str, Array]:
        """What the stretch adds to the gradients of the weights."""
        flat, run, hidden = da.reshape(-1, da.shape[2]), self.trajectory, self.hidden
        after = slice(part.start + 1, part.stop + 1)
        terms = {
            "W_x": flat.T @ run.inputs[part].reshape(len(flat), -1),
            "W_h": flat.T @ run.states[part, :, :hidden].reshape(len(flat), -1),
            "b_x": flat.sum(axis=0),
        }
        if "W_hr" in self.weights:
            m = _released(self.functions, run.z[part], self.c[after]).reshape(len(flat), -1)
            terms["W_hr"] = self.adjoints[after, :, :hidden].reshape(len(flat), -1).T @ m
        if "peepholes" in self.weights:
            terms["peepholes"] = _peepholes(da, self.c[part], self.c[after])
        return terms


def _released(functions: LSTMFunctions, z: Array, c: Array) -> Array:
    """Output before the projection, o ψ(c)."""
    o = functions.gate.function(z[..., 3 * (z.shape[-1] // 4) :])
    return np.asarray(o * functions.squash.function(c))


def _peepholes(
    da: Float[Array, "steps batch rows"],
    c: Float[Array, "steps batch n"],
    c_next: Float[Array, "steps batch n"],
) -> Float[Array, "3 n"]:
    """Gradient of the peephole weights i, f, o; o sees the new cell state."""
    da_i, da_f, _, da_o = blocks(da, 4)
    pairs = ((da_i, c), (da_f, c), (da_o, c_next))
    return np.stack([(left * right).sum(axis=(0, 1)) for left, right in pairs])
