"""Text tables of numbers: separators, decimal signs, headers; every refusal names its line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np

from gradlab.checkpoints.archive import spoken
from gradlab.errors import InputFileError, NonFiniteError, SettingError

Columns: TypeAlias = Sequence[str | int]

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
TIME_INDEX = ("t", "time", "step")
SPELLED_SEPARATORS = {r"\t": "\t", "tab": "\t", "space": " "}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStyle:
    """How a text table is written.

    Raises
    ------
    SettingError
        If the signs are not single characters, or cannot be told apart.
    """

    separator: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        """Check the signs."""
        object.__setattr__(
            self, "separator", SPELLED_SEPARATORS.get(self.separator, self.separator)
        )
        if len(self.separator) != 1 or self.separator in '"\r\n' or self.separator.isalnum():
            raise SettingError(f"separator {self.separator!r}: expected one sign, such as , or ;")
        if self.decimal not in (".", ","):
            raise SettingError(f"decimal {self.decimal!r}: expected . or ,")
        if self.separator == "." or (self.separator == self.decimal == ","):
            raise SettingError(
                f"separator {self.separator!r} with decimal {self.decimal!r}: expected different "
                "signs; tables with a decimal comma mostly have separator ;"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of equal length, and the names over them if there is a header."""

    header: tuple[str, ...] | None
    rows: list[list[float]]

    def features(self, columns: Columns | None) -> tuple[list[int], tuple[str, ...]]:
        """Indices of the features, and what had to be assumed to find them.

        Parameters
        ----------
        columns
            Names or indices from 0; all but a time index if None.
        """
        width = len(self.rows[0])
        if columns is not None:
            return chosen_columns(columns, width, self.header), ()
        index = [i for i, name in enumerate(self.header or ()) if _is_time_index(i, name)]
        kept = [i for i in range(width) if i not in index]
        if not kept:
            raise InputFileError(
                "the table has a time index and no other column: expected at least one feature"
            )
        named = ", ".join(repr((self.header or ())[i]) for i in index)
        assumption = f"column {named} is taken for the time index and left out (option columns)"
        return kept, (assumption,) if index else ()


@dataclass(frozen=True, slots=True)
class Line:
    """One row as text, with its line number as an editor counts."""

    number: int
    cells: list[str]

    @property
    def blank(self) -> bool:
        """Whether nothing stands in it."""
        return not any(self.cells)


def read_table(path: Path, style: TableStyle) -> Table:
    """Table of one row a time step.

    Parameters
    ----------
    path
        A UTF-8 text file.
    style
        How it is written.

    Returns
    -------
    table
        With the header apart, if no cell of the first row is a number.

    Raises
    ------
    InputFileError
        If a row is shorter or longer than the first, or a cell is no number.
    NonFiniteError
        If a number is NaN or infinite.
    """
    first, *rest = _lines(path, style)
    for line in (first, *rest):
        if line.blank:
            raise InputFileError(f"{path}, line {line.number} is empty: expected a row of numbers")
    headed = not any(_is_numeric(cell, style) for cell in first.cells)
    rows = rest if headed else [first, *rest]
    if not rows:
        raise InputFileError(f"{path} has a header in line {first.number} and no rows under it")
    for line in rows:
        if len(line.cells) != len(first.cells):
            raise InputFileError(
                f"{path}, line {line.number}: {len(line.cells)} cells, and line {first.number} has "
                f"{len(first.cells)}: expected rows of equal length; for one sequence a row, use "
                "the option ragged"
            )
    return Table(
        header=tuple(first.cells) if headed else None,
        rows=[_numbers(path, line, style) for line in rows],
    )


def read_rows(path: Path, style: TableStyle) -> list[list[float]]:
    """Sequences of one row each, of any length.

    Parameters
    ----------
    path
        A UTF-8 text file without a header.
    style
        How it is written.

    Returns
    -------
    rows
        Empty cells at a row's end, as spreadsheets write them, are not part of it.

    Raises
    ------
    InputFileError
        If a row is empty, or a cell is no number.
    NonFiniteError
        If a number is NaN or infinite.
    """
    lines = _lines(path, style)
    for sequence, line in enumerate(lines, start=1):
        while line.cells and not line.cells[-1]:
            line.cells.pop()
        if not line.cells:
            raise InputFileError(
                f"{path}, line {line.number}: sequence {sequence} is empty: expected at least one "
                "step; leave empty sequences out"
            )
    return [_numbers(path, line, style) for line in lines]


def chosen_columns(columns: Columns, width: int, header: Sequence[str] | None) -> list[int]:
    """Indices of columns given by name or index.

    Parameters
    ----------
    columns
        Names, or indices from 0, as numbers or as text.
    width
        Number of columns.
    header
        Their names, if they have any.

    Raises
    ------
    SettingError
        If there is no such column, or two of that name.
    """
    names = list(header or ())
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise SettingError("columns is empty: expected at least one name or index")
    return [_column(column, width, names) for column in wanted]


def _column(column: str | int, width: int, names: list[str]) -> int:
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    text = str(column)
    if column not in names and text.isascii() and text.isdigit() and int(text) < width:
        return int(text)
    known = f"{', '.join(names)}, or " if names else ""
    raise SettingError(f"column {column!r}: expected one of {known}0 to {width - 1}, named once")


def _is_time_index(index: int, name: str) -> bool:
    """Whether a header names the time; an unnamed first column is a spreadsheet's row number."""
    return name.lower() in TIME_INDEX or (index == 0 and not name)


def _lines(path: Path, style: TableStyle) -> list[Line]:
    """Rows as text up to the last one with content."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = list(_parsed(path, stream, style))
    except UnicodeDecodeError as error:
        raise InputFileError(
            f"{path} is not UTF-8 text (byte {error.start}): expected .npy, .npz or a text table"
        ) from error
    except OSError as error:
        raise InputFileError(f"{path} cannot be read: {error.strerror}") from error
    while lines and lines[-1].blank:
        lines.pop()
    if not lines:
        raise InputFileError(f"{path} has no rows: expected numbers, one row a time step")
    return lines


def _parsed(path: Path, stream: TextIO, style: TableStyle) -> Iterator[Line]:
    reader = csv.reader(stream, delimiter=style.separator, strict=True)
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if style.separator == " ":
                cells = [cell for cell in cells if cell]
            yield Line(reader.line_num, cells)
    except csv.Error as error:
        line = max(reader.line_num, 1)
        raise InputFileError(f"{path}, line {line}: {error}; expected a text table") from error


def _is_numeric(cell: str, style: TableStyle) -> bool:
    return _plain(cell, style) is not None or NOT_FINITE.fullmatch(cell) is not None


def _plain(cell: str, style: TableStyle) -> str | None:
    """Cell with a decimal point if it is a number, else None."""
    if style.decimal != "." and "." in cell:
        return None
    text = cell.replace(style.decimal, ".")
    return text if NUMBER.fullmatch(text) else None


def _numbers(path: Path, line: Line, style: TableStyle) -> list[float]:
    values = []
    for column, cell in enumerate(line.cells, start=1):
        where = f"{path}, line {line.number}, column {column}: {spoken(cell)!r}"
        text = _plain(cell, style)
        value = np.nan if text is None else float(text)
        if text is None and not NOT_FINITE.fullmatch(cell):
            raise InputFileError(
                f"{where} is not a number: expected decimal sign {style.decimal!r} and separator "
                f"{style.separator!r} (options decimal, separator)"
            )
        if not np.isfinite(value):
            raise NonFiniteError(f"{where} is not finite: expected a finite number")
        values.append(value)
    return values
