"""The loss that a network's outputs are read for, and its gradient at every recurrence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from gradlab.analysis.gradients import term_profile
from gradlab.arrays import Array
from gradlab.cells.stack import Network, Recurrence
from gradlab.engine.bptt import readout_terms, upstreams
from gradlab.engine.losses import Readout
from gradlab.engine.rollout import reverse_sequences
from gradlab.errors import SettingError, ShapeError
from gradlab.records.gradients import GradientProfile
from gradlab.records.trajectory import Trajectory

Runs = Mapping[str, Trajectory]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Objective:
    """A loss: what reads the states, what it shall give, and at which steps. See `bptt`."""

    readout: Readout
    targets: Array
    mask: Bool[Array, "time batch"] | None = None
    at: str | None = None

    @classmethod
    def of(
        cls,
        readout: Readout | None,
        targets: Array | None,
        *,
        mask: Bool[Array, "time batch"] | None = None,
        at: str | None = None,
    ) -> Objective | None:
        """Loss that is made of these, or None where none of them is given.

        Raises
        ------
        SettingError
            If targets or the readout are missing.
        """
        if targets is not None and readout is not None:
            return cls(readout=readout, targets=np.asarray(targets), mask=mask, at=at)
        given = {"targets": targets, "readout": readout, "mask": mask, "at": at}
        named = [name for name, value in given.items() if value is not None]
        if not named:
            return None
        missing = "a readout (see load_readout)" if targets is not None else "targets"
        raise SettingError(f"{' and '.join(named)} without {missing}: a loss needs both")

    @property
    def settings(self) -> dict[str, str | None]:
        """What is recorded of it."""
        return {
            "readout": self.readout.source or None,
            "loss": self.readout.loss,
            "average": self.readout.average,
            "at": self.at or ("mask" if self.mask is not None else "all"),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObjectiveGradient:
    """Terms of a loss's gradient by recurrence, and what was assumed."""

    profiles: Mapping[str, GradientProfile]
    assumptions: tuple[str, ...] = ()


def objective_gradient(network: Network, runs: Runs, objective: Objective) -> ObjectiveGradient:
    """Terms of the gradient of a loss, at every recurrence of the stack whose outputs are read.

    Parameters
    ----------
    network
        Of one stack or several.
    runs
        Its runs; stacks without a run are left out.
    objective
        The loss. Its readout decides which stack it reads: the one with as many outputs.

    Returns
    -------
    gradient
        Layers below the last have terms too: there t is the step at which the gradient enters the
        layer from above, see `gradient_profiles`. Recurrences of other stacks are absent.

    Raises
    ------
    GradlabError
        If the targets do not fit, or no stack or more than one fits the readout.
    """
    stack = _stack_read(network, runs, objective.readout)
    part = Network(network.stack(stack))
    own = {name: runs[name] for name in part}
    terms = readout_terms(
        part, objective.readout, own, objective.targets, mask=objective.mask, at=objective.at
    )
    last = _last_layer(part.recurrences)
    profiles = {
        name: term_profile(
            part[name], own[name], upstream, chosen=_listed(name, last, own, upstream, terms.chosen)
        )
        for name, upstream in upstreams(part, own, terms.upstream).items()
    }
    return ObjectiveGradient(
        profiles=profiles, assumptions=(*_said(network, runs, stack, last, objective),)
    )


def _stack_read(network: Network, runs: Runs, readout: Readout) -> str:
    widths = {
        name: sum(entry.cell.hidden_size for entry in _last_layer(network.stack(name)))
        for name in network.stacks
        if network.stack(name)[0].name in runs
    }
    fitting = [name for name, width in widths.items() if width == readout.hidden_size]
    if len(fitting) == 1:
        return fitting[0]
    found = ", ".join(f"{name or 'the only stack'} gives {width}" for name, width in widths.items())
    if fitting:
        raise SettingError(
            f"the readout reads {readout.hidden_size} values and fits the stacks "
            f"{', '.join(map(repr, fitting))}: expected one; make a Network of network.stack(name)"
        )
    raise ShapeError(
        f"W_hy has shape {readout.W_hy.shape}, and of the network {found}: expected "
        f"({readout.output_size}, {next(iter(widths.values()))})"
    )


def _last_layer(stack: tuple[Recurrence, ...]) -> list[Recurrence]:
    return [entry for entry in stack if entry.layer == stack[-1].layer]


def _listed(
    name: str,
    last: list[Recurrence],
    runs: Runs,
    upstream: Array,
    chosen: Bool[Array, "time batch"],
) -> Bool[Array, "time batch"]:
    """Steps t whose terms are listed, in the recurrence's own processing order."""
    directions = {entry.name: entry.direction for entry in last}
    if name not in directions:
        entering = np.any(upstream != 0.0, axis=2)
        return entering if entering.any() else runs[name].valid
    if directions[name] == "forward":
        return chosen
    own_order = reverse_sequences(chosen[:, :, None].astype(np.float64), runs[name].lengths)
    return np.asarray(own_order[:, :, 0] > 0.0)


def _said(
    network: Network, runs: Runs, stack: str, last: list[Recurrence], objective: Objective
) -> list[str]:
    """Sentences on what the loss reads, and on the recurrences it does not reach."""
    sentences = []
    if objective.readout.source:
        names = " and ".join(entry.name for entry in last)
        sentences.append(f"the loss reads {names} through {objective.readout.source}")
    if objective.at == "last":
        sentences += [
            f"the last step of {entry.name}'s outputs is its first one in processing order; a "
            "network that reads its final state instead has another gradient"
            for entry in last
            if entry.direction == "backward"
        ]
    others = [e.name for e in network.recurrences if e.stack != stack and e.name in runs]
    if others:
        names = ", ".join(others)
        sentences.append(f"the loss does not read {names}: no gradient is taken apart there")
    return sentences
