"""Tables that figures draw, straight from records: no file in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import gradlab as gl

if TYPE_CHECKING:
    import pandas as pd


def figure_frame(figure: str, source: Any) -> pd.DataFrame:
    """Return the table of a figure.

    Parameters
    ----------
    figure
        Name of the figure's module.
    source
        The table itself, or a record that has it: a run or one of its recurrences, or the single
        measurement that the figure shows.

    Returns
    -------
    frame
        Columns of the file that the figure is drawn from.

    Raises
    ------
    gl.SettingError
        If the record has no such table, or holds several recurrences.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "recurrences") and hasattr(source, "provenance"):
        source = _only(source)
    table = _table(figure, source)
    if table is None:
        raise gl.SettingError(
            f"{type(source).__name__} has no table for the figure {figure!r}: expected a run or a "
            "measurement that has it, or the table itself"
        )
    return table


def _only(run: Any) -> Any:
    """The one recurrence of a run."""
    if len(run.recurrences) != 1:
        names = ", ".join(run.recurrences)
        raise gl.SettingError(
            f"the run holds {len(run.recurrences)} recurrences ({names}): expected one; choose it "
            "with run.recurrences[name]"
        )
    return next(iter(run.recurrences.values()))


def _table(figure: str, record: Any) -> pd.DataFrame | None:
    if hasattr(record, "description"):
        build = _OF_RECURRENCE.get(figure)
        table = None if build is None else build(record)
        return table if table is None else table.assign(recurrence=record.description.name)
    if figure == "sweep_decay" and hasattr(record, "profiles_frame"):
        return _with_gamma(record.profiles_frame(), record.to_frame())
    method = getattr(record, _METHODS.get(figure, "to_frame"), None)
    return None if method is None else method()


def _with_gamma(profiles: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    gammas = points["gamma" if "gamma" in points.columns else "gamma_w"]
    return profiles.assign(gamma=profiles["point"].map(gammas.to_dict()))


def _profile(entry: Any) -> pd.DataFrame:
    """Norm and bounds by lag, with the norm that theory predicts where there is one."""
    table: pd.DataFrame = entry.lag_profile()
    theory = entry.mean_field_profile()
    if theory is None:
        return table
    return table.merge(theory.rename(columns={"log_norm": "log_norm_predicted"}), "left", on="lag")


def _exponents(entry: Any) -> pd.DataFrame | None:
    table: pd.DataFrame | None = entry.exponents()
    theory = entry.mean_field_spectrum()
    if table is None or theory is None:
        return table
    predicted = theory[["index", "exponent"]].rename(columns={"exponent": "predicted"})
    return table.merge(predicted, "left", on="index")


def _directions(entry: Any) -> pd.DataFrame | None:
    table: pd.DataFrame | None = entry.product_spectrum()
    if table is None:
        return None
    counts = entry.surviving_directions()[["lag", "participation_ratio", "surviving"]]
    return table.merge(counts, "left", on="lag")


def _gradient(entry: Any, method: str) -> pd.DataFrame | None:
    return None if entry.gradient is None else getattr(entry.gradient, method)()


_OF_RECURRENCE: Mapping[str, Callable[[Any], pd.DataFrame | None]] = {
    "decay": _profile,
    "ladder": _profile,
    "gradient": lambda entry: _gradient(entry, "by_lag"),
    "gradient_pairs": lambda entry: _gradient(entry, "to_frame"),
    "bounds": lambda entry: entry.last_ladder.to_frame(),
    "directions": _directions,
    "pairs": lambda entry: entry.pairs(),
    "spectrum": lambda entry: entry.spectrum.to_frame(),
    "singular_values": lambda entry: entry.spectrum.to_frame(),
    "lyapunov": _exponents,
    "saturation": lambda entry: entry.steps(),
    "slopes": lambda entry: entry.saturation.spread_frame(),
    "units": lambda entry: entry.saturation.units_frame(),
    "gates": lambda entry: entry.gate_values(),
    "paths": lambda entry: entry.paths(),
}
# Of a single measurement, where the table is not the one of ``to_frame``.
_METHODS = {
    "decay": "by_lag",
    "gradient": "by_lag",
    "slopes": "spread_frame",
    "units": "units_frame",
    "gates": "values_frame",
}
