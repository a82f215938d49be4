"""Read the files of a run or sweep folder into frames and documents; nothing is computed here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradlab as gl

if TYPE_CHECKING:
    import pandas as pd

TEXT_COLUMNS = frozenset(
    {
        "label",
        "recurrence",
        "gate",
        "activation",
        "rung",
        "kind",
        "quantity",
        "name",
        "status",
        "message",
        "regime",
        # Settings of a sweep.
        "model",
        "nonlinearity",
        "recurrent_activation",
        "map",
        "cell",
        "reset",
        "recurrent",
        "synthetic",
        "inputs",
        "anchors",
        "dtype",
    }
)
BLOCK = 16_384  # rows of a long table at once
RUN_FILES = ("manifest.json", "summary.json", "lag_profile.csv", "steps.csv", "spectrum.csv")

# What every page says of a recurrence; the rest is shown where it is there.
ENTRY_KEYS = ("regime", "assumptions")
REGIME_KEYS = ("name", "rate", "rule", "contradicts")


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A complete run: its folder and its two JSON documents; tables are read when asked for."""

    path: Path
    manifest: dict[str, Any]
    summary: dict[str, Any]

    @property
    def recurrences(self) -> list[dict[str, Any]]:
        """Entries of the summary, one a recurrence, in the network's order."""
        return list(self.summary["recurrences"])

    def has(self, table: str) -> bool:
        """Whether the run saved this table."""
        return (self.path / table).is_file()


def open_run(folder: Path) -> RunFolder:
    """Open a run folder.

    Parameters
    ----------
    folder
        A folder as ``analyze`` and ``report`` write it.

    Returns
    -------
    run
        Its documents, read and checked for what a page needs.

    Raises
    ------
    gl.RunFolderError
        If the folder does not exist or is not a complete run; the message names the file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise gl.RunFolderError(
            f"{folder} is not a folder: expected a run folder as written by gradlab analyze -o"
        )
    missing = [name for name in RUN_FILES if not (folder / name).is_file()]
    if missing:
        raise gl.RunFolderError(
            f"{folder} is not a complete run, it lacks {', '.join(missing)}: "
            "expected a folder as written by gradlab analyze -o"
        )
    summary = read_document(folder / "summary.json")
    _check_summary(folder / "summary.json", summary)
    return RunFolder(path=folder, manifest=read_document(folder / "manifest.json"), summary=summary)


def open_comparison(folder: Path) -> dict[str, Any]:
    """Read the document of a comparison's folder.

    Parameters
    ----------
    folder
        A folder as ``compare -o`` writes it.

    Returns
    -------
    document
        ``compare.json``.

    Raises
    ------
    gl.RunFolderError
        If it is missing, damaged, or of another kind.
    """
    path = Path(folder) / "compare.json"
    document = read_document(path)
    if document.get("kind") != "comparison" or not document.get("recurrences"):
        raise gl.RunFolderError(
            f"{path} is no comparison: expected a folder as written by gradlab compare -o"
        )
    return document


def _check_summary(path: Path, summary: dict[str, Any]) -> None:
    recurrences = summary.get("recurrences")
    entries = recurrences if isinstance(recurrences, list) else []
    if not entries or not all(isinstance(e, dict) and "name" in e for e in entries):
        raise gl.RunFolderError(
            f"{path} has no list of named recurrences under the key 'recurrences': "
            "analyze the network again"
        )
    for entry in entries:
        _require_keys(path, entry, ENTRY_KEYS, f"recurrence {entry['name']!r}")
        if not isinstance(entry["regime"], dict):
            raise gl.RunFolderError(f"{path}: the regime is no object; analyze the network again")
        _require_keys(path, entry["regime"], REGIME_KEYS, f"regime of {entry['name']!r}")


def _require_keys(path: Path, entry: dict[str, Any], keys: tuple[str, ...], place: str) -> None:
    missing = [key for key in keys if key not in entry]
    if missing:
        raise gl.RunFolderError(
            f"{path}: the {place} lacks the key {missing[0]!r}: expected a summary as gradlab "
            "wrote it; analyze the network again"
        )


def read_document(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Parameters
    ----------
    path
        A JSON file.

    Returns
    -------
    document
        Its object.

    Raises
    ------
    gl.RunFolderError
        If the file cannot be read, is not JSON or is not an object.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise gl.RunFolderError(f"{path} cannot be read: {_reason(error)}") from error
    except json.JSONDecodeError as error:
        raise gl.RunFolderError(
            f"{path} is not JSON (line {error.lineno}: {error.msg}): analyze the network again"
        ) from error
    if not isinstance(document, dict):
        raise gl.RunFolderError(f"{path} holds a {type(document).__name__}: expected a JSON object")
    return document


def read_table(
    path: Path, columns: Sequence[str], optional: Sequence[str] | None = None
) -> pd.DataFrame:
    """Read a CSV file of the run folder's contract.

    Parameters
    ----------
    path
        A CSV file with a header, ``.`` as decimal sign, ``-inf``, ``inf`` and ``nan`` so spelled.
    columns
        Columns that must be there.
    optional
        Further columns to read where they are there; all others when None.

    Returns
    -------
    table
        Names as text, whatever they look like; everything else as numbers.

    Raises
    ------
    gl.RunFolderError
        If the file cannot be read, lacks a column, has no rows, or holds text where a number
        belongs; the message names column and line.
    """
    header = _header(path)
    check_columns(path, header, columns)
    numbers = [name for name in header if name not in TEXT_COLUMNS]
    if optional is not None:
        wanted = {*columns, *optional} | TEXT_COLUMNS
        header = [name for name in header if name in wanted]
        numbers = [name for name in numbers if name in wanted]
    table: pd.DataFrame = _parsed(
        path, usecols=header, na_values={name: ["", "nan"] for name in numbers}
    )
    if table.empty:
        raise gl.RunFolderError(f"{path} has a header but no rows: measure again")
    needed = numbers if optional is not None else columns
    _check_numbers(path, table, [name for name in needed if name in numbers])
    return table


def read_blocks(path: Path, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Read a CSV file some thousand rows at a time, numbered on from block to block.

    Parameters
    ----------
    path, columns
        As in `read_table`; all columns are read.

    Raises
    ------
    gl.RunFolderError
        As `read_table` has it.
    """
    header = _header(path)
    check_columns(path, header, columns)
    numbers = [name for name in header if name not in TEXT_COLUMNS]
    absent = {name: ["", "nan"] for name in numbers}
    empty = True
    with _reading(path), _parsed(path, chunksize=BLOCK, na_values=absent) as blocks:
        for block in blocks:
            if block.empty:
                continue
            empty = False
            _check_numbers(path, block, [name for name in columns if name in numbers])
            yield block
    if empty:
        raise gl.RunFolderError(f"{path} has a header but no rows: measure again")


