"""A run of 256 units over 1000 steps: every figure finds room on a page of two megabytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlab_reports import write_report

WriteRun = Callable[..., Path]


@pytest.fixture(scope="module")
def large(write_once: WriteRun, decay: Any) -> Path:
    """Tables as long as those of an analysis with eight end times."""
    entry = decay(hidden_size=256, gamma_w=1.6, rate=-0.2, spread=0.1, onestep=0.1, alignment=0.4)
    times = range(125, 1001, 125)
    return write_report(write_once("run", entry, steps=1000, partial=True, end_times=times))


def test_the_page_stays_small_and_shows_every_figure(large: Path) -> None:
    text = large.read_text(encoding="utf-8")
    assert large.stat().st_size < 2_000_000
    assert "no room" not in text
    assert "could not be drawn" not in text


def test_pictures_stay_light(large: Path) -> None:
    """Curves are thinned and maps are images, so that no file grows with the steps."""
    sizes = {path.name: path.stat().st_size for path in (large.parent / "figures").iterdir()}
    assert max(sizes.values()) < 500_000, sizes
