"""Which columns of a sweep's table were swept, and which of them a figure can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gradlab_reports.spelling import shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The columns that are results; every other one was an axis of the sweep.
RESULTS = frozenset(
    "point,gamma_w,spectral_radius,rate,rate_se,bound_rate,mean_field_rate,saturated_share,"
    "lyapunov_leading,horizon_1pct,regime,status,message".split(",")
)
SCALES = ("gamma", "radius", "gain")
# Axes that move along a drawing's own axis, or are mere repeats.
ALONG = frozenset((*SCALES, "seed"))
MOST_NAMES = 12  # of places across
LONGEST = 24  # letters of such a name
ROOM = 60  # letters that stand across beside each other


def swept(frame: pd.DataFrame) -> list[str]:
    """Axes with several values that are neither scales nor repeats: words first, then numbers."""
    import pandas as pd

    names = [
        str(name)
        for name in frame.columns
        if name not in RESULTS | ALONG
        and not str(name).startswith("log_")
        and frame[name].nunique() > 1
    ]
    return sorted(names, key=lambda name: bool(pd.api.types.is_numeric_dtype(frame[name])))


def told_apart(frame: pd.DataFrame, most: int) -> list[str]:
    """Axes whose combinations are no more than a figure has colors for; others are merged."""
    chosen: list[str] = []
    for name in swept(frame):
        if len(frame.groupby([*chosen, name], sort=False)) <= most:
            chosen.append(name)
    return chosen


def combined(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Values of some columns of every row, as the words of a legend."""
    columns = [frame[name].astype(str) for name in names]
    return [", ".join(values) for values in zip(*columns, strict=True)] or [""] * len(frame)


def scale_axis(frame: pd.DataFrame) -> str:
    """Setting along which the spectral norm was swept, or the spectral norm itself."""
    return next((name for name in SCALES if name in frame.columns), "gamma_w")


def row_axis(frame: pd.DataFrame) -> str:
    """Setting that the rows of a map stand for: the length, else the first that was swept."""
    names = swept(frame)
    return "length" if "length" in names else next(iter(names), "")


def short_names(names: Sequence[str]) -> list[str]:
    """Names of files without their folder, where it is the same for all."""
    paths = [PurePath(name) for name in names]
    return [path.name for path in paths] if len({path.parent for path in paths}) == 1 else [*names]


def name_places(ax: Axes, names: Sequence[str]) -> None:
    """Name the places 0, 1, … across, as many as have room; slanted where the names are long."""
    step = max(1, -(-len(names) // MOST_NAMES))
    places = range(0, len(names), step)
    shown = [shortened(names[place], LONGEST) for place in places]
    slanted = sum(map(len, shown)) > ROOM
    look: dict[str, Any] = {}
    if slanted:
        look = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(list(places), shown, parse_math=False, **look)
