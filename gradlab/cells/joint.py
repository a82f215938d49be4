r"""A stack of layers as one cell, whose state is the states of all layers side by side.

Layer l reads the new output of layer l - 1 in the same step, so that the joint Jacobian is block
lower triangular: the layers' own Jacobians on the diagonal, below them the ways through the layers
in between. The long-term Jacobian of the joint state is the one that training of a deep network
sees; that of a single layer holds the layer's input fixed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from gradlab.arrays import Array, close
from gradlab.cells.base import Cell, LinearStep, Nonlinearity
from gradlab.cells.layer import Layer
from gradlab.cells.linear_steps import LinearSteps, Term
from gradlab.errors import SettingError
from gradlab.records.backward import BackwardPass
from gradlab.records.trajectory import Trajectory

Value = TypeVar("Value")


class JointCell(Layer):
    """Layers of one direction, first layer first, as one cell.

    Parameters
    ----------
    layers
        Cells by a name that heads the names of their weights, gates and matrices.

    Raises
    ------
    SettingError
        If there is no layer, or one reads another number of features than the one below gives.
    """

    kind = "joint"

    def __init__(self, layers: Mapping[str, Cell]) -> None:
        if not layers:
            raise SettingError("a joint cell of no layer: expected at least one")
        self.layers = dict(layers)
        for (below, lower), (name, upper) in itertools.pairwise(self.layers.items()):
            if upper.input_size != lower.hidden_size:
                raise SettingError(
                    f"{name} reads {upper.input_size} features and {below} gives "
                    f"{lower.hidden_size}: expected as many"
                )

    @property
    def cells(self) -> Sequence[Cell]:
        """Cells from the first layer to the last."""
        return list(self.layers.values())

    @property
    def hidden_size(self) -> int:
        """Length of the last layer's output."""
        return self.cells[-1].hidden_size

    @property
    def state_size(self) -> int:
        """Length of all states together."""
        return sum(cell.state_size for cell in self.cells)

    @property
    def state_parts(self) -> Mapping[str, slice]:
        """Those of all layers, as ``layer.part``."""
        starts = np.cumsum([0, *(cell.state_size for cell in self.cells)]).tolist()
        return {
            f"{name}.{part}": slice(start + place.start, start + place.stop)
            for (name, cell), start in zip(self.layers.items(), starts, strict=False)
            for part, place in cell.state_parts.items()
        }

    @property
    def input_size(self) -> int:
        """Features that the first layer reads."""
        return self.cells[0].input_size

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Weights as ``layer.attribute``."""
        return _prefixed((name, cell.parameters) for name, cell in self.layers.items())

    def drive(self, inputs: Float[Array, "*steps features"]) -> Float[Array, "*steps rows"]:
        """The first layer's drive; what the others read is known in the step only, so 0 here."""
        first = self.cells[0].drive(inputs)
        rest = sum(self._widths()[1:])
        return np.concatenate([first, np.zeros((*first.shape[:-1], rest), first.dtype)], axis=-1)

    def advance(
        self, drive: Float[Array, "batch rows"], state: Float[Array, "batch state"]
    ) -> tuple[Float[Array, "batch rows"], Float[Array, "batch state"]]:
        """Pre-activations and next states, layer by layer."""
        own = drive[:, : self._widths()[0]]
        z, following = [], []
        for index, (cell, s) in enumerate(zip(self.cells, self._states(state), strict=True)):
            a, s_next = cell.advance(own, s)
            z.append(a)
            following.append(s_next)
            if index + 1 < len(self.layers):
                own = self.cells[index + 1].drive(cell.output(s_next))
        return np.concatenate(z, axis=1), np.concatenate(following, axis=1)

    def output(self, states: Float[Array, "*steps state"]) -> Float[Array, "*steps hidden"]:
        """The last layer's output."""
        return self.cells[-1].output(self._states(states)[-1])

    def runs(self, trajectory: Trajectory) -> list[Trajectory]:
        """Runs of the single layers, each on its own input."""
        inputs, runs = trajectory.inputs, []
        parts = zip(self._states(trajectory.states), self._split(trajectory.z), strict=True)
        for cell, (states, z) in zip(self.cells, parts, strict=True):
            runs.append(Trajectory(inputs=inputs, states=states, z=z, lengths=trajectory.lengths))
            inputs = cell.output(states)[1:]
        return runs

    def linearize(self, trajectory: Trajectory) -> LinearSteps:
        """Joint Jacobians along a trajectory."""
        each = [
            cell.linearize(run) for cell, run in zip(self.cells, self.runs(trajectory), strict=True)
        ]
        hidden = [cell.hidden_size for cell in self.cells]
        sizes = [cell.state_size for cell in self.cells]
        return LinearSteps(
            trajectory.steps,
            lambda j: JointStep(steps=[steps[j] for steps in each], hidden=hidden, sizes=sizes),
        )

    def whole_backward(
        self, trajectory: Trajectory, upstream: Float[Array, "time batch state"]
    ) -> BackwardPass:
        """Gradients through the whole past, from the last layer down."""
        runs, given = self.runs(trajectory), self._states(upstream)
        passes: list[BackwardPass] = []
        for cell, run, own in zip(self.cells[::-1], runs[::-1], given[::-1], strict=True):
            total = own.copy()
            if passes:
                total[..., : cell.hidden_size] += passes[0].inputs
            passes.insert(0, cell.backward(run, total))
        adjoints = close(np.concatenate([own.adjoints for own in passes], axis=2))
        return BackwardPass(
            gradients=_prefixed(
                (name, own.gradients) for name, own in zip(self.layers, passes, strict=True)
            ),
            inputs=passes[0].inputs,
            initial_state=adjoints[0],
            adjoints=adjoints,
        )

    def nonlinearities(self, trajectory: Trajectory) -> Mapping[str, Nonlinearity]:
        """Those of all layers, as ``layer.name``."""
        pairs = zip(self.layers.items(), self.runs(trajectory), strict=True)
        return _prefixed((name, cell.nonlinearities(run)) for (name, cell), run in pairs)

    def carry(self, trajectory: Trajectory) -> Mapping[str, Float[Array, "time batch n"]]:
        """Those of all layers, as ``layer.gate``."""
        pairs = zip(self.layers.items(), self.runs(trajectory), strict=True)
        return _prefixed((name, cell.carry(run)) for (name, cell), run in pairs)

    def recurrent_matrices(self) -> Mapping[str, Float[Array, "_ _"]]:
        """Those of all layers, as ``layer.gate``."""
        return _prefixed((name, cell.recurrent_matrices()) for name, cell in self.layers.items())

    def gamma_factors(self) -> tuple[None, None]:
        """None: no single matrix bounds the joint Jacobian."""
        return None, None

    def _widths(self) -> list[int]:
        """Lengths of the layers' pre-activations."""
        return [cell.drive(np.zeros((0, cell.input_size))).shape[1] for cell in self.cells]

    def _split(self, z: Float[Array, "*steps rows"]) -> list[Array]:
        return np.split(z, np.cumsum(self._widths())[:-1], axis=-1)

    def _states(self, states: Float[Array, "*steps state"]) -> list[Array]:
        ends = np.cumsum([cell.state_size for cell in self.cells])
        return np.split(states, ends[:-1], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointStep:
    """One step's joint Jacobian, through the layers' own."""

    steps: Sequence[LinearStep]
    hidden: Sequence[int]  # lengths of the layers' outputs
    sizes: Sequence[int]  # lengths of the layers' states

    def apply(self, V: Float[Array, "batch state m"]) -> Float[Array, "batch state m"]:
        """J V."""
        return self._upward(self._parts(V), None)

    def apply_transpose(self, U: Float[Array, "batch state m"]) -> Float[Array, "batch state m"]:
        """Jᵀ U."""
        totals = self._downward(U)
        pulled = [
            step.apply_transpose(total) for step, total in zip(self.steps, totals, strict=True)
        ]
        return np.concatenate(pulled, axis=1)

    def apply_input(self, V: Float[Array, "batch features m"]) -> Float[Array, "batch state m"]:
        """Change of the states with the first layer's input."""
        return self._upward([None] * len(self.steps), V)

    def apply_input_transpose(
        self, U: Float[Array, "batch state m"]
    ) -> Float[Array, "batch features m"]:
        """Transpose of `apply_input`."""
        return self.steps[0].apply_input_transpose(self._downward(U)[0])

    def matrix(self) -> Float[Array, "batch state state"]:
        """Dense J."""
        batch, n = self.steps[0].matrix().shape[0], sum(self.sizes)
        return self.apply(np.broadcast_to(np.eye(n), (batch, n, n)))

    def log_abs_det(self) -> Float[Array, " batch"]:
        """ln |det J| = sum over the layers: J is block triangular."""
        return np.asarray(np.sum([step.log_abs_det() for step in self.steps], axis=0))

    def terms(self, U: Float[Array, "batch state m"]) -> list[Term]:
        """Refused: the stack has no one recurrent matrix.

        Raises
        ------
        SettingError
            Always.
        """
        raise SettingError("a joint cell has no one recurrent matrix: ask its layers one by one")

    def _parts(self, V: Float[Array, "batch state m"]) -> list[Array | None]:
        return list(np.split(V, np.cumsum(self.sizes)[:-1], axis=1))

    def _upward(self, parts: Sequence[Array | None], below: Array | None) -> Array:
        """Changes of the new states, from those of the old states and of the input."""
        changes: list[Array] = []
        for step, own, hidden in zip(self.steps, parts, self.hidden, strict=True):
            change = None if own is None else step.apply(own)
            if below is not None:
                read = step.apply_input(below)
                change = read if change is None else change + read
            changes.append(np.asarray(change))
            below = changes[-1][:, :hidden]
        return np.concatenate(changes, axis=1)

    def _downward(self, U: Array) -> list[Array]:
        """Total derivatives by the new states, from those from outside the step."""
        totals = [np.array(part) for part in np.split(U, np.cumsum(self.sizes)[:-1], axis=1)]
        for index in range(len(totals) - 1, 0, -1):
            read = self.steps[index].apply_input_transpose(totals[index])
            totals[index - 1][:, : self.hidden[index - 1]] += read
        return totals


def _prefixed(named: Iterable[tuple[str, Mapping[str, Value]]]) -> dict[str, Value]:
    """Values of all mappings as ``name.key``."""
    return {f"{name}.{key}": value for name, each in named for key, value in each.items()}
