"""Backpropagation through time: the whole gradient of a loss, for a cell or a stack of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from gradlab.arrays import Array
from gradlab.cells.base import Cell
from gradlab.cells.stack import Network, Recurrence
from gradlab.cells.windows import WindowSum, windows_of
from gradlab.engine.losses import LossTerms, Readout, chosen_steps, loss_terms
from gradlab.engine.rollout import reverse_sequences, rollout_network
from gradlab.errors import SettingError
from gradlab.records.backward import BackwardPass, Gradients
from gradlab.records.trajectory import Trajectory

Runs = Mapping[str, Trajectory]


def bptt(
    network: Cell | Network,
    readout: Readout,
    inputs: Float[Array, "time batch features"],
    targets: Array,
    *,
    initial_state: Array | Mapping[str, Array] | None = None,
    lengths: Int[Array, " batch"] | None = None,
    mask: Bool[Array, "time batch"] | None = None,
    at: str | None = None,
    window: int | None = None,
) -> tuple[float, Gradients]:
    r"""Loss, and its gradient with respect to all weights, the inputs and the initial states.

    :math:`\frac{dL}{dW} = \sum_t \sum_{k \le t} \frac{\partial L_t}{\partial h_t}
    \frac{\partial h_t}{\partial h_k} \frac{\partial^+ h_k}{\partial W}`.

    Parameters
    ----------
    network
        A cell, or a network of one stack, whose last layer's outputs are read.
    readout
        Readout and loss.
    inputs
        Time-major sequences.
    targets
        Integers (time, batch) for the cross entropy, reals (time, batch, outputs) for the squared
        error; without the time axis where one step a sequence is chosen.
    initial_state
        One array for a cell, a mapping by the recurrence's name for a network; zeros if None.
    lengths
        Valid steps of each sequence; only they enter the loss.
    mask, at
        Steps with a loss: True in ``mask`` (time, batch), or ``at="last"``; all if None.
    window
        Truncation: the loss of step t reaches the steps k with t - k < window. The result is then
        marked as truncated, and is not the gradient of the loss. The whole past if None.

    Returns
    -------
    loss, gradients
        The loss is the sum over chosen steps and sequences, divided as ``readout.average`` says.
        Weights of a cell are keyed by attribute name, those of a network as ``name.attribute``,
        the readout's ``W_hy`` and ``b_y``.

    Raises
    ------
    GradlabError
        If inputs, targets or settings do not fit, or a state leaves the range of its type.
    """
    single = not isinstance(network, Network)
    whole = network if isinstance(network, Network) else Network.of(network)
    runs = forward_runs(whole, inputs, initial_state=initial_state, lengths=lengths)
    terms = readout_terms(whole, readout, runs, targets, mask=mask, at=at)
    passes = backpropagate(whole, runs, terms.upstream, window=window)
    prefixes = {name: "" if single else f"{name}." for name in passes}
    weights = {
        prefixes[name] + attribute: gradient
        for name, each in passes.items()
        for attribute, gradient in each.gradients.items()
    }
    return terms.value, Gradients(
        weights=weights | dict(terms.gradients),
        inputs=_inputs_gradient(_layers(whole)[0], passes, runs),
        passes=passes,
        window=window,
    )


def forward_runs(
    network: Network,
    inputs: Float[Array, "time batch features"],
    *,
    initial_state: Array | Mapping[str, Array] | None = None,
    lengths: Int[Array, " batch"] | None = None,
) -> Runs:
    """Runs of a network of one stack, by name.

    Raises
    ------
    SettingError
        If the network has several stacks, or one initial state is given for several recurrences.
    """
    if len(network.stacks) != 1:
        stacks = ", ".join(repr(name) for name in network.stacks)
        raise SettingError(
            f"the network has the stacks {stacks}: expected one, whose outputs are read; make a "
            "Network of network.stack(name)"
        )
    if initial_state is not None and not isinstance(initial_state, Mapping):
        if len(network) > 1:
            names = ", ".join(network)
            raise SettingError(
                f"initial_state is one array, the network has the recurrences {names}: expected a "
                "mapping by name"
            )
        initial_state = {next(iter(network)): initial_state}
    states = None if initial_state is None else dict(initial_state)
    return rollout_network(network, inputs, initial_state=states, lengths=lengths)


def read_outputs(network: Network, runs: Runs) -> Float[Array, "time batch hidden"]:
    """What a readout reads at every step: outputs of the last layer, in time order."""
    parts = []
    for entry in _layers(network)[-1]:
        run = runs[entry.name]
        y = entry.cell.output(run.states[1:])
        parts.append(_time_order(entry, y, run.lengths))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def readout_terms(
    network: Network,
    readout: Readout,
    runs: Runs,
    targets: Array,
    *,
    mask: Bool[Array, "time batch"] | None = None,
    at: str | None = None,
) -> LossTerms:
    """Loss of a network's runs, with its derivatives by the last layer's outputs."""
    hidden = read_outputs(network, runs)
    lengths = next(iter(runs.values())).lengths
    chosen = chosen_steps(lengths, len(hidden), at=at, mask=mask)
    return loss_terms(readout, hidden, targets, chosen)


def backpropagate(
    network: Network,
    runs: Runs,
    upstream: Float[Array, "time batch hidden"],
    *,
    window: int | None = None,
) -> dict[str, BackwardPass]:
    """Backward pass through all layers and directions of one stack.

    Parameters
    ----------
    network
        A network of one stack.
    runs
        Its runs, as `forward_runs` gives them.
    upstream
        Explicit derivatives of any scalar L by the last layer's outputs, in time order; 0 behind a
        sequence's end.
    window
        See `bptt`.

    Returns
    -------
    passes
        By name, in the network's order; in processing order for backward recurrences.

    Raises
    ------
    SettingError
        If a window is given for a network with backward recurrences.
    """
    if window is None:
        return _whole_past(network, runs, upstream)
    backward = [entry.name for entry in network.recurrences if entry.direction == "backward"]
    if backward:
        raise SettingError(
            f"window {window} with the backward recurrence {backward[0]}: a truncated past is "
            "defined for forward recurrences only; leave the window out"
        )
    return _truncated(network, runs, upstream, window)


def upstreams(
    network: Network, runs: Runs, upstream: Float[Array, "time batch hidden"]
) -> dict[str, Float[Array, "time batch _"]]:
    """Derivatives of L by every recurrence's states, as they enter it from outside, by name."""
    entering = {entry.name: own for entry, own, _ in _descend(network, runs, upstream)}
    return {name: entering[name] for name in network}


