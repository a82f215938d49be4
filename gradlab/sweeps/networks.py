"""The network of a point, and the sequences it runs over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.cells.base import Cell
from gradlab.cells.kinds import CELLS
from gradlab.cells.stack import Network
from gradlab.checkpoints.loading import load
from gradlab.engine.rollout import rollout_network
from gradlab.engine.sequences import read_sequences
from gradlab.engine.synthetic import synthetic_sequences
from gradlab.errors import GradlabError, SettingError
from gradlab.records.trajectory import Trajectory
from gradlab.sweeps.settings import PointSettings, cell_settings
from gradlab.sweeps.streams import random_streams

READING = ("nonlinearity", "recurrent_activation", "keras_version", "map")


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
        sequences = read_sequences(settings.inputs, batch_first=settings.batch_first)
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


def reading_assumptions(readings: Sequence[PointSettings]) -> list[str]:
    """What had to be assumed in reading the models of a sweep, each sentence once.

    Parameters
    ----------
    readings
        Settings with a model; one for each way in which a model is read.

    Returns
    -------
    sentences
        Begun with the file's name unless they are said of every file. A model that cannot be read
        says nothing here: its points fail, and say why.
    """
    told = [entry for settings in readings if (entry := _told(settings)) is not None]
    said: dict[str, list[str]] = {}
    for source, sentences in told:
        for sentence in dict.fromkeys(sentences):
            said.setdefault(sentence, []).append(source)
    lines: list[str] = []
    for sentence, sources in said.items():
        everywhere = len(sources) == len(told)
        names = [""] if everywhere else [f"{source}: " for source in dict.fromkeys(sources)]
        lines += [f"{name}{sentence}" for name in names]
    return lines


def _told(settings: PointSettings) -> tuple[str, Sequence[str]] | None:
    """Source and sentences of a model that can be read; the network itself is let go."""
    try:
        network = _read(settings)
    except GradlabError:
        return None
    return network.source, network.assumptions


def _read(settings: PointSettings) -> Network:
    said: dict[str, Any] = {name: getattr(settings, name) for name in READING}
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
