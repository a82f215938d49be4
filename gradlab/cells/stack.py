"""Stacks of layers and directions: an ordered list of named recurrences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradlab.cells.base import Cell
from gradlab.cells.joint import JointCell
from gradlab.errors import SettingError, unknown_name
from gradlab.records.notebook import rows_html

DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recurrence:
    """One layer in one direction, under its own name."""

    name: str
    cell: Cell
    layer: int = 0
    direction: str = "forward"
    stack: str = ""  # recurrences of one stack feed each other, layer by layer
    tensors: tuple[str, ...] = ()  # names in the file that the weights came from
    stored_dtype: str = ""  # type of the weights in the file; empty if there is none

    def __post_init__(self) -> None:
        """Check the direction."""
        if self.direction not in DIRECTIONS:
            raise unknown_name("direction", self.direction, DIRECTIONS)


class Network(Mapping[str, Cell]):
    """Ordered mapping from a recurrence's name to its cell.

    Parameters
    ----------
    recurrences
        In the model's own order: layer by layer, forward before backward.
    assumptions
        What the source did not say and was therefore assumed, a sentence each.
    source
        Where the weights came from, for people.

    Raises
    ------
    SettingError
        If two recurrences share a name, or there is none.
    """

    def __init__(
        self, recurrences: Sequence[Recurrence], assumptions: Sequence[str] = (), source: str = ""
    ) -> None:
        self.recurrences = tuple(recurrences)
        self.assumptions = tuple(assumptions)
        self.source = source
        self._cells = {entry.name: entry.cell for entry in self.recurrences}
        if len(self._cells) != len(self.recurrences) or not self._cells:
            names = ", ".join(entry.name for entry in self.recurrences) or "none"
            raise SettingError(f"recurrences named {names}: expected at least one, all different")

    @classmethod
    def of(cls, cell: Cell, name: str = "rnn") -> Network:
        """Network of a single cell."""
        return cls([Recurrence(name=name, cell=cell, stack=name)], source=name)

    def __getitem__(self, name: str) -> Cell:
        """Cell of that name."""
        if name not in self._cells:
            raise unknown_name("recurrence", name, self._cells)
        return self._cells[name]

    def __iter__(self) -> Iterator[str]:
        """Names in order."""
        return iter(self._cells)

    def __len__(self) -> int:
        """Number of recurrences."""
        return len(self._cells)

    def __contains__(self, name: object) -> bool:
        """Whether there is a recurrence of that name."""
        return name in self._cells

    def _repr_html_(self) -> str:
        """Table for notebooks, a row a recurrence."""
        header = ("recurrence", "cell", "layer", "direction", "units", "input features")
        rows = [
            (
                entry.name,
                entry.cell.kind,
                entry.layer,
                entry.direction,
                entry.cell.hidden_size,
                entry.cell.input_size,
            )
            for entry in self.recurrences
        ]
        return rows_html(type(self).__name__, header, rows)

    def only(self) -> Cell:
        """The one cell of a network that has just one.

        Raises
        ------
        SettingError
            If there are several.
        """
        if len(self) != 1:
            names = ", ".join(self)
            raise SettingError(f"the network has {len(self)} recurrences ({names}): name one")
        return next(iter(self._cells.values()))

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks, in order of appearance."""
        return tuple(dict.fromkeys(entry.stack for entry in self.recurrences))

    def stack(self, name: str) -> tuple[Recurrence, ...]:
        """Recurrences that feed each other, in order."""
        return tuple(entry for entry in self.recurrences if entry.stack == name)

    def joint(self) -> JointCell:
        """The whole network as one cell, whose state holds the states of all layers.

        Returns
        -------
        cell
            Its weights and gates are named ``recurrence.name``.

        Raises
        ------
        SettingError
            If the network is not one stack of forward layers: a backward layer reads the end of a
            sequence first, so no step of the whole leads from one time to the next.
        """
        layers = [entry.layer for entry in self.recurrences]
        backward = [entry.name for entry in self.recurrences if entry.direction == "backward"]
        if backward or len(self.stacks) != 1 or len(set(layers)) != len(layers):
            found = f"the backward layer {backward[0]}" if backward else f"{', '.join(self)}"
            raise SettingError(
                f"no joint state with {found}: expected one stack of forward layers; analyze the "
                "recurrences one by one"
            )
        return JointCell({entry.name: entry.cell for entry in self.recurrences})
