"""Forward runs: a cell, or a whole network, over sequences of different lengths."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array, close, require_finite
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network, Recurrence
from gradlab.errors import DivergenceError, SettingError, ShapeError
from gradlab.records.trajectory import Trajectory


def rollout(
    cell: Cell,
    inputs: Float[Array, "time batch features"],
    *,
    initial_state: Float[Array, "..."] | None = None,
    lengths: Int[Array, " batch"] | None = None,
) -> Trajectory:
    """States of a cell along sequences.

    Parameters
    ----------
    cell
        Any cell.
    inputs
        Time-major. Entries behind a sequence's end are never read.
    initial_state
        (batch, state_size), or (state_size,) for all sequences; zeros if None.
    lengths
        Valid steps of each sequence, 1..T; all T if None.

    Returns
    -------
    trajectory
        Computed in the cell's own floating-point type.

    Raises
    ------
    ShapeError
        If the feature count or the initial state does not fit the cell.
    NonFiniteError
        If a valid input or the initial state is NaN or infinite.
    SettingError
        If a length is not in 1..T.
    DivergenceError
        If a state leaves the range of the floating-point type.
    """
    dtype = next(iter(cell.parameters.values())).dtype
    inputs = _checked_inputs(cell, inputs)
    lengths = _checked_lengths(inputs, lengths)
    valid = np.arange(len(inputs))[:, None] < lengths
    x = (inputs if valid.all() else np.where(valid[:, :, None], inputs, 0)).astype(dtype)
    require_finite("inputs", x)
    h = _initial(cell, initial_state, inputs.shape[1]).astype(dtype)
    states, z = _run(cell, x, h, valid)
    return Trajectory(
        inputs=close(x), states=close(states), z=close(z), lengths=close(lengths.copy())
    )


def rollout_network(
    network: Network,
    inputs: Float[Array, "time batch features"],
    *,
    initial_state: dict[str, Float[Array, "..."]] | None = None,
    lengths: Int[Array, " batch"] | None = None,
) -> dict[str, Trajectory]:
    """Every recurrence of a network on its own real input.

    Parameters
    ----------
    network
        Layers of a stack read the concatenated outputs of the layer below; a backward recurrence
        reads each sequence from its own end.
    inputs
        Read by the first layer of every stack whose feature count fits.
    initial_state
        By the recurrence's name; zeros where absent.
    lengths
        Valid steps of each sequence.

    Returns
    -------
    trajectories
        By name, in the network's order. Those of backward recurrences are in processing order:
        step 1 reads the last valid input. Stacks that read another feature count are left out.

    Raises
    ------
    ShapeError
        If no stack of the network reads inputs of this feature count.
    UnknownNameError
        If an initial state belongs to no recurrence.
    """
    features = np.shape(inputs)[2] if np.ndim(inputs) == 3 else -1
    stacks = [network.stack(name) for name in network.stacks]
    fitting = [stack for stack in stacks if stack[0].cell.input_size == features]
    if not fitting and len(stacks) > 1:
        sizes = ", ".join(f"{stack[0].name} {stack[0].cell.input_size}" for stack in stacks)
        raise ShapeError(
            f"inputs have {features} features a step, the network reads {sizes}: expected inputs "
            "with one of these feature counts"
        )
    for name in initial_state or {}:
        network[name]  # an unknown name is an error that names the nearest
    trajectories: dict[str, Trajectory] = {}
    for stack in fitting or stacks:
        trajectories |= _run_stack(stack, inputs, initial_state or {}, lengths)
    return trajectories


def reverse_sequences(
    inputs: Float[Array, "time batch features"], lengths: Int[Array, " batch"]
) -> Float[Array, "time batch features"]:
    """Each sequence backward from its own end; padding stays where it is."""
    time = np.arange(len(inputs))[:, None]
    source = np.where(time < lengths, lengths - 1 - time, time)
    return np.take_along_axis(inputs, source[:, :, None], axis=0)


def _run_stack(
    stack: tuple[Recurrence, ...],
    inputs: Array,
    initial_state: dict[str, Array],
    lengths: Array | None,
) -> dict[str, Trajectory]:
    trajectories: dict[str, Trajectory] = {}
    for layer in dict.fromkeys(entry.layer for entry in stack):
        outputs = []
        for entry in (entry for entry in stack if entry.layer == layer):
            backward = entry.direction == "backward"
            checked = _checked_lengths(np.asarray(inputs), lengths)
            x = reverse_sequences(inputs, checked) if backward else inputs
            run = rollout(
                entry.cell, x, initial_state=initial_state.get(entry.name), lengths=lengths
            )
            trajectories[entry.name] = run
            y = entry.cell.output(run.states[1:])
            outputs.append(reverse_sequences(y, checked) if backward else y)
        inputs = np.concatenate(outputs, axis=2)
    return trajectories


def _run(cell: Cell, x: Array, h: Array, valid: Bool[Array, "time batch"]) -> tuple[Array, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        z, states = cell.unroll(cell.drive(x), h)
        if not valid.all():
            # What padding was led to is no data, whatever its size.
            z[~valid] = 0.0
            states[1:][~valid] = 0.0
        if not np.isfinite(states.sum()):
            _require_in_range(states)
    return states, z


def _require_in_range(states: Array) -> None:
    """Refuse states that are not finite; a sum of finite ones may be infinite too."""
    lost = np.asarray(~np.isfinite(states).all(axis=2))
    if lost.any():
        t = int(np.argmax(lost.any(axis=1)))
        sequence = int(np.argmax(lost[t]))
        raise DivergenceError(
            f"the state of sequence {sequence + 1} leaves the range of {states.dtype} at step {t} "
            f"of {len(states) - 1}: expected finite states; use shorter sequences, smaller weights "
            "or a bounded activation"
        )


def _checked_inputs(cell: Cell, inputs: Array) -> Array:
    inputs = np.asarray(inputs)
    if inputs.ndim != 3 or 0 in inputs.shape:
        raise ShapeError(
            f"inputs have shape {inputs.shape}: expected (time, batch, features) with at least one "
            "step, one sequence and one feature"
        )
    if inputs.shape[2] != cell.input_size:
        raise ShapeError(
            f"inputs have {inputs.shape[2]} features a step (shape {inputs.shape}), the cell reads "
            f"{cell.input_size}: expected (time, batch, {cell.input_size}); check the batch axis "
            "(option batch_first)"
        )
    return inputs


def _checked_lengths(inputs: Array, lengths: Array | None) -> Array:
    steps, batch = inputs.shape[:2]
    checked = np.full(batch, steps) if lengths is None else np.asarray(lengths)
    if checked.shape != (batch,) or checked.dtype.kind not in "iu":
        raise ShapeError(f"lengths have shape {checked.shape}: expected {batch} integers")
    wrong = np.flatnonzero((checked < 1) | (checked > steps))
    if len(wrong):
        raise SettingError(
            f"sequence {wrong[0] + 1} has length {checked[wrong[0]]}: expected 1 to {steps} steps; "
            "leave empty sequences out"
        )
    return checked.astype(np.int64)


def _initial(cell: Cell, state: Array | None, batch: int) -> Array:
    wanted = (batch, cell.state_size)
    if state is None:
        return np.zeros(wanted)
    state = np.asarray(state)
    if state.shape not in (wanted, wanted[1:]):
        raise ShapeError(
            f"initial_state has shape {state.shape}: expected {wanted} or {wanted[1:]}"
        )
    require_finite("initial_state", state)
    return np.broadcast_to(state, wanted)
