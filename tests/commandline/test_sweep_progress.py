"""Progress of a sweep: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import pytest

from gradlab_cli.console import Console
from gradlab_cli.progress import PlainProgress, spoken_time, sweep_progress


def test_lines_say_points_rate_time_left_and_failures() -> None:
    lines: list[str] = []
    progress = PlainProgress(total=200, write=lines.append, every=0.0)
    progress.tell(50, 0)
    progress.counted.started -= 10.0
    progress.tell(50, 3)
    assert lines[0] == "50 of 200 points (25%)"
    assert lines[1] == "100 of 200 points (50%), 5/s, 20 s left, 3 failed"


def test_short_sweeps_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with sweep_progress(Console(), 2) as on_done:
        on_done(0, 0)
        on_done(2, 0)
    assert capsys.readouterr() == ("", "")


def test_quiet_means_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with sweep_progress(Console(quiet=True), 2) as on_done:
        on_done(2, 2)
    assert capsys.readouterr() == ("", "")


def test_bar_counts_points_and_failures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "live", True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with sweep_progress(Console(), 8) as on_done:
        on_done(2, 0)
        on_done(3, 1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "5/8" in shown.err
    assert "1 failed" in shown.err


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5 s"), (59.0, "59 s"), (150.0, "2.5 min"), (7200.0, "2 h"), (8.64e6, "100 days")],
)
def test_durations_have_the_unit_of_their_size(seconds: float, text: str) -> None:
    assert spoken_time(seconds) == text
