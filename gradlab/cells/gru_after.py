r"""The GRU with the reset gate after the product: forward run, factors and backward pass, in place.

With q = U_n h + b_h,n, the kept share k, :math:`\beta = (1 - k) \odot \varphi'` and
:math:`\zeta = dh'/da_z`,

.. math:: dh' = k\,dh + \zeta\,da_z + \beta\,(r\,dq + q\,\sigma'_r\,da_r + W_n dx).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.elementwise import Activation
from gradlab.cells.kernels import multiplicand
from gradlab.cells.stretches import ROWS, add_terms, entering, stretches
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

# Pre-activations whose factors are computed at a time: few enough to stay in the cache.
BLOCK_BYTES = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AfterFactors:
    """Elementwise factors of the steps of a run."""

    carry: Float[Array, "steps batch n"]  # k
    alpha: Float[Array, "4 steps batch n"]  # dh' by q, a_r, a_z and the candidate's pre-activation

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
        alpha_q, alpha_r, alpha_z, beta = out.alpha
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
    W, n = multiplicand(W_h.T, len(start)), start.shape[1]
    states = np.empty((len(drive) + 1, *start.shape), dtype=start.dtype)
    states[0] = start
    product = np.empty((len(start), len(W_h)), dtype=start.dtype)
    by_gates, by_candidate = product[:, : 2 * n], product[:, 2 * n :]
    gates, candidate = np.empty((2, *start.shape), start.dtype), np.empty_like(start)
    (r, z), sigma, phi = gates, functions.gate.writer, functions.candidate.writer
    by_gate = drive.reshape(*drive.shape[:2], 4, n).transpose(0, 2, 1, 3)
    a_gates, a_n, q = drive[:, :, : 2 * n], by_gate[:, 2], by_gate[:, 3]
    h, steps = states[0], zip(a_gates, by_gate[:, :2], a_n, q, states[1:], strict=True)
    for a_rz, a_rz_by_gate, a, q_t, following in steps:
        h.dot(W, product)
        np.add(a_rz, by_gates, a_rz)
        np.add(q_t, by_candidate, q_t)
        sigma(a_rz_by_gate, gates)
        np.multiply(r, q_t, candidate)
        np.add(a, candidate, a)
        phi(a, candidate)
        new, old = (candidate, h) if functions.keeps else (h, candidate)
        np.subtract(old, new, following)
        np.multiply(following, z, following)
        np.add(following, new, following)
        h = following
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
    adjoints, inputs = np.empty_like(trajectory.states), np.empty_like(trajectory.inputs)
    gradients: dict[str, Array] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for part, da in _sweep(W_h, functions, trajectory, upstream, adjoints):
            flat, n = da.reshape(-1, da.shape[2]), W_h.shape[1]
            np.dot(flat[:, n:], W_x, out=inputs[part].reshape(len(flat), -1))
            add_terms(gradients, _terms(flat, trajectory.states[part], trajectory.inputs[part]))
    return BackwardPass(
        gradients={name: close(array) for name, array in gradients.items()},
        inputs=close(inputs),
        initial_state=close(adjoints)[0],
        adjoints=adjoints,
    )


def _terms(
    flat: Float[Array, "rows fourfold"],
    h: Float[Array, "steps batch n"],
    x: Float[Array, "steps batch features"],
) -> dict[str, Array]:
    """What a stretch adds to the gradients, from derivatives by q, a_r, a_z and a_n."""
    n, sums = h.shape[2], flat.sum(axis=0)
    by_W = flat[:, : 3 * n].T @ h.reshape(len(flat), n)
    return {
        "W_x": flat[:, n:].T @ x.reshape(len(flat), -1),
        "W_h": np.concatenate([by_W[n:], by_W[:n]]),
        "b_x": sums[n:],
        "b_h": np.concatenate([sums[n : 3 * n], sums[:n]]),
    }


def _sweep(
    W_h: Float[Array, "rows n"],
    functions: AfterFunctions,
    trajectory: Trajectory,
    upstream: Float[Array, "time batch n"],
    adjoints: Float[Array, "times batch n"],
) -> Iterator[tuple[slice, Float[Array, "steps batch fourfold"]]]:
    """Write the adjoints; yield derivatives by q, a_r, a_z and a_n, a stretch of steps at a time.

    In this order the recurrent weights need the first three of them, the input weights the last.
    Each stretch is written over the one before.
    """
    z, n, given = trajectory.z, W_h.shape[1], entering(upstream)
    steps, batch = z.shape[:2]
    W = multiplicand(np.concatenate([W_h[2 * n :], W_h[: 2 * n]]), batch)
    adjoints[steps] = upstream[steps - 1]
    block, parts = BLOCK_BYTES // max(1, z[0].nbytes), stretches(steps, ROWS // batch)
    da = np.empty((parts[0].stop - parts[0].start, *z.shape[1:]), dtype=z.dtype)
    room = AfterFactors.empty((min(max(1, block), len(da)), batch, n), z.dtype)
    scratch, kept = np.empty((2, *room.carry.shape), z.dtype), np.empty((batch, n), z.dtype)
    for part in parts:
        for inside in stretches(part.stop - part.start, block):
            own = room.at(slice(0, inside.stop - inside.start))
            now = slice(part.start + inside.start, part.start + inside.stop)
            functions.write_factors(z[now], trajectory.states[now], own, scratch)
            _pull(own, da[inside], adjoints[now.start : now.stop + 1], given[now], W, kept)
        yield part, da[: part.stop - part.start]


def _pull(
    own: AfterFactors,
    da: Float[Array, "steps batch fourfold"],
    adjoints: Float[Array, "times batch n"],
    given: list[Array | None],
    W: Float[Array, "rows n"],
    kept: Float[Array, "batch n"],
) -> None:
    """From each step's new state to its pre-activations and its old state."""
    by_part = da.reshape(*da.shape[:2], 4, -1).transpose(0, 2, 1, 3)
    recurrent, alpha = da[:, :, : len(W)], own.alpha.swapaxes(0, 1)
    steps = zip(
        alpha[::-1], own.carry[::-1], by_part[::-1], recurrent[::-1],
        adjoints[:0:-1], adjoints[-2::-1], given[::-1],
        strict=True,
    )  # fmt: skip
    for alpha_t, carry, by_part_t, recurrent_t, after, before, given_t in steps:
        np.multiply(alpha_t, after, by_part_t)
        recurrent_t.dot(W, before)
        np.multiply(carry, after, kept)
        np.add(before, kept, before)
        if given_t is not None:
            np.add(before, given_t, before)


def _parts(a: Float[Array, "steps batch fourfold"]) -> list[Float[Array, "steps batch n"]]:
    """Pre-activations of r, z and n, and q."""
    n = a.shape[2] // 4
    return [a[:, :, part * n : (part + 1) * n] for part in range(4)]
