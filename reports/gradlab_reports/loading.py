"""The frame that a kind of figure draws, from a folder of results or straight from a CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradlab as gl
from gradlab_reports.catalog import COMPARISON, FigureKind
from gradlab_reports.run_folder import one_recurrence, read_document, read_table
from gradlab_reports.sweep_loading import sweep_frame
from gradlab_reports.sweep_tables import beside
from gradlab_reports.tables import number

if TYPE_CHECKING:
    import pandas as pd

ADVICE = {
    "gradient.csv": "analyze the network with --targets to have it",
    "gradient_pairs.csv": "analyze the network with --targets and --pairs to have it",
    "lyapunov.csv": "analyze the network, without --exponents 0, to have it",
    "product_spectrum.csv": "only networks whose states are not too large have it",
    "slopes.csv": "analyze the network again: runs of older versions lack it",
    "units.csv": "analyze the network again: runs of older versions lack it",
    "gates.csv": "only gated cells have it",
    "paths.csv": "only cells that carry their state on have it",
    "pairs.csv": "analyze the network with --pairs to have it",
    "sweep.csv": "expected a folder as written by gradlab sweep -o",
    "sweep_profiles.csv": "expected a folder as written by gradlab sweep -o",
    "compare.csv": "expected a folder as written by gradlab compare -o",
    "training.csv": "expected a folder as written by gradlab train -o",
    "clipping.csv": "expected a folder as written by gradlab train -o",
}


def load_frame(source: Path, kind: FigureKind, recurrence: str | None = None) -> pd.DataFrame:
    """Read what a figure draws.

    Parameters
    ----------
    source
        A run or sweep folder, or the CSV file that this kind is drawn from.
    kind
        The kind of figure.
    recurrence
        Which recurrence; None where the table holds one only, and for a comparison, which shows
        them all.

    Returns
    -------
    frame
        The table's rows of that recurrence.

    Raises
    ------
    gl.RunFolderError
        If the file is missing or does not fit the kind.
    gl.SettingError
        If the recurrence must be chosen; ``gl.UnknownNameError`` if it does not exist.
    """
    path = table_path(Path(source), kind)
    if kind.table.startswith("sweep"):
        return sweep_frame(path, kind)
    table = read_table(path, kind.columns, kind.optional)
    # Of a comparison all recurrences are drawn together.
    if kind is not COMPARISON or recurrence is not None:
        table = one_recurrence(table, recurrence, path)
    added = _ADDED.get(kind.table)
    return table if added is None else added(table, path)


def table_path(source: Path, kind: FigureKind) -> Path:
    """Return the file that a kind is drawn from; it exists, else ``gl.RunFolderError``."""
    if source.is_file():
        return source
    if not source.exists():
        raise gl.RunFolderError(f"{source} does not exist: expected a run folder or {kind.table}")
    path = beside(source, Path(kind.table).stem)
    if not path.is_file():
        advice = ADVICE.get(kind.table, "expected a folder as written by gradlab analyze -o")
        raise gl.RunFolderError(
            f"{source} holds no {kind.table}, the source of the figure {kind.name!r}: {advice}"
        )
    return path


def _with_task(log: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Add the loss without memory and the steps measured along, where the manifest tells them."""
    manifest = _manifest_beside(path)
    baseline = manifest.get("baseline")
    loss = baseline.get("loss") if isinstance(baseline, dict) else None
    return log.assign(baseline=number(loss), probe_length=number(manifest.get("probe_length")))


def _with_threshold(norms: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Add the threshold that the training clipped at, where the manifest tells it."""
    audit = _manifest_beside(path).get("clipping")
    found = audit.get("threshold") if isinstance(audit, dict) else None
    return norms.assign(threshold=number(found))


def _manifest_beside(path: Path) -> dict[str, Any]:
    beside = path.parent / "manifest.json"
    return read_document(beside) if beside.is_file() else {}


def _with_theory(exponents: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Add what mean-field theory predicts of each exponent, where the run has such a theory."""
    return _joined(exponents, path.parent / "mean_field.csv", "index", "exponent", "predicted")


def _with_predicted_norm(profile: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Add the norm that mean-field theory predicts at each lag, where the run has such a theory."""
    beside = path.parent / "mean_field_profile.csv"
    return _joined(profile, beside, "lag", "log_norm", "log_norm_predicted")


def _joined(table: pd.DataFrame, beside: Path, key: str, column: str, renamed: str) -> pd.DataFrame:
    """Table with a column of the file beside it; as it is where there is no such file."""
    if not beside.is_file():
        return table
    other = read_table(beside, (key, column)).rename(columns={column: renamed})
    keys = [name for name in (key, "recurrence") if {name} <= {*table.columns} & {*other.columns}]
    return table.merge(other[[*keys, renamed]], on=keys, how="left")


def _with_counts(spectrum: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Add how many directions count at each lag, where the run tells it."""
    beside = path.parent / "directions.csv"
    if not beside.is_file():
        return spectrum
    counts = read_table(beside, ("lag", "participation_ratio", "surviving"))
    keys = ["lag"]
    if "recurrence" in spectrum.columns and "recurrence" in counts.columns:
        keys.append("recurrence")
    told = counts[[*keys, "participation_ratio", "surviving"]]
    return spectrum.merge(told, on=keys, how="left")


_ADDED: dict[str, Callable[[pd.DataFrame, Path], pd.DataFrame]] = {
    "lag_profile.csv": _with_predicted_norm,
    "lyapunov.csv": _with_theory,
    "product_spectrum.csv": _with_counts,
    "training.csv": _with_task,
    "clipping.csv": _with_threshold,
}


class RunTables:
    """The tables of one run, each read once with the columns that its figures draw."""

    def __init__(self, folder: Path, kinds: Sequence[FigureKind]) -> None:
        self._folder = folder
        self._kinds = kinds
        self._read: dict[str, pd.DataFrame | gl.GradlabError] = {}

    def frame(self, table: str, recurrence: str) -> pd.DataFrame:
        """Rows of one recurrence; what is wrong with the file is raised at every asking."""
        if table not in self._read:
            try:
                self._read[table] = self._load(table)
            except gl.GradlabError as error:
                self._read[table] = error
        found = self._read[table]
        if isinstance(found, gl.GradlabError):
            raise found
        path = self._folder / table
        rows = one_recurrence(found, recurrence, path)
        added = _ADDED.get(table)
        return rows if added is None else added(rows, path)

    def leaves_out(self, table: str, recurrence: str) -> bool:
        """Whether the table can be read and has no row of a recurrence."""
        try:
            self.frame(table, recurrence)
        except gl.UnknownNameError:
            return True
        except gl.GradlabError:
            return False
        return False

    def _load(self, table: str) -> pd.DataFrame:
        kinds = [kind for kind in self._kinds if kind.table == table]
        columns = dict.fromkeys(name for kind in kinds for name in kind.columns)
        optional = [name for kind in kinds for name in kind.optional] if kinds else None
        return read_table(self._folder / table, list(columns), optional)
