"""Small questions that figures ask of a frame; no measurement is made here."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gradlab_reports.spelling import shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_POINTS = 600
MOST_MARKERS = 5000


def column(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return a column as floats, all nan where the table does not have it."""
    if name not in frame.columns:
        return np.full(len(frame), np.nan)
    return frame[name].to_numpy(dtype=np.float64)


def thinned(frame: pd.DataFrame, name: str, limit: int = MAX_POINTS) -> pd.DataFrame:
    """Keep so many rows of a long table that a curve looks the same.

    Parameters
    ----------
    frame
        Rows in the order drawn.
    name
        The column whose extremes are kept.
    limit
        Rows to keep, about.

    Returns
    -------
    rows
        First, last, and of each stretch between them the lowest and the highest row.
    """
    if len(frame) <= limit:
        return frame
    values = np.nan_to_num(column(frame, name), nan=0.0)
    edges = np.linspace(0, len(frame), limit // 2 + 1).astype(int)
    keep = {0, len(frame) - 1}
    for start, stop in itertools.pairwise(edges.tolist()):
        part = values[start:stop]
        keep |= {start + int(part.argmin()), start + int(part.argmax())}
    return frame.iloc[sorted(keep)]


def some_rows(frame: pd.DataFrame, most: int = MOST_MARKERS) -> pd.DataFrame:
    """Rows drawn at random, the same every time, where there are too many for a figure."""
    return frame if len(frame) <= most else frame.sample(most, random_state=0).sort_index()


def drawn_share(frame: pd.DataFrame, drawn: int) -> str:
    """Say how many rows of a table are drawn, for the end of a title; nothing if all are."""
    count = frame.attrs.get("rows", len(frame))
    return f" · {drawn} of {count} networks" if drawn < count else ""


def first_zero_lag(frame: pd.DataFrame) -> int | None:
    """Return the lag from which on the measured median is exactly zero, if there is one."""
    rows = frame.sort_values("lag")
    zero = np.isneginf(column(rows, "log_norm_median"))
    if not zero.size or not zero[-1]:
        return None
    start = len(zero) - int(np.argmin(zero[::-1])) if not zero.all() else 0
    return int(rows["lag"].iloc[start])


def title_of(ax: Axes, words: str, frame: pd.DataFrame) -> None:
    """Write the title, with the name of the recurrence taken literally."""
    ax.set_title(title_words(words, frame), parse_math=False)


def title_words(words: str, frame: pd.DataFrame) -> str:
    """Title of a figure with the name of the recurrence, where the table tells it."""
    name = str(frame["recurrence"].iloc[0]) if "recurrence" in frame.columns and len(frame) else ""
    return f"{words} · {shortened(name)}" if name else words
