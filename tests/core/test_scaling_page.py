"""The page on very large sweeps says what its simulation found."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "scaling"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling", FOLDER / "scaling.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parent_that_is_always_busy_feeds_as_many_workers_as_it_has_time_for(
    script: ModuleType,
) -> None:
    parent = {"chunk": 0.001, "point": 0.0001}
    for workers, chunk in ((400, 1), (400, 4)):
        each = parent["chunk"] + parent["point"] * chunk + script.NETWORK_SECONDS
        fed = 0.1 * chunk / each
        lost = script.lost_share(workers, chunk, 0.1, parent)
        assert lost == pytest.approx(1.0 - fed / workers, abs=0.02)


def test_few_workers_lose_what_their_first_chunks_wait_for(script: ModuleType) -> None:
    parent = {"chunk": 0.0, "point": 0.0}
    lost = script.lost_share(1, 1, 1.0, parent)
    assert lost == pytest.approx(script.NETWORK_SECONDS / script.ROUNDS, rel=0.1)


def test_page_has_the_smallest_chunks_of_the_table() -> None:
    with (FOLDER / "scaling.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if float(row["lost_share"]) <= 0.05]
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    for size in ("64", "128", "256", "512"):
        smallest = [
            min(int(r["chunk"]) for r in rows if (r["hidden_size"], r["workers"]) == (size, w))
            for w in ("2", "16", "64", "256", "1024", "4096")
        ]
        assert f"| {size} | {' | '.join(map(str, smallest))} |" in page


def test_page_has_the_core_days_of_the_measured_times() -> None:
    costs = json.loads((FOLDER / "costs.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    for size, seconds in costs["points"].items():
        days = float(f"{1e7 * seconds / 86400:.4g}")
        told = f"{days:.1f}" if days < 10 else f"{days:.0f}"
        assert f"| {size} | {float(f'{seconds:.2g}'):g} | {told} |" in page
