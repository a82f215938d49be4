"""Tables inside the page: the very bytes of the files, the smallest first, the rest named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from gradlab_reports import write_report
from gradlab_reports.catalog import FigureKind
from gradlab_reports.downloads import TABLES, fitting_downloads, left_out
from gradlab_reports.drawing import Drawing

WriteRun = Callable[..., Path]
HOSTILE = '</a><script>alert("1")</script>\n,é#%&\n'


def folder_of(tmp_path: Path, **sizes: int) -> Path:
    for name, size in sizes.items():
        (tmp_path / name.replace("__", ".")).write_bytes(b"1,2\n" * (size // 4))
    return tmp_path


def test_addresses_hold_the_files_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text(HOSTILE, encoding="utf-8")
    (found,) = fitting_downloads(tmp_path, 10_000)
    kind, _, content = found.address.partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    assert unquote_to_bytes(content) == HOSTILE.encode()
    assert not set(content) & set("<>\"'&# ")


def test_the_largest_files_are_left_out_and_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, steps__csv=400, pairs__csv=400_000, ladder__csv=4_000)
    found = {each.name: each for each in fitting_downloads(folder, 20_000)}
    assert list(found) == ["ladder.csv", "steps.csv", "pairs.csv"]  # in the order of the page
    assert [name for name, each in found.items() if each.address] == ["ladder.csv", "steps.csv"]
    words = left_out(list(found.values())).replace("\u00a0", " ")
    assert words == "Too large for the page; in the folder beside it: pairs.csv (400 kB)."
    assert left_out([found["steps.csv"]]) == ""
    assert all(not each.address for each in fitting_downloads(folder, 0))


def test_files_that_are_no_table_of_a_run_stay_outside(tmp_path: Path) -> None:
    (tmp_path / "passwords.csv").write_text("a")
    assert fitting_downloads(tmp_path, 1_000) == []
    assert all(Path(name).name == name for name in TABLES)


@pytest.mark.parametrize("recurrences", [1, 12])
def test_the_largest_run_stays_below_two_megabytes(
    write_run: WriteRun, decay: Any, monkeypatch: pytest.MonkeyPatch, recurrences: int
) -> None:
    """Figures of 150 kB, numbers at the pointer of 40 kB each, and tables of many megabytes."""

    def drawn(kind: FigureKind, frame: object, stem: str, prefix: str) -> Drawing:
        forms = ("s" * 150_000, "p" * 90_000, "l" * 20_000)
        hover = f'{{"x":"{"<" * 40_000}"}}' if kind.name in ("decay", "pairs") else ""
        return Drawing(kind=kind, stem=stem, forms=forms, finding="1", hover=hover)

    monkeypatch.setattr("gradlab_reports.bundle.draw", drawn)
    run = write_run("run", *(decay(name=f"r{i}") for i in range(recurrences)), steps=40)
    row = "r0,0,1,0,1,-0.1,-0.1,-0.1\n"
    with (run / "pairs.csv").open("a", encoding="utf-8") as stream:
        stream.write(row * 200_000)
    page = write_report(run)
    assert page.stat().st_size < 2_000_000
    text = page.read_text(encoding="utf-8")
    assert "pairs.csv (" in text
    assert 'download="pairs.csv"' not in text
    assert 'download="summary.json"' in text or recurrences > 1
