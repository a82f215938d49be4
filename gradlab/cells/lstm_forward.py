"""Forward run of the LSTM, in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array
from gradlab.cells.kernels import multiplicand
from gradlab.cells.lstm_factors import LSTMFunctions

# Below this many numbers a step, a call costs more than the numbers it could leave out.
FEW = 4096


def lstm_unroll(
    W_h: Float[Array, "rows hidden"],
    W_hr: Float[Array, "hidden n"] | None,
    functions: LSTMFunctions,
    drive: Float[Array, "time batch rows"],
    start: Float[Array, "batch state"],
) -> tuple[Float[Array, "time batch rows"], Float[Array, "times batch state"]]:
    """Pre-activations of all steps, in place of the drive, and states for t = 0..T.

    The caller silences overflow.
    """
    W, hidden = multiplicand(W_h.T, len(start)), W_h.shape[1]
    states = np.empty((len(drive) + 1, *start.shape), dtype=start.dtype)
    states[0] = start
    product, c = np.empty_like(drive[0]), start[:, hidden:].copy()
    by_gate = drive.reshape(*drive.shape[:2], 4, -1).transpose(0, 2, 1, 3)
    gates = np.empty_like(by_gate[0], order="C")
    _, _, g, o = gates
    h, outputs, cells = states[0, :, :hidden], states[1:, :, :hidden], states[1:, :, hidden:]
    whole = functions.peepholes is None and drive[0].size < FEW
    advance = _cell(functions, gates, whole)
    for a, a_by_gate, h_next, c_next in zip(drive, by_gate, outputs, cells, strict=True):
        h.dot(W, product)
        np.add(a, product, a)
        advance(a_by_gate, c)
        c_next[...] = c
        if W_hr is None:
            np.multiply(o, g, h_next)
        else:
            h_next[...] = (o * g) @ W_hr.T
        h = h_next
    return drive, states


def _cell(
    functions: LSTMFunctions, gates: Float[Array, "4 batch n"], whole: bool
) -> Callable[[Float[Array, "4 batch n"], Float[Array, "batch n"]], None]:
    """Step of the cell state in place, from pre-activations that the peepholes are added to.

    It leaves ψ(c') in place of g, whose product with o is the output. All four gates go through one
    activation if `whole`, that of g in vain.
    """
    sigma, phi, psi = functions.gate.writer, functions.candidate.writer, functions.squash.writer
    coupled, peepholes = functions.coupled, functions.peepholes
    i, f, g, o = gates
    first = gates if whole else gates[:2]

    def advance(a: Array, c: Array) -> None:
        if peepholes is not None:
            a[:2] += peepholes[:2, None] * c
        sigma(a if whole else a[:2], first)
        if coupled == "forget":
            np.subtract(1.0, i, f)
        elif coupled == "input":
            np.subtract(1.0, f, i)
        phi(a[2], g)
        np.multiply(i, g, g)
        np.multiply(f, c, c)
        np.add(c, g, c)
        if peepholes is not None:
            a[3] += peepholes[2] * c
        if not whole:
            sigma(a[3], o)
        psi(c, g)

    return advance