def check_columns(path: Path, header: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a table that lacks a column, with ``gl.RunFolderError``."""
    missing = [column for column in columns if column not in header]
    if missing:
        raise gl.RunFolderError(
            f"{path} has no column {', '.join(map(repr, missing))}: "
            f"found {', '.join(header) or 'no header'}"
        )


def _header(path: Path) -> list[str]:
    return [str(name) for name in _parsed(path, nrows=0).columns]


def _parsed(path: Path, **how: Any) -> Any:
    """Table of a CSV file, or with ``chunksize`` its blocks."""
    import pandas as pd

    text = dict.fromkeys(TEXT_COLUMNS, "str")
    with _reading(path):
        # Without the default missing values a recurrence called "null" keeps its name.
        return pd.read_csv(path, dtype=text, keep_default_na=False, index_col=False, **how)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of which file it is that something cannot be read."""
    import pandas as pd

    try:
        yield
    except OSError as error:
        raise gl.RunFolderError(f"{path} cannot be read: {_reason(error)}") from error
    except (UnicodeDecodeError, pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise gl.RunFolderError(f"{path} is not a CSV table: {_reason(error)}") from error


def _check_numbers(path: Path, table: pd.DataFrame, names: Sequence[str]) -> None:
    import pandas as pd

    for name in names:
        if pd.api.types.is_numeric_dtype(table[name]):
            continue
        bad = pd.to_numeric(table[name], errors="coerce").isna() & table[name].notna()
        row = int(bad.to_numpy().argmax())
        line = int(table.index.to_numpy()[row]) + 2
        found = table[name].iloc[row]
        raise gl.RunFolderError(
            f"{path}, line {line}: column {name!r} holds {found!r}, expected a number"
        )


def _reason(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words.strip().splitlines()[0] if words.strip() else type(error).__name__


def one_recurrence(table: pd.DataFrame, name: str | None, path: Path) -> pd.DataFrame:
    """Keep the rows of one recurrence.

    Parameters
    ----------
    table
        Rows of one or several recurrences; a table without that column is kept whole.
    name
        Which one; None is right where there is one only.
    path
        The file, for messages.

    Returns
    -------
    rows
        The rows of that recurrence, numbered anew.

    Raises
    ------
    gl.SettingError
        If there are several and none was named.
    gl.UnknownNameError
        If there is none of that name.
    """
    if "recurrence" not in table.columns:
        return table
    names = [str(found) for found in table["recurrence"].unique()]
    if name is None and len(names) > 1:
        raise gl.SettingError(
            f"{path} holds {len(names)} recurrences: choose one of {', '.join(names)} (recurrence)"
        )
    if name is not None and name not in names:
        raise gl.unknown_name("recurrence", name, names)
    chosen = name if name is not None else names[0]
    return table[table["recurrence"] == chosen].reset_index(drop=True)
