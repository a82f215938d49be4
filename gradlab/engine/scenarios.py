"""Three networks to learn from: ready-made cells with inputs, each with its lesson."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradlab.cells.vanilla import VanillaCell
from gradlab.engine.sequences import Sequences
from gradlab.engine.synthetic import synthetic_sequences
from gradlab.errors import unknown_name

HIDDEN_SIZE, INPUT_SIZE, LENGTH, BATCH = 64, 8, 100, 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """A network, the sequences it reads, and what it shows."""

    name: str
    title: str
    lesson: str
    cell: VanillaCell
    sequences: Sequences


def scenario(name: str, *, seed: int = 0) -> Scenario:
    """Ready-made network of the given name.

    Parameters
    ----------
    name
        ``vanishing``, ``exploding`` or ``saturated``.
    seed
        Of weights and inputs.

    Returns
    -------
    scenario
        A tanh network of 64 units over 8 synthetic sequences of 100 steps.

    Raises
    ------
    UnknownNameError
        If there is none of that name; the nearest is named.
    """
    if name not in _SCENARIOS:
        raise unknown_name("scenario", name, _SCENARIOS)
    return _SCENARIOS[name](np.random.default_rng(seed))


def scenario_names() -> tuple[str, ...]:
    """Names of the scenarios."""
    return tuple(_SCENARIOS)


def _vanishing(rng: np.random.Generator) -> Scenario:
    cell = _tanh_cell(rng, gain=0.9)
    return Scenario(
        name="vanishing",
        title="A random tanh network of gain 0.9",
        lesson="σ_max(W_hh) is near 1.8, and the gradient vanishes all the same: the textbook "
        "bound only permits explosion, it does not predict it.",
        cell=cell,
        sequences=_gaussian(rng, std=0.1),
    )


def _exploding(rng: np.random.Generator) -> Scenario:
    cell = _tanh_cell(rng, gain=3.0)
    return Scenario(
        name="exploding",
        title="A random tanh network of gain 3",
        lesson="The gradient explodes, but at about a sixth of the rate that the textbook bound "
        "allows.",
        cell=cell,
        sequences=_gaussian(rng, std=0.1),
    )


def _saturated(rng: np.random.Generator) -> Scenario:
    cell = _tanh_cell(rng, gamma=3.0)
    return Scenario(
        name="saturated",
        title="A tanh network with σ_max = 3 driven into saturation",
        lesson="Strong inputs flatten tanh: its derivative is near 0 for most units, and the "
        "gradient vanishes although σ_max(W_hh) = 3.",
        cell=cell,
        sequences=_gaussian(rng, std=8.0),
    )


_SCENARIOS: dict[str, Callable[[np.random.Generator], Scenario]] = {
    "vanishing": _vanishing,
    "exploding": _exploding,
    "saturated": _saturated,
}


def _tanh_cell(
    rng: np.random.Generator, *, gain: float = 1.0, gamma: float | None = None
) -> VanillaCell:
    return VanillaCell.initialize(
        input_size=INPUT_SIZE, hidden_size=HIDDEN_SIZE, gain=gain, gamma=gamma, rng=rng
    )


def _gaussian(rng: np.random.Generator, *, std: float) -> Sequences:
    return synthetic_sequences(
        "gaussian", length=LENGTH, batch=BATCH, input_size=INPUT_SIZE, rng=rng, std=std
    )