def state_upstream(cell: Cell, upstream: Float[Array, "time batch hidden"]) -> Array:
    """Derivatives by the whole state, from those by the part that is the cell's output."""
    places = cell.output(np.arange(cell.state_size, dtype=np.float64)).astype(np.int64)
    if np.array_equal(places, np.arange(cell.state_size)):
        return upstream
    whole = np.zeros((*upstream.shape[:2], cell.state_size), dtype=upstream.dtype)
    for t in np.flatnonzero(upstream.any(axis=(1, 2))):  # pages of zeros alone are never touched
        whole[t, :, places[0] : places[-1] + 1] = upstream[t]
    return whole


def _layers(network: Network) -> list[list[Recurrence]]:
    """Recurrences layer by layer, in order."""
    numbers = dict.fromkeys(entry.layer for entry in network.recurrences)
    return [[entry for entry in network.recurrences if entry.layer == number] for number in numbers]


def _time_order(entry: Recurrence, values: Array, lengths: Array) -> Array:
    """Values between time order and the recurrence's own processing order, either way."""
    return reverse_sequences(values, lengths) if entry.direction == "backward" else values


def _whole_past(network: Network, runs: Runs, upstream: Array) -> dict[str, BackwardPass]:
    passes = {entry.name: each for entry, _, each in _descend(network, runs, upstream)}
    return {name: passes[name] for name in network}


def _descend(
    network: Network, runs: Runs, upstream: Array
) -> Iterator[tuple[Recurrence, Array, BackwardPass]]:
    """Recurrences from the last layer to the first, each with its own upstream and its pass."""
    layers = _layers(network)
    for layer in reversed(layers):
        passes: dict[str, BackwardPass] = {}
        start = 0
        for entry in layer:
            part = upstream[:, :, start : start + entry.cell.hidden_size]
            start += entry.cell.hidden_size
            run = runs[entry.name]
            own = state_upstream(entry.cell, _time_order(entry, part, run.lengths))
            passes[entry.name] = entry.cell.backward(run, own)
            yield entry, own, passes[entry.name]
        if layer is not layers[0]:
            upstream = _inputs_gradient(layer, passes, runs)


def _inputs_gradient(
    layer: Sequence[Recurrence], passes: Mapping[str, BackwardPass], runs: Runs
) -> Float[Array, "time batch features"]:
    """Derivatives by what a layer reads, summed over its directions, in time order."""
    parts = [
        _time_order(entry, passes[entry.name].inputs, runs[entry.name].lengths) for entry in layer
    ]
    return parts[0] if len(parts) == 1 else np.add(parts[0], parts[1])


def _truncated(
    network: Network, runs: Runs, upstream: Array, window: int
) -> dict[str, BackwardPass]:
    """Passes of windows, which go down the stack together and are added up."""
    totals = {name: WindowSum(cell, runs[name]) for name, cell in network.items()}
    for windows in windows_of(next(iter(runs.values())), upstream, window):
        own = {name: windows.gather(run) for name, run in runs.items()}
        for name, part in _whole_past(network, own, windows.ends_only(upstream)).items():
            totals[name].add(windows, part)
    return {name: total.close() for name, total in totals.items()}
