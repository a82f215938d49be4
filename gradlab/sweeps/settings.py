"""Everything that shapes one point of a sweep, and which settings go together."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gradlab.cells.kinds import CELLS
from gradlab.errors import SettingError, unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSettings:
    """Everything that shapes one point: a network, its inputs, its analysis.

    The network is random, of a kind of cell, which takes those settings that it has; or it is read
    from a file, where ``model`` names one.
    """

    model: str | None = None
    recurrence: str | None = None
    nonlinearity: str | None = None
    recurrent_activation: str | None = None
    keras_version: int | None = None
    map: str | None = None
    cell: str = "rnn"
    gamma: float | None = None
    radius: float | None = None
    gain: float = 1.0
    density: float = 0.1
    bias: float = 0.0
    bias_std: float = 0.0
    forget_bias: float = 1.0
    chrono: int | None = None
    leak: float = 0.25
    reset: str = "after"
    hidden_size: int = 64
    input_size: int = 8
    recurrent: str = "gaussian"
    activation: str = "tanh"
    synthetic: str = "gaussian"
    input_std: float = 0.5
    length: int = 100
    batch: int = 4
    inputs: str | None = None
    batch_first: bool = False
    anchors: str | int = "last"
    max_lag: int | None = None
    threshold: float = 0.97
    inclusive: bool = False
    transient: int | None = None
    dtype: str = "float64"
    seed: int = 0


NAMES = tuple(field.name for field in fields(PointSettings))
DEFAULTS = {field.name: field.default for field in fields(PointSettings)}
REALS = "gamma radius gain density bias bias_std forget_bias leak input_std threshold".split()
COUNTS = "keras_version chrono hidden_size input_size length batch max_lag transient".split()
SWITCHES = ("batch_first", "inclusive")
FROM_ZERO = ("transient", "seed")
READING = ("recurrence", "nonlinearity", "recurrent_activation", "keras_version", "map")
MADE_UP = ("synthetic", "input_std", "length", "batch")
INPUTS = (*MADE_UP, "inputs")
RANDOM = NAMES[NAMES.index("cell") : NAMES.index("synthetic")]


def read_setting(name: str, value: Any) -> Any:
    """Value of a setting in its own type, so that 1 and 1.0 name the same point.

    Raises
    ------
    UnknownNameError
        If there is no such setting.
    SettingError
        If the value is of another type, or not finite.
    """
    if name not in DEFAULTS:
        raise unknown_name("setting of a sweep", name, NAMES)
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None and DEFAULTS[name] is None:
        return None
    if name in REALS:
        return _real(name, plain)
    if name in COUNTS or name == "seed":
        return _whole(name, plain, at_least=0 if name in FROM_ZERO else 1)
    if name in SWITCHES:
        return _switch(name, plain)
    if name == "anchors" and isinstance(plain, int) and not isinstance(plain, bool):
        return _whole(name, plain, at_least=1)
    if name == "anchors" and plain not in ("all", "last"):
        raise SettingError(f"anchors {value!r}: expected all, last or a number of end times")
    if isinstance(plain, str | os.PathLike):
        return os.fspath(plain)
    raise SettingError(f"{name} {value!r}: expected a word")


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(f"{name} {value!r}: expected a finite number")
    return float(value) + 0.0  # -0.0 is 0.0


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{name} {value!r}: expected True or False")
    return value


def _whole(name: str, value: Any, *, at_least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise SettingError(f"{name} {value!r}: expected a whole number from {at_least}")
    return value


def settings_of(values: Mapping[str, Any]) -> PointSettings:
    """Settings of a point, each in its own type.

    Raises
    ------
    GradlabError
        As `read_setting` has them.
    """
    return PointSettings(**{name: read_setting(name, value) for name, value in values.items()})


def cell_settings(kind: str) -> frozenset[str]:
    """Settings that shape a random cell of a kind.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    """
    if kind not in CELLS:
        raise unknown_name("kind of cell", kind, CELLS)
    known = inspect.signature(CELLS[kind].initialize).parameters
    return frozenset(("cell", *(name for name in RANDOM if name in known)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was given of a sweep's settings, as far as it decides on the effect of others."""

    counts: Mapping[str, int]  # how many values each setting takes that was given
    kinds: Collection[str]  # values of cell
    recurrents: Collection[str]
    synthetics: Collection[str]

    def idle(self, name: str) -> str:
        """Why a setting would have no effect; empty if it may have one."""
        if "model" in self.counts and name in RANDOM:
            return "shapes random networks, and these come from model files"
        if "model" not in self.counts and name in (*READING, "model"):
            return "belongs to model files, and there is none"
        if "inputs" in self.counts and name in MADE_UP:
            return "shapes made-up inputs, and these come from a file"
        if "inputs" not in self.counts and name == "batch_first":
            return "belongs to inputs of a file, and there is none"
        if name == "input_std" and set(self.synthetics) == {"zeros"}:
            return "has no effect on inputs that are zero"
        return "" if "model" in self.counts else self._idle_in_cells(name)

    def _idle_in_cells(self, name: str) -> str:
        if name in RANDOM and not any(name in cell_settings(kind) for kind in self.kinds):
            return f"shapes no cell of the kind {', '.join(self.kinds)}"
        scaled = "gamma" in self.counts or "radius" in self.counts
        if name == "gain" and scaled and set(self.kinds) == {"rnn"}:
            return "has no effect beside gamma or radius, which set the scale of W_hh"
        if name == "density" and "sparse" not in self.recurrents:
            return "belongs to the sparse ensemble"
        if name == "forget_bias" and "chrono" in self.counts:
            return "has no effect beside chrono, which spreads these biases"
        return ""

    def require_effect(self) -> None:
        """Refuse settings without effect, in place of ignoring them.

        Raises
        ------
        SettingError
            Naming the first such setting, and why; also if several values of a setting would make
            equal rows of a kind that does not have it.
        """
        for name, count in self.counts.items():
            reason = self.idle(name)
            if reason:
                raise SettingError(f"{name} {reason}: leave it out")
            lacking = [kind for kind in self.kinds if name not in cell_settings(kind)]
            if name in RANDOM and count > 1 and lacking:
                raise SettingError(
                    f"{name} is no setting of the cell {lacking[0]}, whose rows would repeat: "
                    "expected one value, or kinds that have it; sweep the kinds apart"
                )
