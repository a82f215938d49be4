"""Random numbers of a point, from its seed and its parameters alone.

The parameters are those that shape the network and its inputs and differ from their defaults, as
JSON with sorted keys and no blanks; the eight 32-bit words of its SHA-256, read little-endian, are
the spawn key of ``numpy.random.SeedSequence(seed)``. Its first child draws the weights, its second
the inputs. How a point is analyzed moves no number, and networks read from files run over the same
inputs under the same seed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from gradlab.sweeps.settings import DEFAULTS, INPUTS, PointSettings, cell_settings


def random_parameters(settings: PointSettings) -> dict[str, Any]:
    """Parameters that shape a point's random numbers and differ from their defaults."""
    random = () if settings.model else sorted(cell_settings(settings.cell))
    values = {name: getattr(settings, name) for name in (*random, *INPUTS) if name != "inputs"}
    return {name: value for name, value in values.items() if value != DEFAULTS[name]}


def random_streams(settings: PointSettings) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators of a point's weights and of its inputs."""
    text = json.dumps(random_parameters(settings), sort_keys=True, separators=(",", ":"))
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    sequence = np.random.SeedSequence(settings.seed, spawn_key=tuple(words.tolist()))
    weights, inputs = sequence.spawn(2)
    return np.random.default_rng(weights), np.random.default_rng(inputs)
