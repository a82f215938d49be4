"""Forward run of the LSTM, in place."""

from __future__ import annotations

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
    W, hidden, n = multiplicand(W_h.T, len(start)), W_h.shape[1], W_h.shape[0] // 4
    states = np.empty((len(drive) + 1, *start.shape), dtype=start.dtype)
    states[0] = start
    by_gate = drive.reshape(*drive.shape[:2], 4, n).transpose(0, 2, 1, 3)
    product, gates = np.empty_like(drive[0]), np.empty_like(by_gate[0], order="C")
    for a, by_gate_t, before, after in zip(drive, by_gate, states, states[1:], strict=False):
        np.dot(before[:, :hidden], W, out=product)
        np.add(a, product, out=a)
        _cell(functions, by_gate_t, before[:, hidden:], after[:, hidden:], gates)
        if W_hr is None:
            np.multiply(gates[3], gates[2], out=after[:, :hidden])
        else:
            after[:, :hidden] = (gates[3] * gates[2]) @ W_hr.T
    return drive, states


def _cell(
    functions: LSTMFunctions,
    a: Float[Array, "4 batch n"],
    c: Float[Array, "batch n"],
    c_next: Float[Array, "batch n"],
    gates: Float[Array, "4 batch n"],
) -> None:
    """Write the new cell state; leave ψ(c') in place of g, whose product with o is the output."""
    i, f, g, o = gates
    peepholes = functions.peepholes
    if peepholes is not None:
        a[:2] += peepholes[:2, None] * c
    whole = peepholes is None and a.size < FEW
    functions.gate.write(a if whole else a[:2], gates if whole else gates[:2])
    if functions.coupled == "forget":
        np.subtract(1.0, i, out=f)
    elif functions.coupled == "input":
        np.subtract(1.0, f, out=i)
    functions.candidate.write(a[2], g)
    np.multiply(i, g, out=g)
    np.multiply(f, c, out=c_next)
    np.add(c_next, g, out=c_next)
    if peepholes is not None:
        a[3] += peepholes[2] * c_next
    if not whole:
        functions.gate.write(a[3], o)
    functions.squash.write(c_next, g)
