r"""The GRU with the reset gate after the product: forward run, factors and backward pass, in place.

With q = U_n h + b_h,n, the kept share k, :math:`\beta = (1 - k) \odot \varphi'` and
:math:`\zeta = dh'/da_z`,

.. math:: dh' = k\,dh + \zeta\,da_z + \beta\,(r\,dq + q\,\sigma'_r\,da_r + W_n dx).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.elementwise import Activation
from gradlab.cells.kernels import multiplicand
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Pre-activations whose factors are computed at a time: few enough to stay in the cache.
BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AfterFactors:
    """Elementwise factors of the steps of a run."""

    carry: Float[Array, "steps batch n"]  # k
    alpha: Float[Array, "4 steps batch n"]  # dh' by a_r, a_z, q and the candidate's pre-activation

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AfterFactors:
        """Room for steps whose states have the given shape."""
        return cls(carry=np.empty(shape, dtype=dtype), alpha=np.empty((4, *shape), dtype=dtype))

    def at(self, steps: slice) -> AfterFactors:
        """Views of some steps."""
        return AfterFactors(carry=self.carry[steps], alpha=self.alpha[:, steps])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AfterFunctions:
    """The elementwise part of the cell: activations, and the sense of z."""

    gate: Activation  # of r and z
    candidate: Activation  # of n
    keeps: bool  # whether z keeps the old state

    def factors(
        self, a: Float[Array, "steps batch fourfold"], h: Float[Array, "steps batch n"]
    ) -> AfterFactors:
        """Factors of steps with the given pre-activations and old states."""
        whole = AfterFactors.empty(h.shape, h.dtype)
        block = max(1, BLOCK_BYTES // max(1, a[:1].nbytes))
        scratch = np.empty((2, min(block, len(a)), *h.shape[1:]), dtype=h.dtype)
        with np.errstate(over="ignore"):
            for start in range(0, len(a), block):
                part = slice(start, start + block)
                self.write_factors(a[part], h[part], whole.at(part), scratch)
        return whole

    def write_factors(
        self,
        a: Float[Array, "steps batch fourfold"],
        h: Float[Array, "steps batch n"],
        out: AfterFactors,
        scratch: Float[Array, "2 room batch n"],
    ) -> None:
        """Same as `factors`, into arrays that are there; the caller silences overflow."""
        a_r, a_z, a_n, q = _parts(a)
        alpha_r, alpha_z, alpha_q, beta = out.alpha
        toward, slope = scratch[:, : len(a)]
        self.gate.write_both(a_z, out.carry, alpha_z)
        self.candidate.write_both(a_n, toward, beta)
        if self.keeps:
            np.subtract(h, toward, out=toward)
            np.subtract(1.0, out.carry, out=slope)
        else:
            np.subtract(toward, h, out=toward)
            np.copyto(slope, out.carry)
            np.subtract(1.0, out.carry, out=out.carry)
        np.multiply(toward, alpha_z, out=alpha_z)
        np.multiply(slope, beta, out=beta)
        self.gate.write_both(a_r, alpha_q, slope)
        np.multiply(q, slope, out=alpha_r)
        np.multiply(alpha_r, beta, out=alpha_r)
        np.multiply(alpha_q, beta, out=alpha_q)


def after_unroll(
    W_h: Float[Array, "rows n"],
    functions: AfterFunctions,
    drive: Float[Array, "time batch fourfold"],
    start: Float[Array, "batch n"],
) -> tuple[Float[Array, "time batch fourfold"], Float[Array, "times batch n"]]:
    """Pre-activations of all steps, in place of the drive, and states for t = 0..T.

    The caller silences overflow.
    """
    W = multiplicand(W_h.T, len(start))
    states = np.empty((len(drive) + 1, *start.shape), dtype=start.dtype)
    states[0] = start
    product = np.empty((len(start), len(W_h)), dtype=start.dtype)
    by_gate = product.reshape(len(start), 3, -1).transpose(1, 0, 2)
    gates, candidate = np.empty((2, *start.shape), start.dtype), np.empty(start.shape, start.dtype)
    gate, phi = functions.gate, functions.candidate
    steps = drive.reshape(*drive.shape[:2], 4, -1).transpose(0, 2, 1, 3)
    for a, h, following in zip(steps, states, states[1:], strict=False):
        np.dot(h, W, out=product)
        np.add(a[:2], by_gate[:2], out=a[:2])
        np.add(a[3], by_gate[2], out=a[3])
        gate.write(a[:2], gates)
        np.multiply(gates[0], a[3], out=candidate)
        np.add(a[2], candidate, out=a[2])
        phi.write(a[2], candidate)
        new, old = (candidate, h) if functions.keeps else (h, candidate)
        np.subtract(old, new, out=following)
        np.multiply(following, gates[1], out=following)
        np.add(following, new, out=following)
    return drive, states


def after_backward(
    W_x: Float[Array, "rows features"],
    W_h: Float[Array, "rows n"],
    functions: AfterFunctions,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> BackwardPass:
    """Gradients by one sweep from the last step to the first.

    Parameters
    ----------
    W_x, W_h
        Rows r, z, n.
    functions
        The cell's elementwise part.
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
        da, adjoints = _sweep(W_h, functions, trajectory, upstream)
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
    functions: AfterFunctions,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
) -> tuple[Float[Array, "time batch fourfold"], Float[Array, "times batch n"]]:
    """Derivatives of L by a_r, a_z, q and the candidate's pre-activation, and by the states."""
    h, z, n = trajectory.states[:-1], trajectory.z, W_h.shape[1]
    steps, batch = z.shape[:2]
    W = multiplicand(W_h, batch)
    adjoints = np.empty_like(trajectory.states)
    adjoints[0], adjoints[1:] = 0.0, upstream
    da, pulled = np.empty_like(z), np.empty((batch, n), dtype=z.dtype)
    by_part = da.reshape(steps, batch, 4, n).transpose(0, 2, 1, 3)
    block = min(steps, max(1, BLOCK_BYTES // max(1, z[0].nbytes)))
    room = AfterFactors.empty((block, batch, n), z.dtype)
    scratch = np.empty((2, block, batch, n), z.dtype)
    for stop in range(steps, 0, -block):
        start = max(0, stop - block)
        own = room.at(slice(0, stop - start))
        functions.write_factors(z[start:stop], h[start:stop], own, scratch)
        for t in range(stop - 1, start - 1, -1):
            after, before, j = adjoints[t + 1], adjoints[t], t - start
            np.multiply(own.alpha[:, j], after, out=by_part[t])
            np.dot(da[t, :, : 3 * n], W, out=pulled)
            np.add(before, pulled, out=before)
            np.multiply(own.carry[j], after, out=pulled)
            np.add(before, pulled, out=before)
    return da, close(adjoints)


def _parts(a: Float[Array, "steps batch fourfold"]) -> list[Float[Array, "steps batch n"]]:
    """Pre-activations of r, z and n, and q."""
    n = a.shape[2] // 4
    return [a[:, :, part * n : (part + 1) * n] for part in range(4)]
