"""A sweep before its first point is measured: checked settings, and what tells it from others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from gradlab.errors import ModelFileError, SettingError
from gradlab.sweeps.grids import Grid, Point
from gradlab.sweeps.networks import READING, reading_assumptions
from gradlab.sweeps.settings import (
    DEFAULTS,
    NAMES,
    Given,
    PointSettings,
    read_setting,
    settings_of,
)

LISTED = 50  # values of an axis that are written out; longer ones are told by their hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Points in order, and the settings that all of them share."""

    points: Sequence[Point]
    fixed: Mapping[str, Any]
    names: tuple[str, ...]  # settings that the points give

    def settings(self, index: int) -> PointSettings:
        """Settings of a point."""
        return settings_of({**self.fixed, **self.points[index]})

    def parameters(self, index: int) -> dict[str, Any]:
        """The grid's columns of a point's row, in the order of the grid."""
        point = self.points[index]
        return {name: read_setting(name, point[name]) for name in self.names}

    def values(self, name: str) -> Sequence[Any]:
        """Values that a setting takes, in order of appearance."""
        if name not in self.names:
            return [self.fixed.get(name, DEFAULTS[name])]
        if isinstance(self.points, Grid):
            return self.points.axes[name]
        return list(dict.fromkeys(read_setting(name, point[name]) for point in self.points))

    def given(self) -> Given:
        """What was given, for the judgment of what has an effect."""
        chosen = [name for name, value in self.fixed.items() if value is not None]
        return Given(
            counts={name: len(self.values(name)) for name in (*self.names, *chosen)},
            kinds=self.values("cell"),
            recurrents=self.values("recurrent"),
            synthetics=self.values("synthetic"),
        )

    def shared(self) -> dict[str, Any]:
        """Settings that all points share, defaults included, without those that have no effect."""
        given = self.given()
        return {
            name: self.fixed.get(name, DEFAULTS[name])
            for name in NAMES
            if name not in self.names and not given.idle(name)
        }

    def identity(self) -> dict[str, Any]:
        """What tells this sweep from another one, ready for JSON."""
        return {
            "points": len(self.points),
            "axes": {name: _described(self.values(name)) for name in self.names},
            "order": self._order(),
            "settings": self.shared(),
            "sha256_files": {name: _sha256_file(Path(name)) for name in self._files()},
            "assumptions": self.assumptions(),
        }

    def assumptions(self) -> list[str]:
        """What had to be assumed in reading the models, each of them once for each way."""
        if not any(self.values("model")):
            return []
        names = ("model", *READING)
        start = {**self.fixed, **self.points[0]}
        ways = product(*(self.values(name) for name in names))
        readings = [settings_of({**start, **dict(zip(names, way, strict=True))}) for way in ways]
        return reading_assumptions([entry for entry in readings if entry.model])

    def _order(self) -> str:
        """Hash of points that are no grid, whose axes do not tell which combinations there are."""
        if isinstance(self.points, Grid):
            return "grid"
        digest = hashlib.sha256()
        for index in range(len(self.points)):
            digest.update(json.dumps(self.parameters(index), sort_keys=True).encode())
        return digest.hexdigest()

    def _files(self) -> list[str]:
        return [
            value
            for name in ("model", "map", "inputs")
            for value in self.values(name)
            if value is not None
        ]


def planned(points: Sequence[Point], fixed: Mapping[str, Any]) -> Plan:
    """Plan of a sweep; nothing is measured yet.

    Raises
    ------
    UnknownNameError
        If there is no setting of a name, or no such kind of cell.
    SettingError
        If there is no point, their names differ, or a setting has the wrong type or no effect.
    """
    if not len(points):
        raise SettingError("the grid has no points: expected at least one value an axis")
    names = tuple(points[0])
    if not isinstance(points, Grid) and any(set(point) != set(names) for point in points):
        raise SettingError("the points have different settings: expected the same names in all")
    checked = {
        name: read_setting(name, value) for name, value in fixed.items() if name not in names
    }
    for name in names:
        read_setting(name, points[0][name])
    plan = Plan(points=points, fixed=checked, names=names)
    plan.given().require_effect()
    return plan


def _described(values: Sequence[Any]) -> dict[str, Any]:
    if len(values) <= LISTED:
        return {"values": list(values)}
    if isinstance(values, range):
        text = f"{values.start}:{values.stop}:{values.step}"
    else:
        text = json.dumps(list(values))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"first": values[0], "last": values[-1], "count": len(values), "sha256": digest}


def _sha256_file(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileError(
            f"{path} cannot be read ({error.strerror or error}): expected a file of the sweep"
        ) from error
