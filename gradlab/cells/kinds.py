"""Every kind of recurrent layer by its spelling in files, tables and options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gradlab.cells.gru import GRUCell
from gradlab.cells.leaky import LeakyCell
from gradlab.cells.lstm import LSTMCell
from gradlab.cells.minimal_gated import MinimalGatedCell
from gradlab.cells.vanilla import VanillaCell

CELLS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "rnn": VanillaCell,
        "leaky": LeakyCell,
        "lstm": LSTMCell,
        "gru": GRUCell,
        "mgu": MinimalGatedCell,
    }
)
