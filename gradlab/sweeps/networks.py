"""The network of a point, and the sequences it runs over."""

from __future__ import annotations

from typing import Any

from gradlab.cells.base import Cell
from gradlab.cells.kinds import CELLS
from gradlab.cells.stack import Network
from gradlab.checkpoints.loading import load
from gradlab.engine.rollout import rollout_network
from gradlab.engine.sequences import read_sequences
from gradlab.engine.synthetic import synthetic_sequences
from gradlab.errors import SettingError
from gradlab.records.trajectory import Trajectory
from gradlab.sweeps.settings import PointSettings, cell_settings
from gradlab.sweeps.streams import random_streams


def run_of(settings: PointSettings) -> tuple[Cell, Trajectory]:
    """Cell of a point, and its run over the point's sequences.

    Raises
    ------
    GradlabError
        If a setting, a file or the states are not what they should be.
    """
    weights, drawn = random_streams(settings)
    network = _read(settings) if settings.model else Network.of(_random(settings, weights))
    first = network.recurrences[0].cell
    if settings.inputs:
        sequences = read_sequences(settings.inputs)
    else:
        sequences = synthetic_sequences(
            settings.synthetic,
            length=settings.length,
            batch=settings.batch,
            input_size=first.input_size,
            rng=drawn,
            std=settings.input_std,
        )
    runs = rollout_network(network, sequences.inputs, lengths=sequences.lengths)
    name = settings.recurrence or _only(network)
    if name in network and name not in runs:
        raise SettingError(
            f"{name} reads another number of features than {network.recurrences[0].name}: expected "
            "a recurrence of the same stack"
        )
    return network[name], runs[name]


def _read(settings: PointSettings) -> Network:
    said: dict[str, Any] = {
        name: getattr(settings, name)
        for name in ("nonlinearity", "recurrent_activation", "keras_version", "map")
    }
    return load(str(settings.model), dtype=settings.dtype, **said)


def _random(settings: PointSettings, weights: Any) -> Cell:
    chosen = {name: getattr(settings, name) for name in cell_settings(settings.cell) - {"cell"}}
    cell: Cell = CELLS[settings.cell].initialize(rng=weights, dtype=settings.dtype, **chosen)
    return cell


def _only(network: Network) -> str:
    if len(network) > 1:
        raise SettingError(
            f"{network.source} has {len(network)} recurrences ({', '.join(network)}): choose with "
            "the setting recurrence"
        )
    return network.recurrences[0].name
