"""Reports and figures from saved files: read, draw, write; nothing is measured here."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import gradlab as gl
from gradlab_reports.catalog import (
    COMPARISON,
    KINDS,
    PAGE_FILES,
    PAGE_FORMATS,
    RUN_KINDS,
    SWEEP_COLUMNS,
    TRAINING_KINDS,
    FigureKind,
)
from gradlab_reports.drawing import Drawing, draw, failed, plot_function
from gradlab_reports.loading import RunTables, load_frame
from gradlab_reports.run_folder import (
    RunFolder,
    open_comparison,
    open_run,
    read_document,
    read_table,
)
from gradlab_reports.sweep_loading import fitting_kinds

if TYPE_CHECKING:
    from gradlab_reports.article import Article
    from gradlab_reports.filling import Filling

logger = logging.getLogger("gradlab_reports")

FORMATS = ("png", "svg", "pdf")


def write_report(folder: Path, *, formats: Sequence[str] = ("html",)) -> Path:
    """Add figures and a page to a run folder.

    Parameters
    ----------
    folder
        A complete run folder; ``figures/`` and the pages in it are written anew.
    formats
        Of the page: ``html``, ``md``, ``json``; each is a file ``report.<format>``.

    Returns
    -------
    page
        Path of the first. ``report.html`` is one file that needs nothing else, below two megabytes;
        ``report.md`` shows the pictures beside it, ``report.json`` names them. A figure that cannot
        be drawn is logged and named on the page; the rest of the page stands.

    Raises
    ------
    gl.UnknownNameError
        If there is no such format.
    gl.RunFolderError
        If the folder is not a complete run.
    gl.OutputError
        If it cannot be written to.
    """
    from gradlab_reports.page import PAGES

    _check_formats(formats)
    run = open_run(Path(folder))
    data = RunTables(run.path, RUN_KINDS)
    drawings = _draw_run(run, data)
    with _writing(run.path):
        (run.path / "figures").mkdir(exist_ok=True)
        for row in drawings.values():
            for drawing in row:
                drawing.save(run.path / "figures")
    for name in formats:
        _write(run.path / f"report.{name}", PAGES[name](run, drawings, data).encode("utf-8"))
    return run.path / f"report.{formats[0]}"


def write_figure(
    source: Path,
    kind: str,
    output: Path,
    *,
    recurrence: str | None = None,
    columns: Mapping[str, str] | None = None,
    theme: str = "light",
    force: bool = False,
) -> Path:
    """Draw one figure from saved numbers.

    Parameters
    ----------
    source
        A folder of results, or the CSV file that the kind is drawn from.
    kind
        One of `figure_kinds`.
    output
        File to write; its suffix is ``.png``, ``.svg`` or ``.pdf``.
    recurrence
        Which recurrence of the run; may be left out where there is one only.
    columns
        Of the kind ``sweep``: which columns are ``x``, ``y``, ``hue`` and ``facet``.
    theme
        ``light`` or ``dark``.
    force
        Whether an existing file may be replaced.

    Returns
    -------
    output
        The path written.

    Raises
    ------
    gl.UnknownNameError
        If there is no such kind, format, recurrence, column or theme.
    gl.OutputError
        If the output exists and ``force`` is off, or cannot be written.
    gl.RunFolderError
        If the source does not hold what the kind is drawn from.
    gl.SettingError
        If there are several recurrences and none was chosen, or columns for another kind.
    """
    output = Path(output)
    if kind not in KINDS:
        raise gl.unknown_name("figure kind", kind, KINDS)
    suffix = output.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise gl.unknown_name("figure format", suffix, FORMATS)
    if columns and kind != SWEEP_COLUMNS.name:
        raise gl.SettingError(
            f"{', '.join(columns)} with the kind {kind!r}: expected the kind 'sweep', the one "
            "whose columns can be chosen"
        )
    if output.exists() and not force:
        raise gl.OutputError(f"{output} exists: choose another name or pass --force")
    frame = load_frame(Path(source), KINDS[kind], recurrence)
    from gradlab_reports.canvas import figure_of, rendered

    figure = figure_of(plot_function(KINDS[kind])(frame, theme=theme, **(columns or {})))
    _write(output, rendered(figure, suffix))
    return output


def write_sweep_figures(folder: Path) -> list[Path]:
    """Draw the figures of a sweep into its folder.

    Parameters
    ----------
    folder
        A folder with ``sweep.csv`` and ``sweep_profiles.csv``.

    Returns
    -------
    paths
        The files written below ``figures/``; a figure that cannot be drawn is logged and left out.
        Of several model files ``models`` in place of the map. None over spectral norms where no
        point has one, as gated cells have not.

    Raises
    ------
    gl.RunFolderError
        If the folder is not there.
    gl.OutputError
        If it cannot be written to.
    """
    folder = Path(folder)
    return _write_figures(folder, fitting_kinds(folder), "sweep")


def write_training(folder: Path, *, formats: Sequence[str] = ("html",)) -> Path:
    """Add the figures and the page to the folder of a training.

    Parameters
    ----------
    folder
        A folder with ``training.csv``, ``clipping.csv`` and ``manifest.json``; the training may
        still be marked as unfinished.
    formats
        Of the page, each a file ``training.<format>``.

    Returns
    -------
    page
        Path of the first. A figure that cannot be drawn is logged and named on the page.

    Raises
    ------
    gl.UnknownNameError
        If there is no such format.
    gl.RunFolderError
        If the folder is not there, or its log cannot be read.
    gl.OutputError
        If it cannot be written to.
    """
    from gradlab_reports.article_page import TRAINING_TABLES, training_article

    _check_formats(formats)
    folder = Path(folder)
    _require_folder(folder, "train")
    log = read_table(folder / "training.csv", KINDS["training"].columns)
    drawings = _draw_figures(folder, TRAINING_KINDS)
    compose = training_article(read_document(folder / "manifest.json"), log, drawings)
    files = PAGE_FILES["training"]
    return _write_articles(folder, compose, drawings, TRAINING_TABLES, files, formats)


def _write_figures(folder: Path, kinds: Sequence[FigureKind], command: str) -> list[Path]:
    _require_folder(folder, command)
    drawings = _draw_figures(folder, kinds)
    return [path for drawing in drawings for path in drawing.files(folder / "figures")]


def _require_folder(folder: Path, command: str) -> None:
    if not folder.is_dir():
        raise gl.RunFolderError(
            f"{folder} is not a folder: expected one as written by gradlab {command} -o"
        )


def _draw_figures(folder: Path, kinds: Sequence[FigureKind]) -> list[Drawing]:
    """Draw figures of a whole folder, and save them below ``figures/``."""
    drawings = [_draw_whole(folder, kind) for kind in kinds]
    with _writing(folder):
        (folder / "figures").mkdir(exist_ok=True)
        for drawing in drawings:
            drawing.save(folder / "figures")
    return drawings


def _write_articles(
    folder: Path,
    compose: Callable[[Filling], Article],
    drawings: Sequence[Drawing],
    tables: Mapping[str, str],
    files: Mapping[str, str],
    formats: Sequence[str],
) -> Path:
    """Write a page in some formats, and return the path of the first."""
    from gradlab_reports.article_page import article_text

    for format in formats:
        text = article_text(compose, format, drawings, folder, tables)
        _write(folder / files[format], text.encode("utf-8"))
    return folder / files[formats[0]]


def _check_formats(formats: Sequence[str]) -> None:
    for name in formats:
        if name not in PAGE_FORMATS:
            raise gl.unknown_name("format of a page", name, PAGE_FORMATS)


def write_comparison(folder: Path, *, formats: Sequence[str] = ("html",)) -> Path:
    """Add the figure and the page to the folder of a comparison.

    Parameters
    ----------
    folder
        A folder with ``compare.csv``, ``compare.json`` and ``manifest.json``.
    formats
        Of the page: ``compare.html``, ``compare.md``; ``json`` is ``compare.page.json``, since
        ``compare.json`` holds the numbers.

    Returns
    -------
    page
        Path of the first. ``compare.html`` is one file that needs nothing else. A figure that
        cannot be drawn is logged and named on the page.

    Raises
    ------
    gl.UnknownNameError
        If there is no such format.
    gl.RunFolderError
        If the folder is not a complete comparison.
    gl.OutputError
        If it cannot be written to.
    """
    from gradlab_reports.article_page import COMPARISON_TABLES, comparison_article

    _check_formats(formats)
    folder = Path(folder)
    document, manifest = open_comparison(folder), read_document(folder / "manifest.json")
    drawings = _draw_figures(folder, [COMPARISON])
    compose = comparison_article(document, manifest, drawings)
    files = PAGE_FILES["comparison"]
    return _write_articles(folder, compose, drawings, COMPARISON_TABLES, files, formats)


def _draw_whole(folder: Path, kind: FigureKind) -> Drawing:
    try:
        frame = load_frame(folder, kind)
    except gl.GradlabError as error:
        logger.warning("figure %s could not be drawn: %s", kind.name, error)
        return failed(kind, kind.name, error)
    return draw(kind, frame, kind.name, prefix=kind.module)


def _draw_run(run: RunFolder, data: RunTables) -> dict[str, list[Drawing]]:
    names = [str(entry["name"]) for entry in run.recurrences]
    endings = file_endings(names)
    kinds = [kind for kind in RUN_KINDS if run.has(kind.table)]
    return {
        name: [
            _draw_one(data, kind, name, endings[name], f"r{index}")
            for kind in kinds
            if not (kind.partial and data.leaves_out(kind.table, name))
        ]
        for index, name in enumerate(names)
    }


def _draw_one(data: RunTables, kind: FigureKind, name: str, ending: str, anchor: str) -> Drawing:
    stem = f"{kind.name}{ending}"
    try:
        frame = data.frame(kind.table, name)
    except gl.GradlabError as error:
        logger.warning("figure %s could not be drawn: %s", stem, error)
        return failed(kind, stem, error)
    return draw(kind, frame, stem, prefix=f"{anchor}{kind.module}")


def file_endings(names: list[str]) -> dict[str, str]:
    """Endings that tell the files of several recurrences apart, whatever their names hold.

    Parameters
    ----------
    names
        Names of the recurrences, from a file that is not to be trusted.

    Returns
    -------
    endings
        By name: nothing for a single recurrence, else letters, digits, dots and dashes.
    """
    if len(names) == 1:
        return {names[0]: ""}
    endings: dict[str, str] = {}
    for index, name in enumerate(names):
        safe = re.sub(r"[^A-Za-z0-9.]+", "-", name)[:60].strip("-.") or "recurrence"
        taken = safe.lower() in {ending[1:].lower() for ending in endings.values()}
        endings[name] = f"-{safe}-{index}" if taken else f"-{safe}"
    return endings


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise gl.OutputError(
            f"{place} cannot be written to ({error.strerror or error}): choose a writable place "
            "with room on the disk"
        ) from error


def _write(path: Path, content: bytes) -> None:
    """Write a file wholly or not at all."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
