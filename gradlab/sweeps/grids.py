"""Grids of points that are made when they are asked for, however many there are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from gradlab.sweeps.settings import read_setting

Point = Mapping[str, Any]


class Grid(Sequence[Point]):
    """All combinations of the values of some axes, the last axis running fastest.

    Parameters
    ----------
    axes
        Values by the setting's name, each in its own type.
    """

    def __init__(self, axes: Mapping[str, Sequence[Any]]) -> None:
        self.axes = dict(axes)

    def __len__(self) -> int:
        """Number of points."""
        return math.prod(map(len, self.axes.values()))

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | Sequence[Point]:
        """Point of a place, or the points of a slice."""
        if isinstance(index, slice):
            return [self._point(place) for place in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"point {index} of {len(self)}")
        return self._point(place)

    def __iter__(self) -> Iterator[Point]:
        """Points in order."""
        return (self._point(place) for place in range(len(self)))

    def _point(self, place: int) -> dict[str, Any]:
        point: dict[str, Any] = dict.fromkeys(self.axes)
        for name in reversed(self.axes):
            place, digit = divmod(place, len(self.axes[name]))
            point[name] = self.axes[name][digit]
        return point


def grid(**axes: Iterable[Any]) -> Grid:
    """All combinations of the given values, the last axis running fastest.

    Parameters
    ----------
    axes
        Values by the setting's name, see `gradlab.sweeps.settings.PointSettings`.

    Returns
    -------
    points
        A sequence of one mapping a point, in a fixed order; a point is made when it is asked for.

    Raises
    ------
    UnknownNameError
        If there is no setting of a name.
    SettingError
        If a value is of the wrong type.
    """
    return Grid({name: _axis(name, values) for name, values in axes.items()})


def _axis(name: str, values: Iterable[Any]) -> Sequence[Any]:
    if isinstance(values, range) and len(values):
        for end in (values[0], values[-1]):
            read_setting(name, end)
        if isinstance(read_setting(name, values[0]), int):
            return values
    return [read_setting(name, value) for value in values]
