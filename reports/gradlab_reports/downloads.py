"""The tables of a run inside its page, as far as they fit: a click saves the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes

from gradlab_reports.spelling import NO_BREAK

# What a table of a run holds, in the order of the page.
TABLES = {
    "summary.json": "everything in numbers, for programs",
    "lag_profile.csv": "norm and bounds by lag",
    "ladder.csv": "every rung of the bounds by lag",
    "gradient.csv": "the loss's gradient by lag",
    "spectrum.csv": "singular values and eigenvalues",
    "lyapunov.csv": "Lyapunov exponents",
    "steps.csv": "slopes and saturation by step",
    "slopes.csv": "spread of the slopes by time",
    "units.csv": "slopes unit by unit",
    "gates.csv": "gate values by step",
    "paths.csv": "forget products by lag",
    "directions.csv": "surviving directions by lag",
    "product_spectrum.csv": "singular values of the long products",
    "mean_field.csv": "predicted Lyapunov spectrum",
    "mean_field_profile.csv": "predicted norm by lag",
    "pairs.csv": "norm for every pair (t, k)",
    "gradient_pairs.csv": "the loss's gradient for every pair (t, k)",
}
# Left as they are in a data address; an attribute's own signs are escaped by the template.
PLAIN = ",.-_+:;/()[]{}=!*|"


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file of the run; ``address`` is empty where the page has no room for it."""

    name: str
    words: str
    size: str
    address: str = ""


def fitting_downloads(
    folder: Path, room: int, tables: Mapping[str, str] = TABLES
) -> list[Download]:
    """Put a run's tables into addresses, the smallest first, until the room is used up.

    Parameters
    ----------
    folder
        The run.
    room
        Bytes that the addresses may take together.
    tables
        What each file holds.

    Returns
    -------
    downloads
        In the order of the tables; those that find no room have no address.
    """
    sizes = {name: (folder / name).stat().st_size for name in tables if (folder / name).is_file()}
    addresses: dict[str, str] = {}
    for name in sorted(sizes, key=lambda name: sizes[name]):
        if sizes[name] > room:
            break
        address = _address(folder / name)
        if len(address) > room:
            break
        addresses[name] = address
        room -= len(address)
    return [
        Download(name=name, words=tables[name], size=_spelled(sizes[name]), address=found)
        for name, found in ((name, addresses.get(name, "")) for name in sizes)
    ]


def left_out(downloads: Sequence[Download]) -> str:
    """Name the files that found no room, as a sentence; nothing if all did."""
    names = [f"{each.name} ({each.size})" for each in downloads if not each.address]
    if not names:
        return ""
    return f"Too large for the page; in the folder beside it: {', '.join(names)}."


def _address(path: Path) -> str:
    kind = "application/json" if path.suffix == ".json" else "text/csv"
    return f"data:{kind};charset=utf-8,{quote_from_bytes(path.read_bytes(), safe=PLAIN)}"


def _spelled(size: int) -> str:
    for unit, bytes_in_it in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= bytes_in_it:
            return f"{size / bytes_in_it:.3g}{NO_BREAK}{unit}"
    return f"{size}{NO_BREAK}bytes"
