"""The numbers under a figure, thinned, for the page's script to tell at the pointer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab_reports.canvas import figure_of
from gradlab_reports.frames import column, thinned
from gradlab_reports.spelling import LN10, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_LAGS = 240
MAX_CELLS = 100  # of a map, on a side
LINES = {
    "log_norm_median": "measured median",
    "log_norm_q05": "5 % of the pairs lie below",
    "log_norm_q95": "95 % lie below",
    "log_bound_gamma": "bound of the weights",
    "log_bound_saturation": "bound with the slopes seen",
    "log_bound_onestep": "bound step by step",
    "log_bound_blocks": "bound, blocks of steps",
    "log_norm_predicted": "mean-field theory",
}
LOGGED = {
    "test_loss": "test loss",
    "loss": "train loss",
    "rate": "rate in nats per step",
    "gradient_norm": "norm of the gradient",
    "clipped_norm": "after clipping",
    "horizon_1pct": "less than 1 % left from lag",
}


def hover_data(kind: str, frame: pd.DataFrame, ax: Axes) -> str:
    """Numbers of a figure and where its axes lie, as JSON.

    Parameters
    ----------
    kind
        Kind of figure.
    frame
        What was drawn.
    ax
        Where, laid out.

    Returns
    -------
    document
        Places are parts of the picture, from its upper left corner. Norms are log10, null where
        undefined and "-inf" at an exact zero. Empty for kinds that tell nothing at the pointer.
    """
    if kind not in _NUMBERS or ax.get_xscale() != "linear":
        return ""
    box = ax.get_position()
    place = [box.x0, 1.0 - box.y1, box.x1, 1.0 - box.y0]
    left, right = ax.get_xlim()
    document = {
        "box": [round(part, 5) for part in place],
        "x": [round(left, 3), round(right, 3)],
        **_NUMBERS[kind](frame, ax),
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def _compare(frame: pd.DataFrame, _: Axes) -> dict[str, Any]:
    table = frame.pivot(index="lag", columns="label", values="log_norm_median").sort_index()
    kept = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_LAGS)).astype(int))
    rows = table.iloc[kept]
    lines = [
        {"name": str(label), "log10": _decades(column(rows, label), 3)}
        for label in dict.fromkeys(frame["label"])
    ]
    return {"kind": "lines", "lag": [int(lag) for lag in rows.index], "lines": lines}


def _decay(frame: pd.DataFrame, _: Axes) -> dict[str, Any]:
    rows = thinned(frame.sort_values("lag"), "log_norm_median", MAX_LAGS)
    lines = [
        {"name": words, "log10": _decades(column(rows, name), 3)}
        for name, words in LINES.items()
        if name in rows.columns
    ]
    kept = [line for line in lines if any(value is not None for value in line["log10"])]
    return {"kind": "lines", "lag": [int(lag) for lag in rows["lag"]], "lines": kept}


def _pairs(frame: pd.DataFrame, _: Axes) -> dict[str, Any]:
    from gradlab_reports.maps import time_map

    found = time_map(frame, "log_norm")
    down, across = (max(1, -(-length // MAX_CELLS)) for length in found.grid.shape)
    rows = [_trimmed(_rounded(row[::across], 2)) for row in found.grid[::down]]
    return {
        "kind": "map",
        "t": [int(t) for t in found.rows[::down]],
        "down": down,
        "count": len(found.rows),
        "stride": found.stride * across,
        "log10": rows,
    }


def _training(frame: pd.DataFrame, ax: Axes) -> dict[str, Any]:
    """Rows of the log, in words; the line at the pointer crosses all panels."""
    rows = thinned(frame.sort_values("step"), "test_loss", MAX_LAGS)
    lowest = min(panel.get_position().y0 for panel in figure_of(ax).axes)
    place = ax.get_position()
    lines = [
        {"name": words, "text": [plain(float(value)) for value in column(rows, name)]}
        for name, words in LOGGED.items()
    ]
    return {
        "kind": "lines",
        "word": "Update",
        "box": [round(part, 5) for part in (place.x0, 1 - place.y1, place.x1, 1 - lowest)],
        "lag": [int(step) for step in rows["step"]],
        "lines": lines,
    }


_NUMBERS: dict[str, Callable[[pd.DataFrame, Axes], dict[str, Any]]] = {
    "compare": _compare,
    "decay": _decay,
    "pairs": _pairs,
    "training": _training,
}


def _decades(logs: Any, places: int) -> list[float | str | None]:
    return _rounded(np.asarray(logs) / LN10, places)


def _rounded(values: Any, places: int) -> list[float | str | None]:
    return [_spelled(float(value), places) for value in values]


def _spelled(value: float, places: int) -> float | str | None:
    if math.isnan(value):
        return None
    return round(value, places) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _trimmed(values: Sequence[float | str | None]) -> list[float | str | None]:
    """Without what is missing at the end."""
    last = next((i for i in range(len(values), 0, -1) if values[i - 1] is not None), 0)
    return list(values[:last])
